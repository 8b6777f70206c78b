"""Estimates of the memory that a JSON text will take once it is parsed: its weight.

A JSON text of 4 MB may contain a million empty lists, which take twenty times as much memory, and whose parsing
blocks everything else for half a second. So the values in a text are counted before it is parsed. Each comma, colon
and opening bracket outside strings counts as one value. So a name in an object counts too: names also take time and
memory.
"""

from contextlib import suppress
from typing import Any

from ...steps import Steps, complete
from .jsonrpc import Prepared, json_of

MAX_VALUES = 110_000
"""Maximum number of values and names in one message to a server. Parsing and checking more would take long, and no
tool needs as many."""

MAX_LIGHT_BYTES = 4_096
"""Texts of at most this many bytes are not weighed; they count as light."""
HEAVY_BYTES = 262_144
"""A message of at least this weight, in bytes, is read and checked in steps."""
_PIECE_BYTES = 262_144
"""The number of bytes that are counted in one step."""
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_TWENTY_DIGITS = b"0" * 20
"""Integers with at least this many digits exceed 64 bits, and Python needs long to write them: a microsecond for 40
digits, and 70 microseconds for 4,300."""
MAX_LONG_DIGITS = 250_000
"""Maximum number of digits of integers that exceed 64 bits, in one message."""
_MANY_DIGITS = 8
"""Those integers are counted only in a text that has more than this many bytes per value outside strings."""
_VALUE_BYTES = 100
"""Memory in bytes of a small value, including its slot in a list or object and its name there."""
_NON_ASCII_FACTOR = 3
"""The factor by which a text with non-ASCII characters may be larger in memory than in UTF-8: all its characters take
2 or 4 bytes there, even those that take 1 byte in UTF-8."""
_MANY_PARTS = 1_000
"""A result with more than this many content blocks is weighed by serializing it."""


def count_values(text: bytes) -> int:
    """Return the number of values and names in a JSON text. If it has too many values, or too many long integers,
    return a number beyond `MAX_VALUES`."""
    return complete(count_steps(text))


def count_steps(text: bytes) -> Steps[int]:
    """Return what `count_values` returns, in steps."""
    values = long_runs = 0
    is_string, rest = False, b""
    for start in range(0, len(text), _PIECE_BYTES):
        if start:
            yield
        piece = rest + text[start : start + _PIECE_BYTES]
        # A backslash at the end of the piece escapes the first byte of the next one, so it is moved there.
        rest = b"\\" if (len(piece) - len(piece.rstrip(b"\\"))) % 2 else b""
        if b"\\" in piece:
            piece = piece.replace(rb"\\", b"").replace(rb"\"", b"").removesuffix(rest)
        # Without escaped quotes, every second part between quotes is outside strings.
        parts = piece.split(b'"')
        outside = b"".join(parts[is_string::2])
        is_string ^= len(parts) % 2 == 0
        count = len(outside) - len(outside.translate(None, b",:[{"))
        values += count
        if len(outside) > _MANY_DIGITS * count:
            runs = outside.translate(_DIGITS)
            # The same run of digits after a point belongs to a float, which costs little.
            long_runs += runs.count(_TWENTY_DIGITS) - runs.count(b"." + _TWENTY_DIGITS)
        if values > MAX_VALUES or long_runs * len(_TWENTY_DIGITS) > MAX_LONG_DIGITS:
            return MAX_VALUES + 1
    return values


def weigh(text: bytes, values: int) -> int:
    """Return the memory in bytes that a JSON text with `values` takes once it is parsed."""
    return len(text) * (1 if text.isascii() else _NON_ASCII_FACTOR) + values * _VALUE_BYTES


def weigh_value(value: Any) -> int:
    """Return the memory in bytes that a value parsed from JSON takes."""
    text = json_of(value)
    return weigh(text, count_values(text))


def weigh_texts(result: dict[str, Any]) -> int | None:
    """Return the approximate memory in bytes that a result takes; None if only encoding it would tell."""
    if isinstance(result, Prepared):
        return 2 * len(result.json)  # it contains the parsed value and the JSON
    # Nearly all other results consist of a few texts or images, and perhaps a little metadata.
    parts, meta = result.get("content") or result.get("contents"), result.get("_meta") or {}
    # The result may come from another server, so these fields can have any type.
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
    """Return the approximate memory in bytes that a result takes; 0 for a result that JSON can't express,
    which can't be sent."""
    known_size = weigh_texts(result)
    if known_size is not None:
        return known_size
    with suppress(ValueError, TypeError, RecursionError):
        return len(json_of(result))
    return 0
