"""Runs statements of clients, and refuses those with text in double quotes, which are for names.

If there is nothing with the name in double quotes, SQLite treats it as text (https://sqlite.org/quirks.html, 8). A
misspelled column name would then be returned or stored as a value. SQLite does not do this for names in backquotes.
So a statement contains text in double quotes if it compiles as written, but not with backquotes instead.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from .sql import find_view_query, replace_double_quotes


class QuotedTextError(sqlite3.OperationalError):
    """Raised if a name in double quotes does not exist. Its message is SQLite's for the same name in backquotes."""

    sqlite_errorname = "SQLITE_ERROR"
    sqlite_errorcode = sqlite3.SQLITE_ERROR


def execute(
    connection: sqlite3.Connection, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()
) -> sqlite3.Cursor:
    """Execute a client's statement. Raises sqlite3.Error, for example QuotedTextError."""
    require_names(sql, connection)
    return connection.execute(sql, parameters)


def require_names(sql: str, connection: sqlite3.Connection) -> None:
    """Raise QuotedTextError if a name in double quotes in the statement does not exist, or the error that SQLite
    raises when it compiles the statement."""
    strict = replace_double_quotes(sql)
    if strict == sql:
        return
    try:
        connection(strict)
    except (sqlite3.Error, sqlite3.Warning) as error:
        connection(sql)
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_ERROR:
            raise  # for example because of a lock, which was released before the second try: the caller can retry
        raise QuotedTextError(*error.args) from None
    # SQLite looks up the names in a view only when the view is read, so check the query of the view now. Ignore other
    # errors of the query, since its tables may be created later.
    if query := find_view_query(sql):
        try:
            require_names(query, connection)
        except QuotedTextError:
            raise
        except (sqlite3.Error, sqlite3.Warning):
            return
