"""Opening a database file, so that nothing in the file can do harm by being read."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

from servers.sqlite.access.limits import Limits, impose
from servers.sqlite.access.policy import Policy, closed_modules
from servers.sqlite.access.stopping import Stop, patiently
from servers.sqlite.errors import SqliteError, from_sqlite

__all__ = ["Mode", "open_database"]

Mode = Literal["ro", "rw", "rwc", "views"]
"""`rwc` makes the file where there is none. `views` reads, and may make temporary views."""

_CACHED_STATEMENTS = 128
_DEFENSIVE = 1010
"""SQLITE_DBCONFIG_DEFENSIVE, which `sqlite3` names from Python 3.12 on."""
_INSTRUCTIONS = 4_000
"""Of SQLite's virtual machine, between two looks at the clock: some 0.1 ms."""


def open_database(
    path: Path, mode: Mode, limits: Limits, stopped: Callable[[], bool]
) -> tuple[sqlite3.Connection, Policy]:
    """A connection to the file at `path`, its limits set and its policy in force, and that policy.

    SQLite asks `stopped` some thousand times a second whether to stop. Raises SqliteError where the file can't be
    opened or is no database.
    """
    stop = Stop(limits.seconds, limits.busy_seconds)
    try:
        connection, policy = patiently(stop, partial(_guarded, path, mode, limits))
    except (sqlite3.Error, MemoryError) as error:
        raise _unopened(path, error) from None
    connection.set_progress_handler(stopped, _INSTRUCTIONS)
    return connection, policy


def _connected(path: Path, mode: Mode) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={'ro' if mode == 'views' else mode}"
    try:
        return _first_look(uri, mode)
    except sqlite3.OperationalError:
        # A database in WAL mode needs a file of shared memory beside it. On read-only media there can be none, and
        # nobody can change the database either.
        if mode not in ("ro", "views") or not path.is_file() or os.access(path.parent, os.W_OK):
            raise
        return _first_look(f"{uri}&immutable=1", mode)


def _first_look(uri: str, mode: Mode) -> sqlite3.Connection:
    # Locks are waited for with `patiently`, which can be stopped; SQLite's own waiting can't.
    connection = sqlite3.connect(
        # A writer's policy is lifted for its own statements, which no other may then find compiled.
        uri,
        uri=True,
        timeout=0,
        isolation_level=None,
        cached_statements=_CACHED_STATEMENTS if mode == "ro" else 0,
    )
    with _closed_unless_good(connection):
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    return connection


def _guarded(path: Path, mode: Mode, limits: Limits) -> tuple[sqlite3.Connection, Policy]:
    connection = _connected(path, mode)
    with _closed_unless_good(connection):
        connection.text_factory = _text
        impose(connection, limits)
        if hasattr(connection, "setconfig"):  # Python 3.12
            connection.setconfig(_DEFENSIVE, True)
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "temp_store = MEMORY", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")
        if mode == "ro":
            connection.execute("PRAGMA query_only = ON")
        policy = Policy(mode in ("rw", "rwc"), closed_modules(connection), views=mode == "views")
        connection.set_authorizer(policy)
    return connection, policy


@contextmanager
def _closed_unless_good(connection: sqlite3.Connection) -> Iterator[None]:
    with ExitStack() as unless_good:
        unless_good.callback(connection.close)
        yield
        unless_good.pop_all()


def _text(stored: bytes) -> str:
    # What is not UTF-8 becomes half surrogates, from which the bytes can be had back.
    return stored.decode("utf-8", "surrogateescape")


def _unopened(path: Path, error: Exception) -> SqliteError:
    if path.is_dir():
        return SqliteError("not_found", "it is a directory and no database")
    if not path.exists():
        return SqliteError("not_found", f"there is no file {path.name}", "The operator can make it with --create.")
    return from_sqlite(error)
