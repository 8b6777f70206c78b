"""One database that is watched: what is seen of it at one moment, when to look at it again, and whom to tell of what.

A notice, and the passing of a second, are only reasons to look. Whether somebody else committed something is what
`data_version` says on the connection of our own writer, which does not count what that wrote: what we write is told
by who wrote it (`wrote`), and by nobody again.

Which tables another process changed SQLite does not say, and no fingerprint that is cheap sees an UPDATE. So all that
are watched are told of; of the schema only where `schema_version` differs. Of our own writes the tables are known.
A view, or a virtual table, may show any table, so it counts as changed with each of them.
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
from servers.sqlite.dialect import SQLITE
from servers.sqlite.engine.database import Database
from servers.sqlite.engine.deadline import StatementDeadline, retry_locked
from servers.sqlite.engine.entries import execute_schema

_PATIENCE = 1.0
"""Seconds. What is known already must not wait long to be told."""
_FOLDS = str.maketrans(ascii_uppercase, ascii_lowercase)


class Fingerprint(NamedTuple):
    """A state of a database. Fingerprints are compared by their numbers."""

    opening: int
    """Of the connection that looked: another number says that it is another file, or that the versions below are of
    another connection, so that nothing can be said."""
    data_version: int
    """Another number says that somebody else committed something since."""
    schema_version: int
    tables: frozenset[str]
    """The names, folded, of the tables that hold rows of their own: no views, no virtual tables."""


UNSEEN = Fingerprint(-1, 0, 0, frozenset())
"""Other than all that can be seen."""


def fold_name(name: str) -> str:
    """The name of a table as SQLite compares it: the case of ASCII letters does not count."""
    return name.translate(_FOLDS)


async def read_fingerprint(database: Database) -> Fingerprint | None:
    """What there is to see now; None where that can't be told soon, because the database is locked or gone, or our
    own writer is long at work."""
    with suppress(SqlError), anyio.move_on_after(_PATIENCE):
        async with database.onlookers.lent() as connection:
            data_version, schema_version, tables = await connection.run(_look)
            return Fingerprint(connection.opening, data_version, schema_version, tables)
    return None


def _look(connection: sqlite3.Connection, deadline: StatementDeadline) -> tuple[int, int, frozenset[str]]:
    # While this statement has a row left it holds one state of the database, which both versions are then read from.
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 UNION ALL SELECT NULL"
    with closing(retry_locked(deadline, partial(execute_schema, connection, query))) as names:
        (data_version,) = connection.execute("PRAGMA data_version").fetchone()
        (schema_version,) = connection.execute("PRAGMA schema_version").fetchone()
        tables = frozenset(fold_name(name) for (name,) in names if name is not None)
    return data_version, schema_version, tables


class Watched(watch.Watched):
    """A database, and under which keys changes of it are told. `run` it in a task."""

    def __init__(self, database: Database, fingerprint: Fingerprint, tell: Callable[[str], None]) -> None:
        super().__init__(tell)
        self.database = database
        self._of_schema = {watch.LISTING, SQLITE.uris.format(Target(database.name))}
        self._fingerprint = fingerprint
        self._wrote: set[str] = set()

    def wrote(self, tables: Collection[str], defines: bool) -> None:
        """We changed these tables, and the schema where it `defines`."""
        changed = {fold_name(table) for table in tables}
        self._wrote |= {key for key, table in self.keys.items() if self._is_of(key, table, changed, defines)}
        self.notice()

    async def run(self) -> None:
        """Looks and tells until it is cancelled."""
        with self.scope:
            while True:
                await self._wait()
                wrote, self._wrote = self._wrote, set()
                self._tell_all(wrote)
                found = await self._find_changes() - wrote
                self._tell_all(found)
                if wrote or found:
                    await self._settle()

    def _is_of(self, key: str, table: str | None, changed: Collection[str], defines: bool) -> bool:
        if key in self._of_schema or defines:
            return defines
        return table is None or table in changed or table not in self._fingerprint.tables

    async def _find_changes(self) -> set[str]:
        """The keys of what others changed since the last look."""
        before, seen = self._fingerprint, await read_fingerprint(self.database)
        if seen is None:
            return set()
        self._fingerprint = seen
        if seen.opening != before.opening:
            return set(self.keys)
        if seen.data_version == before.data_version:
            return set()
        of_schema = set() if seen.schema_version != before.schema_version else self._of_schema
        return self.keys.keys() - of_schema
