"""Error messages for invalid arguments. They name the argument, and the possible names or values."""

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any

from pydantic import ValidationError

from ...text import nearest

Schema = dict[str, Any]

MAX_ERRORS = 1_000
"""Maximum number of errors that pydantic is asked to list, which takes it a few milliseconds. A client can cause
hundreds of thousands."""
_MAX_CLAUSES = 20
"""Maximum number of errors in a message; further ones are only counted."""
_MAX_ITEMS = 10
_MAX_MEMBERS = 100
"""If there are too many errors to list, only the beginning of the arguments is validated again: at most so many items
of an array, and members of an object."""
_MIN_PART_LENGTH = 3
"""Minimum length of two names of which one contains the other, for one to be suggested instead of the other."""
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")  # of models and typed dicts; of dataclasses


def describe(error: ValidationError, schema: Schema) -> str:
    """Return a message for `error`, with one clause per argument and without the values. `schema` is the schema of
    the arguments, whose root is an object."""
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    missing = [detail["loc"] for detail in errors if detail["type"] == "missing"]
    # The members of a union may have the same error.
    clauses = list(
        dict.fromkeys(
            _describe_error(detail["type"], detail["loc"], detail["msg"], schema, missing) for detail in errors
        )
    )
    more = [f"and {len(clauses) - _MAX_CLAUSES:,} more"] if len(clauses) > _MAX_CLAUSES else []
    return "; ".join(clauses[:_MAX_CLAUSES] + more)


def shorten(arguments: Any, declared: Collection[str]) -> Any:
    """Return the beginning of `arguments`, which have too many errors to list, with all `declared` arguments."""
    if isinstance(arguments, list):
        return [shorten(item, ()) for item in arguments[:_MAX_ITEMS]]
    if not isinstance(arguments, dict):
        return arguments
    names = [name for name in declared if name in arguments]
    names += islice((name for name in arguments if name not in declared), _MAX_MEMBERS)
    return {name: shorten(arguments[name], ()) for name in names}


def _describe_error(
    kind: str, location: Sequence[int | str], message: str, schema: Schema, missing: Sequence[Sequence[int | str]]
) -> str:
    unknown = kind in _UNKNOWN
    path, nodes = _locate(location[:-1] if unknown else location, schema)
    if unknown:
        names = [name for node in nodes for name in node.get("properties", ())]
        message = _describe_unknown(
            str(location[-1]), names, [str(other[-1]) for other in missing if other[:-1] == location[:-1]]
        )
    return f"{'.'.join(path)}: {message}" if path else message


def _describe_unknown(name: str, names: Sequence[str], missing: Sequence[str]) -> str:
    # A missing argument is suggested if one name contains the other, such as `name` and `table_name`.
    candidates = (
        other
        for other in missing
        if min(len(name), len(other)) >= _MIN_PART_LENGTH and (name in other or other in name)
    )
    similar_name = next(candidates, None) or nearest(name, names)
    if similar_name is not None:
        return f"unknown argument {name!r}; did you mean {similar_name!r}?"
    choices = f"available: {', '.join(names)}" if names else "it takes none"
    return f"unknown argument {name!r} ({choices})"


def _locate(location: Iterable[int | str], schema: Schema) -> tuple[list[str], list[Schema]]:
    """Return the path to pydantic's `location` without the names of members of unions, and the schemas there."""
    path: list[str] = []
    nodes = [schema]
    for part in location:
        members = [member for node in nodes for member in _union_members(node, str(part))]
        # If this is a union, `part` is the name of the member that pydantic has tried, not a part of the path.
        if not members:
            path.append(str(part))
        inner = members or [child for node in nodes for child in _child_schemas(node, part)]
        references = [child.get("$ref") for child in inner]
        nodes = [
            schema["$defs"][reference.removeprefix("#/$defs/")] if reference else child
            for child, reference in zip(inner, references, strict=True)
        ]
    return path, nodes


def _union_members(node: Schema, tried: str) -> list[Schema]:
    """Return the member of the union `node` that pydantic calls `tried`, in a list; all members if none is called
    that; empty if `node` is not a union."""
    members: list[Schema] = node.get("anyOf") or node.get("oneOf") or []
    # pydantic calls a member by the value of its discriminator, or by its class.
    reference = node.get("discriminator", {}).get("mapping", {}).get(tried, f"#/$defs/{tried}")
    return [member for member in members if member.get("$ref") == reference] or members


def _child_schemas(node: Schema, part: int | str) -> list[Schema]:
    if isinstance(part, int):
        children = [*node.get("prefixItems", ())[part : part + 1], node.get("items")]
    else:
        children = [node.get("properties", {}).get(part), node.get("additionalProperties")]
    return [child for child in children if isinstance(child, dict)][:1]
