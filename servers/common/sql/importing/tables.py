"""Reads a file as rows of fields. The file is a text in some charset with some delimiter, or a workbook.

The format is determined from the start of the file. If a later part shows that the charset is another one, the file
is read again.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import BinaryIO, Literal, NamedTuple

from ...charsets import (
    BYTE_ORDER_MARKS,
    EVIDENCE_BYTES,
    evidence_lines,
    is_damaged,
    likely_charsets,
    wide_codec,
)
from ..errors import SqlError
from .dialects import Dialect, RowReader, read_rows, read_separator_line, sniff
from .files import Opener
from .workbooks import is_workbook, open_sheet

_HEAD_BYTES = 262_144
"""Number of bytes at the start of a text from which its format is determined."""
_BLOCK_BYTES = 1_048_576
_SAMPLE_ROWS = 1_000
"""Number of rows at the start of a file from which the layout is determined."""
_MAX_SHEETS = 20
"""Maximum number of sheets listed in a result."""
_LINE_ENDS = ("\r", "\n")
_OTHER_FORMATS = {
    b"PAR1": ("a Parquet file", "Write it as CSV first, with DuckDB or pandas for example."),
    b"\x1f\x8b": ("compressed with gzip", "Unpack it first."),
    b"BZh": ("compressed with bzip2", "Unpack it first."),
    b"\xfd7zXZ\0": ("compressed with xz", "Unpack it first."),
    b"PK\x03\x04": ("a zip archive", "Unpack it first."),
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook", "Save it as .xlsx or CSV first."),
    b"SQLite format 3\0": ("an SQLite database", "The operator can serve it as one."),
    b"%PDF": ("a PDF", "Specify a file that contains a table."),
}
_OTHER_TEXTS = {
    "JSON": re.compile(r'\s*(?:\[\s*)?\{\s*"'),
    "HTML or XML": re.compile(r"\s*<(?:!doctype|html|table|\?xml)", re.IGNORECASE),
}


class FormatRequest(NamedTuple):
    """What the client says about the format of a file. A property that is None is detected."""

    delimiter: str | None = None
    quote: str | None = None
    encoding: str | None = None
    header: bool | int | None = None
    decimal: Literal[".", ","] | None = None
    nulls: Sequence[str] | None = None
    types: Sequence[str] = ()
    """Names of columns with their types, as in `zip=text`."""
    sheet: str | None = None
    field_bytes: int = 16_000_000
    """Maximum size of one field, in bytes."""


class Table(NamedTuple):
    """How to read the rows of a file."""

    encoding: str
    """The codec of a text; "" for a workbook."""
    dialect: Dialect
    start: Sequence[Sequence[str]]
    """The first rows. An empty line is a row without fields."""
    decisions: Sequence[str]
    """Phrases that say what was decided about the format, and why."""
    notes: Sequence[str] = ()
    """Notes on formulas without a stored value, and what to do about them."""


def open_table(opener: Opener, request: FormatRequest, codec: str | None = None) -> Table:
    """Determine how to read the rows of a file. `codec` is its codec if that was detected from
    more than its start.

    Raises SqlError if the file is neither a text nor a workbook.
    """
    with opener() as file:
        start = file.read(_HEAD_BYTES)
        if is_workbook(start):
            return _open_workbook(file, request)
        encoding, reason = (
            (codec, "the most likely one for its letters") if codec else _find_encoding(start, request.encoding)
        )
        try:
            # The start may be cut within a character.
            text = codecs.getincrementaldecoder(encoding)().decode(start)
        except UnicodeDecodeError as undecodable:
            reason = f"the text is not {encoding} (byte {undecodable.start:,})"
            raise SqlError("bad_csv", reason, "Specify encoding.") from None
        except LookupError:
            raise SqlError("bad_csv", f"there is no charset {encoding}") from None
    other = next((name for name, beginning in _OTHER_TEXTS.items() if beginning.match(text)), None)
    if other is not None and request.delimiter is None and request.quote is None:
        raise SqlError(
            "bad_csv",
            f"the text is {other}, not a table",
            "Write it as CSV first, or set delimiter if it is a table.",
        )
    is_complete = len(start) < _HEAD_BYTES
    if not is_complete:
        # The last line may be cut, and its row would be too short.
        text = text[: max(map(text.rfind, _LINE_ENDS)) + 1] or text
    declared = read_separator_line(text)
    csv.field_size_limit(request.field_bytes)
    dialect = sniff(text, is_complete=is_complete, delimiter=request.delimiter or declared, quote=request.quote)
    rows, error = read_rows(dialect.read(io.StringIO(text, newline="")), _SAMPLE_ROWS)
    if error is not None and not rows:
        # Go on: the error is raised, with its position, when all rows are read.
        rows = [[""]]
    if declared:
        rows[0] = []
    origin = " as the first line says" if declared else " as asked" if request.delimiter else ""
    return Table(encoding, dialect, rows, [f"text in {encoding} ({reason})", f"{dialect}{origin}"])


def _open_workbook(file: BinaryIO, request: FormatRequest) -> Table:
    sheet = open_sheet(file, request.sheet)
    decisions = [f"the sheet {sheet.name!r} of a workbook"]
    if sheet.others:
        more = f" and {len(sheet.others) - _MAX_SHEETS:,} more" if len(sheet.others) > _MAX_SHEETS else ""
        decisions.append(
            f"others are {', '.join(sheet.others[:_MAX_SHEETS])}{more}: specify sheet to read one of them"
        )
    start = list(islice(sheet.rows, _SAMPLE_ROWS))
    if not any(start):
        quoted = [f"sheet {sheet.name}", *(f"other sheet: {name}" for name in sheet.others[:_MAX_SHEETS])]
        raise SqlError(
            "bad_csv", "the sheet has no rows", "Specify sheet to read another one." if sheet.others else "", quoted
        )
    count, notes = sheet.count_uncomputed(), []
    if count:
        cells = "1 cell has a formula" if count == 1 else f"{count:,} cells have formulas"
        cause = f"{cells} without a value, so NULL is imported"
        notes = [f"{cause}: open and save the workbook in a spreadsheet program first"]
    return Table("", Dialect(), start, decisions, notes)


@contextmanager
def read_table(opener: Opener, table: Table, request: FormatRequest) -> Iterator[tuple[BinaryIO, RowReader]]:
    """Yield the open file, and an iterator over all its rows. The iterator raises csv.Error and
    UnicodeDecodeError."""
    with opener() as file:
        if not table.encoding:
            yield file, open_sheet(file, request.sheet).rows
            return
        text = io.TextIOWrapper(file, encoding=table.encoding, newline="")
        try:
            csv.field_size_limit(request.field_bytes)
            yield file, table.dialect.read(text)
        finally:
            text.detach()


def _find_encoding(start: bytes, requested: str | None) -> tuple[str, str]:
    """Return the codec of a text that begins with `start`, and the reason."""
    mark = next((name for name, mark in BYTE_ORDER_MARKS if start.startswith(mark)), None)
    if requested is not None:
        try:
            codec = codecs.lookup(requested).name
            # This raises an error for a codec that is not a charset, such as zip or base64.
            "a;1\n".encode(codec)
        except (LookupError, UnicodeError, ValueError):
            advice = "Specify one such as utf-8, utf-16, cp1252, iso8859-2 or gb18030."
            raise SqlError("bad_csv", "there is no charset with that name", advice) from None
        return (_codec_without_mark(codec) if codec == mark else codec), "as asked"
    if mark is not None:
        return _codec_without_mark(mark), "by its byte order mark"
    other = next((decisions for magic, decisions in _OTHER_FORMATS.items() if start.startswith(magic)), None)
    if other is not None:
        raise SqlError("bad_csv", f"the file is not text: it is {other[0]}", other[1])
    if 0 in start and (wide := wide_codec(start)) is not None:
        return wide, "by its NULs"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return guess_encoding(io.BytesIO(start)), "the most likely one for its letters"
    return "utf-8", "all of it is valid"


def _codec_without_mark(codec: str) -> str:
    """Return a codec for the same charset which skips a byte order mark."""
    return "utf-8-sig" if codec == "utf-8" else codec[:6]


def guess_encoding(file: BinaryIO) -> str:
    """Return the most likely codec of a text that is not UTF-8. Raises SqlError if no codec fits."""
    evidence = b""
    while len(evidence) < EVIDENCE_BYTES and (block := file.read(_BLOCK_BYTES)):
        evidence += evidence_lines(block)
    likely = [] if is_damaged(evidence) else likely_charsets(evidence[:EVIDENCE_BYTES])
    if not likely:
        advice = "Specify encoding, or repair the file."
        raise SqlError(
            "bad_csv", "the file is not valid text in UTF-8 or any other encoding that could be detected", advice
        )
    return likely[0].codec
