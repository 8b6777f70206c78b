"""What is seen of a database at one moment, to be compared with what is seen at another."""

import sqlite3
from contextlib import closing, suppress
from functools import partial
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

import anyio

from servers.sqlite.engine.database import Database
from servers.sqlite.engine.limits import Stop, patiently
from servers.sqlite.errors import SqliteError

__all__ = ["UNSEEN", "Sight", "folded", "look"]

_PATIENCE = 1.0
"""Seconds. What is known already must not wait long to be told."""
_FOLDS = str.maketrans(ascii_uppercase, ascii_lowercase)


class Sight(NamedTuple):
    """A state of a database. Sights are compared by their numbers."""

    opening: int
    """Of the connection that looked: another number says that it is another file, or that the versions below are of
    another connection, so that nothing can be said."""
    data_version: int
    """Another number says that somebody else committed something since."""
    schema_version: int
    tables: frozenset[str]
    """The names, folded, of the tables that hold rows of their own: no views, no virtual tables."""


UNSEEN = Sight(-1, 0, 0, frozenset())
"""Other than all that can be seen."""


def folded(name: str) -> str:
    """The name of a table as SQLite compares it: the case of ASCII letters does not count."""
    return name.translate(_FOLDS)


async def look(database: Database) -> Sight | None:
    """What there is to see now; None where that can't be told soon, because the database is locked or gone, or our
    own writer is long at work."""
    with suppress(SqliteError), anyio.move_on_after(_PATIENCE):
        async with database.onlookers.lent() as connection:
            data_version, schema_version, tables = await connection.run(_seen)
            return Sight(connection.opening, data_version, schema_version, tables)
    return None


def _seen(connection: sqlite3.Connection, stop: Stop) -> tuple[int, int, frozenset[str]]:
    # While this statement has a row left it holds one state of the database, which both versions are then read from.
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 UNION ALL SELECT NULL"
    with closing(patiently(stop, partial(connection.execute, query))) as names:
        (data_version,) = connection.execute("PRAGMA data_version").fetchone()
        (schema_version,) = connection.execute("PRAGMA schema_version").fetchone()
        tables = frozenset(folded(name) for (name,) in names if name is not None)
    return data_version, schema_version, tables
