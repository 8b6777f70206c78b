"""The client's check of the `x-mcp-header` annotations in a tool's schema. Over HTTP a client leaves out a tool with
an invalid annotation, because it could not send a correct call (2026-07-28, Streamable HTTP, Custom Headers).

`routing_headers.py` reads the valid annotations.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from .routing_headers import ANNOTATED_TYPES, ANNOTATION, TOKEN

_SCHEMA_KEYWORDS = (
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
"""The keywords of JSON Schema that contain a single schema."""
_SCHEMA_LIST_KEYWORDS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
"""The keywords that contain a list of schemas."""
_SCHEMA_MAP_KEYWORDS = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
"""The keywords that contain schemas by name."""

_Path = tuple[Any, ...] | None
"""The path to a schema, as a linked list: the path of its parent, followed by one or two segments; None at the root.
The segments are joined only to report an error, since a hostile schema may have names that are megabytes long."""


def find_annotation_error(schema: Mapping[str, Any]) -> str | None:
    """Return the first error in the annotations in the `schema` of a tool's arguments; None if there is none. An
    annotation must be an HTTP token, and unique in the tool, ignoring case. It must be on a string, an integer or a
    boolean to which a path of `properties` leads."""
    seen: set[str] = set()
    for path, node, is_argument in _iterate_schemas(schema):
        if ANNOTATION not in node:
            continue
        annotation = node[ANNOTATION]
        error = None
        if not isinstance(annotation, str) or TOKEN.fullmatch(annotation) is None:
            error = "is not a valid header name"
        elif not is_argument or not path:
            error = "is not on an argument"
        elif node.get("type") not in ANNOTATED_TYPES:
            error = "is not on a string, integer or boolean"
        elif annotation.lower() in seen:
            error = "has the same header name as another argument"
        if error is not None:
            parts: list[str] = []
            position = path
            while position is not None:
                position, *last = position
                parts = [*map(str, last), *parts]
            return f"its {ANNOTATION} at {''.join(f'/{part}' for part in parts) or 'the root'} {error}"
        seen.add(annotation.lower())
    return None


def _iterate_schemas(schema: Mapping[str, Any]) -> Iterator[tuple[_Path, Mapping[str, Any], bool]]:
    """Yield every schema in `schema`, with its path, and True if it is an argument: the path consists of `properties`
    only."""
    pending: list[tuple[_Path, Any, bool]] = [(None, schema, True)]
    while pending:
        path, node, is_argument = pending.pop()
        if not isinstance(node, Mapping):
            continue
        yield path, node, is_argument
        for key, value in node.items():
            if isinstance(value, Mapping) and key in _SCHEMA_MAP_KEYWORDS:
                inner_is_argument = is_argument and key == "properties"
                pending += [((path, key, name), inner, inner_is_argument) for name, inner in value.items()]
            elif isinstance(value, list) and key in _SCHEMA_LIST_KEYWORDS:
                pending += [((path, key, number), inner, False) for number, inner in enumerate(value)]
            elif key in _SCHEMA_KEYWORDS:
                pending.append(((path, key), value, False))
