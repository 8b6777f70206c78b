"""The arguments that are missing, as a form for the user, and what was filled in as the texts that clients send."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from servers.prompts.format.definitions import Argument
from shared.kit.text import join_lines

__all__ = ["form", "texts"]

_SHOWN_EXAMPLES = 3
_FIELDS: dict[str, dict[str, Any]] = {
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "url": {"type": "string", "format": "uri"},
}
_HINTS = {"file": "The path of a file.", "list": "One a line, or with commas between them."}


def form(arguments: Iterable[Argument]) -> dict[str, Any]:
    """The schema of a flat form with these arguments, all of them required."""
    fields = {one.name: _field(one) for one in arguments}
    return {"type": "object", "properties": fields, "required": list(fields)}


def texts(filled: Mapping[str, Any], arguments: Iterable[Argument]) -> dict[str, str]:
    """The texts of those of `arguments` that were filled in."""
    return {one.name: _text(filled[one.name]) for one in arguments if filled.get(one.name) is not None}


def _field(argument: Argument) -> dict[str, Any]:
    # An empty text would count as nothing.
    field = dict(_FIELDS.get(argument.type) or {"type": "string", "minLength": 1})
    if argument.type == "enum":
        field = {"type": "string", "enum": list(argument.enum)}
    if argument.title:
        field["title"] = join_lines(argument.title)
    said = [argument.description, _HINTS.get(argument.type), _examples(argument)]
    if any(said):
        field["description"] = join_lines(" ".join(filter(None, said)))
    return field


def _examples(argument: Argument) -> str | None:
    shown = argument.examples[:_SHOWN_EXAMPLES]
    return f"For example: {', '.join(shown)}" if shown else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
