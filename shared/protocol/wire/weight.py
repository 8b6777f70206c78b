"""Estimates of the memory that a JSON text takes once it is parsed, made from its bytes before that.

A text of 4 MB may contain a million empty lists, which take twenty times as much memory, and parsing them blocks
everything else for half a second. So the beginnings of values are counted: commas and brackets outside strings.
"""

from contextlib import suppress
from typing import Any

from .jsonrpc import Prepared, json_of

MAX_VALUES = 100_000
"""Maximum number of values in one message to a server. More take long to parse and check, and no tool needs them."""

MAX_LIGHT_BYTES = 4_096
"""For texts of at most this many bytes, the weight is computed from the value instead."""
_VALUE_BYTES = 100
"""Memory in bytes of a small value, including its slot in a list or object and its name there."""
_NON_ASCII_FACTOR = 3
"""The factor by which non-ASCII text may be larger in memory. It takes 2 or 4 bytes per character, while UTF-8 may
take 1."""
_MANY_PARTS = 1_000
"""A result with at least this many parts is weighed by its JSON."""
_MAX_QUOTES = 4 * MAX_VALUES + 4
"""The maximum number of quotes of that many values. Each value has at most four, its own and those of its name."""


def count_values(text: bytes) -> int:
    """Return the number of values in a JSON text, counting an empty array or object twice. For a text with far too
    many values, return any number beyond the maximum."""
    # Without escaped quotes, the text between every second pair of quotes is outside strings.
    bare = text.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in text else text
    # Splitting a text with a million strings would take too long.
    parts = bare.split(b'"', _MAX_QUOTES)
    if len(parts) > _MAX_QUOTES:
        return MAX_VALUES + 1
    outside = b"".join(parts[::2])
    return len(outside) - len(outside.translate(None, b",[{"))


def weigh(text: bytes, values: int) -> int:
    """Return the memory in bytes that a JSON text with `values` takes once it is parsed."""
    return len(text) * (1 if text.isascii() else _NON_ASCII_FACTOR) + values * _VALUE_BYTES


def weigh_value(value: Any) -> int:
    """Return the memory in bytes that a value parsed from JSON takes."""
    text = json_of(value)
    return weigh(text, count_values(text))


def weigh_texts(result: dict[str, Any]) -> int | None:
    """Return the approximate memory in bytes that a result takes, if it is known without encoding it; otherwise
    None."""
    if isinstance(result, Prepared):
        return 2 * len(result.json)  # it has both forms
    # Nearly all other results are a few texts or images, and perhaps a little metadata.
    parts, meta = result.get("content") or result.get("contents"), result.get("_meta") or {}
    # Another server may have sent any value.
    if not isinstance(parts, list) or not isinstance(meta, dict):
        return None
    if "structuredContent" in result or "view" in meta or len(parts) > _MANY_PARTS:
        return None
    size = 0
    for part in parts:
        text = (part.get("text") or part.get("data") or part.get("blob")) if isinstance(part, dict) else None
        if not isinstance(text, str):
            return None
        size += len(text)
    return size


def weigh_result(result: dict[str, Any]) -> int:
    """Return the approximate memory in bytes that a result takes; 0 for a result without JSON, which can't be
    sent."""
    known = weigh_texts(result)
    if known is not None:
        return known
    with suppress(ValueError, TypeError, RecursionError):
        return len(json_of(result))
    return 0
