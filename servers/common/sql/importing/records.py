"""Yields the data rows of a file in batches. Each row has as many fields as there are columns.

Short rows are padded. A row that is too long is an error, because it is unclear which of its fields belong to the
columns.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from ..errors import SqlError
from .dialects import RowReader, read_rows
from .layouts import Layout

BATCH_ROWS = 1_000
"""Maximum number of rows in a batch. `on_batch` is called after each."""
_MAX_ROWS = 10_000_000
"""Maximum number of rows of one import."""
_LINE_END = re.compile(r"\r\n|\r|\n")

Rows = Sequence[Sequence[str]]


class Records:
    """The data rows of a file. They can be iterated over once."""

    def __init__(
        self, rows: RowReader, layout: Layout, on_batch: Callable[[], None], max_rows: int | None = None
    ) -> None:
        """Read from `rows`, which start at the beginning of the file. `on_batch` raises if it is time to stop. Rows
        after the first `max_rows` are only counted."""
        self._rows = rows
        self._layout = layout
        self._on_batch = on_batch
        self._max_rows = _MAX_ROWS if max_rows is None else max_rows
        self._raw: Rows = ()
        self._lines_before = 0
        self._count_before = 0
        self.count = 0
        """Number of rows so far."""
        self.filled = 0
        """Number of rows up to the last one with a value. Spreadsheet programs write empty rows after it."""
        self.padded = 0
        """Number of rows that were padded."""
        self.first_padded = ""
        """The position of the first padded row."""
        self.comments = 0

    def __iter__(self) -> Iterator[Rows]:
        """Yield batches of rows. Raises SqlError with the position of a bad row, and UnicodeDecodeError."""
        self._read(self._layout.skipped)
        while raw := self._read(BATCH_ROWS):
            width = self._layout.width
            rows = raw if {*map(len, raw)} == {width} else self._adjust(raw)
            self._count_before = self.count
            self.count += len(rows)
            if self.count > _MAX_ROWS:
                raise SqlError("too_large", f"there are more than {_MAX_ROWS:,} rows", "Import them in parts.")
            last = next((index for index in range(len(rows), 0, -1) if width == 1 or any(rows[index - 1])), None)
            self.filled = self.filled if last is None else self._count_before + last
            self._on_batch()
            if rows := rows[: max(self._max_rows - self._count_before, 0)]:
                yield rows

    def position_of(self, index: int) -> str:
        """Return the position in the file of the row with this index in the last batch."""
        numbers = (number for number, row in enumerate(self._raw) if row and not self._is_comment(row))
        return self._format_position(next(islice(numbers, index, None)), self._count_before + index)

    def _format_position(self, raw_index: int, row: int) -> str:
        # A row with line endings in its fields takes several lines.
        lines = sum(1 + sum(len(_LINE_END.findall(field)) for field in row_) for row_ in self._raw[:raw_index])
        line = self._lines_before + lines + 1
        return f"row {row + 1:,}, line {line:,}"

    def _read(self, count: int) -> Rows:
        self._lines_before = self._rows.line_num
        rows, error = read_rows(self._rows, count)
        if error is not None:
            position = f"row {self.count + len(rows) + 1:,}, line {self._rows.line_num:,}"
            advice = 'Set quote to "" if quotes belong to the fields.'
            raise SqlError("bad_csv", f"{position}: {error}", advice)
        self._raw = rows
        return rows

    def _adjust(self, raw: Rows) -> Rows:
        rows: list[Sequence[str]] = []
        width = self._layout.width
        for index, row in enumerate(raw):
            if len(row) >= width:
                if any(row[width:]):
                    position = self._format_position(index, self.count + len(rows))
                    reason = f"{position}: it has {len(row):,} fields, but there are {width:,} columns"
                    advice = "Specify delimiter or header if this is wrong, or repair the row."
                    raise SqlError("bad_csv", reason, advice)
                rows.append(row[:width])
            elif row and self._is_comment(row):
                self.comments += 1
            elif row:
                self.padded += 1
                self.first_padded = self.first_padded or self._format_position(index, self.count + len(rows))
                rows.append([*row, *[""] * (width - len(row))])
        return rows

    def _is_comment(self, row: Sequence[str]) -> bool:
        return self._layout.has_comments and len(row) < self._layout.width and row[0].startswith("#")
