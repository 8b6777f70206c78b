"""Clients' statements, in which only names may be in double quotes.

If nothing has the quoted name, SQLite treats it as text (https://sqlite.org/quirks.html, 8): a misspelled column name
would be returned, or stored as a value. SQLite does not do this for names in backquotes. So a statement that compiles
as written, but not with backquotes, contains a text in double quotes.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from servers.sqlite.engine.sql import find_view_query, replace_double_quotes


class QuotedTextError(sqlite3.OperationalError):
    """Raised if a name in double quotes does not exist, with SQLite's own message for such a name in other quotes."""

    sqlite_errorname = "SQLITE_ERROR"
    sqlite_errorcode = sqlite3.SQLITE_ERROR


def execute(
    connection: sqlite3.Connection, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()
) -> sqlite3.Cursor:
    """Execute a client's statement. Raises sqlite3.Error, such as QuotedTextError."""
    require_names(sql, connection)
    return connection.execute(sql, parameters)


def require_names(sql: str, connection: sqlite3.Connection) -> None:
    """Raise QuotedTextError if a name in double quotes does not exist, and any error that SQLite raises before it
    runs the statement."""
    strict = replace_double_quotes(sql)
    if strict == sql:
        return
    try:
        connection(strict)
    except (sqlite3.Error, sqlite3.Warning) as error:
        connection(sql)
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_ERROR:
            raise  # such as a lock that has since been released: the statement can be retried
        raise QuotedTextError(*error.args) from None
    # SQLite does not look up a view's names before it is read, and its tables may be created later.
    if query := find_view_query(sql):
        try:
            require_names(query, connection)
        except QuotedTextError:
            raise
        except (sqlite3.Error, sqlite3.Warning):
            return
