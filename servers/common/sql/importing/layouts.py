"""Determines the layout of a file: where its table starts, how many columns it has, and which row has their names.

A row contains column names if it differs from the rows below it: it has text above numbers or dates, or text that
does not occur again. The width of a row is the number of its fields.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from shared.text import format_count

from ..errors import SqlError
from .readings import MONTH_NAME, NULL_MARKS

_TYPED = re.compile(
    r"[ $€£]*[+-]?\d[\d.,'’]*(?:[eE][+-]?\d+)?[ %€]*|[+-]?\.\d+"
    r"|\d{1,4}([-/.])\d{1,2}\1\d{1,4}(,?[T ] ?\d.*)?|(?i:true|false)"
    rf"|(?:{MONTH_NAME} +\d{{1,2}},? +|\d{{1,2}}[ /-]?{MONTH_NAME}[ /-]?)\d{{4}}(,?[T ] ?\d.*)?"
)
"""Matches a field that is a value rather than text: a number (also an amount of money or a percentage), a date or a
boolean."""
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}|21[0-9]{2}")
_MAX_TITLE_LINES = 50
"""Maximum number of lines above a table."""
_COMPARED_ROWS = 200
"""A row that may contain names is compared with at most this many rows below it."""
_MIN_ROWS = 3
"""Minimum number of rows of the same width in a table whose names or titles are recognized by the width."""
_MIN_WIDE_SHARE = 0.5
"""At least this share of the rows is as wide as the table, counted from the first such row."""
# The score that each field adds for a row of column names (negative: against it), if there are values below the
# field: for an empty field, as pandas writes above an index; a value; a text that occurs again below; another text.
_WEIGHTS = {"none": 2.0, "typed": -1.25, "again": -1.0, "text": 0.25}
_ABOVE_TYPED = 1.0
"""The score that a text above numbers or dates adds."""
_RULE = re.compile(r"(?=.*---)[ :+-]+")
"""Matches the fields of a line of dashes below the names, as database clients write it."""
_COMMENT = "#"
_TAG = re.compile(r"#[^#\s]")

Rows = Sequence[Sequence[str]]


class Layout(NamedTuple):
    """Where a table is in the rows of a file, and the names of its columns."""

    names: Sequence[str] | None
    """The names in the file; None if no row contains column names."""
    skipped: int
    """Number of rows above the first data row, including the row of names and empty lines."""
    width: int
    """Number of columns."""
    has_comments: bool
    """True if rows that begin with # and are shorter than the table are comments."""
    decisions: Sequence[str]
    """Phrases that say what was decided about the layout, and why."""


def find_layout(
    rows: Rows, header: bool | int | None, table_columns: Iterable[str], *, is_grid: bool = False
) -> Layout:
    """Return the position of the table in a file with these first rows, in which empty lines are rows without fields.

    `header` comes from the client: True or False if a row does or does not contain column names, or the line number
    of that row. `table_columns` are the columns of the table that receives the rows. In a grid, as in a workbook,
    each field is in a column, even if the column has no name. Raises SqlError if there are no rows.
    """
    width = _usual_width(rows)
    if width == 0:
        raise SqlError("bad_csv", "there are no rows")
    # Hashtags and colors begin with # as well. So if more than half of the rows of the usual width begin with # and a
    # character, there are no comments. One such row does not count: it may contain the names of the columns.
    tags = [_TAG.match(row[0]) is not None for row in rows if row and len(_trim(row)) == width]
    begins_with_comment = rows[0][:1] != [] and rows[0][0].startswith(_COMMENT)
    has_comments = begins_with_comment and 2 * sum(tags) <= max(len(tags), 2)
    header_index, decisions = _find_first(rows, header, width, has_comments)
    skipped = header_index + 1 + any(_RULE.fullmatch(" ".join(row)) for row in rows[header_index + 1 :][:1])
    data = [
        row
        for row in rows[skipped:]
        if row and not (has_comments and row[0].startswith(_COMMENT) and len(row) < width)
    ]
    names, reason = rows[header_index], ""
    if header is None:
        is_header, reason = _is_header(names, data, {name.lower() for name in table_columns})
    else:
        is_header, reason = header is not False, "as asked"
    decisions.append(
        f"row {header_index + 1:,} names the columns ({reason})"
        if is_header
        else f"no row names the columns ({reason})"
    )
    if not is_header:
        return Layout(None, header_index, max(map(len, map(_trim, rows[header_index:]))), has_comments, decisions)
    if skipped > header_index + 1:
        decisions.append("a line of dashes below the names left out")
    if has_comments and names[0].startswith(_COMMENT):
        names = [names[0].lstrip("# "), *names[1:]]
    if width == len(names) + 1 and len(data) >= _MIN_ROWS and all(len(row) == width for row in data):
        names = ["", *names]
        decisions.append("each row has one more field than there are names, so the first column has no name")
    if is_grid:
        names = [*names, *[""] * (max(map(len, map(_trim, data)), default=0) - len(names))]
    return Layout(names, skipped, len(names), has_comments, decisions)


def find_name_row(rows: Rows) -> int | None:
    """Return the index of the row with the column names in a table below titles, as in bank exports.

    It is the first row that is as wide as the table, and has text above numbers or dates. Return None if there is no
    such row, if it is the first row of the file, or if the rows above it are a table themselves.
    """
    width = _usual_width(rows)
    header_index = next(
        (index for index, row in enumerate(rows[: _MAX_TITLE_LINES + 1]) if len(_trim(row)) >= width), 0
    )
    if header_index == 0 or width < 2 or not _is_above_values(rows[header_index], rows[header_index + 1 :]):
        return None
    blocks = (list(block) for _, block in groupby(rows[:header_index], lambda row: len(_trim(row))))
    is_table = any(len(block) >= _MIN_ROWS and _is_above_values(block[0], block[1:]) for block in blocks)
    return None if is_table else header_index


def _is_above_values(row: Sequence[str], rest: Rows) -> bool:
    """Return True if a row has at least two texts and no values, and a text is above a column of values."""
    names = [name.strip() for name in row]
    if sum(map(bool, names)) < 2 or any(map(_TYPED.fullmatch, names)):
        return False
    columns = (_column(rest, index) for index, name in enumerate(names) if name)
    return any(fields and all(map(_TYPED.fullmatch, fields)) for fields in columns)


def _usual_width(rows: Rows) -> int:
    """Return the most common width of the rows, without empty fields at their end.

    This is the largest width that at least half of the rows have, not counting rows above the first row of that
    width, since they may be titles.
    """
    widths = [len(_trim(row)) for row in rows if row]
    for width in sorted(set(widths), reverse=True):
        below = widths[next(index for index, other in enumerate(widths) if other >= width) :]
        if (
            width
            and len(widths) - len(below) <= _MAX_TITLE_LINES
            and below.count(width) >= max(2, len(below) * _MIN_WIDE_SHARE)
        ):
            return width
    return max(Counter(widths).items(), key=lambda item: (item[1], item[0]), default=(0, 0))[0] or max(
        map(len, rows), default=0
    )


def _find_first(rows: Rows, header: bool | int | None, width: int, has_comments: bool) -> tuple[int, list[str]]:
    """Return the index of the first row of the table, which may contain the names, and a note on lines above it."""
    if header is not None and not isinstance(header, bool):
        if not 1 <= header <= len(rows) or not rows[header - 1]:
            raise SqlError("bad_csv", f"line {header} contains no column names")
        return header - 1, []
    below = 0 if header is False else find_name_row(rows) or 0
    titles = comments = 0
    for index, row in enumerate(rows[: _MAX_TITLE_LINES + 1]):
        if has_comments and row and row[0].startswith(_COMMENT) and not _is_name_row(row, rows[index + 1 :], width):
            comments += 1
        elif row and (
            index < below or ((header is not False or len(row) < width) and _is_title(row, rows[index + 1 :], width))
        ):
            titles += 1
        elif row:
            above = [format_count(comments, "comment")] * (comments > 0)
            above += [format_count(titles, "line of title", "lines of title")] * (titles > 0)
            return index, [f"{' and '.join(above)} above the table left out"] * bool(above)
    return next(index for index, row in enumerate(rows) if row), []


def _is_title(row: Sequence[str], rest: Rows, width: int) -> bool:
    """Return True if a row is a title above a table: it has a single field, it is narrow and an empty line follows,
    or few of its many fields are filled."""
    filled = [field for field in row if field]
    if len(row) <= 1 < width or len(_trim(row)) <= 1 < width - 1 or (len(row) < width and rest[:1] == [[]]):
        return True
    is_other = len(row) < width or not any(_TYPED.fullmatch(field.strip()) for field in filled)
    return len(filled) * 2 < width and is_other and sum(len(_trim(other)) == width for other in rest) >= _MIN_ROWS


def _is_name_row(row: Sequence[str], rest: Rows, width: int) -> bool:
    """Return True if a row that begins with # contains column names: it is wide enough, and no comment follows."""
    return len(_trim(row)) >= width > 1 and not any(after[0].startswith(_COMMENT) for after in rest[:1] if after)


def _is_header(names: Sequence[str], data: Rows, table_columns: set[str]) -> tuple[bool, str]:
    """Return whether the row `names` contains column names, and the reason. `data` are the rows below it."""
    if table_columns and 2 * len(table_columns.intersection(name.strip().lower() for name in names)) >= len(names):
        return True, "the table has columns with those names"
    texts = [name for name in names if name.strip() and not _TYPED.fullmatch(name.strip())]
    columns = [_column(data, index) for index in range(len(names))]
    score = 0.0
    for number, (name, fields) in enumerate(zip(names, columns, strict=True)):
        if fields and name.strip() not in NULL_MARKS and (name or not number):
            is_typed = all(_TYPED.fullmatch(field) for field in fields)
            kind = (
                "none"
                if not name
                else "typed"
                if name not in texts
                else "again"
                if name.strip() in fields
                else "text"
            )
            score += _ABOVE_TYPED if kind == "text" and is_typed else _WEIGHTS[kind]
    years = [name for name in names if _YEAR.fullmatch(name.strip())]
    if texts and len(years) > 1 and years == sorted(set(years)) and len(years) + len(texts) >= len(names) - 1:
        return True, "text and years"
    if score > 0 or (texts and not any(columns)):
        return True, "it differs from the rows below it"
    return False, "it looks like the rows below it" if texts else "it has no text"


def _column(data: Rows, index: int) -> list[str]:
    """Return the fields of a column in the first rows, except empty ones and null marks."""
    fields = (row[index].strip() for row in data[:_COMPARED_ROWS] if index < len(row))
    return [field for field in fields if field and field not in NULL_MARKS]


def _trim(row: Sequence[str]) -> Sequence[str]:
    """Return the row without empty fields at its end."""
    end = len(row)
    while end and not row[end - 1]:
        end -= 1
    return row[:end]


def name_columns(layout: Layout, max_bytes: int | None = None) -> tuple[list[str], list[str]]:
    """Return unique names for all columns, and a note on each column whose name is not the one in the file.

    `max_bytes` is the maximum length of a name in the database; None if there is no limit.
    """
    names: list[str] = []
    changed: list[str] = []
    used: set[str] = set()
    for number, written in enumerate(layout.names or [""] * layout.width, 1):
        # A second byte order mark, which would be invisible.
        original = written.replace("\ufeff", "").strip()
        plain = original or f"c{number}"
        name, copy = _cut(plain, max_bytes), 1
        while name.lower() in used:
            copy += 1
            name = _cut(plain, max_bytes, f"_{copy}")
        used.add(name.lower())
        names.append(name)
        if layout.names is not None and name != original:
            changed.append(f"column {number}, {original!r}: {name}" if original else f"column {number}: {name}")
    return names, changed


def _cut(name: str, max_bytes: int | None, suffix: str = "") -> str:
    if max_bytes is None:
        return name + suffix
    return name.encode(errors="replace")[: max_bytes - len(suffix)].decode(errors="ignore") + suffix
