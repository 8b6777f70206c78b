"""As many rows as one answer may have.

How many bytes rows take in an answer is known when they have been made, which costs more than fetching them. So some
are made first, and then as many are fetched as should fit if they are like those; what does not fit waits.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from pydantic_core import to_json

from servers.sqlite.errors import SqliteError
from servers.sqlite.query.values import encode_cells, encode_row, find_types

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


def fill_row(names: Sequence[str], row: Row, limits: AnswerLimits) -> Page | None:
    """The only row of a query as `fill_page` makes it; None where it has no room as it is."""
    made = [encode_row(row, limits.cell_bytes)]
    if measure(made) > limits.bytes - _FRAME - measure(names) - _COLUMN * len(names):
        return None
    return Page(made, [find_types((value,)) for value in row])


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
    if len(rows) == 1:
        return [encode_row(rows[0], cell_bytes)]
    return list(zip(*[encode_cells(values, cell_bytes) for values in zip(*rows, strict=True)], strict=True))
