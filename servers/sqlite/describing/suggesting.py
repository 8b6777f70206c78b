"""The names that were perhaps meant, where SQLite says that a statement names something that is not there.

SQLite's words tell what is missing, and not where it was looked for: so a column is looked for in all tables. Views
are left out, since SQLite compiles a view to tell its columns.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from servers.sqlite.describing.entries import ask, entries
from servers.sqlite.texts import fenced, nearest, shown

__all__ = ["suggestion"]

Hidden = Callable[[str], bool]
"""Whether no statement may read the table of that name."""

_COLUMNS = 5_000
"""Columns that are looked through."""
_TABLES = 3
"""Tables that are named as those of a column."""
_LONGEST = 500
"""Characters of SQLite's words."""
_NO_TABLE, _NO_COLUMN, _NO_COLUMN_OF = "no such table: ", "no such column: ", " has no column named "


def suggestion(connection: sqlite3.Connection, words: str, hidden: Hidden) -> str:
    """What to try instead, between the marks of data; nothing where nothing is alike, or can be looked for."""
    try:
        close = _close(connection, words[:_LONGEST], hidden)
    except sqlite3.Error:
        return ""
    return f"The nearest names are:\n{fenced(close)}" if close else ""


def _close(connection: sqlite3.Connection, words: str, hidden: Hidden) -> Sequence[str]:
    if words.startswith(_NO_TABLE):
        name = words.removeprefix(_NO_TABLE).removeprefix("main.")
        return [
            shown(one) for one in nearest(name, (one.name for one in entries(connection) if not hidden(one.name)))
        ]
    if words.startswith(_NO_COLUMN):
        # c.nam, or "nam" - should this be a string literal in single-quotes?
        name = words.removeprefix(_NO_COLUMN).partition(" - ")[0].strip('"').rpartition(".")[2]
        return _columns(name, _all_columns(connection, hidden))
    table, told, name = words.removeprefix("table ").partition(_NO_COLUMN_OF)
    return _columns(name, ((table, one) for one in _columns_of(connection, table))) if told else ()


def _columns(name: str, columns: Iterator[tuple[str, str]]) -> Sequence[str]:
    """Those like `name`, with tables that have them."""
    tables: dict[str, list[str]] = {}
    for table, column in islice(columns, _COLUMNS):
        tables.setdefault(column, []).append(table)
    return [f"{shown(one)} (in {', '.join(map(shown, tables[one][:_TABLES]))})" for one in nearest(name, tables)]


def _all_columns(connection: sqlite3.Connection, hidden: Hidden) -> Iterator[tuple[str, str]]:
    for entry in entries(connection):
        if entry.kind != "view" and not hidden(entry.name):
            yield from ((entry.name, column) for column in _columns_of(connection, entry.name))


def _columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    return [
        str(name) for (name,) in ask(connection, "SELECT name FROM pragma_table_xinfo(?) WHERE hidden <> 1", table)
    ]
