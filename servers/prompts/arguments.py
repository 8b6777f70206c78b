"""Arguments of prompts: their values from the texts that clients send, the form for those that are missing, and what
is suggested to somebody who types one.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from servers.prompts.errors import PromptError
from servers.prompts.format.definitions import Argument, Prompt
from shared.text import is_unicode, join_lines

MOST_CHARACTERS = 500_000
"""Of one argument."""
_MOST_ITEMS = 1_000
_MOST_SAID = 10
"""Unknown arguments that are named."""
_MOST_SUGGESTED = 100
_NUMBER = re.compile(r"[-+]?[0-9]{1,100}(\.[0-9]{1,100})?([eE][-+]?[0-9]{1,3})?")
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_EMPTY: dict[str, Any] = {"boolean": False, "number": None}
"""What an argument is where nothing is given, if that is not an empty text or list."""
_SHOWN_EXAMPLES = 3
_FIELDS: dict[str, dict[str, Any]] = {
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "url": {"type": "string", "format": "uri"},
}
_HINTS = {"file": "The path of a file.", "list": "One a line, or with commas between them."}


def find_missing(prompt: Prompt, given: Mapping[str, str]) -> tuple[Argument, ...]:
    """The required arguments that nothing is given for. An empty text is nothing."""
    return tuple(one for one in prompt.arguments if one.required and not given.get(one.name))


def parse_values(prompt: Prompt, given: Mapping[str, str]) -> dict[str, Any]:
    """The value of each argument of the prompt. Raises PromptError, which says all that is wrong."""
    known = {one.name for one in prompt.arguments}
    unknown = [f"{name[:64]!r} is not an argument of it" for name in given if name not in known][:_MOST_SAID]
    absent = find_missing(prompt, given)
    found: dict[str, Any] = {}
    wrong = list(unknown)
    for one in prompt.arguments:
        try:
            found[one.name] = parse_value(one, given.get(one.name, ""))
        except PromptError as error:
            wrong.append(error.reason)
    if wrong:
        names = format_names(prompt.arguments)
        raise PromptError("bad_arguments", "; ".join(wrong), f"Its arguments: {names}." if unknown else "")
    if absent:
        raise PromptError("missing_arguments", f"the prompt {prompt.name!r} needs: {format_names(absent)}")
    return found


def format_names(arguments: Iterable[Argument]) -> str:
    """The names of arguments, in quotes, as errors list them."""
    return ", ".join(repr(one.name) for one in arguments) or "none"


def parse_value(argument: Argument, text: str) -> Any:
    """The value of an argument. An empty text is its default. Raises PromptError."""
    if not text:
        if argument.default is not None:
            return list(argument.default) if argument.type == "list" else argument.default
        return [] if argument.type == "list" else _EMPTY.get(argument.type, "")
    if len(text) > MOST_CHARACTERS:
        raise PromptError("bad_arguments", f"{argument.name!r} has more than {MOST_CHARACTERS:,} characters")
    if argument.type == "string":
        return text
    if argument.type == "enum":
        if text in argument.enum:
            return text
        alike = [one for one in argument.enum if one.casefold() == text.strip().casefold()]
        if len(alike) != 1:
            why = f"{argument.name!r} is not one of: {', '.join(map(repr, argument.enum))}"
            raise PromptError("bad_arguments", why)
        return alike[0]
    found = _OF_TYPE[argument.type](text)
    if found is None:
        reason = f"{argument.name!r} is not {_NAMES[argument.type]}: {text[:80]!r}"
        raise PromptError("bad_arguments", reason)
    return found


def _parse_number(text: str) -> int | float | None:
    text = text.strip()
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    number = float(text)
    if not math.isfinite(number):
        return None
    return number if found[1] or found[2] else int(text)


def _parse_url(text: str) -> str | None:
    try:
        parts = urlsplit(text.strip())
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return None
    odd = re.search(r"[\s\x00-\x1f\x7f]", text.strip()) or len(text) > 4_096
    return text.strip() if whole and not odd else None


def _parse_list(text: str) -> list[str] | None:
    """A JSON list of texts, or one item a line, or items with commas between them."""
    if text.lstrip().startswith("["):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not all(isinstance(one, str | int | float) for one in found):
            return None
        items = [one if isinstance(one, str) else json.dumps(one) for one in found]
    else:
        items = [one.strip() for one in text.split("\n" if "\n" in text else ",")]
    items = list(filter(None, items))
    return items if len(items) <= _MOST_ITEMS and all(map(is_unicode, items)) else None


_OF_TYPE = {
    "number": _parse_number,
    "boolean": lambda text: _BOOLEANS.get(text.strip().lower()),
    "file": lambda text: None if "\0" in text or len(text) > 4_096 else text,
    "url": _parse_url,
    "list": _parse_list,
}
_NAMES = {
    "boolean": "yes or no",
    "number": "a number",
    "file": "a path",
    "url": "an http or https URL",
    "list": f"a list of at most {_MOST_ITEMS:,} texts (one a line, commas between them, or JSON)",
}


def build_form(arguments: Iterable[Argument]) -> dict[str, Any]:
    """The schema of a flat form with these arguments, all of them required."""
    fields: dict[str, dict[str, Any]] = {}
    for argument in arguments:
        # An empty text would count as nothing.
        field = dict(_FIELDS.get(argument.type) or {"type": "string", "minLength": 1})
        if argument.type == "enum":
            field = {"type": "string", "enum": list(argument.enum)}
        if argument.title:
            field["title"] = join_lines(argument.title)
        shown = argument.examples[:_SHOWN_EXAMPLES]
        examples = f"For example: {', '.join(shown)}" if shown else None
        said = list(filter(None, [argument.description, _HINTS.get(argument.type), examples]))
        if said:
            field["description"] = join_lines(" ".join(said))
        fields[argument.name] = field
    return {"type": "object", "properties": fields, "required": list(fields)}


def format_filled(filled: Mapping[str, Any], arguments: Iterable[Argument]) -> dict[str, str]:
    """The texts of those of `arguments` that were filled in."""
    texts: dict[str, str] = {}
    for one in arguments:
        value = filled.get(one.name)
        if value is not None:
            texts[one.name] = value if isinstance(value, str) else json.dumps(value)
    return texts


def format_default(argument: Argument) -> str | None:
    """The default of an argument as a text that `parse_value` reads; None where it has none."""
    value = argument.default
    return value if value is None or isinstance(value, str) else json.dumps(value)


class Completion(NamedTuple):
    """The best suggestions."""

    values: list[str]
    """At most 100, best first."""
    total: int


def complete(argument: Argument, typed: str, paths: Iterable[str] = ()) -> Completion:
    """What the argument could be, after what is typed of it: its values and its examples, first those that begin
    with it and then those that have it within, and the `paths` of files that it could be."""
    known = ("true", "false") if argument.type == "boolean" else (*argument.enum, *argument.examples)
    begun = typed.casefold()
    first = [one for one in known if one.casefold().startswith(begun)]
    within = [one for one in known if begun in one.casefold()]
    found = list(dict.fromkeys([*first, *within, *paths]))
    return Completion(found[:_MOST_SUGGESTED], len(found))
