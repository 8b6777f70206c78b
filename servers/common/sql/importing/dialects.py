"""Detects the CSV dialect of a text from its first lines: the delimiter, the quotes, and their escape.

It chooses the delimiter with which most lines have the same number of fields and few fields contain another
delimiter.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from .layouts import find_name_row

DELIMITERS = (",", "\t", ";", "|")
_RARE_DELIMITERS = ("^", "~", "\x01")
"""Delimiters of the USDA's food tables, of older bank systems and of Hive."""
NO_DELIMITER = "\x1f"
"""The delimiter for a text with one column: a character that fields don't contain, so that nothing is split."""
_SAMPLE_ROWS = 500
"""Maximum number of rows that are read with each dialect."""
_MIN_SCORE = 0.3
"""The minimum score of a delimiter."""
_MIN_EQUAL_SHARE = 0.8
"""In a table whose fields are separated by spaces, at least this share of rows has the same number of fields."""
_MIN_SPACE_SHARE = 0.9
"""If at least this share of the fields begins with a space, the spaces are not part of the fields."""
_TOO_FEW_ROWS = 3
"""This many rows with the same number of fields, or fewer, do not show that quotes are part of the text."""
_NUMBER = re.compile(r"[+-]?(?:\d+(?:[ .,'’\u00a0\u202f]\d{3})*[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?")
_DECIMAL = re.compile(r"[+-]?\d+(?:,\d+)?")
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)
_LEADING_COMMENTS = re.compile(r"\A(?:#[^\r\n]*(?:\r\n|\r|\n)){2,}")
_OTHER_DELIMITERS = {
    delimiter: re.compile(f"[{''.join((*DELIMITERS, *rare)).replace(delimiter, '')}]")
    for delimiters, rare in ((DELIMITERS, ()), (_RARE_DELIMITERS, _RARE_DELIMITERS))
    for delimiter in delimiters
}
"""For each delimiter, a match of another one in a field. A rare one counts only against another rare one."""

Rows = Sequence[Sequence[str]]


class RowReader(Iterator[list[str]], Protocol):
    """An iterator of rows, such as a reader of `csv`."""

    @property
    def line_num(self) -> int:
        """Number of lines read so far."""


class Dialect(NamedTuple):
    """The delimiter, quotes and escapes of a text."""

    delimiter: str = ","
    quote: str = '"'
    """The character around a field that contains a delimiter; "" if quotes are not used."""
    escape: str = ""
    """The character before a quote within a field, if it is not another quote."""
    skips_spaces: bool = False
    """True if spaces after a delimiter are skipped, since they are not part of the field."""

    def read(self, lines: Iterable[str]) -> RowReader:
        """Return a reader of rows, which raises csv.Error."""
        if self.escape:
            # Otherwise the reader would take NULL, as MySQL writes it, for the text N.
            delimiter = re.escape(self.delimiter)
            no_value = re.compile(rf"(^|{delimiter})\\N(?={delimiter}|[\r\n]|$)")
            lines = (no_value.sub(r"\1\\\\N", line) for line in lines)
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote or None,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            escapechar=self.escape or None,
            skipinitialspace=self.skips_spaces,
            strict=True,
        )

    def __str__(self) -> str:
        names = {
            "\t": "delimiter tab",
            " ": "delimiter blanks",
            "\x01": "delimiter Ctrl-A",
            NO_DELIMITER: "one column",
        }
        parts = [names.get(self.delimiter, f'delimiter "{self.delimiter}"')]
        if self.quote != '"':
            parts.append(f"quotes {self.quote}" if self.quote else "no quotes")
        if self.escape:
            parts.append(f"quotes escaped by {self.escape}")
        if self.skips_spaces and self.delimiter != " ":
            parts.append("spaces after it removed")
        return ", ".join(parts)


def read_separator_line(text: str) -> str | None:
    """Return the delimiter that the first line of a text names, as in `sep=;`; None if it names none."""
    match = _SEPARATOR_LINE.match(text)
    return match[1] if match else None


def sniff(text: str, *, is_complete: bool, delimiter: str | None, quote: str | None) -> Dialect:
    """Return the dialect of a text, given its first lines, or all of it if `is_complete`.

    If the client gives a `delimiter` or `quote`, it is used.
    """
    text = _LEADING_COMMENTS.sub("", text)
    candidates = (*DELIMITERS, *_RARE_DELIMITERS) if delimiter is None else (delimiter,)
    best, best_score = Dialect(delimiter or ","), 0.0
    for candidate in candidates:
        dialect, rows = _read_quoted(text, candidate, quote, is_complete)
        score = _score(rows, candidate)
        if score > best_score:
            best, best_score = dialect, score
    if delimiter is not None:
        best, _ = _read_quoted(text, delimiter, quote, is_complete)
    elif best_score < _MIN_SCORE:
        best, rows = _read_quoted(text, " ", quote, is_complete)
        # No delimiter fits, so try spaces. The text is prose unless most rows have the same width and many fields are
        # numbers.
        widths = Counter(map(len, rows))
        width, count = max(widths.items(), key=lambda item: item[1], default=(1, 0))
        fields = [field for row in rows[1:] for field in row]
        numbers = sum(_NUMBER.fullmatch(field) is not None for field in fields)
        if not (width > 1 and count >= len(rows) * _MIN_EQUAL_SHARE and numbers * 4 >= max(len(fields), 1)):
            best, rows = _read_quoted(text, ",", quote, is_complete)
            if rows and len(rows[0]) <= 1:
                best = best._replace(delimiter=NO_DELIMITER, skips_spaces=False)
    return best


def _read_quoted(text: str, delimiter: str, quote: str | None, is_complete: bool) -> tuple[Dialect, Rows]:
    """Try several ways of quoting with this delimiter. Return the first dialect that can read the text, and the first
    rows."""
    first = Dialect(delimiter, skips_spaces=delimiter == " ")
    if quote is not None:
        candidates = [first._replace(quote=quote)]
    else:
        escaped = [first._replace(escape="\\")] if '\\"' in text else []
        edge = rf"(?:^|$|{re.escape(delimiter)})"
        others = [
            first._replace(quote=mark)
            for mark in "'~"
            if mark != delimiter
            and '"' not in text
            and re.search(rf"{edge}{mark}[^{mark}\n]*{mark}{edge}", text, re.MULTILINE) is not None
        ]
        candidates = [*escaped, *others, first, first._replace(quote="")]
    for candidate in candidates:
        # Also try to skip spaces after delimiters, since a space before a quote is not part of the field.
        for dialect in dict.fromkeys((candidate, candidate._replace(skips_spaces=True))):
            rows = _read_sample(text, dialect, is_complete)
            if rows is not None and (candidate.quote or quote is not None or _has_literal_quotes(rows)):
                return _skip_spaces(dialect, rows, text, is_complete)
    return first, []


def _has_literal_quotes(rows: Rows) -> bool:
    """Return True if quotes are part of the fields: no field is in quotes, and all rows have the same number of
    fields."""
    is_quoted = any(len(field) > 1 and field[0] == field[-1] == '"' for row in rows for field in row)
    return not is_quoted and len(rows) > _TOO_FEW_ROWS and len({*map(len, rows)}) == 1 < len(rows[0])


def _skip_spaces(dialect: Dialect, rows: Rows, text: str, is_complete: bool) -> tuple[Dialect, Rows]:
    inner = [field for row in rows for field in row[1:] if field]
    if dialect.skips_spaces or dialect.delimiter == "\t" or not inner:
        return dialect, rows
    if sum(field[0] == " " for field in inner) < len(inner) * _MIN_SPACE_SHARE:
        return dialect, rows
    dialect = dialect._replace(skips_spaces=True)
    return dialect, _read_sample(text, dialect, is_complete) or rows


def _read_sample(text: str, dialect: Dialect, is_complete: bool) -> Rows | None:
    """Return the first rows; None if the text does not have this dialect."""
    rows, error = read_rows(dialect.read(io.StringIO(text, newline="")), _SAMPLE_ROWS)
    # An incomplete text may end within a quoted field. That does not mean that the dialect is wrong, unless this
    # field is more than half of the text: then the quote does not really begin a field.
    if error is not None and (is_complete or sum(len(field) + 1 for row in rows for field in row) * 2 < len(text)):
        return None
    return [row for row in rows if row]


def read_rows(reader: RowReader, count: int) -> tuple[list[list[str]], csv.Error | None]:
    """Return the next `count` rows, and the error if one ended the reading early."""
    rows: list[list[str]] = []
    try:
        for row in islice(reader, count):
            rows.append(row)  # noqa: PERF402 - what was read before an error is kept
    except csv.Error as error:
        return rows, error
    return rows, None


def _score(rows: Rows, delimiter: str) -> float:
    """Return the score of a delimiter, from 0 to 1: the share of rows with the most frequent number of fields, times
    the share of fields without another delimiter. Titles above the table do not count."""
    rows = rows[find_name_row(rows) or 0 :]
    widths = Counter(map(len, rows))
    if not widths:
        return 0.0
    width, count = max(widths.items(), key=lambda item: (item[1], item[0]))
    if width == 1 or (len(rows[0]) == 1 and count < len(rows) * 2 * _MIN_SCORE):
        return 0.0
    # One name above rows such as 1,5 and 2,75 is the name of a column of decimals, not a title above two columns.
    if delimiter == "," and len(rows[0]) == 1 and all(map(_DECIMAL.fullmatch, map(",".join, rows[1:]))):
        return 0.0
    fields = [field for row in rows for field in row if field]
    others = _OTHER_DELIMITERS.get(delimiter) or _OTHER_DELIMITERS[","]
    without_others = sum(others.search(field) is None or _NUMBER.fullmatch(field) is not None for field in fields)
    return count / len(rows) * without_others / max(len(fields), 1)
