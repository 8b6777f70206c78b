"""Checks of the arguments that a tool's schema marks with `x-mcp-header`, on the client's side: a tool with an
invalid mark is not offered over HTTP, because a call of the tool could not be sent correctly (2026-07-28, Streamable
HTTP, Custom Headers).

`routing_headers.py` reads the marks of valid schemas.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from .routing_headers import MARK, MARKED_TYPES, TOKEN

_SCHEMA_KEYWORDS = (
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
_SCHEMA_LIST_KEYWORDS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_SCHEMA_MAP_KEYWORDS = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
"""The keywords of JSON Schema that contain schemas: a single schema, a list, or schemas by name."""

_Place = tuple[Any, ...] | None
"""The position of the outer schema, and the path from there; None at the root. It is only formatted for messages,
since a server may use a name of a megabyte with thousands of schemas beneath it."""


def marking_fault(schema: Mapping[str, Any]) -> str | None:
    """Return the error in the first invalid mark in the `schema` of a tool's arguments, or None if there is no
    invalid mark. A mark must be a token and unique in the tool, ignoring case, and must be on a string, an integer or
    a boolean that is reached through property names only."""
    seen: set[str] = set()
    for place, node, is_argument in _nodes(schema):
        if MARK not in node:
            continue
        mark = node[MARK]
        fault = None
        if not isinstance(mark, str) or TOKEN.fullmatch(mark) is None:
            fault = "is not a valid header name"
        elif not is_argument or not place:
            fault = "is not on an argument"
        elif node.get("type") not in MARKED_TYPES:
            fault = "is not on a string, integer or boolean"
        elif mark.lower() in seen:
            fault = "has the header name of another argument"
        if fault is not None:
            return f"its {MARK} at {_written(place)} {fault}"
        seen.add(mark.lower())
    return None


def _written(place: _Place) -> str:
    parts: list[str] = []
    while place is not None:
        place, *last = place
        parts = [*map(str, last), *parts]
    return "".join(f"/{part}" for part in parts) or "the root"


def _nodes(schema: Mapping[str, Any]) -> Iterator[tuple[_Place, Mapping[str, Any], bool]]:
    """Iterate over every schema in `schema`, with its position, and True if it is reached through property names
    only."""
    waiting: list[tuple[_Place, Any, bool]] = [(None, schema, True)]
    while waiting:
        place, node, is_argument = waiting.pop()
        if not isinstance(node, Mapping):
            continue
        yield place, node, is_argument
        for key, value in node.items():
            if isinstance(value, Mapping) and key in _SCHEMA_MAP_KEYWORDS:
                deeper = is_argument and key == "properties"
                waiting += [((place, key, name), inner, deeper) for name, inner in value.items()]
            elif isinstance(value, list) and key in _SCHEMA_LIST_KEYWORDS:
                waiting += [((place, key, number), inner, False) for number, inner in enumerate(value)]
            elif key in _SCHEMA_KEYWORDS:
                waiting.append(((place, key), value, False))
