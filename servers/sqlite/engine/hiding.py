"""Tables and columns that nobody may see: SQLite itself keeps them from every statement.

A temporary view takes the place of a table of which columns are hidden: names without a schema mean it, and it has
neither these columns nor those that are generated, which may be made of them. In the place of a column that is masked
it has an expression. The table itself may be read by a second view alone, whose name nobody can know; the authorizer
refuses it to all else, as it does what tells of the columns: other indexes than the table's own order, the schema as
SQLite stores it, statistics, and views and full text tables that are made of the table.

What is hidden is not changed either: an error of UNIQUE, or the count of rows, would say whether a value is there.
"""

import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from servers.common.sql.errors import SqlError
from servers.common.sql.texts import format_names
from servers.sqlite.engine.sql import quote

_VIEW = f"visible_{os.urandom(16).hex()}"
"""How the names of the views begin that may read the tables."""
_SCHEMAS = frozenset({"sqlite_master", "sqlite_temp_master"})
_STATISTICS = frozenset({"sqlite_stat1", "sqlite_stat2", "sqlite_stat3", "sqlite_stat4"})
_COUNTING = ("", "ROWID")
"""Columns of the schema that tell nothing but how many entries it has."""
_SHAPES = frozenset({"table_info", "table_xinfo"})
_TELLING = frozenset(
    {
        *("foreign_key_check", "foreign_key_list", "index_info", "index_list", "index_xinfo", "integrity_check"),
        *("quick_check", "table_list"),
    }
)
_CHANGES = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE, sqlite3.SQLITE_DROP_TABLE})
_OF_TABLES = frozenset({sqlite3.SQLITE_ALTER_TABLE, sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_DROP_INDEX})
PAST_HIDING = "it reads a table past what the operator hides; name the table without a schema, and no view of it"
CHANGES_HIDDEN = "it changes a table of which the operator hides something"
_CLOSED = "it reads what the operator hides"
_VIEW_NAMED = re.compile(r"\bview\b")
_VIEW_NOT_NAMED = frozenset({"views may not be indexed", "Cannot add a column to a view", "cannot UPSERT a view"})
_GENERATED = (2, 3)
_SHADOWS = (
    *("config", "content", "data", "docsize", "idx", "node", "parent", "rowid", "segdir", "segments", "stat"),
)
"""How the names end of the tables that virtual tables keep their data in."""


class HiddenName(NamedTuple):
    """What an operator hides, as it is written."""

    name: str
    """TABLE, or TABLE.COLUMN."""
    mask: str | None = None
    """The expression that is shown instead of a column."""


class _Table(NamedTuple):
    name: str
    columns: Mapping[str, str | None]
    """The columns that are hidden, in lower case, with the expressions that are shown instead."""
    shown: Sequence[tuple[str, str]]
    """The names and types of the columns that are left."""


def parse_hidden(given: str) -> HiddenName:
    """What `--hide` has: TABLE, TABLE.COLUMN or TABLE.COLUMN=EXPRESSION. Raises ValueError."""
    name, _, mask = given.partition("=")
    if not name or (mask and "." not in name):
        raise ValueError(f"{given!r} is not one of TABLE, TABLE.COLUMN and TABLE.COLUMN=EXPRESSION")
    return HiddenName(name, mask or None)


class HiddenSchema:
    """What is hidden of one database, as it is when the connection is opened; what comes later under a name that is
    hidden can't be read."""

    def __init__(self, tables: Iterable[_Table], closed: Iterable[str], unknown: Sequence[str]) -> None:
        self.unknown = unknown
        """What is to be hidden, and the database has not."""
        self._tables = {table.name.lower(): table for table in tables}
        self.closed = frozenset(closed)
        """Tables and views of which nothing is shown, in lower case."""
        words = [(table.name, *table.columns) for table in self._tables.values()]
        self._telling = [*map(_mentions, words), *(_mentions((name,)) for name in self.closed - _STATISTICS)]

    def is_closed(self, table: str) -> bool:
        """Whether nothing of the table is shown."""
        return table.lower() in self.closed

    def shown(self, table: str) -> Sequence[tuple[str, str]] | None:
        """The names and types of the columns that are shown of a table; None where that is all of them."""
        found = self._tables.get(table.lower())
        return None if found is None else found.shown

    def is_shown(self, table: str, columns: Iterable[str | None]) -> bool:
        """Whether all these columns of a table are shown as they are; one without a name is an expression."""
        found = self._tables.get(table.lower())
        if found is None:
            return table.lower() not in self.closed
        names = {name.lower() for name, _ in found.shown} - found.columns.keys()
        return all(column is not None and column.lower() in names for column in columns)

    def is_table(self, table: str, schema: str | None, source: str | None) -> bool:
        """Whether a read of the table is one of the schema, or of a table of which columns are hidden, and not by the
        view that shows the rest."""
        name = table.lower()
        return schema != "temp" and (name in self._tables or name in _SCHEMAS) and source != _name_view(name)

    def explain_view(self, words: str) -> str:
        """Which tables a message of SQLite about a view may mean, and why they are views; "" for another message."""
        meant = [table.name for table in self._tables.values() if words in _VIEW_NOT_NAMED or _is_named(table, words)]
        if not meant:
            return ""
        names = format_names(meant)
        return (
            f"The operator hides something of {names}: what is left is read by a view, and nothing of it is changed."
        )

    def tells(self, sql: str) -> bool:
        """Whether SQL of the schema may name what is hidden."""
        return any(mentions(sql) for mentions in self._telling)

    def find_reason(
        self, action: int, first: str, second: str | None, schema: str | None, source: str | None, selects: bool
    ) -> str | None:
        """Why a statement may not do this (`Policy`); `selects` says whether it has a SELECT. What is without one
        reads of other tables only what SQLite looks up by itself: the parent of a foreign key, or the schema that a
        definition changes."""
        name = first.lower()
        if action == sqlite3.SQLITE_READ:
            return self._find_reading(name, second or "", schema, source, selects)
        if action == sqlite3.SQLITE_CREATE_TRIGGER:
            return "it makes a trigger, which might copy what the operator hides"
        if action == sqlite3.SQLITE_PRAGMA:
            table = (second or "").lower()
            is_of_it = table in self.closed or (table in self._tables and schema == "main")
            if name in _TELLING or (name in _SHAPES and is_of_it):
                return f"PRAGMA {name} would tell what the operator hides"
            return None
        table = (second or "").lower() if action in _OF_TABLES else name if action in _CHANGES else ""
        return CHANGES_HIDDEN if table in self._tables or (table in self.closed and schema != "temp") else None

    def _find_reading(
        self, table: str, column: str, schema: str | None, source: str | None, selects: bool
    ) -> str | None:
        if table in _SCHEMAS:
            return None if column in _COUNTING or not selects else "it reads the schema; use describe_table"
        if table in self.closed:
            return _CLOSED
        # Of a table that is read for no column but its rowid SQLite asks without one, by whatever view it is read.
        if schema == "temp" or table not in self._tables or source == _name_view(table) or not column:
            return None
        return None if not selects and self.is_shown(table, [column]) else PAST_HIDING


def hide(connection: sqlite3.Connection, names: Sequence[HiddenName]) -> HiddenSchema:
    """Makes the views that show the rest of each table. Raises SqlError where a column orders the rows of its table,
    or a mask is not an expression."""
    entries = connection.execute("SELECT name, type, sql FROM sqlite_schema WHERE type IN ('table', 'view')")
    listed = [(str(name), str(kind), str(sql)) for name, kind, sql in entries]
    known = {name.lower(): name for name, kind, _ in listed if kind == "table"}
    closed: set[str] = {*_STATISTICS}
    columns: dict[str, dict[str, str | None]] = {}
    unknown: list[str] = []
    for hidden in names:
        table, column = _split(hidden.name, known)
        there = {row[1].lower() for row in _read_columns(connection, known.get(table, ""))}
        if not there or (column and column not in there):
            unknown.append(hidden.name)
        if there and column:
            columns.setdefault(table, {})[column] = hidden.mask
        else:
            closed.add(table)
    tables = [_read_table(connection, known[name], given) for name, given in columns.items() if name not in closed]
    made_of = {*columns, *closed} - _STATISTICS
    closed |= _find_made_of(
        made_of, [(name, sql) for name, kind, sql in listed if kind == "view" or _is_virtual(sql)]
    )
    for one in tables:
        _make_view(connection, one)
    return HiddenSchema(tables, closed, unknown)


def _is_named(table: _Table, words: str) -> bool:
    """Whether a message of SQLite calls the table a view."""
    return _VIEW_NAMED.search(words) is not None and _mentions((table.name,))(words)


def _split(name: str, known: Mapping[str, str]) -> tuple[str, str]:
    """The table and the column that are meant, in lower case; no column for a whole table."""
    folded = name.lower()
    if folded in known or "." not in folded:
        return folded, ""
    parts = folded.split(".")
    for at in range(1, len(parts)):
        if ".".join(parts[:at]) in known:
            return ".".join(parts[:at]), ".".join(parts[at:])
    return parts[0], ".".join(parts[1:])


def _read_table(connection: sqlite3.Connection, name: str, hidden: Mapping[str, str | None]) -> _Table:
    rows = _read_columns(connection, name)
    ordering = [row[1] for row in rows if row[5] and row[1].lower() in hidden]
    if ordering:
        reason = f"{name}.{ordering[0]} is part of the primary key, whose order the rows have, so it can't be hidden"
        raise SqlError("bad_settings", reason, "Hide the whole table.")
    shown = [
        (row[1], row[2])
        for row in rows
        if row[6] not in _GENERATED and (row[1].lower() not in hidden or hidden[row[1].lower()] is not None)
    ]
    return _Table(name, hidden, shown)


def _read_columns(
    connection: sqlite3.Connection, table: str
) -> list[tuple[int, str, str, int, str | None, int, int]]:
    return connection.execute(f"PRAGMA main.table_xinfo({quote(table)})").fetchall()


def _make_view(connection: sqlite3.Connection, table: _Table) -> None:
    shown = [(quote(name), table.columns.get(name.lower())) for name, _ in table.shown]
    selected = ", ".join(name if mask is None else f"({mask}) AS {name}" for name, mask in shown) or "NULL"
    # By an index on a column the rows come in its order.
    indexed = "" if _has_plain_indexes(connection, table) else "NOT INDEXED"
    view, name = quote(_name_view(table.name)), quote(table.name)
    try:
        connection.execute(f"CREATE TEMP VIEW {view} AS SELECT {selected} FROM main.{name} {indexed}")  # noqa: S608
        connection.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM temp.{view}")  # noqa: S608
        connection.execute(f"SELECT * FROM temp.{name} LIMIT 0").fetchall()  # noqa: S608
    except sqlite3.Error as error:
        raise SqlError(
            "bad_settings", f"what --hide shows of {table.name} is not an expression", "", [str(error)]
        ) from None


def _has_plain_indexes(connection: sqlite3.Connection, table: _Table) -> bool:
    """Whether all indexes are of columns that are shown as they are, and of all rows."""
    plain = {name.lower() for name, _ in table.shown} - table.columns.keys()
    for _, index, _, _, is_partial in connection.execute(f"PRAGMA main.index_list({quote(table.name)})").fetchall():
        rows = connection.execute(f"PRAGMA main.index_info({quote(index)})").fetchall()
        if is_partial or any(name is None or name.lower() not in plain for _, _, name in rows):
            return False
    return True


def _find_made_of(names: set[str], others: Sequence[tuple[str, str]]) -> set[str]:
    """Those of the views and virtual tables that are made of the tables, or of one another."""
    found: set[str] = set()
    while True:
        known = [_mentions((name,)) for name in names | found]
        more = {name.lower() for name, sql in others if any(mentions(sql) for mentions in known)} - found - names
        if not more:
            return found | set(_find_shadows(found | names, others))
        found |= more


def _find_shadows(closed: set[str], others: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The tables that closed virtual tables keep their data in, in any module."""
    for name, sql in others:
        if name.lower() in closed and _is_virtual(sql):
            for part in _SHADOWS:
                yield f"{name.lower()}_{part}"


def _is_virtual(sql: str) -> bool:
    return sql[:21].upper().startswith("CREATE VIRTUAL TABLE")


def _name_view(table: str) -> str:
    return f"{_VIEW}_{table.lower()}"


def _mentions(words: Sequence[str]) -> Callable[[str], bool]:
    """Whether a text has the first of some words, and one of the others where there are any."""
    first = re.compile(rf"(?<!\w){re.escape(words[0])}(?!\w)", re.IGNORECASE)
    others = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words[1:]))})(?!\w)", re.IGNORECASE)
    if len(words) == 1:
        return lambda text: first.search(text) is not None
    return lambda text: first.search(text) is not None and others.search(text) is not None
