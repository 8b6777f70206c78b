"""Converts the schemas of third-party tools to a form that hosts and the APIs of models accept.

JSON Schema and MCP allow `oneOf`, `anyOf`, `allOf`, `not`, `enum` and `$ref` at the top level of a schema. But the
APIs of Anthropic, OpenAI and Google refuse a request with such a tool, so that hosts leave the tool out or fail
because of it. `flatten` merges the properties of all alternatives into one object. The tool itself still checks which
of them may be used together.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

_ALTERNATIVES = ("anyOf", "oneOf")
_REFUSED = frozenset({*_ALTERNATIVES, "allOf", "enum", "not", "$ref"})
_MAX_PARTS = 100
"""Maximum number of subschemas, nested ones included, whose properties are merged."""
_MAX_DIGITS = 9
"""Maximum number of digits of an index in a reference, since Python refuses to convert thousands of digits."""


def flatten(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object without the keywords that APIs refuse at its top level. If the alternatives have
    different schemas for a property, its schema becomes `anyOf` these. The argument is not changed."""
    if _REFUSED.isdisjoint(schema):
        return schema
    forms: dict[str, list[Any]] = {}
    required: dict[str, None] = {}
    for part, is_certain in _parts(schema, schema, [_MAX_PARTS], is_certain=True):
        properties, names = part.get("properties"), part.get("required")
        for name, form in properties.items() if isinstance(properties, dict) else ():
            variants = forms.setdefault(name, [])
            if form not in variants:
                variants.append(form)
        if is_certain and isinstance(names, list):
            required |= dict.fromkeys(name for name in names if isinstance(name, str))
    result = {keyword: value for keyword, value in schema.items() if keyword not in _REFUSED}
    own = schema.get("properties")
    result["properties"] = {
        **{name: variants[0] if len(variants) == 1 else {"anyOf": variants} for name, variants in forms.items()},
        **(own if isinstance(own, dict) else {}),
    }
    return {**result, "required": list(required)} if required else result


def drop_unknown_references(schema: Any, root: dict[str, Any]) -> Any:
    """Return `schema`, a part of the schema `root`, without any `$ref` to a definition that `root` lacks. So any
    value is valid at that place."""
    if isinstance(schema, list):
        return [drop_unknown_references(part, root) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {keyword: drop_unknown_references(part, root) for keyword, part in schema.items()}
    reference = parts.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/") and _definition(reference, root) is None:
        del parts["$ref"]
    return parts


def _parts(
    schema: dict[str, Any], root: dict[str, Any], budget: list[int], *, is_certain: bool
) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield the schema and its subschemas at the same level (references, members of `allOf`, alternatives), each with
    True if all arguments must match it. `budget` contains one number: how many may still be yielded."""
    budget[0] -= 1
    if budget[0] < 0:
        return
    yield schema, is_certain
    groups: list[tuple[Any, bool]] = [([_definition(schema.get("$ref"), root)], True), (schema.get("allOf"), True)]
    groups += [(schema.get(keyword), False) for keyword in _ALTERNATIVES]
    for members, are_all in groups:
        for member in members if isinstance(members, list) else ():
            if isinstance(member, dict):
                yield from _parts(member, root, budget, is_certain=is_certain and (are_all or len(members) == 1))


def _definition(reference: Any, root: dict[str, Any]) -> Any:
    """Return the part of the schema `root` that a `$ref` refers to; None if there is no such part."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    part: Any = root
    # RFC 6901, section 6: the pointer is percent-encoded.
    for key in unquote(reference[2:]).split("/"):
        if isinstance(part, list):
            is_index = key.isdecimal() and len(key) <= _MAX_DIGITS and int(key) < len(part)
            part = part[int(key)] if is_index else None
        else:
            part = part.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(part, dict) else None
    return part
