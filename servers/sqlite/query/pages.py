"""Values of SQLite as JSON, and as many rows of them as one answer may have.

JSON has no bytes, no infinity, and for most readers no integer beyond 2**53. Such a value becomes an object that
names its type. It can be handed back as a parameter, so nothing is lost on the way to a client and back.

How many bytes rows take in an answer is known when they have been made, which costs more than fetching them. So some
are made first, and then as many are fetched as should fit if they are like those; what does not fit waits.
"""

import math
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from pydantic_core import to_json

from servers.sqlite.errors import SqliteError

Row = tuple[Any, ...]

_FRAME = 1_000
"""Bytes of an answer besides its columns and rows."""
_COLUMN = 100
"""Bytes of what an answer says of a column, besides its name."""
_CELL = 10
"""Bytes of a value in both forms, besides the length of a text."""
_FIRST = 50
"""Rows that tell how large the others are."""
_FULL = 0.95
"""Of the bytes, what is not worth another try."""
_SMALLEST_CELL = 16
_EXACT = 1 << 53
"""Integers up to this are exact wherever JSON's numbers are read as IEEE 754 doubles (RFC 8259, section 6)."""

_TYPES = {int: "integer", float: "real", str: "text", bytes: "blob", type(None): "null"}
_HALF = re.compile("[\ud800-\udfff]")


def encode_cells(values: Sequence[Any], max_bytes: int) -> Sequence[Any]:
    """The `values` of a column as JSON holds them; of each `max_bytes` bytes at most."""
    if _is_plain(values, set(map(type, values)), max_bytes):
        return values
    return [_encode_cell(value, max_bytes) for value in values]


def find_types(values: Iterable[Any]) -> set[str]:
    """The storage classes of values, in SQLite's words."""
    return {_TYPES[kind] for kind in set(map(type, values))}


def decode_value(value: Any) -> Any:
    """The value of SQLite for a parameter, which is JSON or an object as `encode_cells` makes them. Raises
    SqliteError."""
    if not isinstance(value, dict | list):
        return value
    match value:
        case {"type": "blob" | "text" as kind, "base64": str(data), **rest} if not rest.get("truncated"):
            return _decode_base64(data, kind)
        case {"type": "integer", "value": str(digits)} if re.fullmatch(r"[+-]?\d{1,19}", digits, re.ASCII):
            return int(digits)
        case {"type": "real", "value": "Infinity" | "-Infinity" as name}:
            return float(name)
    raise SqliteError(
        "bad_parameters",
        "a parameter is neither a plain value nor an object that names its type",
        'Bytes are written {"type": "blob", "base64": "..."}.',
    )


def _decode_base64(data: str, kind: str) -> bytes | str:
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


def _encode_cell(value: Any, max_bytes: int) -> Any:
    match value:
        case bytes():
            return {"type": "blob", "bytes": len(value), **_encode_base64(value, max_bytes)}
        case str():
            return _encode_text(value, max_bytes)
        case int() if abs(value) > _EXACT:
            return {"type": "integer", "value": str(value)}
        case float() if not math.isfinite(value):
            return {"type": "real", "value": "Infinity" if value > 0 else "-Infinity"}
    return value


def _encode_text(value: str, max_bytes: int) -> Any:
    raw = value.encode("utf-8", "surrogateescape")
    if _HALF.search(value) is not None:
        return {"type": "text", "bytes": len(raw), **_encode_base64(raw, max_bytes)}
    if len(raw) <= max_bytes:
        return value
    return {"type": "text", "bytes": len(raw), "value": raw[:max_bytes].decode(errors="ignore"), "truncated": True}


def _encode_base64(raw: bytes, max_bytes: int) -> dict[str, Any]:
    shown = {"base64": b64encode(raw[:max_bytes]).decode()}
    return shown if len(raw) <= max_bytes else {**shown, "truncated": True}


class AnswerLimits(NamedTuple):
    """What one answer may have."""

    rows: int
    bytes: int
    """As JSON, in both forms together."""
    cell_bytes: int


class Page(NamedTuple):
    """Rows as JSON holds them."""

    rows: list[Row]
    types: list[set[str]]
    """The storage classes of each column's values."""


def fill_page(names: Sequence[str], rows: Iterator[Row], limits: AnswerLimits) -> tuple[Page, list[Row]]:
    """The next of the `rows`, as many as there is room for, and those that were fetched and had none.

    Raises SqliteError `too_large` where not even one row has room.
    """
    made: list[Row] = []
    given: list[Row] = []
    left = all_left = limits.bytes - _FRAME - measure(names) - _COLUMN * len(names)
    most = _FIRST
    while len(made) < limits.rows and (left > all_left * (1 - _FULL) or not made):
        taken = fetch(rows, min(most, limits.rows - len(made)), left)
        fitting, size = _fit(taken, limits.cell_bytes, left, alone=not given) if taken else ([], 0)
        made += fitting
        given += taken[: len(fitting)]
        if not taken or len(fitting) < len(taken):
            return Page(made, _find_types(names, given)), taken[len(fitting) :]
        left -= size
        # The next rows are likely to be as large as these.
        most = max(left * len(made) // max(all_left - left, 1), 1)
    return Page(made, _find_types(names, given)), list(islice(rows, 1))


def measure(rows: Sequence[Any]) -> int:
    """Bytes of rows, or of names, in both forms: as JSON, and as a text of JSON, which is JSON again."""
    data = to_json(rows)
    return 2 * len(data) + data.count(b'"') + data.count(b"\\") + len(rows)


def _find_types(names: Sequence[str], rows: Sequence[Row]) -> list[set[str]]:
    return [find_types(values) for values in zip(*rows, strict=True)] or [set() for _ in names]


def fetch(rows: Iterable[Row], most: int, left: int) -> list[Row]:
    """About as many rows as `left` bytes take: one at least, unless there are none, and `most` at most."""
    taken: list[Row] = []
    for row in islice(rows, most):
        taken.append(row)
        left -= _CELL * len(row)
        # One by one, for a single value may be larger than all that there is room for.
        for value in row:
            if value.__class__ is str or value.__class__ is bytes:
                left -= 2 * len(value)
        if left <= 0:
            break
    return taken


def _fit(rows: Sequence[Row], cell_bytes: int, left: int, *, alone: bool) -> tuple[list[Row], int]:
    """The first of the `rows` that take `left` bytes at most, and how many those are. Where they would stand `alone`,
    there is one at least."""
    while True:
        made = _encode(rows, cell_bytes)
        size = measure(made)
        while size > left and len(made) > alone:
            made = made[: max(int(len(made) * left / size), int(alone))]
            size = measure(made)
        if size <= left or not made:
            return made, size
        if cell_bytes == _SMALLEST_CELL:
            raise SqliteError("too_large", "one row is larger than one answer may be", "Select fewer columns.")
        rows, cell_bytes = rows[:1], max(cell_bytes // 4, _SMALLEST_CELL)


def _encode(rows: Sequence[Row], cell_bytes: int) -> list[Row]:
    return list(zip(*[encode_cells(values, cell_bytes) for values in zip(*rows, strict=True)], strict=True))
