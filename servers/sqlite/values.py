"""Conversion of SQLite values to JSON, and back.

JSON has no bytes and no infinity, and most parsers read its numbers as doubles, in which not all integers beyond
2**53 are exact. A value that JSON can't represent becomes an object with its type. A client can pass this object back
as a parameter, so nothing is lost in a round trip.
"""

import math
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from typing import Any

from servers.common.sql.errors import SqlError

_MAX_EXACT = 1 << 53
"""Integers up to this are exact even if JSON numbers are parsed as IEEE 754 doubles (RFC 8259, section 6)."""

_TYPES = {int: "integer", float: "real", str: "text", bytes: "blob", type(None): "null"}
_SURROGATE = re.compile("[\ud800-\udfff]")


def encode_cells(values: Sequence[Any], max_bytes: int) -> Sequence[Any]:
    """Return the `values` of a column as JSON values of at most `max_bytes` bytes each."""
    if _is_plain(values, set(map(type, values)), max_bytes):
        return values
    return [_encode_cell(value, max_bytes) for value in values]


def encode_row(values: Sequence[Any], max_bytes: int) -> tuple[Any, ...]:
    """Return the `values` of a single row as JSON values of at most `max_bytes` bytes each."""
    cells = []
    for value in values:
        kind = type(value)
        # Most values stay as they are in JSON. This check is much faster than `_encode_cell`.
        if kind is str:
            is_plain = len(value) <= max_bytes and value.isascii()
        else:
            is_plain = value is None or (kind is int and -_MAX_EXACT <= value <= _MAX_EXACT)
        cells.append(value if is_plain else _encode_cell(value, max_bytes))
    return tuple(cells)


def encode_rows(rows: Sequence[tuple[Any, ...]], max_bytes: int) -> list[tuple[Any, ...]]:
    """Return the `rows` as JSON values of at most `max_bytes` bytes each."""
    if len(rows) == 1:
        return [encode_row(rows[0], max_bytes)]
    return list(zip(*[encode_cells(values, max_bytes) for values in zip(*rows, strict=True)], strict=True))


def find_type(value: Any) -> str:
    """Return SQLite's name for the storage class of a value, such as "integer"."""
    return _TYPES[type(value)]


def find_types(values: Iterable[Any]) -> set[str]:
    """Return SQLite's names for the storage classes of the values."""
    return {_TYPES[kind] for kind in set(map(type, values))}


def decode_value(value: Any) -> Any:
    """Return the SQLite value of a parameter: a plain JSON value, or an object from a result (see the module). Raises
    SqlError with code `bad_parameters`."""
    if not isinstance(value, dict | list):
        return value
    match value:
        case {"type": "blob" | "text" as kind, "base64": str(data), **rest} if not rest.get("truncated"):
            try:
                raw = b64decode(data, validate=True)
            except ValueError:
                raise SqlError("bad_parameters", "a parameter has bytes that are not base64") from None
            if kind == "blob":
                return raw
            try:
                return raw.decode()
            except UnicodeError:
                raise SqlError(
                    "bad_parameters", "a parameter is not UTF-8, so it can only be stored as a blob"
                ) from None
        case {"type": "integer", "value": str(digits)} if re.fullmatch(r"[+-]?\d{1,19}", digits, re.ASCII):
            return int(digits)
        case {"type": "real", "value": "Infinity" | "-Infinity" as name}:
            return float(name)
        case list():
            raise SqlError(
                "bad_parameters",
                "SQLite does not accept lists as parameters",
                "Write IN (?, ?) with one value for each, or pass the list as JSON text: "
                "IN (SELECT value FROM json_each(?)).",
            )
    raise SqlError(
        "bad_parameters",
        "a parameter is neither a plain value nor an object that names its type",
        'Bytes are written {"type": "blob", "base64": "..."}.',
    )


def _is_plain(values: Sequence[Any], kinds: set[type], max_bytes: int) -> bool:
    """Return True if JSON can represent all values as they are. `kinds` are the Python types of the values."""
    if bytes in kinds:
        return False
    if int in kinds:
        integers = values if kinds == {int} else [value for value in values if type(value) is int]
        if max(integers) > _MAX_EXACT or min(integers) < -_MAX_EXACT:
            return False
    if float in kinds:
        reals = values if kinds == {float} else [value for value in values if type(value) is float]
        if not all(map(math.isfinite, reals)):
            return False
    if str not in kinds:
        return True
    texts: Sequence[str] = values if kinds == {str} else [value for value in values if type(value) is str]
    # A character takes at most four bytes in UTF-8.
    if max(map(len, texts)) * 4 > max_bytes:
        return False
    joined = "".join(texts)
    return joined.isascii() or _SURROGATE.search(joined) is None


def _encode_cell(value: Any, max_bytes: int) -> Any:
    match value:
        case bytes():
            return {"type": "blob", "bytes": len(value), **_encode_base64(value, max_bytes)}
        case str():
            raw = value.encode("utf-8", "surrogateescape")
            if _SURROGATE.search(value) is not None:
                return {"type": "text", "bytes": len(raw), **_encode_base64(raw, max_bytes)}
            if len(raw) > max_bytes:
                truncated_text = raw[:max_bytes].decode(errors="ignore")
                return {"type": "text", "bytes": len(raw), "value": truncated_text, "truncated": True}
        case int() if abs(value) > _MAX_EXACT:
            return {"type": "integer", "value": str(value)}
        case float() if not math.isfinite(value):
            return {"type": "real", "value": "Infinity" if value > 0 else "-Infinity"}
    return value


def _encode_base64(raw: bytes, max_bytes: int) -> dict[str, Any]:
    encoded = {"base64": b64encode(raw[:max_bytes]).decode()}
    return encoded if len(raw) <= max_bytes else {**encoded, "truncated": True}
