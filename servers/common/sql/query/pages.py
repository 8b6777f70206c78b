"""As many rows as one answer may have.

How many bytes rows take in an answer is known when they have been made, which costs more than fetching them. So some
are made first, and then as many are fetched as should fit if they are like those; what does not fit waits.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from pydantic_core import to_json

from servers.common.sql.errors import SqlError

Row = tuple[Any, ...]
Encode = Callable[[Sequence[Row], int], list[Row]]
"""Makes rows as they were fetched what JSON holds; of each value so many bytes at most."""

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


class AnswerLimits(NamedTuple):
    """What one answer may have."""

    rows: int
    bytes: int
    """As JSON, in both forms together."""
    cell_bytes: int


class Page(NamedTuple):
    """Rows as JSON holds them."""

    rows: list[Row]
    types: Sequence[str]
    """What the values of each column are, in the database's words."""


NO_ROWS = Page([], [])


class PageBuilder:
    """Takes rows as they are fetched, until one answer is full."""

    def __init__(self, names: Sequence[str], limits: AnswerLimits, encode: Encode) -> None:
        self.made: list[Row] = []
        """As JSON holds them."""
        self.given: list[Row] = []
        """The same as they were fetched."""
        self.left = self._all = find_room(names, limits)
        """Bytes that there are for further rows."""
        self._limits = limits
        self._encode = encode
        self._most = _FIRST
        self._full = False

    @property
    def wanted(self) -> int:
        """Rows to fetch next; 0 where the answer is full."""
        if self._full or (self.made and self.left <= self._all * (1 - _FULL)):
            return 0
        return min(self._most, self._limits.rows - len(self.made))

    def add(self, taken: Sequence[Row]) -> list[Row]:
        """Takes as many of the rows as there is room for; those for which there is none. Raises SqlError `too_large`
        where not even the first of all has room."""
        fitting, size = self._fit(taken, alone=not self.given)
        self.made += fitting
        self.given += taken[: len(fitting)]
        self.left -= size
        self._full = len(fitting) < len(taken)
        # The next rows are likely to be as large as these.
        self._most = max(self.left * len(self.made) // max(self._all - self.left, 1), 1)
        return [*taken[len(fitting) :]]

    def _fit(self, rows: Sequence[Row], *, alone: bool) -> tuple[list[Row], int]:
        """The first of the `rows` for which there is room, and how many bytes those are. Where they would stand
        `alone`, there is one at least."""
        cell_bytes = self._limits.cell_bytes
        while True:
            made = self._encode(rows, cell_bytes)
            size = measure(made)
            while size > self.left and len(made) > alone:
                made = made[: max(int(len(made) * self.left / size), int(alone))]
                size = measure(made)
            if size <= self.left or not made:
                return made, size
            if cell_bytes == _SMALLEST_CELL:
                raise SqlError("too_large", "one row is larger than one answer may be", "Select fewer columns.")
            # The first row alone, with its values cut shorter.
            rows, cell_bytes = rows[:1], max(cell_bytes // 4, _SMALLEST_CELL)


def find_room(names: Sequence[str], limits: AnswerLimits) -> int:
    """Bytes that an answer with columns of these names has for rows."""
    return limits.bytes - _FRAME - measure(names) - _COLUMN * len(names)


def measure(rows: Sequence[Any]) -> int:
    """Bytes of rows, or of names, in both forms: as JSON, and as a text of JSON, which is JSON again."""
    data = to_json(rows)
    return 2 * len(data) + data.count(b'"') + data.count(b"\\") + len(rows)


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
