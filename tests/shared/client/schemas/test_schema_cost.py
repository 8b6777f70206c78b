"""`Cost`: upper bounds for the work of a check."""

from typing import Any

import pytest

from shared.client.schemas.schema_cost import MAX_LEVELS, MAX_PATTERNS, MAX_SCHEMAS, Cost, UnusableSchema

TREE = {"properties": {"name": {"type": "string"}, "children": {"items": {"$ref": "#"}}}}


def refer(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def chain(keyword: str, length: int) -> dict[str, Any]:
    """Definitions, each of which applies the next twice."""
    links = {f"d{one}": {keyword: [refer(f"d{one + 1}")] * 2} for one in range(length)}
    return {"$defs": {**links, f"d{length}": {"type": "integer"}}, **refer("d0")}


COSTS: list[tuple[dict[str, Any], int, int]] = [
    ({}, 0, 1),
    ({"type": "object", "properties": {"a": {}, "b": {}}}, 0, 1),
    ({"type": "object", "properties": {"a": {}, "b": {}}}, 1, 3),
    ({"items": {"items": {}}}, 9, 3),
    ({"prefixItems": [{}, {}], "items": False}, 1, 3),
    ({"anyOf": [{}, {"not": {}}]}, 0, 4),
    ({"if": {}, "then": {}, "else": True}, 0, 3),
    ({"$defs": {"a": {}, "b": {}}, "default": {"$ref": "x"}}, 0, 1),
    ({"enum": [1, 2, 3], "required": ["a"]}, 0, 5),
    (chain("allOf", 3), 0, 30),
    (TREE, 0, 1),
    (TREE, 2, 5),
]


def test_the_applications_of_a_schema_are_counted() -> None:
    assert [Cost(schema).max_applications(levels) for schema, levels, _ in COSTS] == [cost for *_, cost in COSTS]


def test_the_cost_of_a_tree_grows_linearly_with_its_levels() -> None:
    cost = Cost(TREE)
    assert cost.max_applications(60) - cost.max_applications(40) == cost.max_applications(40) - cost.max_applications(
        20
    )


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_each_definition_that_applies_the_next_twice_doubles_the_cost(keyword: str) -> None:
    assert Cost(chain(keyword, 30)).max_applications(0) > 2**30


def test_a_level_checked_twice_doubles_the_cost() -> None:
    assert Cost({"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}).max_applications(30) > 2**30


def test_patterns_are_counted() -> None:
    assert Cost({"pattern": "a", "patternProperties": {"b": {"pattern": "c"}}}).patterns == 3


def wide(count: int) -> dict[str, Any]:
    return {"properties": {str(one): {} for one in range(count)}}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"$ref": "#"}, "endlessly"),
        ({"allOf": [{"not": {"$ref": "#"}}]}, "endlessly"),
        ({"$ref": "https://a.example/schema"}, "not fetched"),
        ({"items": {"$ref": "other.json#/a"}}, "not fetched"),
        ({"$ref": 3}, "not fetched"),
        ({"$ref": "#/$defs/none"}, "does not exist"),
        ({"$ref": "#/type/0", "type": "object"}, "does not exist"),
        ({"$dynamicRef": "#a"}, "not supported"),
        ({"items": {"$id": "https://a.example/b"}}, "not supported"),
        (wide(MAX_SCHEMAS), "5000 schemas"),
        ({"allOf": [{"pattern": "a"}] * (MAX_PATTERNS + 1)}, None),
        ({"allOf": [{"pattern": "a"} for _ in range(MAX_PATTERNS + 1)]}, "100 patterns"),
    ],
)
def test_unusable_schemas_are_refused_with_a_reason(schema: dict[str, Any], reason: str | None) -> None:
    if reason is None:
        assert Cost(schema).patterns == 1
    else:
        with pytest.raises(UnusableSchema, match=reason):
            Cost(schema)


def test_too_many_levels_are_refused() -> None:
    assert Cost(TREE).max_applications(MAX_LEVELS)
    with pytest.raises(UnusableSchema, match="levels"):
        Cost({}).max_applications(MAX_LEVELS + 1)


def test_references_are_json_pointers() -> None:
    schema = {"$defs": {"a/b": {"enum": [1, 2]}, "c%": [{}, {"enum": [1]}]}}
    assert Cost({**schema, "$ref": "#/$defs/a~1b"}).max_applications(0) == 4
    assert Cost({**schema, "$ref": "#/$defs/c%25/1"}).max_applications(0) == 3
