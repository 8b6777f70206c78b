"""Statements of clients, in which double quotes are for names alone.

If nothing has a name in double quotes, SQLite takes it for a text (https://sqlite.org/quirks.html, 8): the name of a
misspelt column would be the answer, or a value that is stored. It does not do so for names in backquotes. So a
statement that compiles as it is written, but not with backquotes, has such a text.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from servers.sqlite.engine.sql import find_view_query, replace_double_quotes


class QuotedTextError(sqlite3.OperationalError):
    """A name in double quotes does not exist; the words are SQLite's own for one that is written otherwise."""

    sqlite_errorname = "SQLITE_ERROR"
    sqlite_errorcode = sqlite3.SQLITE_ERROR


def execute(
    connection: sqlite3.Connection, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()
) -> sqlite3.Cursor:
    """Execute a statement of a client. Raises sqlite3.Error, such as QuotedTextError."""
    require_names(sql, connection)
    return connection.execute(sql, parameters)


def require_names(sql: str, connection: sqlite3.Connection) -> None:
    """Raise QuotedTextError if a name in double quotes does not exist, and what else SQLite raises before it runs the
    statement."""
    strict = replace_double_quotes(sql)
    if strict == sql:
        return
    try:
        connection(strict)
    except (sqlite3.Error, sqlite3.Warning) as error:
        connection(sql)
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_ERROR:
            raise  # such as a lock that was released in between: the statement can be tried again
        raise QuotedTextError(*error.args) from None
    # SQLite does not look for the names of a view before it is read, and they may be of tables to come.
    if query := find_view_query(sql):
        try:
            require_names(query, connection)
        except QuotedTextError:
            raise
        except (sqlite3.Error, sqlite3.Warning):
            return
