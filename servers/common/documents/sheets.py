"""Converts Excel workbooks to HTML: a heading and a table for each sheet, with values as displayed."""

import re
import zlib
from datetime import date, datetime, time, timedelta
from html import escape
from io import BytesIO
from itertools import takewhile
from typing import Any
from zipfile import BadZipFile

from openpyxl.utils.exceptions import InvalidFileException

from .document import Document, DocumentError, left_out_notes
from .package import Package
from .uncomputed import count_uncomputed
from .workbook import open_workbook

MAX_CELLS = 30_000
"""Maximum number of cells with a value that are read from a workbook."""
MAX_ROWS = 200_000
"""Maximum number of rows that are read from a workbook."""
MAX_COLUMNS = 200
"""Maximum number of cells that are read in one row."""
_TEXT_IN_FORMAT = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')
_PERCENT = re.compile(r"0?(?:\.(0+))?%")
_HYPERLINK = re.compile(rb"<(?:\w+:)?hyperlink\b([^>]*)>")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_COMMENTS = re.compile(r"xl/(?:threadedC|c)omments")
_DAMAGE_ERRORS = (
    BadZipFile,
    InvalidFileException,
    LookupError,
    AttributeError,
    SyntaxError,
    TypeError,
    ValueError,
    zlib.error,
)


class _SheetReader:
    """Reads sheets until the limits of the workbook are reached."""

    def __init__(self) -> None:
        self.cells = self.rows = 0
        self.is_cut = False

    def table(self, sheet: Any, links: dict[str, str]) -> str:
        """Return a sheet as HTML. Rows with a single value above the table, such as titles, become paragraphs.
        `links` are the URLs of cells (see `_links`)."""
        # Make openpyxl ignore the size that the sheet declares, since it may be wrong.
        sheet.reset_dimensions()
        rows: list[list[str]] = []
        for row in sheet.iter_rows():
            if self.cells >= MAX_CELLS or self.rows >= MAX_ROWS:
                self.is_cut = True
                break
            values = [value_html(cell) for cell in row[:MAX_COLUMNS]]
            self.is_cut = self.is_cut or any(cell.value is not None for cell in row[MAX_COLUMNS:])
            self.cells += sum(map(bool, values))
            self.rows += 1
            if any(values):
                rows.append([_cell_html(cell, value, links) for cell, value in zip(row, values, strict=False)])
        first = min((next(index for index, value in enumerate(row) if value) for row in rows), default=0)
        widest = max((sum(map(bool, row)) for row in rows), default=0)
        titles = list(takewhile(lambda row: sum(map(bool, row)) < min(widest, 2), rows))
        paragraphs = [f"<p>{next(filter(None, row))}</p>" for row in titles]
        head, *body = rows[len(titles) :] or [[]]
        table = [_row(head[first:], "th"), *(_row(row[first:], "td") for row in body)]
        return "".join([*paragraphs, "<table>", *table, "</table>"] if head else paragraphs)


def read_sheets(body: bytes, name: str | None = None) -> Document:
    """Return the visible sheets as far as the limits allow. The first row of each is the header of its table.

    If `name` is given, and a sheet has this name, only that sheet is returned, even if it is hidden. Formulas appear
    as their last computed values. Macros are never read. Raises DocumentError with code `unreadable`.
    """
    package = Package(body)
    try:
        workbook = open_workbook(BytesIO(body))
    except _DAMAGE_ERRORS:
        raise DocumentError("unreadable", "the workbook is damaged") from None
    reader, parts = _SheetReader(), list[str]()
    visible = [sheet for sheet in workbook.worksheets if sheet.sheet_state == "visible"]
    hidden = [sheet.title for sheet in workbook.worksheets if sheet not in visible]
    chosen = [sheet for sheet in workbook.worksheets if sheet.title == name]
    main = package.main_part()
    relations = package.relations(main)
    references = [(sheet.get("name") or "", sheet.get(_ID) or "") for sheet in package.xml(main).iter("{*}sheet")]
    part_names = {title: relations[reference].target for title, reference in references if reference in relations}
    left_out = {
        "sheets that are damaged": 0,
        "hidden sheets": 0 if chosen else len(hidden),
        "charts": sum(part.startswith("xl/charts/chart") for part in package.names),
        "comments": sum(package.read(part).count(b"<comment ") for part in package.names if _COMMENTS.match(part)),
        "formulas without a stored value": 0,
    }
    for sheet in chosen or visible:
        parts.append(f"<h2>{escape(sheet.title)}</h2>")
        part_name = part_names.get(sheet.title, "")
        markup = package.read(part_name) if part_name in package.names else b""
        left_out["formulas without a stored value"] += count_uncomputed(BytesIO(markup))
        try:
            parts.append(reader.table(sheet, _links(package, part_name, markup)))
        except _DAMAGE_ERRORS:
            left_out["sheets that are damaged"] += 1
    notes = left_out_notes(left_out)
    if reader.is_cut:
        limits = f"{MAX_CELLS:,} cells, {MAX_ROWS:,} rows and {MAX_COLUMNS} columns"
        ask = " Ask for one sheet by name." if len(visible) > 1 else ""
        notes.append(f"Everything after {limits} is left out.{ask}")
    return Document("".join(parts), package.facts(), {"sheets": len(visible)}, tuple(notes), tuple(hidden))


def _links(package: Package, part_name: str, markup: bytes) -> dict[str, str]:
    """Return the URLs of a sheet's linked cells, by the reference of the cell, such as `B2`. `markup` is the XML of
    the sheet, in which the links come after the rows."""
    relations = package.relations(part_name)
    links: dict[str, str] = {}
    for match in _HYPERLINK.finditer(markup.rpartition(b"</sheetData>")[2]):
        attributes = dict(_ATTRIBUTE.findall(match[1].decode("utf-8", "replace")))
        relation = relations.get(attributes.get("id", ""))
        if relation is not None and relation.external:
            links[attributes.get("ref", "")] = relation.target
    return links


def _cell_html(cell: Any, value: str, links: dict[str, str]) -> str:
    url = links.get(cell.coordinate) if links and value else None
    return f'<a href="{escape(url)}">{value}</a>' if url else value


def value_html(cell: Any) -> str:
    """Return the value of a cell as displayed, escaped for HTML: percentages with their sign, dates in ISO 8601."""
    value = cell.value
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "seconds")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        seconds = round(abs(value.total_seconds()))
        sign = "-" if value < timedelta() else ""
        return f"{sign}{seconds // 3_600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if isinstance(value, int | float):
        if percent := _PERCENT.search(_TEXT_IN_FORMAT.sub("", cell.number_format or "").partition(";")[0]):
            return f"{value * 100:.{len(percent[1] or '')}f}%"
        # Excel stores and shows at most fifteen digits.
        return f"{value:.15g}" if abs(value) < 1e15 else str(value)
    return "" if value is None else "<br>".join(escape(str(value)).strip().splitlines())


def _row(values: list[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{value}</{tag}>' for value in values)}</tr>"
