"""Texts of a command line as arguments of a tool, by its schema."""

from typing import Any

import pytest

from servers.bundle.terminal.exit_codes import Misuse
from servers.bundle.terminal.parameters import parameters_of, read_arguments


def tool(one: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": one}, **more}


NULLABLE = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
POINT = {"$ref": "#/$defs/Point"}
POINTS = {"$defs": {"Point": {"type": "object", "properties": {"x": {"type": "number"}}}}}
TITLED = {"oneOf": [{"const": 1, "title": "One"}, {"const": 2, "title": "Two"}]}


MEANT: list[tuple[Any, list[str], Any]] = [
    ({"type": "string"}, ["12"], "12"),
    ({"type": "string"}, ["a=b"], "a=b"),
    ({"type": "integer"}, ["-12"], -12),
    ({"type": "number"}, ["1e3"], 1000.0),
    ({"type": "boolean"}, ["true"], True),
    ({"type": "boolean"}, ["No"], False),
    ({"type": ["integer", "string"]}, ["12"], 12),
    ({"type": ["integer", "string"]}, ["12a"], "12a"),
    (NULLABLE, ["null"], None),
    (NULLABLE, ["3"], 3),
    (POINT, ['{"x": 1}'], {"x": 1}),
    ({"type": "array", "items": {"type": "integer"}}, ["1"], [1]),
    ({"type": "array", "items": {"type": "integer"}}, ["1", "2"], [1, 2]),
    ({"type": "array", "items": {"type": "integer"}}, ["[1, 2]"], [1, 2]),
    ({"type": "array", "items": POINT}, ['{"x": 1}', '{"x": 2}'], [{"x": 1}, {"x": 2}]),
    ({"type": "array"}, ["a", "1"], ["a", 1]),
    ({"enum": ["fast", 1]}, ["1"], 1),
    (TITLED, ["2"], 2),
    ({}, ["[1]"], [1]),
    ({}, ["word"], "word"),
    (True, ["1"], 1),
    ({"$ref": "#/$defs/none"}, ["x"], "x"),
    ({"$ref": "#"}, ["{}"], {}),
    ({"type": "string"}, ["NaN"], "NaN"),
]


def test_a_text_is_converted_by_the_schema() -> None:
    found = [read_arguments([f"a={text}" for text in texts], tool(schema, **POINTS)) for schema, texts, _ in MEANT]
    assert found == [{"a": value} for *_, value in MEANT]


REFUSED: list[tuple[Any, list[str], str]] = [
    ({"type": "integer"}, ["1.5"], "a: expected integer, got '1.5'"),
    ({"type": "integer"}, ["true"], "a: expected integer, got 'true'"),
    ({"type": "number"}, ["NaN"], "a: expected number, got 'NaN'"),
    ({"type": "number"}, ["1e999"], "a: expected number, got '1e999'"),
    ({"type": "boolean"}, ["2"], "a: expected boolean, got '2'"),
    ({"type": "object"}, ["[1]"], r"a: expected object, got '\[1\]'; for example a='{}'"),
    ({"type": "string"}, ["x", "y"], "a takes one value, but got 2"),
    ({"type": "array", "items": {"type": "integer"}}, ["x"], "a: expected integer, got 'x'"),
    ({"enum": ["fast", "slow"]}, ["slw"], "a: expected fast, slow, got 'slw'; did you mean 'slow'?"),
]


def test_an_object_for_a_list_of_scalars_is_sent_unchanged() -> None:
    values = {"type": "array", "items": {"type": ["string", "number"]}}
    schema = {
        "type": "object",
        "properties": {"parameters": values, "rows": {"type": "array", "items": {"type": "object"}}},
    }
    assert read_arguments(['parameters={"id":9}'], schema) == {"parameters": {"id": 9}}
    assert read_arguments(['parameters={"id":9}', "parameters=b"], schema) == {"parameters": ['{"id":9}', "b"]}
    assert read_arguments(['rows={"id":9}'], schema) == {"rows": [{"id": 9}]}


def test_a_text_that_does_not_fit_the_schema_is_refused() -> None:
    for schema, texts, why in REFUSED:
        with pytest.raises(Misuse, match=why):
            read_arguments([f"a={text}" for text in texts], tool(schema))


KINDS: list[tuple[Any, str]] = [
    ({"type": "string"}, "text"),
    ({"type": ["number", "null"]}, "number"),
    ({"type": "array", "items": {"enum": ["x", "y"]}}, "list of x, y"),
    ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "text or list of text"),
    ({}, "anything"),
]


def test_the_kind_of_a_parameter_is_described() -> None:
    assert [(schema, parameters_of(tool(schema))["a"].kind) for schema, _ in KINDS] == KINDS


def test_an_unknown_argument_is_refused_unless_the_schema_allows_it() -> None:
    assert read_arguments(["b=1"], tool({}, additionalProperties=True)) == {"b": 1}
    with pytest.raises(Misuse, match="there is no argument 'b'; available: a"):
        read_arguments(["b=1"], tool({}))
    for schema in (None, [], {"properties": 3}, {"properties": {"a": 7}, "required": "a"}):
        assert read_arguments(["a=1"], schema) == {"a": 1}


def test_circular_references_end() -> None:
    assert parameters_of({"properties": {"a": {"$ref": "#/properties/a"}}})["a"].kind == "anything"
    again = {"anyOf": [{"$ref": "#"}] * 1000, "properties": {"a": {"type": "string"}}}
    assert parameters_of(again)["a"].kind == "text"
    lists = {"anyOf": [{"type": "array", "items": {"$ref": "#/properties/a"}} for _ in range(1000)]}
    assert parameters_of(tool(lists))["a"].kind.startswith("list of list of ")


EDIT = {
    "type": "object",
    "properties": {
        "note": {"type": "string"},
        "old": {"type": "string"},
        "at": {"$ref": "#/$defs/Place"},
        "mode": {"enum": ["all", "one"]},
    },
    "required": ["old", "at", "mode"],
}
PLACE = {"type": "object", "properties": {"lines": {"type": "array", "items": {"type": "integer"}}}}


@pytest.mark.parametrize("edits", [EDIT, {"type": "array", "items": EDIT}])
def test_an_invalid_object_is_refused_with_an_example(edits: dict[str, object]) -> None:
    schema = {"type": "object", "properties": {"edits": edits}, "$defs": {"Place": PLACE}}
    with pytest.raises(Misuse) as raised:
        read_arguments(["edits=x"], schema)
    example = """edits='{"old": "...", "at": {"lines": [1]}, "mode": "all"}'"""
    assert str(raised.value) == f"edits: expected object, got 'x'; for example {example}"


def test_the_example_of_a_recursive_schema_ends() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "required": ["next"]}
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    with pytest.raises(Misuse, match=r"""for example a='{"next": {"next": {"next": {}}}}'"""):
        read_arguments(["a=x"], schema)
