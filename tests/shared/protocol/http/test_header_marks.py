"""Which tools a client may call over HTTP, as far as the marks of their arguments decide it."""

import tracemalloc
from typing import Any

import pytest

from shared.protocol.http.header_marks import marking_fault


def _schema(**arguments: Any) -> dict[str, Any]:
    return {"type": "object", "properties": arguments}


def _marked(mark: Any, kind: Any = "string") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": mark}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        _schema(a={"type": "string"}),
        _schema(a=_marked("Region"), b=_marked("Count", "integer"), c=_marked("Dry", "boolean")),
        _schema(a=_schema(b=_schema(c=_marked("Deep")))),
        {"properties": {"x-mcp-header": {"type": "number"}}},
        _schema(a={"type": "number", "default": {"x-mcp-header": 1}, "enum": [{"x-mcp-header": ""}]}),
        {"properties": 3, "anyOf": {}, "items": "x", "$defs": []},
    ],
)
def test_sound_marks(schema: dict[str, Any]) -> None:
    assert marking_fault(schema) is None


@pytest.mark.parametrize("mark", ["", "a b", "a:b", "é", "a\n", "\x01", None, 3, ["a"], {}])
def test_a_mark_is_the_name_of_a_header(mark: Any) -> None:
    assert (
        marking_fault(_schema(a=_marked(mark))) == "its x-mcp-header at /properties/a is not a valid name of a header"
    )


@pytest.mark.parametrize("kind", ["number", "object", "array", "null", ["string", "null"], None])
def test_a_mark_stands_on_what_a_header_can_say(kind: Any) -> None:
    assert "no string, integer or boolean" in str(marking_fault(_schema(a=_marked("A", kind))))


@pytest.mark.parametrize("other", ["Region", "REGION"])
def test_a_mark_comes_once(other: str) -> None:
    schema = _schema(a=_marked("Region"), b=_schema(c=_marked(other)))
    assert "that another argument has" in str(marking_fault(schema))


@pytest.mark.parametrize(
    "schema",
    [
        _marked("A"),
        _schema(a={"type": "array", "items": _marked("A")}),
        _schema(a={"type": "array", "prefixItems": [_marked("A")]}),
        _schema(a={"additionalProperties": _marked("A")}),
        _schema(a={"patternProperties": {"x": _marked("A")}}),
        *({**_schema(), key: [_schema(a=_marked("A"))]} for key in ("oneOf", "anyOf", "allOf")),
        *({**_schema(), key: _schema(a=_marked("A"))} for key in ("not", "if", "then", "else")),
        {**_schema(a={"$ref": "#/$defs/a"}), "$defs": {"a": _marked("A")}},
    ],
)
def test_a_mark_is_found_by_names_of_properties(schema: dict[str, Any]) -> None:
    assert "does not stand on an argument" in str(marking_fault(schema))


def test_a_long_name_is_not_written_for_each_schema_beneath_it() -> None:
    beneath = {str(number): {} for number in range(1_000)}
    schema = _schema(**{"a" * 100_000: {"properties": beneath}})
    tracemalloc.start()
    try:
        assert marking_fault(schema) is None
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
