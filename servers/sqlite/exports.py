"""Exports: whole results of queries as files in a directory of this process's own, which ends with it.

Each belongs to who made it. Of one owner there are `_MOST` at once: the oldest one goes when another is made. In all
there are `_MOST_IN_ALL`, of which the oldest one of who has most goes.

CSV is that of RFC 4180: lines end in CRLF, the first one has the names. NULL is empty, and an empty text is `""`; a
blob is base64; a text that is no UTF-8 keeps its bytes. In JSON and JSON Lines a row is an array, because names may
stand twice, and a value that JSON can't hold is an object that names its type, as in the answers to queries. JSON
Lines has the names in its first line.
"""

import errno
import re
import sqlite3
import sys
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, NamedTuple, Self

from anyio import to_thread
from pydantic_core import to_json

from servers.sqlite.engine.database import Database, temporary_directory
from servers.sqlite.engine.limits import Job, StatementDeadline, retry_locked
from servers.sqlite.errors import SqliteError
from servers.sqlite.held_names import HeldNames
from servers.sqlite.query.pages import fetch
from servers.sqlite.query.query import Query
from servers.sqlite.query.values import encode_cells

FormatName = Literal["csv", "json", "jsonl"]
Rows = Sequence[Sequence[Any]]
Writer = Callable[[Sequence[str], Iterable[Rows]], Iterator[bytes]]

_MOST = 16
_MOST_IN_ALL = 64
_BATCH_ROWS, _BATCH_BYTES = 1_000, 1_000_000
_FULL = (errno.ENOSPC, errno.EDQUOT)
_QUOTED = re.compile(r'[",\r\n]|^$')


class Format(NamedTuple):
    """A format: its type, and what writes the names of columns and some rows after the other in it."""

    mime_type: str
    write: Writer


def _write_csv(names: Sequence[str], batches: Iterable[Rows]) -> Iterator[bytes]:
    yield _format_csv([names])
    for rows in batches:
        yield _format_csv(rows)


def _format_csv(rows: Rows) -> bytes:
    return "".join(",".join(map(_format_field, row)) + "\r\n" for row in rows).encode("utf-8", "surrogateescape")


def _format_field(value: Any) -> str:
    match value:
        case None:
            return ""
        case bytes():
            return b64encode(value).decode() or '""'
        case float() if value in (float("inf"), float("-inf")):
            return "Infinity" if value > 0 else "-Infinity"
        case str() if _QUOTED.search(value):
            return '"' + value.replace('"', '""') + '"'
    return str(value)


def _write_json(names: Sequence[str], batches: Iterable[Rows]) -> Iterator[bytes]:
    yield b'{"columns":' + to_json(names) + b',"rows":['
    before = b"\n"
    for rows in batches:
        yield before + b",\n".join(map(to_json, _encode_rows(rows)))
        before = b",\n"
    yield b"\n]}\n"


def _write_json_lines(names: Sequence[str], batches: Iterable[Rows]) -> Iterator[bytes]:
    yield to_json(names) + b"\n"
    for rows in batches:
        yield b"".join(to_json(row) + b"\n" for row in _encode_rows(rows))


def _encode_rows(rows: Rows) -> Iterator[Sequence[Any]]:
    """The rows with their values as JSON has them, whole."""
    return zip(*[encode_cells(values, sys.maxsize) for values in zip(*rows, strict=True)], strict=True)


FORMATS: dict[FormatName, Format] = {
    "csv": Format("text/csv", _write_csv),
    "json": Format("application/json", _write_json),
    "jsonl": Format("application/jsonl", _write_json_lines),
}


class Export(NamedTuple):
    """A file with the rows of a query."""

    name: str
    path: Path
    who: str | None
    mime_type: str
    rows: int
    bytes: int


class Exports:
    """The exports that there are. Close them at the end, as a context manager does."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._names = HeldNames()
        self._directory: Path | None = None
        self._end = ExitStack()
        self._exports: dict[str, Export] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._end.close()

    async def make(
        self, database: Database, query: Query, format_: FormatName, who: str | None, job: Job | None = None
    ) -> Export:
        """Writes all rows of the `query` to a file that belongs to `who`.

        Raises SqliteError: `too_large` where that has more bytes than the operator allows, `no_space`, and what a
        query raises.
        """
        if self._directory is None:
            self._directory = Path(self._end.enter_context(temporary_directory("exports")))
        name = f"{self._names.new()}.{format_}"
        path = self._directory / name
        with ExitStack() as unless_whole:
            # Where the process that wrote it was killed, nobody else takes it away.
            unless_whole.callback(path.unlink, missing_ok=True)
            rows, size = await database.read(partial(_write, path, query, format_, self._max_bytes), job)
            unless_whole.pop_all()
        export = self._exports[name] = Export(name, path, who, FORMATS[format_].mime_type, rows, size)
        if (gone := self._too_many(who)) is not None:
            del self._exports[gone.name]
            await to_thread.run_sync(partial(gone.path.unlink, missing_ok=True))
        return export

    def _too_many(self, who: str | None) -> Export | None:
        """The export that goes, since `who` has made another."""
        counts = Counter(export.who for export in self._exports.values())
        if counts[who] <= _MOST and len(self._exports) <= _MOST_IN_ALL:
            return None
        whose = who if counts[who] > _MOST else counts.most_common(1)[0][0]
        return next(export for export in self._exports.values() if export.who == whose)

    def get(self, name: str, who: str | None) -> Export:
        """The export of that name, which belongs to `who`. Raises SqliteError `not_found`, or `elsewhere` where
        another process has made it."""
        export = self._exports.get(name)
        if export is None or export.who != who:
            self._names.check_here(name.partition(".")[0], "the file of an export", "Export it again.")
            raise SqliteError("not_found", "there is no such export", "The oldest ones go: export it again.")
        return export

    async def read(self, export: Export, offset: int, length: int) -> bytes:
        """Bytes of it, `length` at most. Raises SqliteError `not_found` where it has gone."""
        return await to_thread.run_sync(_read, export, offset, length)


def _read(export: Export, offset: int, length: int) -> bytes:
    try:
        with export.path.open("rb") as file:
            file.seek(min(offset, export.bytes))
            return file.read(length)
    except FileNotFoundError:
        raise SqliteError("not_found", "the export has gone") from None


def _write(
    path: Path,
    query: Query,
    format_: FormatName,
    max_bytes: int,
    connection: sqlite3.Connection,
    deadline: StatementDeadline,
) -> tuple[int, int]:
    run = partial(connection.execute, query.sql, query.parameters)
    with _new(path) as file, closing(retry_locked(deadline, run)) as cursor:
        batches = _Batches(cursor, deadline)
        size = 0
        for part in FORMATS[format_].write([column[0] for column in cursor.description or ()], batches):
            size += len(part)
            if size > max_bytes:
                reason = f"the export has more than {max_bytes:,} bytes"
                raise SqliteError("too_large", reason, "Select fewer rows or columns.")
            file.write(part)
    return batches.rows, size


@contextmanager
def _new(path: Path) -> Iterator[BinaryIO]:
    """A new file, which goes again where it does not become whole."""
    with ExitStack() as unless_whole:
        unless_whole.callback(path.unlink, missing_ok=True)
        try:
            with path.open("xb") as file:
                yield file
        except OSError as error:
            if error.errno in _FULL:
                raise SqliteError("no_space", "the disk is full") from None
            raise SqliteError("io_error", "the file of the export can't be written") from None
        unless_whole.pop_all()


class _Batches:
    """The rows of a cursor, some at a time, and how many there were."""

    def __init__(self, cursor: sqlite3.Cursor, deadline: StatementDeadline) -> None:
        self._cursor = cursor
        self._deadline = deadline
        self.rows = 0

    def __iter__(self) -> Iterator[Sequence[Sequence[Any]]]:
        while batch := fetch(self._cursor, _BATCH_ROWS, _BATCH_BYTES):
            self._deadline.check()
            self.rows += len(batch)
            self._deadline.tell(self.rows, None, f"{self.rows:,} rows")
            yield batch
