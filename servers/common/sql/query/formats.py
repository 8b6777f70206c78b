"""Writes exports to files, in several formats.

CSV follows RFC 4180: lines end in CRLF, and the first one contains the names of the columns. NULL is an empty field,
and empty text is `""`. In JSON and JSON Lines, a row is an array, because two columns may have the same name. A value
that JSON can't represent is an object with its type, as in query results. The first line of JSON Lines contains the
names.
"""

import errno
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, NamedTuple, Protocol, Self

from pydantic_core import to_json

from ..errors import SqlError
from .pages import Row

FormatName = Literal["csv", "json", "jsonl"]

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_QUOTED = re.compile(r'[",\r\n]|^$')


class Codec(Protocol):
    """Encodes the values that an engine fetches."""

    def encode(self, rows: Sequence[Row], cell_bytes: int) -> list[Row]:
        """Return the rows as JSON values, each with at most `cell_bytes` bytes."""

    def format(self, rows: Sequence[Row]) -> Iterable[Sequence[str | None]]:
        """Return the rows as text; None is NULL."""


class Format(NamedTuple):
    """A format of exports."""

    mime_type: str
    begin: Callable[[Sequence[str]], bytes]
    """Returns the beginning of a file, given the names of the columns."""
    add: Callable[[Codec, Sequence[Row], bool], bytes]
    """Returns rows in this format; the last argument is True for the first rows of the file."""
    end: bytes
    """The end of a file."""


def _format_csv(rows: Iterable[Sequence[str | None]]) -> bytes:
    return "".join(",".join(map(_format_field, row)) + "\r\n" for row in rows).encode("utf-8", "surrogateescape")


def _format_field(value: str | None) -> str:
    if value is None:
        return ""
    return '"' + value.replace('"', '""') + '"' if _QUOTED.search(value) else value


FORMATS: dict[FormatName, Format] = {
    "csv": Format(
        "text/csv",
        lambda names: _format_csv([names]),
        lambda codec, rows, _is_first: _format_csv(codec.format(rows)),
        b"",
    ),
    "json": Format(
        "application/json",
        lambda names: b'{"columns":' + to_json(names) + b',"rows":[',
        lambda codec, rows, is_first: (
            (b"\n" if is_first else b",\n") + b",\n".join(map(to_json, codec.encode(rows, sys.maxsize)))
        ),
        b"\n]}\n",
    ),
    "jsonl": Format(
        "application/jsonl",
        lambda names: to_json(names) + b"\n",
        lambda codec, rows, _is_first: b"".join(to_json(row) + b"\n" for row in codec.encode(rows, sys.maxsize)),
        b"",
    ),
}


class ExportRequest(NamedTuple):
    """A request to write an export to a file."""

    path: Path
    format: FormatName
    max_bytes: int


class ExportFile:
    """A context manager that creates the file of an export, and removes it if the block raises.

    All methods raise SqlError: with code `too_large` if the file exceeds its limit, or `no_space` or `io_error`.
    """

    def __init__(self, request: ExportRequest, codec: Codec) -> None:
        self.rows = 0
        self.bytes = 0
        self._request = request
        self._format = FORMATS[request.format]
        self._codec = codec
        self._on_failure = ExitStack()
        self._file: BinaryIO

    def __enter__(self) -> Self:
        self._on_failure.callback(self._request.path.unlink, missing_ok=True)
        with self._on_failure:
            try:
                self._file = self._on_failure.enter_context(self._request.path.open("xb"))
            except OSError as error:
                raise _convert_error(error) from None
            self._on_failure = self._on_failure.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._on_failure:
            if error is not None:
                return
            try:
                self._write(self._format.end)
                self._file.close()
            except OSError as failure:
                raise _convert_error(failure) from None
            self._on_failure.pop_all()

    def begin(self, names: Sequence[str]) -> None:
        """Write the names of the columns."""
        self._write(self._format.begin(names))

    def add(self, rows: Sequence[Row]) -> None:
        """Write rows."""
        self._write(self._format.add(self._codec, rows, self.rows == 0))
        self.rows += len(rows)

    def _write(self, part: bytes) -> None:
        self.bytes += len(part)
        if self.bytes > self._request.max_bytes:
            reason = f"the export has more than {self._request.max_bytes:,} bytes"
            raise SqlError("too_large", reason, "Select fewer rows or columns.")
        try:
            self._file.write(part)
        except OSError as error:
            raise _convert_error(error) from None


def _convert_error(error: OSError) -> SqlError:
    if error.errno in _DISK_FULL:
        return SqlError("no_space", "the disk is full")
    return SqlError("io_error", "the file of the export can't be written")
