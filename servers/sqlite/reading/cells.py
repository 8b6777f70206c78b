"""Values of SQLite as JSON and as text, column by column.

JSON has no bytes, no infinity, and for most readers no integer beyond 2**53. Such a value becomes an object that
names its type. It can be handed back as a parameter, so nothing is lost on the way to a client and back.
"""

import json
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pydantic_core import to_json

from servers.sqlite.errors import SqliteError

__all__ = ["Column", "column", "stored", "types_of"]

_EXACT = 1 << 53
"""Integers up to this are exact wherever JSON's numbers are read as IEEE 754 doubles (RFC 8259, section 6)."""

_TYPES = {int: "integer", float: "real", str: "text", bytes: "blob", type(None): "null"}
_HALF = re.compile("[\ud800-\udfff]")
# What makes a text look like something else in a table. The first two are a quick look at all texts of a column, each
# on a line.
_PERHAPS_ODD = ("|", '"', "{", "\r", " \n", "\t\n", "\nNULL\n")
_ODD_BEGINNING = re.compile(r"\n[-+.\d\s]")
_ODD = re.compile(r'.*[|\r\n"{].*||[ \t].*|.*[ \t]|NULL|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?', re.DOTALL)


class Column(NamedTuple):
    """The values of one column, in both forms."""

    cells: Sequence[Any]
    texts: Sequence[str]


def column(values: Sequence[Any], max_bytes: int) -> Column:
    """The column that has these `values`; of each `max_bytes` bytes at most."""
    kinds = set(map(type, values))
    if _is_plain(values, kinds, max_bytes):
        return Column(values, _texts(values, kinds))
    cells = [_cell(value, max_bytes) for value in values]
    return Column(cells, [_shown(cell) for cell in cells])


def types_of(values: Iterable[Any]) -> set[str]:
    """The storage classes of values, in SQLite's words."""
    return {_TYPES[kind] for kind in set(map(type, values))}


def stored(value: Any) -> Any:
    """The value of SQLite for a parameter, which is JSON or an object as `column` makes them. Raises SqliteError."""
    if not isinstance(value, dict | list):
        return value
    match value:
        case {"type": "blob" | "text" as kind, "base64": str(data), **rest} if not rest.get("truncated"):
            return _from_base64(data, kind)
        case {"type": "integer", "value": str(digits)} if re.fullmatch(r"[+-]?\d{1,19}", digits, re.ASCII):
            return int(digits)
        case {"type": "real", "value": "Infinity" | "-Infinity" as name}:
            return float(name)
    raise SqliteError(
        "bad_parameters",
        "a parameter is neither a plain value nor an object that names its type",
        'Bytes are written {"type": "blob", "base64": "..."}.',
    )


def _from_base64(data: str, kind: str) -> bytes | str:
    try:
        raw = b64decode(data, validate=True)
    except ValueError:
        raise SqliteError("bad_parameters", "a parameter has bytes that are not base64") from None
    if kind == "blob":
        return raw
    try:
        return raw.decode()
    except UnicodeError:
        raise SqliteError("bad_parameters", "a parameter is no UTF-8, so it can only be stored as a blob") from None


def _is_plain(values: Sequence[Any], kinds: set[type], max_bytes: int) -> bool:
    """Whether JSON holds them all as they are."""
    if bytes in kinds:
        return False
    if int in kinds:
        integers = values if kinds == {int} else [value for value in values if type(value) is int]
        if max(integers) > _EXACT or min(integers) < -_EXACT:
            return False
    if float in kinds:
        reals = values if kinds == {float} else [value for value in values if type(value) is float]
        if not all(map(math.isfinite, reals)):
            return False
    if str not in kinds:
        return True
    texts: Sequence[str] = values if kinds == {str} else [value for value in values if type(value) is str]
    # A character has four bytes at most.
    if max(map(len, texts)) * 4 > max_bytes:
        return False
    joined = "".join(texts)
    return joined.isascii() or _HALF.search(joined) is None


def _cell(value: Any, max_bytes: int) -> Any:
    match value:
        case bytes():
            return {"type": "blob", "bytes": len(value), **_base64(value, max_bytes)}
        case str():
            return _text(value, max_bytes)
        case int() if abs(value) > _EXACT:
            return {"type": "integer", "value": str(value)}
        case float() if not math.isfinite(value):
            return {"type": "real", "value": "Infinity" if value > 0 else "-Infinity"}
    return value


def _text(value: str, max_bytes: int) -> Any:
    raw = value.encode("utf-8", "surrogateescape")
    if _HALF.search(value) is not None:
        return {"type": "text", "bytes": len(raw), **_base64(raw, max_bytes)}
    if len(raw) <= max_bytes:
        return value
    return {"type": "text", "bytes": len(raw), "value": raw[:max_bytes].decode(errors="ignore"), "truncated": True}


def _base64(raw: bytes, max_bytes: int) -> dict[str, Any]:
    shown = {"base64": b64encode(raw[:max_bytes]).decode()}
    return shown if len(raw) <= max_bytes else {**shown, "truncated": True}


def _texts(cells: Sequence[Any], kinds: set[type]) -> Sequence[str]:
    """Plain cells as a reader sees them. A text that could be taken for something else stands in quotes."""
    if kinds == {str}:
        joined = "\n".join(("", *cells, ""))
        odd = any(mark in joined for mark in _PERHAPS_ODD) or _ODD_BEGINNING.search(joined) is not None
        if not odd and joined.count("\n") == len(cells) + 1:
            return cells
    if kinds <= {int, float, type(None)}:
        return to_json(cells)[1:-1].decode().replace("null", "NULL").split(",")
    if kinds <= {str, type(None)}:
        known = {cell: _shown(cell) for cell in set(cells)}  # many a column repeats few texts
        return [known[cell] for cell in cells]
    return [_shown(cell) for cell in cells]


def _shown(cell: Any) -> str:
    if cell is None:
        return "NULL"
    if type(cell) is str:
        return cell if _ODD.fullmatch(cell) is None else json.dumps(cell, ensure_ascii=False)
    return json.dumps(cell, ensure_ascii=False)
