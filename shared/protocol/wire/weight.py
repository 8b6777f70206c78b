"""Estimates of the memory that a JSON text takes once it is parsed, made from its bytes before that.

A JSON text of 4 MB may contain a million empty lists, which take twenty times as much memory, and parsing them blocks
everything else for half a second. So the beginnings of values are counted: commas, colons and brackets outside
strings. A name counts as a value, because an object with as many names takes more time than a list of its values.
"""

from contextlib import suppress
from typing import Any

from ...steps import Steps, complete
from .jsonrpc import Prepared, json_of

MAX_VALUES = 110_000
"""Maximum number of values and names in one message to a server. More take long to parse and check, and no tool needs
them."""

MAX_LIGHT_BYTES = 4_096
"""For texts of at most this many bytes, the weight is computed from the value instead."""
HEAVY_BYTES = 262_144
"""A message of at least this weight, in bytes, is read and checked in steps."""
_PIECE_BYTES = 262_144
"""The number of bytes that are counted in one step."""
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_LONG = b"0" * 20
"""An integer with so many digits exceeds 64 bits. Python needs a microsecond to write one of 40 digits, 70 for one of
4,300."""
MAX_LONG_DIGITS = 250_000
"""Maximum number of digits of such integers in one message."""
_MANY_DIGITS = 8
"""Such integers are searched for only if the text outside strings has more than this many bytes per value."""
_VALUE_BYTES = 100
"""Memory in bytes of a small value, including its slot in a list or object and its name there."""
_NON_ASCII_FACTOR = 3
"""The factor by which non-ASCII text may be larger in memory. It takes 2 or 4 bytes per character, while UTF-8 may
take 1."""
_MANY_PARTS = 1_000
"""A result with at least this many parts is weighed by its JSON."""


def count_values(text: bytes) -> int:
    """Return the number of values and names in a JSON text, counting an empty array or object twice. For a JSON text
    with too many values, or integers that are too long, return any number beyond the maximum."""
    return complete(count_steps(text))


def count_steps(text: bytes) -> Steps[int]:
    """`count_values` in steps."""
    values = long_runs = 0
    is_string, rest = False, b""
    for start in range(0, len(text), _PIECE_BYTES):
        if start:
            yield
        piece = rest + text[start : start + _PIECE_BYTES]
        # An escape at the end of the piece belongs to the first byte of the next one.
        rest = b"\\" if (len(piece) - len(piece.rstrip(b"\\"))) % 2 else b""
        if b"\\" in piece:
            piece = piece.replace(rb"\\", b"").replace(rb"\"", b"").removesuffix(rest)
        # Without escaped quotes, the text between every second pair of quotes is outside strings.
        parts = piece.split(b'"')
        outside = b"".join(parts[is_string::2])
        is_string ^= len(parts) % 2 == 0
        count = len(outside) - len(outside.translate(None, b",:[{"))
        values += count
        if len(outside) > _MANY_DIGITS * count:
            runs = outside.translate(_DIGITS)
            # A double may be written with as many digits after its point.
            long_runs += runs.count(_LONG) - runs.count(b"." + _LONG)
        if values > MAX_VALUES or long_runs * len(_LONG) > MAX_LONG_DIGITS:
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
    """Return the approximate memory in bytes that a result takes; 0 for a result that JSON can't express,
    which can't be sent."""
    known = weigh_texts(result)
    if known is not None:
        return known
    with suppress(ValueError, TypeError, RecursionError):
        return len(json_of(result))
    return 0
