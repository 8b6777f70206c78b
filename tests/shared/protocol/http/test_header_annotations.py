"""Which tools a client may call over HTTP, as far as the annotations of their arguments decide it."""

import tracemalloc
from typing import Any

import pytest

from shared.protocol.http.header_annotations import find_annotation_error


def _schema(**arguments: Any) -> dict[str, Any]:
    return {"type": "object", "properties": arguments}


def _marked(mark: Any, kind: Any = "string") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": mark}


def test_sound_marks() -> None:
    schemas: list[dict[str, Any]] = [
        {},
        _schema(a={"type": "string"}),
        _schema(a=_marked("Region"), b=_marked("Count", "integer"), c=_marked("Dry", "boolean")),
        _schema(a=_schema(b=_schema(c=_marked("Deep")))),
        {"properties": {"x-mcp-header": {"type": "number"}}},
        _schema(a={"type": "number", "default": {"x-mcp-header": 1}, "enum": [{"x-mcp-header": ""}]}),
        {"properties": 3, "anyOf": {}, "items": "x", "$defs": []},
    ]
    assert [schema for schema in schemas if find_annotation_error(schema) is not None] == []


FAULTS: dict[str, list[dict[str, Any]]] = {
    "its x-mcp-header at /properties/a is not a valid header name": [
        _schema(a=_marked(mark)) for mark in ("", "a b", "a:b", "é", "a\n", "\x01", None, 3, ["a"], {})
    ],
    "not on a string, integer or boolean": [
        _schema(a=_marked("A", kind)) for kind in ("number", "object", "array", "null", ["string", "null"], None)
    ],
    "has the header name of another argument": [
        _schema(a=_marked("Region"), b=_schema(c=_marked(other))) for other in ("Region", "REGION")
    ],
    "is not on an argument": [
        _marked("A"),
        _schema(a={"type": "array", "items": _marked("A")}),
        _schema(a={"type": "array", "prefixItems": [_marked("A")]}),
        _schema(a={"additionalProperties": _marked("A")}),
        _schema(a={"patternProperties": {"x": _marked("A")}}),
        *({**_schema(), key: [_schema(a=_marked("A"))]} for key in ("oneOf", "anyOf", "allOf")),
        *({**_schema(), key: _schema(a=_marked("A"))} for key in ("not", "if", "then", "else")),
        {**_schema(a={"$ref": "#/$defs/a"}), "$defs": {"a": _marked("A")}},
    ],
}
"""Schemas by the words that tell what is wrong with their marks."""


@pytest.mark.parametrize("words", FAULTS)
def test_what_is_wrong_with_a_mark(words: str) -> None:
    assert [schema for schema in FAULTS[words] if words not in str(find_annotation_error(schema))] == []


def test_a_long_name_is_not_written_for_each_schema_beneath_it() -> None:
    beneath = {str(number): {} for number in range(1_000)}
    schema = _schema(**{"a" * 100_000: {"properties": beneath}})
    tracemalloc.start()
    try:
        assert find_annotation_error(schema) is None
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
