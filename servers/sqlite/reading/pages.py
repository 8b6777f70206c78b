"""As many rows as one answer may have."""

from collections.abc import Iterable, Sequence
from itertools import islice
from sys import getsizeof
from typing import Any, NamedTuple

from pydantic_core import to_json

from servers.sqlite.errors import SqliteError
from servers.sqlite.reading.cells import Column, column

__all__ = ["Page", "Room", "fetched", "page"]

Row = tuple[Any, ...]

_FRAME = 1_000
"""Bytes of an answer besides its columns and rows."""
_COLUMN = 100
"""Bytes of what an answer says of a column, besides its name."""
_SMALLEST_CELL = 16


class Room(NamedTuple):
    """What one answer may have."""

    rows: int
    bytes: int
    """As JSON, in both forms together."""
    cell_bytes: int


class Page(NamedTuple):
    """Rows in both forms."""

    rows: Sequence[Row]
    lines: Sequence[str]
    types: Sequence[tuple[str, ...]]
    """The storage classes of each column's values."""


def fetched(rows: Iterable[Row], room: Room) -> list[Row]:
    """Some more rows than there may be room for: one at least, unless there are none."""
    taken: list[Row] = []
    size = 0
    for row in islice(rows, room.rows + 1):
        taken.append(row)
        # In both forms a text takes twice its length; what it takes in memory is known at once.
        size += max(2 * sum(map(getsizeof, row)) - 80 * len(row), 8 * len(row))
        if size > room.bytes * 1.2:
            break
    return taken


def page(names: Sequence[str], rows: Sequence[Row], room: Room) -> Page:
    """The first of the `rows`, as many as there is room for. Raises SqliteError `too_large` for too wide a row."""
    rows, cell_bytes = rows[: room.rows], room.cell_bytes
    left = room.bytes - _FRAME - 2 * len(to_json(names)) - _COLUMN * len(names)
    while True:
        made = _made(rows, cell_bytes)
        size = len(to_json(made.rows)) + len(to_json("\n".join(made.lines)))
        if size <= left:
            return made
        if len(rows) > 1:
            rows = rows[: max(1, int(len(rows) * max(left, 0) / size * 0.98))]
        elif cell_bytes > _SMALLEST_CELL:
            cell_bytes = max(cell_bytes // 4, _SMALLEST_CELL)
        else:
            reason = "one row is larger than one answer may be"
            raise SqliteError("too_large", reason, "Select fewer columns.")


def _made(rows: Sequence[Row], cell_bytes: int) -> Page:
    if not rows:
        return Page([], [], [])
    columns: list[Column] = [column(values, cell_bytes) for values in zip(*rows, strict=True)]
    return Page(
        list(zip(*[one.cells for one in columns], strict=True)),
        [" | ".join(parts) for parts in zip(*[one.texts for one in columns], strict=True)],
        [one.types for one in columns],
    )
