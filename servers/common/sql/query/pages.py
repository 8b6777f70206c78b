"""Fills one answer with as many rows as fit.

The size of rows in an answer is known only after they have been encoded, which costs more than fetching them. So some
are encoded first, and then as many are fetched as should fit if they are similar; rows that do not fit wait.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from pydantic_core import to_json

from servers.common.sql.errors import SqlError

Row = tuple[Any, ...]
Encode = Callable[[Sequence[Row], int], list[Row]]
"""Encodes fetched rows for JSON; each value takes at most so many bytes."""

_FRAME = 1_000
"""Bytes of an answer in addition to its columns and rows."""
_COLUMN = 100
"""Bytes of the facts about a column, in addition to its name."""
_CELL = 10
"""Bytes of a value in both forms, in addition to the length of a text."""
_FIRST = 50
"""Rows by which the size of the others is estimated."""
_FULL = 0.95
"""The share of the bytes from which on an answer counts as full."""
_SMALLEST_CELL = 16


class AnswerLimits(NamedTuple):
    """The limits of one answer."""

    rows: int
    bytes: int
    """As JSON, in both forms together."""
    cell_bytes: int


class Page(NamedTuple):
    """Rows as JSON holds them."""

    rows: list[Row]
    types: Sequence[str]
    """The type of the values in each column, in the database's words."""


NO_ROWS = Page([], [])


class PageBuilder:
    """Takes rows as they are fetched, until one answer is full."""

    def __init__(self, names: Sequence[str], limits: AnswerLimits, encode: Encode) -> None:
        self.made: list[Row] = []
        """The rows as JSON holds them."""
        self.given: list[Row] = []
        """The same rows as they were fetched."""
        self.left = self._all = find_room(names, limits)
        """Bytes that are left for further rows."""
        self._limits = limits
        self._encode = encode
        self._most = _FIRST
        self._full = False

    @property
    def rows_to_fetch(self) -> int:
        """Rows to fetch next; 0 where the answer is full."""
        if self._full or (self.made and self.left <= self._all * (1 - _FULL)):
            return 0
        return min(self._most, self._limits.rows - len(self.made))

    def add(self, rows: Sequence[Row]) -> list[Row]:
        """Add as many of the rows as there is room for, and return the rest.

        Raises SqlError `too_large` if not even the very first row has room.
        """
        fitting, size = self._fit(rows, alone=not self.given)
        self.made += fitting
        self.given += rows[: len(fitting)]
        self.left -= size
        self._full = len(fitting) < len(rows)
        # The next rows are likely to be as large as these.
        self._most = max(self.left * len(self.made) // max(self._all - self.left, 1), 1)
        return [*rows[len(fitting) :]]

    def _fit(self, rows: Sequence[Row], *, alone: bool) -> tuple[list[Row], int]:
        """Return the first of the `rows` for which there is room, and their size in bytes.

        If they are the first of an answer (`alone`), there is at least one.
        """
        cell_bytes = self._limits.cell_bytes
        while True:
            encoded = self._encode(rows, cell_bytes)
            size = measure(encoded)
            while size > self.left and len(encoded) > alone:
                encoded = encoded[: max(int(len(encoded) * self.left / size), int(alone))]
                size = measure(encoded)
            if size <= self.left or not encoded:
                return encoded, size
            if cell_bytes == _SMALLEST_CELL:
                raise SqlError("too_large", "one row is larger than the limit for an answer", "Select fewer columns.")
            # The first row alone, with its values cut shorter.
            rows, cell_bytes = rows[:1], max(cell_bytes // 4, _SMALLEST_CELL)


def find_room(names: Sequence[str], limits: AnswerLimits) -> int:
    """Return the bytes that an answer with columns of these names has for rows."""
    return limits.bytes - _FRAME - measure(names) - _COLUMN * len(names)


def measure(rows: Sequence[Any]) -> int:
    """Return the bytes of rows, or of names, in both forms: as JSON, and as a text of JSON, which is JSON again."""
    data = to_json(rows)
    return 2 * len(data) + data.count(b'"') + data.count(b"\\") + len(rows)


def fetch(rows: Iterable[Row], most: int, room: int) -> list[Row]:
    """Return about as many rows as fit into `room` bytes: at least one if there is any, and at most `most`."""
    fetched: list[Row] = []
    for row in islice(rows, most):
        fetched.append(row)
        room -= _CELL * len(row)
        # One by one, for a single value may be larger than all that there is room for.
        for value in row:
            if value.__class__ is str or value.__class__ is bytes:
                room -= 2 * len(value)
        if room <= 0:
            break
    return fetched
