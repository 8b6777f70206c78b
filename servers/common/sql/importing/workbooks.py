"""Reads the rows of a sheet in an Excel workbook with openpyxl. Values become text, as in a CSV file."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, BinaryIO, NamedTuple

from ...documents.uncomputed import count_uncomputed
from ..errors import SqlError
from .columns import DecimalMark

_AMBIGUOUS_TEXT = re.compile(r" *[+-]?[1-9]\d{0,2}\.\d{3} *", re.ASCII)
"""Matches the text of a cell that may mean 1234 or 1.234."""
_MAX_BYTES = 500_000_000
"""Maximum uncompressed size of a workbook's parts in bytes, as the archive declares it; `zipfile` reads no more."""


def is_workbook(start: bytes) -> bool:
    """Return True if a file with this start may be a workbook: a zip archive that begins with its content types."""
    return start.startswith(b"PK\x03\x04") and any(part in start[:4_096] for part in (b"[Content_Types].xml", b"xl/"))


class Sheet(NamedTuple):
    """A sheet of a workbook."""

    rows: "SheetRows"
    name: str
    others: Sequence[str]
    """The names of the other sheets. Those of hidden sheets are followed by "(hidden)"."""
    count_uncomputed: Callable[[], int]
    """Counts the formulas whose values are not in the file."""


def open_sheet(file: BinaryIO, name: str | None) -> Sheet:
    """Return the sheet called `name`, hidden or not; if `name` is None, the first visible sheet.

    Formulas are read as their last computed values. Raises SqlError if the file is not a workbook or exceeds the
    limit, or if there is no such sheet.
    """
    from zipfile import BadZipFile, ZipFile

    from ...documents.workbook import open_workbook

    try:
        with ZipFile(file) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MAX_BYTES:
                raise SqlError("too_large", f"the workbook unpacks to more than {_MAX_BYTES:,} bytes")
        file.seek(0)
        workbook = open_workbook(file)
    except (BadZipFile, OSError, LookupError, AttributeError, SyntaxError, TypeError, ValueError):
        raise SqlError("bad_csv", "the workbook is damaged") from None
    sheets = sorted(workbook.worksheets, key=_is_hidden)
    sheet: Any = next((sheet for sheet in sheets if name in (None, sheet.title)), None)
    if sheet is None:
        raise SqlError(
            "not_found", "the workbook has no such sheet", quoted=[f"sheets: {', '.join(map(_label, sheets))}"]
        )
    # Make openpyxl ignore the size that the sheet declares, since it may be wrong.
    sheet.reset_dimensions()
    others = [_label(other) for other in sheets if other is not sheet]

    def count() -> int:
        # Use a private method to get the XML: only there, missing values differ from empty ones.
        with sheet._get_source() as part:  # noqa: SLF001
            return count_uncomputed(part)

    return Sheet(SheetRows(sheet), sheet.title, others, count)


def _is_hidden(sheet: Any) -> bool:
    return bool(sheet.sheet_state != "visible")


def _label(sheet: Any) -> str:
    return f"{sheet.title}{' (hidden)' * _is_hidden(sheet)}"


class SheetRows:
    """The rows of a sheet, in the form of a `csv` reader. A row without values has no fields."""

    def __init__(self, sheet: Any) -> None:
        self._rows = sheet.iter_rows(values_only=True)
        self._with_fractions: set[int] = set()
        self._with_ambiguous_texts: set[int] = set()
        self.line_num = 0

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        values = next(self._rows)
        for column, value in enumerate(values):
            if isinstance(value, float) and not value.is_integer():
                self._with_fractions.add(column)
            elif isinstance(value, str) and _AMBIGUOUS_TEXT.fullmatch(value):
                self._with_ambiguous_texts.add(column)
        fields = [*map(_write, values)]
        self.line_num += 1
        return fields if any(fields) else []

    def find_mark(self, column: int, requested: str | None) -> DecimalMark:
        """Return the decimal mark of a column. All rows must have been read. Cells with numbers have become text with
        a point; for cells with text, the `requested` mark counts."""
        if column in self._with_fractions:
            return DecimalMark("" if column in self._with_ambiguous_texts else ".", is_sure=False)
        if requested is not None:
            return DecimalMark(requested)
        return DecimalMark("" if column in self._with_ambiguous_texts else ".", is_sure=False)


def _write(value: object) -> str:
    """Return a value as text: dates in ISO 8601, whole numbers without a fraction."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _write_duration(value)
    if isinstance(value, float):
        # Excel shows at most fifteen digits. Further ones are errors of binary arithmetic.
        return f"{value:.15g}" if abs(value) < 1e15 else repr(value)
    return str(value)


def _write_duration(value: timedelta) -> str:
    """Return a duration in hours, minutes and seconds, as spreadsheet programs show it: 26:30:00."""
    seconds = abs(value).days * 86_400 + abs(value).seconds
    fraction = f".{abs(value).microseconds:06}".rstrip("0") if value.microseconds else ""
    sign = "-" if value < timedelta() else ""
    return f"{sign}{seconds // 3_600}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"
