"""Detects the CSV dialect of a text from its first lines: the delimiter, the quotes, and their escape.

The delimiter is the one with which most lines have the same number of fields, and whose fields contain no other
delimiter.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from servers.common.sql.importing.layouts import find_names

DELIMITERS = (",", "\t", ";", "|")
NO_DELIMITER = "\x1f"
"""The delimiter for a text with one column, whose fields may contain any other delimiter."""
_SAMPLE_ROWS = 500
"""Maximum number of rows that are read with each dialect."""
_LEAST, _MOST, _SURE = 0.3, 0.8, 0.9
"""The minimum score of a delimiter, the minimum share of a table's rows with the same width, and the minimum share of
fields that begin with a space which shows that the space is not part of the field."""
_FEW = 3
"""Number of rows of equal width that is too small to show that quotes are part of the text."""
_NUMBER = re.compile(r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?")
_DECIMAL = re.compile(r"[+-]?\d+(?:,\d+)?")
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)
_LEADING_COMMENTS = re.compile(r"\A(?:#[^\r\n]*(?:\r\n|\r|\n)){2,}")
_FOREIGN = {delimiter: re.compile(f"[{''.join(DELIMITERS).replace(delimiter, '')}]") for delimiter in DELIMITERS}

Rows = Sequence[Sequence[str]]


class RowReader(Iterator[list[str]], Protocol):
    """An iterator of rows, such as a reader of `csv`."""

    @property
    def line_num(self) -> int:
        """The number of lines read so far."""


class Dialect(NamedTuple):
    """The delimiter, quotes and escapes of a text."""

    delimiter: str = ","
    quote: str = '"'
    """The character around a field that contains a delimiter; "" if quotes are not used."""
    escape: str = ""
    """The character before a quote within a field, if it is not another quote."""
    skips_blanks: bool = False
    """True if spaces after a delimiter are not part of the field."""

    def read(self, lines: Iterable[str]) -> RowReader:
        """Return a reader of rows, which raises csv.Error."""
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote or None,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            escapechar=self.escape or None,
            skipinitialspace=self.skips_blanks,
            strict=True,
        )

    def __str__(self) -> str:
        names = {"\t": "delimiter tab", " ": "delimiter blanks", NO_DELIMITER: "one column"}
        parts = [names.get(self.delimiter, f'delimiter "{self.delimiter}"')]
        if self.quote != '"':
            parts.append(f"quotes {self.quote}" if self.quote else "no quotes")
        if self.escape:
            parts.append(f"quotes escaped by {self.escape}")
        if self.skips_blanks and self.delimiter != " ":
            parts.append("spaces after it removed")
        return ", ".join(parts)


def read_separator_line(text: str) -> str | None:
    """Return the delimiter given in a first line such as `sep=;`, or None."""
    match = _SEPARATOR_LINE.match(text)
    return match[1] if match else None


def sniff(text: str, *, whole: bool, delimiter: str | None, quote: str | None) -> Dialect:
    """Return the dialect of a text from its first lines, which are the `whole` text if so marked.

    The client's `delimiter` and `quote` are kept.
    """
    text = _LEADING_COMMENTS.sub("", text)
    candidates = DELIMITERS if delimiter is None else (delimiter,)
    best, best_score = Dialect(delimiter or ","), 0.0
    for candidate in candidates:
        dialect, rows = _read_quoted(text, candidate, quote, whole)
        score = _score(rows, candidate)
        if score > best_score:
            best, best_score = dialect, score
    if delimiter is not None:
        best, _ = _read_quoted(text, delimiter, quote, whole)
    elif best_score < _LEAST:
        best, rows = _read_quoted(text, " ", quote, whole)
        # Rows separated by spaces are prose, unless most have the same width and many fields are numbers.
        widths = Counter(map(len, rows))
        width, count = max(widths.items(), key=lambda item: item[1], default=(1, 0))
        fields = [field for row in rows[1:] for field in row]
        numbers = sum(_NUMBER.fullmatch(field) is not None for field in fields)
        if not (width > 1 and count >= len(rows) * _MOST and numbers * 4 >= max(len(fields), 1)):
            best, rows = _read_quoted(text, ",", quote, whole)
            if rows and len(rows[0]) <= 1:
                best = best._replace(delimiter=NO_DELIMITER, skips_blanks=False)
    return best


def _read_quoted(text: str, delimiter: str, quote: str | None, whole: bool) -> tuple[Dialect, Rows]:
    """Return the first kind of quoting with which the text can be read, and its rows."""
    first = Dialect(delimiter, skips_blanks=delimiter == " ")
    if quote is not None:
        ways = [first._replace(quote=quote)]
    else:
        escaped = [first._replace(escape="\\")] if '\\"' in text else []
        edge = rf"(?:^|$|{re.escape(delimiter)})"
        has_single = '"' not in text and re.search(rf"{edge}'[^'\n]*'{edge}", text, re.MULTILINE) is not None
        ways = [*escaped, *([first._replace(quote="'")] if has_single else []), first, first._replace(quote="")]
    for way in ways:
        # A space before a quote is not part of the field.
        for dialect in dict.fromkeys((way, way._replace(skips_blanks=True))):
            rows = _read_sample(text, dialect, whole)
            if rows is not None and (way.quote or quote is not None or _has_literal_quotes(rows)):
                return _skip_blanks(dialect, rows, text, whole)
    return first, []


def _has_literal_quotes(rows: Rows) -> bool:
    """Return True if quotes in a table's fields are part of the text, rather than a mistake."""
    is_quoted = any(len(field) > 1 and field[0] == field[-1] == '"' for row in rows for field in row)
    return not is_quoted and len(rows) > _FEW and len({*map(len, rows)}) == 1 < len(rows[0])


def _skip_blanks(dialect: Dialect, rows: Rows, text: str, whole: bool) -> tuple[Dialect, Rows]:
    inner = [field for row in rows for field in row[1:] if field]
    if dialect.skips_blanks or dialect.delimiter == "\t" or not inner:
        return dialect, rows
    if sum(field[0] == " " for field in inner) < len(inner) * _SURE:
        return dialect, rows
    dialect = dialect._replace(skips_blanks=True)
    return dialect, _read_sample(text, dialect, whole) or rows


def _read_sample(text: str, dialect: Dialect, whole: bool) -> Rows | None:
    """Return the first rows; None if the text does not have this dialect."""
    rows, error = read_rows(dialect.read(io.StringIO(text, newline="")), _SAMPLE_ROWS)
    # The last field of a part may be cut. But if a quote is not really one, the field after it contains most of the
    # text.
    if error is not None and (whole or sum(len(field) + 1 for row in rows for field in row) * 2 < len(text)):
        return None
    return [row for row in rows if row]


def read_rows(reader: RowReader, count: int) -> tuple[list[list[str]], csv.Error | None]:
    """Return the next rows, and the error that ended them early."""
    rows: list[list[str]] = []
    try:
        for row in islice(reader, count):
            rows.append(row)  # noqa: PERF402 - what was read before an error is kept
    except csv.Error as error:
        return rows, error
    return rows, None


def _score(rows: Rows, delimiter: str) -> float:
    """Return a delimiter's score from 0 to 1: how well it explains the rows below any titles."""
    rows = rows[find_names(rows) or 0 :]
    widths = Counter(map(len, rows))
    if not widths:
        return 0.0
    width, count = max(widths.items(), key=lambda item: (item[1], item[0]))
    if width == 1 or (len(rows[0]) == 1 and count < len(rows) * 2 * _LEAST):
        return 0.0
    # A name above 1,5 and 2,75 is the name of one column of decimals, rather than a title above two columns.
    if delimiter == "," and len(rows[0]) == 1 and all(map(_DECIMAL.fullmatch, map(",".join, rows[1:]))):
        return 0.0
    fields = [field for row in rows for field in row if field]
    foreign = _FOREIGN.get(delimiter) or _FOREIGN[","]
    clean = sum(foreign.search(field) is None or _NUMBER.fullmatch(field) is not None for field in fields)
    return count / len(rows) * clean / max(len(fields), 1)
