"""Fills one result with as many rows as fit. A result contains its rows in two forms, as data and as text.

The size of rows in a result is known only after they have been encoded, which takes longer than fetching them. So a
few rows are encoded first. Then as many are fetched as will fit if they have a similar size. Rows that don't fit are
left for the next result.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from pydantic_core import to_json

from shared.text import format_count

from ..errors import SqlError

Row = tuple[Any, ...]
Encode = Callable[[Sequence[Row], int], list[Row]]
"""Encodes fetched rows for JSON, each value in at most the given number of bytes."""

_FRAME_BYTES = 1_000
"""Maximum size of a result without its columns and rows, in bytes."""
_COLUMN_BYTES = 100
"""Maximum size of the properties of a column without its name, in bytes."""
_CELL_BYTES = 10
"""Typical size of a value in both forms together, without the characters of a text, in bytes."""
_SAMPLE_ROWS = 50
"""Number of rows from which the size of the others is estimated."""
_FULL_SHARE = 0.95
"""A result that has used at least this share of its bytes counts as full."""
_MIN_CELL_BYTES = 16
"""Values are never truncated to fewer bytes than this."""


class AnswerLimits(NamedTuple):
    """The limits of one result."""

    rows: int
    """Maximum number of rows."""
    bytes: int
    """Maximum size of the result as JSON in bytes, both forms together."""
    cell_bytes: int
    """Maximum size of one value in bytes."""


class Page(NamedTuple):
    """The rows of one result, as JSON values."""

    rows: list[Row]
    types: Sequence[str]
    """The type of the values in each column, as the database calls it."""


NO_ROWS = Page([], [])


class PageBuilder:
    """Collects rows as they are fetched, until one result is full."""

    def __init__(self, names: Sequence[str], limits: AnswerLimits, encode: Encode) -> None:
        self.encoded: list[Row] = []
        """The rows as JSON values."""
        self.fetched: list[Row] = []
        """The same rows as fetched."""
        self.left = self._space = find_space_for_rows(names, limits)
        """Number of bytes left for further rows."""
        self._limits = limits
        self._encode = encode
        self._max_fetched = _SAMPLE_ROWS
        self._full = False

    @property
    def rows_to_fetch(self) -> int:
        """Number of rows to fetch next; 0 if the result is full."""
        if self._full or (self.encoded and self.left <= self._space * (1 - _FULL_SHARE)):
            return 0
        return min(self._max_fetched, self._limits.rows - len(self.encoded))

    def add(self, rows: Sequence[Row]) -> list[Row]:
        """Add as many of the rows as fit, and return the rest.

        Raises SqlError with code `too_large` if not even the first row fits.
        """
        fitting, size = self._fit(rows, is_first=not self.fetched)
        self.encoded += fitting
        self.fetched += rows[: len(fitting)]
        self.left -= size
        self._full = len(fitting) < len(rows)
        # The next rows are probably as large as these.
        self._max_fetched = max(self.left * len(self.encoded) // max(self._space - self.left, 1), 1)
        return [*rows[len(fitting) :]]

    def _fit(self, rows: Sequence[Row], *, is_first: bool) -> tuple[list[Row], int]:
        """Return as many of the `rows`, encoded, as fit, and their size in bytes. If `is_first`, they are the first
        in the result; then return at least one, or raise SqlError."""
        cell_bytes = self._limits.cell_bytes
        while True:
            encoded = self._encode(rows, cell_bytes)
            size = measure(encoded)
            while size > self.left and len(encoded) > is_first:
                encoded = encoded[: max(int(len(encoded) * self.left / size), int(is_first))]
                size = measure(encoded)
            if size <= self.left or not encoded:
                return encoded, size
            if cell_bytes == _MIN_CELL_BYTES:
                columns = format_count(len(rows[0]), "column")
                reason = f"one row of {columns} is larger than the limit for an answer"
                raise SqlError("too_large", reason, "Select fewer columns.")
            # The first row does not fit, so try it alone, with its values truncated to fewer bytes.
            rows, cell_bytes = rows[:1], max(cell_bytes // 4, _MIN_CELL_BYTES)


def find_space_for_rows(names: Sequence[str], limits: AnswerLimits) -> int:
    """Return the number of bytes that a result has for rows, given the names of its columns."""
    return limits.bytes - _FRAME_BYTES - measure(names) - _COLUMN_BYTES * len(names)


def measure(rows: Sequence[Any]) -> int:
    """Return the size in bytes of rows or names in both forms: as JSON, and as JSON text inside a JSON string."""
    data = to_json(rows)
    return 2 * len(data) + data.count(b'"') + data.count(b"\\") + len(rows)


def fetch(rows: Iterable[Row], max_rows: int, space: int) -> list[Row]:
    """Return about as many rows as fit into `space` bytes: at least one if there are any, and at most `max_rows`."""
    fetched: list[Row] = []
    for row in islice(rows, max_rows):
        fetched.append(row)
        space -= _CELL_BYTES * len(row)
        # Measure each row, since a single value may need all of the space.
        for value in row:
            if value.__class__ is str or value.__class__ is bytes:
                space -= 2 * len(value)
        if space <= 0:
            break
    return fetched
