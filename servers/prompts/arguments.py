"""Converts the arguments of prompts from strings that clients send, builds the form for missing ones, and completes
them."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from shared.text import is_unicode, join_lines

from .errors import PromptError
from .format.definitions import Argument, Prompt

MAX_CHARACTERS = 500_000
"""Maximum number of characters of one argument."""
_MAX_LIST_ITEMS = 1_000
_MAX_LISTED = 10
"""Maximum number of unknown arguments listed in an error."""
_MAX_SUGGESTED = 100
_NUMBER = re.compile(r"[-+]?[0-9]{1,100}(\.[0-9]{1,100})?([eE][-+]?[0-9]{1,3})?")
_BOOLEANS = {**dict.fromkeys(("true", "yes", "on", "1"), True), **dict.fromkeys(("false", "no", "off", "0"), False)}
_DEFAULT_VALUES: dict[str, Any] = {"boolean": False, "number": None}
"""The values of omitted arguments without a default, by type. Other types have an empty string or list."""
_MAX_EXAMPLES = 3
_FIELD_SCHEMAS: dict[str, dict[str, Any]] = {
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "url": {"type": "string", "format": "uri"},
}
_HINTS = {"file": "The path of a file.", "list": "One per line, or separated by commas."}


def find_missing(prompt: Prompt, texts: Mapping[str, str]) -> tuple[Argument, ...]:
    """Return the required arguments without a value. An empty string does not count as a value."""
    return tuple(argument for argument in prompt.arguments if argument.required and not texts.get(argument.name))


def parse_values(prompt: Prompt, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the value of each argument of the prompt, given the strings that a client sent (`texts`).

    Raises PromptError, with code `bad_arguments` and all faults, or with code `missing_arguments`.
    """
    declared = {argument.name for argument in prompt.arguments}
    unknown = [f"{name[:64]!r} is not an argument of this prompt" for name in texts if name not in declared][
        :_MAX_LISTED
    ]
    missing = find_missing(prompt, texts)
    values: dict[str, Any] = {}
    faults = list(unknown)
    for argument in prompt.arguments:
        try:
            values[argument.name] = parse_value(argument, texts.get(argument.name, ""))
        except PromptError as error:
            faults.append(error.reason)
    if faults:
        names = format_names(prompt.arguments)
        raise PromptError("bad_arguments", "; ".join(faults), f"Its arguments: {names}." if unknown else "")
    if missing:
        raise PromptError("missing_arguments", f"the prompt {prompt.name!r} needs: {format_names(missing)}")
    return values


def format_names(arguments: Iterable[Argument]) -> str:
    """Return the names of arguments in quotes, for an error."""
    return ", ".join(repr(argument.name) for argument in arguments) or "none"


def parse_value(argument: Argument, text: str) -> Any:
    """Return the value of an argument. An empty `text` means that it was omitted. Raises PromptError."""
    if not text:
        if argument.default is not None:
            return list(argument.default) if argument.type == "list" else argument.default
        return [] if argument.type == "list" else _DEFAULT_VALUES.get(argument.type, "")
    if len(text) > MAX_CHARACTERS:
        raise PromptError("bad_arguments", f"{argument.name!r} has more than {MAX_CHARACTERS:,} characters")
    if argument.type == "string":
        return text
    if argument.type == "enum":
        if text in argument.enum:
            return text
        matches = [choice for choice in argument.enum if choice.casefold() == text.strip().casefold()]
        if len(matches) != 1:
            reason = f"{argument.name!r} is not one of: {', '.join(map(repr, argument.enum))}"
            raise PromptError("bad_arguments", reason)
        return matches[0]
    value = _PARSERS[argument.type](text)
    if value is None:
        reason = f"{argument.name!r} is not {_TYPE_NAMES[argument.type]}: {text[:80]!r}"
        raise PromptError("bad_arguments", reason)
    return value


def _parse_number(text: str) -> int | float | None:
    text = text.strip()
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    number = float(text)
    if not math.isfinite(number):
        return None
    return number if match[1] or match[2] else int(text)


def _parse_url(text: str) -> str | None:
    try:
        parts = urlsplit(text.strip())
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return None
    has_invalid = re.search(r"[\s\x00-\x1f\x7f]", text.strip()) or len(text) > 4_096
    return text.strip() if is_valid and not has_invalid else None


def _parse_list(text: str) -> list[str] | None:
    """Parse a JSON list of strings, or one item per line, or items with commas between them."""
    if text.lstrip().startswith("["):
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not all(isinstance(item, str | int | float) for item in parsed):
            return None
        items = [item if isinstance(item, str) else json.dumps(item) for item in parsed]
    else:
        items = [item.strip() for item in text.split("\n" if "\n" in text else ",")]
    items = list(filter(None, items))
    return items if len(items) <= _MAX_LIST_ITEMS and all(map(is_unicode, items)) else None


_PARSERS = {
    "number": _parse_number,
    "boolean": lambda text: _BOOLEANS.get(text.strip().lower()),
    "file": lambda text: None if "\0" in text or len(text) > 4_096 else text,
    "url": _parse_url,
    "list": _parse_list,
}
_TYPE_NAMES = {
    "boolean": "yes or no",
    "number": "a number",
    "file": "a path",
    "url": "an http or https URL",
    "list": f"a list of at most {_MAX_LIST_ITEMS:,} texts (one per line, separated by commas, or as JSON)",
}


def build_form(arguments: Iterable[Argument]) -> dict[str, Any]:
    """Return the schema of a form with one required field for each argument."""
    fields: dict[str, dict[str, Any]] = {}
    for argument in arguments:
        # A string must not be empty, since it would count as no value.
        field = dict(_FIELD_SCHEMAS.get(argument.type) or {"type": "string", "minLength": 1})
        if argument.type == "enum":
            field = {"type": "string", "enum": list(argument.enum)}
        if argument.title:
            field["title"] = join_lines(argument.title)
        examples_shown = argument.examples[:_MAX_EXAMPLES]
        examples = f"For example: {', '.join(examples_shown)}" if examples_shown else None
        parts = list(filter(None, [argument.description, _HINTS.get(argument.type), examples]))
        if parts:
            field["description"] = join_lines(" ".join(parts))
        fields[argument.name] = field
    return {"type": "object", "properties": fields, "required": list(fields)}


def format_filled(filled: Mapping[str, Any], arguments: Iterable[Argument]) -> dict[str, str]:
    """Return the values that a user has filled in for these arguments, as strings like those that clients send."""
    texts: dict[str, str] = {}
    for argument in arguments:
        value = filled.get(argument.name)
        if value is not None:
            texts[argument.name] = value if isinstance(value, str) else json.dumps(value)
    return texts


def format_default(argument: Argument) -> str | None:
    """Return the default of an argument as a string that `parse_value` reads; None if it has no default."""
    value = argument.default
    return value if value is None or isinstance(value, str) else json.dumps(value)


class Completion(NamedTuple):
    """Suggested values of an argument."""

    values: list[str]
    """At most 100 values, best first."""
    total: int
    """The number of all suggestions, including those that are not in `values`."""


def complete(argument: Argument, typed: str, paths: Iterable[str] = ()) -> Completion:
    """Return completions of the argument for the typed text: first its allowed values and examples that begin with
    the text, then those that contain it, and then the paths of matching files, `paths`."""
    suggestions = ("true", "false") if argument.type == "boolean" else (*argument.enum, *argument.examples)
    prefix = typed.casefold()
    beginning = [suggestion for suggestion in suggestions if suggestion.casefold().startswith(prefix)]
    containing = [suggestion for suggestion in suggestions if prefix in suggestion.casefold()]
    matches = list(dict.fromkeys([*beginning, *containing, *paths]))
    return Completion(matches[:_MAX_SUGGESTED], len(matches))
