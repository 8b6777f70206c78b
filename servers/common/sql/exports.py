"""Exports: whole results of queries as files in a directory of this process's own, which ends with it.

Each belongs to who made it. Of one owner there are `_MOST` at once: the oldest one goes when another is made. In all
there are `_MOST_IN_ALL`, of which the oldest one of who has most goes.
"""

from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from anyio import to_thread

from servers.common.sql.database import Database
from servers.common.sql.errors import SqlError
from servers.common.sql.handles import HeldNames
from servers.common.sql.jobs import Job
from servers.common.sql.query.formats import FORMATS, ExportRequest, FormatName
from servers.common.sql.query.query import Query
from servers.common.sql.temporary import temporary_directory

_MOST = 16
_MOST_IN_ALL = 64


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

        Raises SqlError: `too_large` where that has more bytes than the operator allows, `no_space`, and what a
        query raises.
        """
        if self._directory is None:
            self._directory = Path(self._end.enter_context(temporary_directory("exports")))
        name = f"{self._names.new()}.{format_}"
        path = self._directory / name
        with ExitStack() as unless_whole:
            # Where the process that wrote it was killed, nobody else takes it away.
            unless_whole.callback(path.unlink, missing_ok=True)
            wanted = ExportRequest(path, format_, self._max_bytes)
            rows, size = await database.export(query, wanted, job)
            unless_whole.pop_all()
        export = self._exports[name] = Export(name, path, who, FORMATS[format_].mime_type, rows, size)
        counts = Counter(export.who for export in self._exports.values())
        if counts[who] > _MOST or len(self._exports) > _MOST_IN_ALL:
            whose = who if counts[who] > _MOST else counts.most_common(1)[0][0]
            gone = next(export for export in self._exports.values() if export.who == whose)
            del self._exports[gone.name]
            await to_thread.run_sync(partial(gone.path.unlink, missing_ok=True))
        return export

    def get(self, name: str, who: str | None) -> Export:
        """The export of that name, which belongs to `who`. Raises SqlError `not_found`, or `elsewhere` where
        another process has made it."""
        export = self._exports.get(name)
        if export is None or export.who != who:
            self._names.check_here(name.partition(".")[0], "the file of an export", "Export it again.")
            raise SqlError("not_found", "there is no such export", "The oldest ones go: export it again.")
        return export

    async def read(self, export: Export, offset: int, length: int) -> bytes:
        """Bytes of it, `length` at most. Raises SqlError `not_found` where it has gone."""
        return await to_thread.run_sync(_read, export, offset, length)


def _read(export: Export, offset: int, length: int) -> bytes:
    try:
        with export.path.open("rb") as file:
            file.seek(min(offset, export.bytes))
            return file.read(length)
    except FileNotFoundError:
        raise SqlError("not_found", "the export has gone") from None
