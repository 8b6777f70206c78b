"""The rows of a sheet of an Excel workbook, by openpyxl: its values as a CSV would have them."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time
from functools import partial
from typing import Any, BinaryIO, NamedTuple

from servers.common.documents.uncomputed import count_uncomputed
from servers.common.sql.errors import SqlError
from servers.common.sql.importing.columns import DecimalMark

_OPEN_TEXT = re.compile(r" *[+-]?[1-9]\d{0,2}\.\d{3} *", re.ASCII)
"""A cell of text that may be 1234 or 1.234."""
_MAX_BYTES = 500_000_000
"""Bytes of all parts of a workbook together, unpacked, by what the archive says; no more is read of a part."""


def is_workbook(start: bytes) -> bool:
    """Whether a file that begins so may be a workbook: a zip archive that names its kind of content first."""
    return start.startswith(b"PK\x03\x04") and any(part in start[:4_096] for part in (b"[Content_Types].xml", b"xl/"))


class Sheet(NamedTuple):
    """A sheet of a workbook."""

    rows: "SheetRows"
    name: str
    others: Sequence[str]
    """The names of the other sheets, with a mark where they are hidden."""
    count_uncomputed: Callable[[], int]
    """Counts the formulas whose values the file does not have."""


def open_sheet(file: BinaryIO, wanted: str | None) -> Sheet:
    """Return a sheet: the `wanted` one, hidden or not, or the first that is shown.

    Formulas are their last computed values. Rows of no value are empty. Raises SqlError for what is no workbook, or
    larger than the limit.
    """
    from zipfile import BadZipFile, ZipFile

    from openpyxl import load_workbook

    try:
        with ZipFile(file) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MAX_BYTES:
                raise SqlError("too_large", f"the workbook unpacks to more than {_MAX_BYTES:,} bytes")
        file.seek(0)
        workbook = load_workbook(file, read_only=True, data_only=True, keep_links=False)
    except (BadZipFile, OSError, LookupError, AttributeError, SyntaxError, TypeError, ValueError):
        raise SqlError("bad_csv", "the workbook is damaged") from None
    sheets = sorted(workbook.worksheets, key=_is_hidden)
    sheet = next((sheet for sheet in sheets if wanted in (None, sheet.title)), None)
    if sheet is None:
        raise SqlError(
            "not_found", "the workbook has no such sheet", quoted=[f"sheets: {', '.join(map(_name, sheets))}"]
        )
    # What a sheet says of its size may be wrong.
    sheet.reset_dimensions()
    others = [_name(other) for other in sheets if other is not sheet]
    return Sheet(SheetRows(sheet), sheet.title, others, partial(_count_uncomputed, sheet))


def _is_hidden(sheet: Any) -> bool:
    return bool(sheet.sheet_state != "visible")


def _name(sheet: Any) -> str:
    return f"{sheet.title}{' (hidden)' * _is_hidden(sheet)}"


def _count_uncomputed(sheet: Any) -> int:
    # openpyxl has no public way to a sheet as it is written, by which alone no value is told from an empty one.
    with sheet._get_source() as part:  # noqa: SLF001
        return count_uncomputed(part)


class SheetRows:
    """The rows of a sheet, as a reader of `csv` gives them; one of no value has no field."""

    def __init__(self, sheet: Any) -> None:
        self._rows = sheet.iter_rows(values_only=True)
        self._with_fractions: set[int] = set()
        self._with_open_texts: set[int] = set()
        self.line_num = 0

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        values = next(self._rows)
        for column, value in enumerate(values):
            if isinstance(value, float) and not value.is_integer():
                self._with_fractions.add(column)
            elif isinstance(value, str) and _OPEN_TEXT.fullmatch(value):
                self._with_open_texts.add(column)
        fields = [*map(_write, values)]
        self.line_num += 1
        return fields if any(fields) else []

    def find_mark(self, column: int, given: str | None) -> DecimalMark:
        """Return the decimal mark of a column of which all rows were read: a point where its cells are numbers, and
        the `given` one where they are texts."""
        if column in self._with_fractions:
            return DecimalMark("" if column in self._with_open_texts else ".", is_sure=False)
        if given is not None:
            return DecimalMark(given)
        return DecimalMark("" if column in self._with_open_texts else ".", is_sure=False)


def _write(value: object) -> str:
    """A value as text: dates in ISO 8601, what is whole without a fraction."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float):
        # Fifteen digits are what Excel computes with and shows.
        return f"{value:.15g}" if abs(value) < 1e15 else repr(value)
    return str(value)
