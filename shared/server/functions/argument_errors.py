"""What is wrong with arguments, told to whoever sent them: which argument, of which object, and what it may be."""

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any

from pydantic import ValidationError

from ...text import nearest

Schema = dict[str, Any]

MOST_ERRORS = 1_000
"""Errors of which pydantic makes a list in a few milliseconds; a client can cause hundreds of thousands."""
_CLAUSES = 20
"""What is said of one call's arguments; more is counted."""
_ITEMS = 10
_MEMBERS = 100
"""Items of an array and members of an object that are tried again where too many are wrong."""
_PART = 3
"""Characters that a name shares with another at least, to be taken for it."""
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")  # of models and typed dicts; of dataclasses


def describe(error: ValidationError, schema: Schema) -> str:
    """What is wrong, one clause per argument, without the values themselves; `schema` is what they had to fit, whose
    root is an object."""
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    missing = [one["loc"] for one in errors if one["type"] == "missing"]
    # The members of a union may have the same to say.
    clauses = list(dict.fromkeys(_clause(one["type"], one["loc"], one["msg"], schema, missing) for one in errors))
    more = [f"and {len(clauses) - _CLAUSES:,} more"] if len(clauses) > _CLAUSES else []
    return "; ".join(clauses[:_CLAUSES] + more)


def shortened(arguments: Any, known: Collection[str]) -> Any:
    """The beginning of `arguments` of which too many values are wrong, with all that are `known`."""
    if isinstance(arguments, list):
        return [shortened(item, ()) for item in arguments[:_ITEMS]]
    if not isinstance(arguments, dict):
        return arguments
    names = [name for name in known if name in arguments]
    names += islice((name for name in arguments if name not in known), _MEMBERS)
    return {name: shortened(arguments[name], ()) for name in names}


def _clause(
    kind: str,
    location: Sequence[int | str],
    message: str,
    schema: Schema,
    missing: Sequence[Sequence[int | str]],
) -> str:
    unknown = kind in _UNKNOWN
    path, found = _follow(location[:-1] if unknown else location, schema)
    if unknown:
        known = [name for one in found for name in one.get("properties", ())]
        message = _unknown(str(location[-1]), known, [str(one[-1]) for one in missing if one[:-1] == location[:-1]])
    return f"{'.'.join(path)}: {message}" if path else message


def _unknown(name: str, known: Sequence[str], missing: Sequence[str]) -> str:
    # What is missing is meant by a part of its name: `table_name` by `name`, which is nearer to others.
    meant = (one for one in missing if min(len(name), len(one)) >= _PART and (name in one or one in name))
    close = next(meant, None) or nearest(name, known)
    if close is not None:
        return f"unknown argument {name!r}, did you mean {close!r}?"
    there_are = f"there are: {', '.join(known)}" if known else "it takes none"
    return f"unknown argument {name!r} ({there_are})"


def _follow(location: Iterable[int | str], schema: Schema) -> tuple[list[str], list[Schema]]:
    """The way to what `location` names, as a reader would write it, and the schemas that this may have."""
    path: list[str] = []
    nodes = [schema]
    for part in location:
        members = [member for node in nodes for member in _members(node, str(part))]
        # pydantic puts the member that was tried between a union and what is wrong.
        if not members:
            path.append(str(part))
        inner = members or [one for node in nodes for one in _inside(node, part)]
        references = [one.get("$ref") for one in inner]
        nodes = [
            schema["$defs"][reference.removeprefix("#/$defs/")] if reference else one
            for one, reference in zip(inner, references, strict=True)
        ]
    return path, nodes


def _members(node: Schema, tried: str) -> list[Schema]:
    """The member of a union that is called `tried`; all of them where they have no such names."""
    members: list[Schema] = node.get("anyOf") or node.get("oneOf") or []
    # pydantic names a member by its discriminator, or by its class.
    reference = node.get("discriminator", {}).get("mapping", {}).get(tried, f"#/$defs/{tried}")
    return [one for one in members if one.get("$ref") == reference] or members


def _inside(node: Schema, part: int | str) -> list[Schema]:
    if isinstance(part, int):
        several = [*node.get("prefixItems", ())[part : part + 1], node.get("items")]
    else:
        several = [node.get("properties", {}).get(part), node.get("additionalProperties")]
    return [one for one in several if isinstance(one, dict)][:1]
