"""Reads JSON, and writes it, or a requested part of it, with indentation, and with numbers as the site wrote them."""

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

from ..errors import FetchError
from .page import Page, Source, describe
from .text import decode

MAX_CHARACTERS = 10_000_000
"""Maximum number of characters of indented text, which takes seconds and grows with depth. A longer text is shown as
written."""
_INDENT = "  "
_MAX_SHORT_LENGTH = 16
"""Integers with fewer characters are parsed as an int; others are kept as text."""


class _Number(str):
    """A number as it was written: a float may lose digits, and parsing an int with a million digits takes minutes."""

    __slots__ = ()


def read_json(source: Source) -> Page:
    """Return the page with the value at a JSON Pointer, or with the whole document. JSON Lines become a single list.

    Raises FetchError with code `not_found` if the pointer matches nothing, `unreadable` if the page is not JSON, and
    `bad_argument` if it is not a pointer.
    """
    text, charset = decode(source.body, source.charset, source.kind.media_type)
    notes: tuple[str, ...] = ()
    try:
        value, lines = _parse(text)
    except (ValueError, RecursionError) as error:
        return _make_unparsed_page(source, text, charset, error)
    if lines:
        notes = (f"Lines of JSON, shown as one list of {len(value)} values.",)
    if source.section is not None:
        value = _resolve_pointer(value, source.section)
    if source.format == "metadata":
        return Page(_describe(source, charset, value), "json", charset, notes=notes)
    indented, remaining = StringIO(), MAX_CHARACTERS
    try:
        for piece in _format_pieces(value, "\n"):
            remaining -= indented.write(piece)
            if remaining < 0:
                raise OverflowError
    except (OverflowError, RecursionError):
        if source.section is not None:
            raise FetchError("unreadable", "the part is too long or too deeply nested to be shown") from None
        return Page(
            text, "json", charset, notes=("Too long or too deeply nested to be indented, so it is shown as written.",)
        )
    return Page(indented.getvalue(), "json", charset, notes=notes)


def _parse(text: str) -> tuple[Any, bool]:
    """Return the value, and True if it is a list of values from JSON Lines."""
    try:
        return _parse_value(text), False
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2:
            raise
        first = _parse_value(lines[0])
        if not isinstance(first, dict | list):
            raise
        return [first, *map(_parse_value, lines[1:])], True


def _parse_value(text: str) -> Any:
    return json.loads(text, parse_int=_parse_integer, parse_float=_parse_float, parse_constant=_refuse_constant)


def _parse_integer(text: str) -> int | _Number:
    return int(text) if len(text) < _MAX_SHORT_LENGTH and text != "-0" else _Number(text)


def _parse_float(text: str) -> float | _Number:
    number = float(text)
    return number if repr(number) == text else _Number(text)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")


def _make_unparsed_page(source: Source, text: str, charset: str, error: ValueError | RecursionError) -> Page:
    wrong = "nested too deeply" if isinstance(error, RecursionError) else f"not valid ({error})"
    if source.section is not None or source.format == "json":
        raise FetchError("unreadable", f"the JSON is {wrong}", "To see it, omit section and request the text format.")
    notes = (f"The JSON is {wrong}, so it is shown as written.",)
    if source.format == "metadata":
        return Page(_describe(source, charset, None), "json", charset, notes=notes)
    return Page(text, "json", charset, notes=notes)


def _describe(source: Source, charset: str, value: Any) -> str:
    facts: dict[str, Any] = {"kind": "json", "media_type": source.kind.media_type, "charset": charset}
    if isinstance(value, dict):
        facts |= {"type": "object", "members": len(value), "names": list(value)[:100]}
    elif isinstance(value, list):
        facts |= {"type": "array", "items": len(value)}
    return describe(**facts)


def _resolve_pointer(value: Any, pointer: str) -> Any:
    """Return the value at a JSON Pointer (RFC 6901)."""
    if pointer and not pointer.startswith("/"):
        reason = "a section of JSON is named by a JSON Pointer"
        raise FetchError("bad_argument", reason, "Specify one that starts with a slash, such as /items/0/name.")
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isascii() and name.isdigit() and int(name[:9]) < len(value):
            value = value[int(name[:9])]
        else:
            suggestion = names = ""
            if isinstance(value, dict):
                suggestion = f"The last part that exists is an object with {len(value)} members."
                names = "\n".join(json.dumps(name[:100], ensure_ascii=False) for name in list(value)[:20])
            elif isinstance(value, list):
                suggestion = f"The last part that exists is a list of {len(value)} items."
            raise FetchError("not_found", f"the JSON has nothing at {pointer[:200]!r}", suggestion, quoted=names)
    return value


def _format_pieces(value: Any, line: str) -> Iterator[str]:
    inner = line + _INDENT
    if isinstance(value, dict) and value:
        before = "{" + inner
        for name, member in value.items():
            yield f"{before}{_format_scalar(name)}: "
            yield from _format_pieces(member, inner)
            before = "," + inner
        yield line + "}"
    elif isinstance(value, list) and value:
        before = "[" + inner
        for item in value:
            yield before
            yield from _format_pieces(item, inner)
            before = "," + inner
        yield line + "]"
    else:
        yield _format_scalar(value)


def _format_scalar(value: Any) -> str:
    return value if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)
