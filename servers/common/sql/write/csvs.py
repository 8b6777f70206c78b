"""CSV: where it comes from, its rows, and the types of columns that can hold what stands in them without any loss.

A client names files in the operator's directory, and nothing else: no path leads out. Nothing of a name but the last
part is followed, so a link in the directory is no way out either.
"""

import csv
import io
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TextIO

from servers.common.files.directories import entry_in, open_directory, open_to_read
from servers.common.sql.errors import SqlError

_MOST_ROWS = 10_000_000
_BATCH = 1_000
"""Rows between two looks at the clock."""
_EXACT = 1 << 53
"""Integers up to this are exact as REAL, too."""
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_REAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")

Opener = Callable[[], AbstractContextManager[TextIO]]
"""Opens the text at its beginning."""


class CsvFormat(NamedTuple):
    """How the CSV is written."""

    delimiter: str = ","
    header: bool = True
    """Whether the first row has the names of the columns."""
    field_bytes: int = 16_000_000
    """What one field may have."""


class Records:
    """The rows of a text, once: lists of fields, all of the same number. Raises SqlError where it is no CSV."""

    def __init__(self, text: TextIO, form: CsvFormat, on_batch: Callable[[], None]) -> None:
        """`on_batch` is called after some rows, and raises where it is time to stop."""
        # The module has one limit, for the whole process.
        csv.field_size_limit(form.field_bytes)
        self._reader = csv.reader(text, delimiter=form.delimiter, strict=True)
        self._on_batch = on_batch
        self.count = 0
        """Rows so far, without the header."""
        first = self._next()
        if first is None:
            raise SqlError("bad_csv", "there are no rows")
        self.header = first if form.header else None
        self.width = len(first)
        self._first = None if form.header else first

    @property
    def where(self) -> str:
        """The row that was read last; nothing where that is the header."""
        return f"row {self.count:,}, line {self._reader.line_num:,}" if self.count else ""

    def __iter__(self) -> Iterator[list[str]]:
        row = self._first or self._next()
        while row is not None:
            self.count += 1
            if len(row) != self.width:
                raise SqlError("bad_csv", f"it has {len(row)} fields, and the first row has {self.width}")
            if self.count > _MOST_ROWS:
                raise SqlError("too_large", f"there are more than {_MOST_ROWS:,} rows", "Import them in parts.")
            if self.count % _BATCH == 0:
                self._on_batch()
            yield row
            row = self._next()

    def _next(self) -> list[str] | None:
        """The next row; an empty line is none."""
        try:
            for row in self._reader:
                if row:
                    return row
        except csv.Error as error:
            raise SqlError("bad_csv", f"{error}") from None
        except UnicodeDecodeError:
            raise SqlError("bad_csv", "the text is not UTF-8") from None
        return None


def open_text(text: str) -> Opener:
    """Opens a text."""
    # With "" no line end is translated, of which a field may hold one.
    return partial(io.StringIO, text.removeprefix("\ufeff"), "")


def open_file(directory: Path, name: str) -> Opener:
    """Opens a file of the operator's, whose text is UTF-8, with or without a mark. Raises SqlError."""
    return partial(_open_file, directory, name)


# Whoever reads it opens it, and closes it: the caller may be gone by then, and the descriptor another's.
@contextmanager
def _open_file(directory: Path, name: str) -> Iterator[TextIO]:
    with (
        open_named(directory, name) as descriptor,
        open(descriptor, encoding="utf-8-sig", newline="", closefd=False) as file,
    ):
        yield file


@contextmanager
def open_named(directory: Path, name: str) -> Iterator[int]:
    """A descriptor of the regular file called `name`, to read from. Raises SqlError."""
    if not name or name in (".", "..") or any(character in "/\\:\0" for character in name):
        raise SqlError("bad_file", "a file is given by its name alone, without any directory")
    try:
        with open_directory(directory, listed=False) as inside:
            handle = open_to_read(entry_in(inside, name))
    except FileNotFoundError:
        raise SqlError("not_found", "there is no file of that name in the directory of files") from None
    except (OSError, ValueError):
        raise SqlError("bad_file", "the file can't be opened") from None
    try:
        if not stat.S_ISREG(handle.stat.st_mode):
            raise SqlError("bad_file", "it is not a regular file")
        yield handle.descriptor
    finally:
        os.close(handle.descriptor)


def measure(text: TextIO) -> tuple[int, Callable[[], int]]:
    """How long a text is that was just opened, and what says how far it has been read: in bytes, or in characters of
    one that is in memory."""
    if isinstance(text, io.StringIO):
        size = text.seek(0, os.SEEK_END)
        text.seek(0)
        return size, text.tell
    descriptor = text.fileno()
    return os.fstat(descriptor).st_size, partial(os.lseek, descriptor, 0, os.SEEK_CUR)


def infer_types(records: Records) -> list[str]:
    """For each column INTEGER, REAL or TEXT: the first from which each of its fields comes back as it is written."""
    found, rows = TypeInference(records.width), iter(records)
    while found.look(list(islice(rows, _BATCH))):
        """There may be more."""
    return found.types


class TypeInference:
    """What `infer_types` finds, of rows that come part by part."""

    def __init__(self, width: int) -> None:
        self._columns = [_Column() for _ in range(width)]

    def look(self, rows: Sequence[Sequence[str]]) -> bool:
        """Looks at these rows as well; whether there are any."""
        for column, fields in zip(self._columns, zip(*rows, strict=True), strict=bool(rows)):
            column.look([field for field in fields if field])
        return bool(rows)

    @property
    def types(self) -> list[str]:
        """What the columns are, as far as is known."""
        return [column.kind or "TEXT" for column in self._columns]


class _Column:
    """What the fields of one column can be, so far."""

    def __init__(self) -> None:
        self.kind: str | None = None
        self._exact = True
        """Whether its integers are exact as REAL."""

    def look(self, fields: Sequence[str]) -> None:
        if self.kind == "TEXT" or not fields:
            return
        if self.kind != "REAL" and all(map(_is_integer, fields)):
            self.kind = "INTEGER"
            self._exact = self._exact and all(map(_is_exact, fields))
        elif self._exact and all(map(_is_real, fields)):
            self.kind = "REAL"
        else:
            self.kind = "TEXT"


def _is_integer(field: str) -> bool:
    # What has fewer digits fits into 64 bits.
    return _INTEGER.fullmatch(field) is not None and (len(field) < 19 or -(1 << 63) <= int(field) < 1 << 63)


def _is_exact(field: str) -> bool:
    return abs(int(field)) <= _EXACT


def _is_real(field: str) -> bool:
    if _REAL.fullmatch(field) is None:
        return _is_integer(field) and _is_exact(field)
    # SQLite knows no negative zero.
    return repr(float(field)) == field and field != "-0.0"
