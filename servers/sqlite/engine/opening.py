"""Opens database files so that reading a malicious one does no harm."""

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from servers.common.sql.errors import SqlError

from ..errors import from_sqlite
from .deadline import Limits, StatementDeadline, impose_limits, impose_quick_limits, retry_locked
from .extensions import SqliteExtension, load_extensions
from .hiding import HiddenName, hide
from .policy import (
    ALLOW_CHANGES,
    Policy,
    find_closed_modules,
    find_uninterruptible_tables,
    find_virtual_tables,
)
from .quick_policy import QuickPolicy
from .sql import quote

T = TypeVar("T")

Mode = Literal["ro", "rw", "rwc", "views", "quick"]
"""The purpose of a connection: to read (`ro`); to read and write (`rw`); the same, creating a missing file (`rwc`);
to determine declared types with temporary views (`views`); to read in the event loop itself (`quick`)."""

_READING_MODES = ("ro", "quick")
"""Modes of connections that run statements of clients and can't change the database."""
_CACHED_STATEMENTS = 128
"""Number of compiled statements that a connection caches."""
_DEFENSIVE = 1010
"""SQLITE_DBCONFIG_DEFENSIVE, which `sqlite3` defines since Python 3.12."""
_CHECK_INSTRUCTIONS = 4_000
"""Number of instructions of SQLite's virtual machine between checks of the clock, about 0.1 ms."""
_WAL_SUFFIX = "-wal"
_WAL_ERROR = (
    "unfinished",
    "its write-ahead log can't be read, because the directory is not writable",
    "The operator can copy all files of the database to a writable directory, and open it there.",
)
_COMPANION_SUFFIXES = ("", "-journal", _WAL_SUFFIX, "-shm")
"""Suffixes of the names of the files that SQLite opens for a database."""


class AttachedDatabase(NamedTuple):
    """Another database, whose tables statements can read as NAME.TABLE."""

    name: str
    path: Path


class ConnectionOptions(NamedTuple):
    """The operator's options for connections of all modes."""

    hidden: tuple[HiddenName, ...] = ()
    """Names that clients' statements may not see."""
    extensions: tuple[SqliteExtension, ...] = ()
    """Extensions to load into the connection."""
    attached: tuple[AttachedDatabase, ...] = ()
    """Databases to attach, read-only."""


class OpenOptions(NamedTuple):
    """The database file to open, and how to open it."""

    path: Path
    mode: Mode
    limits: Limits
    recovers: bool = False
    """True if changes that a killed writer left unfinished are rolled back before anything is read."""
    killable: bool = False
    """True in a worker process, which is killed after the timeout of a statement, so that statements which can't be
    interrupted are allowed there."""
    connection_options: ConnectionOptions = ConnectionOptions()


class GuardedConnection(sqlite3.Connection):
    """A connection whose statements have limits, and need the permission of its policy."""

    policy: Policy


def open_database(options: OpenOptions, must_stop: Callable[[], bool]) -> GuardedConnection:
    """Open a connection to a file.

    SQLite calls `must_stop` thousands of times per second during statements, and stops the statement if it returns
    True. Raises SqlError if the file can't be opened or is not a database.
    """
    deadline = StatementDeadline(options.limits.timeout, options.limits.busy_timeout)
    try:
        connection = retry_locked(deadline, partial(_open_guarded, options))
    except (sqlite3.Error, MemoryError, UnicodeError) as error:
        if options.path.is_dir():
            reason = SqlError("not_found", "it is a directory, not a database")
        elif not options.path.exists():
            suggestion = "The operator can create it with --create."
            reason = SqlError("not_found", f"there is no file {options.path.name}", suggestion)
        else:
            reason = from_sqlite(error)
        raise reason from None
    connection.set_progress_handler(must_stop, _CHECK_INSTRUCTIONS)
    return connection


def is_unrecovered(error: sqlite3.Error) -> bool:
    """Return True if the error means that a killed writer left a hot journal. Only a writer can roll it back."""
    return getattr(error, "sqlite_errorname", "") == "SQLITE_READONLY_ROLLBACK"


def recover(path: Path, deadline: StatementDeadline) -> None:
    """Roll back changes that a killed writer left unfinished. SQLite does this when a writing connection first
    reads."""
    retry_locked(deadline, partial(_connect, path, "rw")).close()


def _connect(path: Path, mode: Mode) -> GuardedConnection:
    def connect_to(uri: str) -> GuardedConnection:
        # The timeout is 0, because SQLite's own waiting for locks can't be stopped. `retry_locked` waits instead.
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=0,
            isolation_level=None,
            # A writer compiles this program's own statements without the policy. They must not be cached, since a
            # client might send the same text.
            cached_statements=_CACHED_STATEMENTS if mode in _READING_MODES else 0,
            factory=GuardedConnection,
        )
        with _closed_on_failure(connection):
            # Connecting does not read the file; the first statement shows whether it is a database.
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        return connection

    return _open_file(path, mode, connect_to)


def _attach(connection: sqlite3.Connection, database: AttachedDatabase) -> None:
    """Attach a database for reading. Raises SqlError with its name, or sqlite3.Error if it is locked."""
    name = quote(database.name)

    def attach_from(uri: str) -> None:
        attached = {schema for _, schema, _ in connection.execute("PRAGMA database_list")}
        if database.name in attached:
            connection.execute(f"DETACH {name}")  # It is still attached if the last attempt failed after ATTACH.
        connection.execute(f"ATTACH ? AS {name}", (uri,))
        connection.execute(f"SELECT count(*) FROM {name}.sqlite_schema").fetchall()  # noqa: S608 - it is quoted

    try:
        _open_file(database.path, "ro", attach_from)
    except SqlError as error:
        raise error.add_place(f"the database {database.name!r}, which is attached") from None
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
            raise
        raise from_sqlite(error).add_place(f"the database {database.name!r}, which is attached") from None


def _open_file(path: Path, mode: Mode, open_uri: Callable[[str], T]) -> T:
    """Return the result of `open_uri` for the URI of a file.

    Raises sqlite3.Error, and SqlError for a file that SQLite must not open, such as a named pipe: SQLite would wait
    for the other end of the pipe.
    """
    for suffix in _COMPANION_SUFFIXES:
        with suppress(OSError):
            # Don't open the file to check it: closing its descriptor would release SQLite's own locks
            # (https://sqlite.org/howtocorrupt.html, 2.2).
            file_mode = Path(f"{path}{suffix}").stat().st_mode
            if not (stat.S_ISREG(file_mode) or stat.S_ISDIR(file_mode)):
                raise SqlError("bad_file", f"{path.name}{suffix} is a pipe, a socket or a device, not a regular file")
    uri = f"{path.absolute().as_uri()}?mode={mode if mode in ('rw', 'rwc') else 'ro'}"
    try:
        return open_uri(uri)
    except sqlite3.OperationalError as error:
        # A database in WAL mode needs a shared memory file next to it, which can't be created in a read-only
        # directory. The database can't change there either, so use `immutable`. SQLite then reads only the file
        # itself, which is not the complete database if there is a journal or a log.
        if mode in ("rw", "rwc") or not path.is_file() or os.access(path.parent, os.W_OK):
            raise
        if is_unrecovered(error):
            raise
        with suppress(OSError):
            if Path(f"{path}{_WAL_SUFFIX}").stat().st_size > 0:
                raise SqlError(*_WAL_ERROR) from None
        return open_uri(f"{uri}&immutable=1")


def _open_guarded(options: OpenOptions) -> GuardedConnection:
    mode, attached = options.mode, options.connection_options.attached
    try:
        connection = _connect(options.path, mode)
    except sqlite3.OperationalError as error:
        if not (options.recovers and is_unrecovered(error)):
            raise
        _connect(options.path, "rw").close()
        connection = _connect(options.path, mode)
    with _closed_on_failure(connection):
        # Bytes that are not UTF-8 become lone surrogates, from which they can be restored.
        connection.text_factory = lambda stored: stored.decode("utf-8", "surrogateescape")
        # Attach before the limits are set, since they forbid it.
        for database in attached:
            _attach(connection, database)
        schemas = ("main", *(database.name for database in attached))
        impose_limits(connection, options.limits)
        _protect(connection, has_extensions=bool(options.connection_options.extensions))
        modules = load_extensions(connection, options.connection_options.extensions)
        hidden = hide(connection, names) if (names := options.connection_options.hidden) else None
        if mode in _READING_MODES:
            connection.execute("PRAGMA query_only = ON")
        closed = find_closed_modules(connection, modules, schemas)
        uninterruptible = (
            None if options.killable or mode == "views" else find_uninterruptible_tables(connection, schemas)
        )
        if mode == "quick":
            connection.policy = QuickPolicy(closed | find_virtual_tables(connection), uninterruptible or (), hidden)
            impose_quick_limits(connection, options.limits)
        else:
            # `recovers` is True if the operator allows changes, so write_query works, on another connection.
            advice = "Use write_query." if options.recovers else ALLOW_CHANGES
            connection.policy = Policy(
                mode in ("rw", "rwc"),
                closed,
                views=mode == "views",
                uninterruptible_tables=uninterruptible,
                advice=advice,
                # Views that are created to determine types are never read, so nothing needs to be hidden.
                hidden=None if mode == "views" else hidden,
            )
            connection.policy.schemas = schemas
            connection.policy.allow_modules(modules)
        connection.set_authorizer(connection.policy)
    return connection


def _protect(connection: GuardedConnection, *, has_extensions: bool) -> None:
    """Set what SQLite advises for untrusted files (https://sqlite.org/security.html): views and triggers can only
    call functions that are known to be harmless, and damaged pages are detected when they are read."""
    if hasattr(connection, "setconfig"):  # Python 3.12
        connection.setconfig(_DEFENSIVE, True)
    # If the schema is trusted, the policy still refuses functions and modules that are not known to be harmless. It
    # does not know those of extensions.
    trusted = "ON" if _refuses_full_text() and not has_extensions else "OFF"
    settings = (f"trusted_schema = {trusted}", "cell_size_check = ON", "temp_store = MEMORY", "foreign_keys = ON")
    for setting in settings:
        connection.execute(f"PRAGMA {setting}")


@cache
def _refuses_full_text() -> bool:
    """Return True if this SQLite lets no trigger or view use full-text tables while `trusted_schema` is off, as
    before version 3.44. A table with a full-text index could not be changed then, since triggers update the index."""
    with closing(sqlite3.connect(":memory:")) as connection, suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("CREATE VIRTUAL TABLE texts USING fts5(body)")
        connection.execute("CREATE VIEW seen AS SELECT body FROM texts")
        try:
            connection.execute("SELECT body FROM seen").close()
        except sqlite3.OperationalError:
            return True
    return False


@contextmanager
def _closed_on_failure(connection: sqlite3.Connection) -> Iterator[None]:
    with ExitStack() as on_failure:
        on_failure.callback(connection.close)
        yield
        on_failure.pop_all()
