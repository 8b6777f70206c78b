"""Definitions replace their references."""

from shared.server.functions.inline_definitions import inline_definitions

POINT = {"type": "object", "properties": {"x": {"type": "integer", "description": "to the right"}}}


def test_a_definition_has_its_description_at_its_first_use_only():
    reference = {"$ref": "#/$defs/Point"}
    schema = {"$defs": {"Point": POINT}, "properties": {"a": reference, "b": {"items": reference}}}
    bare = {"type": "object", "properties": {"x": {"type": "integer"}}}
    assert inline_definitions(schema) == {"properties": {"a": POINT, "b": {"items": bare}}}


def test_keywords_beside_a_reference_are_kept():
    schema = {"$defs": {"Point": POINT}, "properties": {"a": {"$ref": "#/$defs/Point", "description": "where"}}}
    assert inline_definitions(schema)["properties"]["a"] == {**POINT, "description": "where"}


def test_a_property_named_description_is_not_a_description():
    page = {"properties": {"description": {"type": "string"}}}
    twice = {"prefixItems": [{"$ref": "#/$defs/Page"}, {"$ref": "#/$defs/Page"}]}
    assert inline_definitions({"$defs": {"Page": page}, **twice}) == {"prefixItems": [page, page]}


def test_a_recursive_definition_is_kept():
    node = {"properties": {"inner": {"items": {"$ref": "#/$defs/Node"}}, "at": {"$ref": "#/$defs/Point"}}}
    made = inline_definitions(
        {"$defs": {"Node": node, "Point": POINT}, "properties": {"a": {"$ref": "#/$defs/Node"}}}
    )
    inner = {"items": {"$ref": "#/$defs/Node"}}
    assert made["properties"]["a"] == {"properties": {"inner": inner, "at": POINT}}
    assert made["$defs"].keys() == {"Node"}
    assert made["$defs"]["Node"]["properties"]["inner"] == inner
    assert "$ref" not in made["$defs"]["Node"]["properties"]["at"]


def test_a_discriminator_names_no_removed_definition():
    mapping = {"propertyName": "kind", "mapping": {"a": "#/$defs/A"}}
    schema = {"$defs": {"A": {"type": "object"}}, "oneOf": [{"$ref": "#/$defs/A"}], "discriminator": mapping}
    assert inline_definitions(schema) == {"oneOf": [{"type": "object"}], "discriminator": {"propertyName": "kind"}}


def test_a_schema_without_definitions_is_unchanged():
    assert inline_definitions(POINT) is POINT
