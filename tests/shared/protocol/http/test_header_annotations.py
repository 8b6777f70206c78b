"""Validation of the x-mcp-header annotations in input schemas."""

import tracemalloc
from typing import Any

import pytest

from shared.protocol.http.header_annotations import find_annotation_error


def _schema(**arguments: Any) -> dict[str, Any]:
    return {"type": "object", "properties": arguments}


def _annotated(mark: Any, kind: Any = "string") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": mark}


def test_valid_annotations_are_accepted() -> None:
    schemas: list[dict[str, Any]] = [
        {},
        _schema(a={"type": "string"}),
        _schema(a=_annotated("Region"), b=_annotated("Count", "integer"), c=_annotated("Dry", "boolean")),
        _schema(a=_schema(b=_schema(c=_annotated("Deep")))),
        {"properties": {"x-mcp-header": {"type": "number"}}},
        _schema(a={"type": "number", "default": {"x-mcp-header": 1}, "enum": [{"x-mcp-header": ""}]}),
        {"properties": 3, "anyOf": {}, "items": "x", "$defs": []},
    ]
    assert [schema for schema in schemas if find_annotation_error(schema) is not None] == []


FAULTS: dict[str, list[dict[str, Any]]] = {
    "its x-mcp-header at /properties/a is not a valid header name": [
        _schema(a=_annotated(mark)) for mark in ("", "a b", "a:b", "é", "a\n", "\x01", None, 3, ["a"], {})
    ],
    "not on a string, integer or boolean": [
        _schema(a=_annotated("A", kind)) for kind in ("number", "object", "array", "null", ["string", "null"], None)
    ],
    "has the same header name as another argument": [
        _schema(a=_annotated("Region"), b=_schema(c=_annotated(other))) for other in ("Region", "REGION")
    ],
    "is not on an argument": [
        _annotated("A"),
        _schema(a={"type": "array", "items": _annotated("A")}),
        _schema(a={"type": "array", "prefixItems": [_annotated("A")]}),
        _schema(a={"additionalProperties": _annotated("A")}),
        _schema(a={"patternProperties": {"x": _annotated("A")}}),
        *({**_schema(), key: [_schema(a=_annotated("A"))]} for key in ("oneOf", "anyOf", "allOf")),
        *({**_schema(), key: _schema(a=_annotated("A"))} for key in ("not", "if", "then", "else")),
        {**_schema(a={"$ref": "#/$defs/a"}), "$defs": {"a": _annotated("A")}},
    ],
}
"""Schemas with an invalid annotation, by the words of its error."""


@pytest.mark.parametrize("words", FAULTS)
def test_invalid_annotations_are_reported(words: str) -> None:
    assert [schema for schema in FAULTS[words] if words not in str(find_annotation_error(schema))] == []


def test_long_property_names_are_not_copied_for_each_nested_schema() -> None:
    beneath = {str(number): {} for number in range(1_000)}
    schema = _schema(**{"a" * 100_000: {"properties": beneath}})
    tracemalloc.start()
    try:
        assert find_annotation_error(schema) is None
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
