"""The memory that a JSON text takes once it is read, judged by its bytes before it is.

A text of 4 MB may hold a million empty lists, which take twenty times as much, and reading them stops everyone else
for half a second. So values are counted where they begin: after a comma or a bracket that is in no string.
"""

from contextlib import suppress
from typing import Any

from .jsonrpc import Prepared, json_of

MAX_VALUES = 100_000
"""Maximum number of values of one message to a server: more take long to read and check, and no tool needs them."""

LIGHT = 4_096
"""Bytes of a text up to which its weight is computed from the value instead."""
_VALUE_BYTES = 100
"""Memory of a small value, with its place in what holds it and the name that it may have there."""
_WIDE = 3
"""The factor by which a text that is not ASCII may be wider in memory: it takes 2 or 4 bytes a character, while UTF-8
may take 1."""
_MANY_PARTS = 1_000
"""The number of parts of a result from which on it is weighed by its JSON."""
_MAX_QUOTES = 4 * MAX_VALUES + 4
"""The greatest number of quotes of so many values: each value has four at most, its own and those of its name."""


def count_values(text: bytes) -> int:
    """The number of values in a JSON text, where an empty array or object counts twice; of a text with far too many
    it is just too many."""
    # Without escaped quotes, the text between every second pair of quotes is outside strings.
    bare = text.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in text else text
    # Splitting a text with a million strings would take too long.
    parts = bare.split(b'"', _MAX_QUOTES)
    if len(parts) > _MAX_QUOTES:
        return MAX_VALUES + 1
    outside = b"".join(parts[::2])
    return len(outside) - len(outside.translate(None, b",[{"))


def weigh(text: bytes, values: int) -> int:
    """The bytes of memory that a JSON text with `values` takes once it is read."""
    return len(text) * (1 if text.isascii() else _WIDE) + values * _VALUE_BYTES


def weigh_value(value: Any) -> int:
    """The bytes of memory that a value takes which was read from JSON."""
    text = json_of(value)
    return weigh(text, count_values(text))


def weigh_texts(result: dict[str, Any]) -> int | None:
    """The bytes of memory that a result takes, about, if they are known without encoding it; otherwise None."""
    if isinstance(result, Prepared):
        return 2 * len(result.json)  # it has both forms
    # Nearly all other results are a few texts or images, and perhaps a little metadata.
    parts, meta = result.get("content") or result.get("contents"), result.get("_meta") or ()
    if "structuredContent" in result or "view" in meta or not isinstance(parts, list) or len(parts) > _MANY_PARTS:
        return None
    size = 0
    for part in parts:
        text = (part.get("text") or part.get("data") or part.get("blob")) if isinstance(part, dict) else None
        if not isinstance(text, str):
            return None
        size += len(text)
    return size


def weigh_result(result: dict[str, Any]) -> int:
    """The bytes of memory that a result takes, about; 0 for one without JSON, which can't be sent."""
    known, size = weigh_texts(result), 0
    if known is not None:
        return known
    content = result.get("content")
    # Most other tool results are mostly one text, which is not encoded twice.
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        text = content[0].get("text")
        if isinstance(text, str):
            size, result = len(text), {name: value for name, value in result.items() if name != "content"}
    with suppress(ValueError, TypeError, RecursionError):
        return size + len(json_of(result)) if result else size
    return 0
