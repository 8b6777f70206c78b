"""Opens the configured databases, and keeps pools of connections to each.

Two kinds of databases are deleted when the server ends: one in memory, and a small sample shop.
"""

import sqlite3
import stat
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from servers.common.sql.database import Databases
from servers.common.sql.errors import SqlError
from servers.common.sql.jobs import Job
from servers.common.sql.temporary import temporary_directory

from .connection import Connection, Work
from .deadline import Limits
from .hiding import HiddenName
from .opening import AttachedDatabase, ConnectionOptions, Mode
from .policy import ALLOW_CHANGES
from .pool import Pool
from .quick import QuickReader
from .sql import find_declared_types

T = TypeVar("T")

CommitCallback = Callable[[Collection[str], bool], None]
"""Receives the names of the tables whose rows were changed, and whether the schema was changed."""

MEMORY = ":memory:"
"""The path with which an operator requests a database in memory, which is deleted when the server ends. It really is
a file in a temporary directory, so that readers see the writer's changes."""

_MAX_CACHED = 256
"""Maximum number of queries whose declared types are cached."""
_MAX_CACHED_LENGTH = 10_000
"""Maximum length of a cached query, in characters."""


def ignore_commit(_tables: Collection[str], _changes_schema: bool) -> None:
    """Do nothing: the `CommitCallback` of a database without watchers."""


class Source(NamedTuple):
    """A database as the operator configured it."""

    name: str
    path: Path
    writable: bool
    sample: bool = False
    """True for the sample database, which is created at each start and deleted at the end. Its `path` is only the
    name of the file."""


class Database:
    """One database, with a pool of connections that read, and one connection that writes."""

    def __init__(
        self,
        source: Source,
        limits: Limits,
        readers: int,
        connection_options: ConnectionOptions = ConnectionOptions(),  # noqa: B008 - it is a tuple
    ) -> None:
        self._connection_options = connection_options
        self.name = source.name
        self.path = source.path
        self.writable = source.writable
        self.limits = limits
        self.openings = 0
        """Number of times that a connection has switched to another file. It is part of the key in the cache of
        declared types, so that types from an earlier file are not used."""
        self.readers = self._pool("ro", readers)
        self.quick = QuickReader(source.path, limits, connection_options)
        """Runs statements that it knows to be quick, in the event loop itself."""
        self._writers = self._pool("rw", 1)
        self._view_connections = self._pool("views", 1)
        self.version_pool = self._writers if source.writable else self._pool("ro", 1)
        """A pool of one connection, whose `data_version` shows whether another process has changed the database. If
        this program may write, it is the writer: a connection's own changes do not change its `data_version`."""
        self.on_committed: CommitCallback = ignore_commit
        """Called right after each COMMIT of this program, in the thread of the writer, before any other work
        there."""
        self._declared_types: OrderedDict[tuple[str, int, int], Sequence[str | None]] = OrderedDict()

    async def read(self, work: Work[T], job: Job | None = None) -> T:
        """Do `work` with a connection that can't change the database. Raises SqlError."""
        async with self.readers.lend() as connection:
            return await connection.run(work, job=job)

    async def learn(self, statement: str, parameters: Sequence[Any] | Mapping[str, Any], duration: float) -> None:
        """Let `quick` learn a statement, if that is worthwhile. `duration` is how many seconds a thread needed to
        read all of its rows."""
        if self.readers.is_free and self.quick.should_learn(statement, duration):
            await self.quick.learn(statement, parameters, self.read)

    async def find_declared_types(self, query: str, schema_version: int) -> Sequence[str | None]:
        """Return the declared types of the columns of `query`, looked up once for each query."""
        cached = self.declared_types(query, schema_version)
        if cached is not None:
            return cached
        # The file may be replaced during the lookup; then the types are those of the old one.
        key = query, schema_version, self.openings
        async with self._view_connections.lend() as connection:
            types = await connection.run(partial(find_declared_types, query))
        if len(query) <= _MAX_CACHED_LENGTH:
            self._declared_types[key] = types
            if len(self._declared_types) > _MAX_CACHED:
                self._declared_types.popitem(last=False)
        return types

    def declared_types(self, query: str, schema_version: int) -> Sequence[str | None] | None:
        """Return the cached result of `find_declared_types`; None if it is not cached."""
        return self._declared_types.get((query, schema_version, self.openings))

    async def check(self) -> None:
        """Check that the database can be read. If all readers are busy, assume that it can. Raises SqlError."""
        if self.readers.is_free:
            await self.read(lambda connection, _: connection.execute("PRAGMA schema_version").fetchone())

    def writer(self) -> AbstractAsyncContextManager[Connection]:
        """Lend the only connection that may change the database. Raises SqlError, with code `read_only` if the
        operator does not allow changes."""
        if not self.writable:
            raise SqlError("read_only", f"the database {self.name!r} is read-only", ALLOW_CHANGES)
        return self._writers.lend()

    @property
    def pools(self) -> Collection[Pool]:
        """All pools of connections to the database."""
        return {self.readers, self._writers, self._view_connections, self.version_pool}

    async def create(self) -> None:
        """Create the file if it does not exist. Raises SqlError."""
        connection = Connection(self.path, "rwc", self.limits)
        await connection.open()
        await connection.close()

    async def close(self) -> None:
        """Close all connections."""
        self.quick.close()
        for pool in self.pools:
            await pool.close()

    def _pool(self, mode: Mode, size: int) -> Pool:
        make_connection = partial(
            Connection,
            self.path,
            mode,
            self.limits,
            self._count_opening,
            recovers=self.writable,
            connection_options=self._connection_options,
        )
        return Pool(make_connection, size, self.limits.timeout)

    def _count_opening(self) -> None:
        self.openings += 1


@asynccontextmanager
async def open_databases(
    sources: Sequence[Source],
    limits: Limits,
    readers: int,
    *,
    create: bool = False,
    attach: bool = False,
    connection_options: ConnectionOptions = ConnectionOptions(),  # noqa: B008 - it is a tuple
) -> AsyncIterator[Databases[Database]]:
    """Open the databases for the duration of the block.

    With `create`, missing files are created. With `attach`, statements on one database can read the others.
    Raises ValueError if a database can't be opened, or if no database contains a name that is to be hidden.
    """
    with ExitStack() as temporary:
        prepared = [_prepare(source, temporary) for source in sources]
        databases = []
        for source in prepared:
            others = (
                AttachedDatabase(other.name, other.path) for other in prepared if attach and other is not source
            )
            options = connection_options._replace(attached=tuple(others))
            databases.append(Database(source, limits, readers, options))
        try:
            for database, source in zip(databases, sources, strict=True):
                await _create_missing(database, create=create or str(source.path) == MEMORY)
            await _check(databases, connection_options.hidden)
            yield Databases(databases)
        finally:
            for database in databases:
                await database.close()


def _prepare(source: Source, temporary: ExitStack) -> Source:
    """Return the source with the path of its file. A database in memory and the sample get a path in a temporary
    directory, which `temporary` removes; the file of the sample is created."""
    if source.sample:
        path = Path(temporary.enter_context(temporary_directory("demo"))) / source.path
        make_sample(path)
        return source._replace(path=path)
    if str(source.path) != MEMORY:
        return source
    directory = temporary.enter_context(temporary_directory("memory"))
    return source._replace(path=Path(directory) / "memory.db", writable=True)


async def _create_missing(database: Database, *, create: bool) -> None:
    directory = database.path.parent
    try:
        has_directory = stat.S_ISDIR(directory.stat().st_mode)
    except OSError as error:
        # Without permission for a parent directory, the answer is unknown. Opening the file then reports the error.
        has_directory = isinstance(error, PermissionError)
    if not has_directory:
        remedy = "Create it first: --create creates only the file." if create else "Create it, or check the path."
        raise ValueError(f"{database.path}: there is no directory {directory}. {remedy}")
    if create and not database.path.exists():
        try:
            await database.create()
        except SqlError as error:
            raise ValueError(f"{database.path}: {error.line}") from None


async def _check(databases: Sequence[Database], hidden: tuple[HiddenName, ...]) -> None:
    """Raise ValueError for a database that can't be read, and for a hidden name that no database contains, because it
    may be misspelled."""
    for database in databases:
        try:
            await database.check()
        except SqlError as error:
            if error.code != "busy":  # A busy database will be free when it is needed.
                raise ValueError(f"{database.path}: {error.line}") from None
    unknown = {name.name for name in hidden}
    for database in databases if unknown else ():
        schema = await database.read(lambda connection, _: connection.policy.hidden)
        unknown.intersection_update(() if schema is None else schema.unknown)
    if unknown:
        raise ValueError(f"--hide: no database has {min(unknown)}")


def make_sample(path: Path) -> None:
    """Create the sample shop, with about 600 rows, in a new file at `path`. Raises ValueError if that fails."""
    script = Path(__file__).with_name("sample.sql").read_text(encoding="utf-8")
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)
    except sqlite3.Error as error:
        raise ValueError(f"the sample database can't be created at {path}: {error}") from None
