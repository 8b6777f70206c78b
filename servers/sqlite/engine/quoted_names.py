"""Runs statements of clients, in which only names may be in double quotes.

If nothing has a name in double quotes, SQLite treats it as text (https://sqlite.org/quirks.html, 8), so a misspelled
column name would be returned, or stored as a value. SQLite does not do this for names in backquotes. So if a
statement compiles as written, but not with backquotes instead of double quotes, it contains a text in double quotes.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from servers.sqlite.engine.sql import find_view_query, replace_double_quotes


class QuotedTextError(sqlite3.OperationalError):
    """Raised if a name in double quotes does not exist, with SQLite's message for the same name in backquotes."""

    sqlite_errorname = "SQLITE_ERROR"
    sqlite_errorcode = sqlite3.SQLITE_ERROR


def execute(
    connection: sqlite3.Connection, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()
) -> sqlite3.Cursor:
    """Execute a client's statement. Raises sqlite3.Error, such as QuotedTextError."""
    require_names(sql, connection)
    return connection.execute(sql, parameters)


def require_names(sql: str, connection: sqlite3.Connection) -> None:
    """Compile the statement. Raises QuotedTextError if a name in double quotes does not exist, and any error that
    SQLite raises when it compiles the statement."""
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
    # SQLite does not look up the names in a view before it is read, so check its query. Other errors of the query are
    # ignored, since its tables may be created later.
    if query := find_view_query(sql):
        try:
            require_names(query, connection)
        except QuotedTextError:
            raise
        except (sqlite3.Error, sqlite3.Warning):
            return
