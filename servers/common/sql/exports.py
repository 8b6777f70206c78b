"""Keeps exports: complete query results as files. They are in a directory that is removed when the server ends.

Each export belongs to the client that made it, its owner. An owner can have at most `_MAX_EXPORTS` exports; a further
one replaces the oldest. All owners together can have at most `_MAX_TOTAL`; a further one replaces the oldest export
of the owner with the most exports.
"""

from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from anyio import to_thread

from .database import Database
from .errors import SqlError
from .handles import ProcessNames
from .jobs import Job
from .query.formats import FORMATS, ExportRequest, FormatName
from .query.query import Query
from .temporary import temporary_directory

_MAX_EXPORTS = 16
"""Maximum number of exports of one owner."""
_MAX_TOTAL = 64
"""Maximum number of exports of all owners together."""


class Export(NamedTuple):
    """A file with the rows of a query."""

    name: str
    path: Path
    owner: str | None
    mime_type: str
    rows: int
    """Number of rows in the file."""
    bytes: int
    """Size of the file in bytes."""


class Exports:
    """Makes and keeps exports. It is a context manager, which removes them at the end."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._names = ProcessNames()
        self._directory: Path | None = None
        self._cleanup = ExitStack()
        self._exports: dict[str, Export] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._cleanup.close()

    async def make(
        self, database: Database, query: Query, format_: FormatName, owner: str | None, job: Job | None = None
    ) -> Export:
        """Write all rows of the `query` to a file that belongs to `owner`.

        Raises SqlError, with code `too_large` if the file exceeds the operator's limit, `no_space` if the disk is
        full.
        """
        if self._directory is None:
            self._directory = Path(self._cleanup.enter_context(temporary_directory("exports")))
        name = f"{self._names.new()}.{format_}"
        path = self._directory / name
        with ExitStack() as on_failure:
            # After an error, also if the worker process was killed, this removes the file.
            on_failure.callback(path.unlink, missing_ok=True)
            request = ExportRequest(path, format_, self._max_bytes)
            rows, size = await database.export(query, request, job)
            on_failure.pop_all()
        export = self._exports[name] = Export(name, path, owner, FORMATS[format_].mime_type, rows, size)
        counts = Counter(export.owner for export in self._exports.values())
        if counts[owner] > _MAX_EXPORTS or len(self._exports) > _MAX_TOTAL:
            owner_of_most = owner if counts[owner] > _MAX_EXPORTS else counts.most_common(1)[0][0]
            oldest = next(export for export in self._exports.values() if export.owner == owner_of_most)
            del self._exports[oldest.name]
            await to_thread.run_sync(partial(oldest.path.unlink, missing_ok=True))
        return export

    def get(self, name: str, owner: str | None) -> Export:
        """Return the export with this name, which must belong to `owner`.

        Raises SqlError with code `not_found`, or `elsewhere` if another process made the export.
        """
        export = self._exports.get(name)
        if export is None or export.owner != owner:
            self._names.require_local(name.partition(".")[0], "the file of an export", "Export it again.")
            raise SqlError("not_found", "there is no such export", "The oldest exports are deleted: export it again.")
        return export

    async def read(self, export: Export, offset: int, length: int) -> bytes:
        """Read at most `length` bytes of an export. Raises SqlError with code `not_found` if it was removed."""

        def read_file() -> bytes:
            try:
                with export.path.open("rb") as file:
                    file.seek(min(offset, export.bytes))
                    return file.read(length)
            except FileNotFoundError:
                raise SqlError("not_found", "the export no longer exists") from None

        return await to_thread.run_sync(read_file)
