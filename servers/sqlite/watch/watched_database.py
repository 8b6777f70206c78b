"""One watched database: its last state, when to check it again, and the subscription keys whose changes are reported.

The database is checked after each notice of a changed file, and at least once per second. If `data_version` differs
on the connection of `Database.version_pool`, another process has committed something. It does not change when this
program itself writes. Those changes are reported once, because of `record_write`.

SQLite does not report which tables another process has changed, and no cheap fingerprint reveals an UPDATE. So when
another process has committed something, all watched tables are reported, but the schema only if `schema_version`
differs. For changes by this program, the tables are known. A view or virtual table may depend on any table, so it
counts as changed whenever any table is.
"""

import sqlite3
from collections.abc import Callable, Collection
from contextlib import closing, suppress
from functools import partial
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

import anyio

from servers.common.sql import watch
from servers.common.sql.errors import SqlError
from servers.common.sql.uris import Target

from ..dialect import SQLITE
from ..engine.database import Database
from ..engine.deadline import StatementDeadline, retry_locked
from ..engine.entries import execute_schema

_CHECK_SECONDS = 1.0
"""Maximum number of seconds for a check. It is short, because changes by this program wait for the check to end."""
_FOLDS = str.maketrans(ascii_uppercase, ascii_lowercase)


class Fingerprint(NamedTuple):
    """What is compared between two checks of a database, and the names of its tables."""

    opening_number: int
    """The number of the connection (`Connection.opening_number`). If it differs, the file was replaced or another
    connection was used. The versions can't be compared then."""
    data_version: int
    """If it differs, another process has committed something."""
    schema_version: int
    tables: frozenset[str]
    """The case-folded names of ordinary tables, without views and virtual tables."""


UNSEEN = Fingerprint(-1, 0, 0, frozenset())
"""The fingerprint of a database that could not be read yet. It differs from all others."""


def fold_name(name: str) -> str:
    """Return the name of a table with its ASCII letters in lower case. SQLite ignores only the case of these."""
    return name.translate(_FOLDS)


async def read_fingerprint(database: Database) -> Fingerprint | None:
    """Return the fingerprint of the database now; None if it can't be read in time, for example because the database
    is locked or missing, or its connection is busy."""
    with suppress(SqlError), anyio.move_on_after(_CHECK_SECONDS):
        async with database.version_pool.lend() as connection:
            data_version, schema_version, tables = await connection.run(_read_versions)
            return Fingerprint(connection.opening_number, data_version, schema_version, tables)
    return None


def _read_versions(connection: sqlite3.Connection, deadline: StatementDeadline) -> tuple[int, int, frozenset[str]]:
    # While this statement has rows left, all statements see the same state. So the tables and versions belong
    # together.
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 UNION ALL SELECT NULL"
    with closing(retry_locked(deadline, partial(execute_schema, connection, query))) as names:
        (data_version,) = connection.execute("PRAGMA data_version").fetchone()
        (schema_version,) = connection.execute("PRAGMA schema_version").fetchone()
        tables = frozenset(fold_name(name) for (name,) in names if name is not None)
    return data_version, schema_version, tables


class WatchedSqliteDatabase(watch.WatchedDatabase):
    """A database, and the subscription keys under which its changes are reported. `run` must run in a task."""

    def __init__(self, database: Database, fingerprint: Fingerprint, report: Callable[[str], None]) -> None:
        super().__init__(report)
        self.database = database
        self._schema_keys = {watch.LISTING, SQLITE.uris.format(Target(database.name))}
        self._fingerprint = fingerprint
        self._own_changes: set[str] = set()
        """The keys whose targets this program itself has changed since the last report."""

    def record_write(self, tables: Collection[str], changes_schema: bool) -> None:
        """Record that this program itself has changed rows of these tables, and the schema if `changes_schema`."""
        # Views and virtual tables are not in the fingerprint, so they count as changed.
        unchanged = self._fingerprint.tables - {fold_name(table) for table in tables}
        self._own_changes |= {
            key
            for key, table in self.keys.items()
            if changes_schema or (key not in self._schema_keys and table not in unchanged)
        }
        self.notice()

    async def run(self) -> None:
        """Check and report until cancelled."""
        with self.scope:
            while True:
                await self._wait()
                own_changes, self._own_changes = self._own_changes, set()
                self._report_all(own_changes)
                changes = await self._find_changes()
                self._report_all(changes)
                if own_changes or changes:
                    await self._wait_until_quiet()

    async def _find_changes(self) -> set[str]:
        """Return the keys that others have changed since the last check."""
        previous, current = self._fingerprint, await read_fingerprint(self.database)
        if current is None:
            return set()
        self._fingerprint = current
        if current.opening_number != previous.opening_number:
            return set(self.keys)
        if current.data_version == previous.data_version:
            return set()
        return self.keys.keys() - (self._schema_keys if current.schema_version == previous.schema_version else set())
