"""Hides tables and columns from all statements of clients.

For each table with hidden columns there is a temporary view of the same name, to which names without a schema refer.
It lacks the hidden columns, and generated columns, because they may be computed from hidden ones. Each masked column
is replaced by an expression. Only a second view with a secret name may read the table itself; the authorizer refuses
all other reads. The authorizer also refuses everything else that reveals the columns: SQLite's stored schema,
statistics, and views and full-text tables made from the table. An index that would reveal values by the order of the
rows is not used.

Tables with hidden columns can't be changed, because a UNIQUE error or a row count would reveal whether a value
exists.
"""

import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from servers.common.sql.errors import SqlError
from servers.common.sql.texts import format_names

from .sql import quote

_VIEW_PREFIX = f"visible_{os.urandom(16).hex()}"
"""Prefix of the secret names of the views that may read the tables."""
_SCHEMA_TABLES = frozenset({"sqlite_master", "sqlite_temp_master"})
"""The tables that contain the SQL of all objects."""
_STATISTICS = frozenset({"sqlite_stat1", "sqlite_stat2", "sqlite_stat3", "sqlite_stat4"})
"""The tables in which ANALYZE stores sample values."""
_COUNTABLE_COLUMNS = ("", "ROWID")
"""Columns of the schema tables that only reveal the number of entries."""
_COLUMN_PRAGMAS = frozenset({"table_info", "table_xinfo"})
"""The pragmas that list the columns of a table."""
_REVEALING_PRAGMAS = frozenset(
    {
        *("foreign_key_check", "foreign_key_list", "index_info", "index_list", "index_xinfo", "integrity_check"),
        *("quick_check", "table_list"),
    }
)
"""The pragmas that reveal keys, indexes or values of hidden tables."""
_ROW_CHANGES = frozenset(
    {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE, sqlite3.SQLITE_DROP_TABLE}
)
_TABLE_CHANGES = frozenset({sqlite3.SQLITE_ALTER_TABLE, sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_DROP_INDEX})
"""Actions of which the second argument is the table; of others, it is the first."""
BYPASSES_HIDING = (
    "it would bypass what the operator hides; use the name of the table, without a schema, and no view of it"
)
CHANGES_HIDDEN = "it changes a table in which the operator hides something"
_READS_HIDDEN = "it reads what the operator hides"
_VIEW_NAMED = re.compile(r"\bview\b")
_VIEW_NOT_NAMED = frozenset({"views may not be indexed", "Cannot add a column to a view", "cannot UPSERT a view"})
"""SQLite's messages about views that do not contain the name of the view."""
_GENERATED = (2, 3)
"""The numbers of virtual and stored generated columns in PRAGMA table_xinfo."""
_SHADOW_SUFFIXES = (
    *("config", "content", "data", "docsize", "idx", "node", "parent", "rowid", "segdir", "segments", "stat"),
)
"""Suffixes of the names of shadow tables, in which virtual tables store their data."""


class HiddenName(NamedTuple):
    """A name that an operator hides, as written in `--hide`."""

    name: str
    """TABLE, or TABLE.COLUMN."""
    mask: str | None = None
    """The expression that is shown instead of a column."""


class _Table(NamedTuple):
    """A table with hidden columns."""

    name: str
    columns: Mapping[str, str | None]
    """For each hidden column, by its name in lowercase, the expression that masks it; None if the view lacks it."""
    visible: Sequence[tuple[str, str]]
    """The names and types of the columns that the view has, including masked ones."""


def parse_hidden(argument: str) -> HiddenName:
    """Parse the value of `--hide`: TABLE, TABLE.COLUMN or TABLE.COLUMN=EXPRESSION. Raises ValueError."""
    name, _, mask = argument.partition("=")
    if not name or (mask and "." not in name):
        raise ValueError(f"{argument!r} is not one of TABLE, TABLE.COLUMN and TABLE.COLUMN=EXPRESSION")
    return HiddenName(name, mask or None)


class HiddenSchema:
    """The hidden tables and columns of one database, determined when the connection was opened. A table that is
    created later under a hidden name can't be read."""

    def __init__(self, tables: Iterable[_Table], closed: Iterable[str], unknown: Sequence[str]) -> None:
        self.unknown = unknown
        """The names to hide that do not exist in the database."""
        self._tables = {table.name.lower(): table for table in tables}
        self.closed = frozenset(closed)
        """The names of tables and views that can't be read at all, in lower case."""
        words = [(table.name, *table.columns) for table in self._tables.values()]
        self._matchers = [*map(_make_matcher, words), *(_make_matcher((name,)) for name in self.closed - _STATISTICS)]

    def is_closed(self, table: str) -> bool:
        """Return True if the table can't be read at all."""
        return table.lower() in self.closed

    def visible_columns(self, table: str) -> Sequence[tuple[str, str]] | None:
        """Return the names and types of the visible columns of a table; None if it has no hidden column."""
        entry = self._tables.get(table.lower())
        return None if entry is None else entry.visible

    def is_visible(self, table: str, columns: Iterable[str | None]) -> bool:
        """Return True if all these columns of a table are visible and not masked. None, which means an expression in
        an index, counts as hidden if the table has hidden columns."""
        entry = self._tables.get(table.lower())
        if entry is None:
            return table.lower() not in self.closed
        names = {name.lower() for name, _ in entry.visible} - entry.columns.keys()
        return all(column is not None and column.lower() in names for column in columns)

    def is_guarded_read(self, table: str, schema: str | None, source: str | None) -> bool:
        """Return True for a read of the stored schema, or of a table with hidden columns by anything but its view.

        `source` is the view or trigger that reads, as SQLite reports it to the authorizer.
        """
        name = table.lower()
        return schema != "temp" and (name in self._tables or name in _SCHEMA_TABLES) and source != _name_view(name)

    def explain_view(self, words: str) -> str:
        """Return a sentence that explains why SQLite's message `words` calls a table a view; "" if it does not."""
        names_view = _VIEW_NAMED.search(words) is not None
        matches = [
            table.name
            for table in self._tables.values()
            if words in _VIEW_NOT_NAMED or (names_view and _make_matcher((table.name,))(words))
        ]
        if not matches:
            return ""
        names = format_names(matches)
        return f"The operator hides parts of {names}: the rest is read through a view, and can't be changed."

    def mentions_hidden(self, sql: str) -> bool:
        """Return True if SQL in the schema may mention hidden tables or columns."""
        return any(mentions(sql) for mentions in self._matchers)

    def find_reason(
        self, action: int, first: str, second: str | None, schema: str | None, source: str | None, selects: bool
    ) -> str | None:
        """Return the reason for refusing an action of a statement (see `Policy`); None if it is allowed.

        `selects` is True if the statement contains a SELECT. Without one, a statement only reads what SQLite itself
        looks up: the parent table of a foreign key, or the schema that a definition changes.
        """
        name = first.lower()
        if action == sqlite3.SQLITE_READ:
            column = second or ""
            if name in _SCHEMA_TABLES:
                return (
                    None if column in _COUNTABLE_COLUMNS or not selects else "it reads the schema; use describe_table"
                )
            if name in self.closed:
                return _READS_HIDDEN
            # SQLite passes no column if only the rowid is read.
            if schema == "temp" or name not in self._tables or source == _name_view(name) or not column:
                return None
            return None if not selects and self.is_visible(name, [column]) else BYPASSES_HIDING
        if action == sqlite3.SQLITE_CREATE_TRIGGER:
            return "it creates a trigger, which might copy what the operator hides"
        if action == sqlite3.SQLITE_PRAGMA:
            table = (second or "").lower()
            is_hidden = table in self.closed or (table in self._tables and schema == "main")
            if name in _REVEALING_PRAGMAS or (name in _COLUMN_PRAGMAS and is_hidden):
                return f"PRAGMA {name} would reveal what the operator hides"
            return None
        table = (second or "").lower() if action in _TABLE_CHANGES else name if action in _ROW_CHANGES else ""
        return CHANGES_HIDDEN if table in self._tables or (table in self.closed and schema != "temp") else None


def hide(connection: sqlite3.Connection, names: Sequence[HiddenName]) -> HiddenSchema:
    """Create the views that replace tables with hidden columns, and return the hidden schema.

    Raises SqlError if a hidden column is part of the primary key, or if a mask is not a valid expression.
    """
    entries = connection.execute("SELECT name, type, sql FROM sqlite_schema WHERE type IN ('table', 'view')")
    listed = [(str(name), str(kind), str(sql)) for name, kind, sql in entries]
    table_names = {name.lower(): name for name, kind, _ in listed if kind == "table"}
    closed: set[str] = {*_STATISTICS}
    columns: dict[str, dict[str, str | None]] = {}
    unknown: list[str] = []
    for hidden in names:
        table, column = _split(hidden.name, table_names)
        existing = {row[1].lower() for row in _read_columns(connection, table_names.get(table, ""))}
        if not existing or (column and column not in existing):
            unknown.append(hidden.name)
        if existing and column:
            columns.setdefault(table, {})[column] = hidden.mask
        else:
            closed.add(table)
    tables = [
        _replace_by_view(connection, table_names[name], masks)
        for name, masks in columns.items()
        if name not in closed
    ]
    sources = {*columns, *closed} - _STATISTICS
    closed |= _find_derived(
        sources, [(name, sql) for name, kind, sql in listed if kind == "view" or _is_virtual(sql)]
    )
    return HiddenSchema(tables, closed, unknown)


def _split(name: str, tables: Mapping[str, str]) -> tuple[str, str]:
    """Split a hidden name into table and column, in lower case. The column is "" if the whole table is hidden. Either
    may contain dots, so the `tables` that exist decide."""
    folded = name.lower()
    if folded in tables or "." not in folded:
        return folded, ""
    parts = folded.split(".")
    for count in range(1, len(parts)):
        if ".".join(parts[:count]) in tables:
            return ".".join(parts[:count]), ".".join(parts[count:])
    return parts[0], ".".join(parts[1:])


def _replace_by_view(connection: sqlite3.Connection, name: str, hidden: Mapping[str, str | None]) -> _Table:
    """Create both views for the table with this name. `hidden` are its hidden columns, as in `_Table.columns`."""
    rows = _read_columns(connection, name)
    key_columns = [row[1] for row in rows if row[5] and row[1].lower() in hidden]
    if key_columns:
        reason = f"{name}.{key_columns[0]} is part of the primary key, which orders the rows, so it can't be hidden"
        raise SqlError("bad_settings", reason, "Hide the whole table.")
    visible = [
        (row[1], row[2])
        for row in rows
        if row[6] not in _GENERATED and (row[1].lower() not in hidden or hidden[row[1].lower()] is not None)
    ]
    expressions = [(quote(column), hidden.get(column.lower())) for column, _ in visible]
    selected = ", ".join(name if mask is None else f"({mask}) AS {name}" for name, mask in expressions) or "NULL"
    hidden_view, view = quote(_name_view(name)), quote(name)
    # An index on a hidden or masked column, or on some of the rows, would return rows in an order that reveals
    # values.
    unmasked = {column.lower() for column, _ in visible} - hidden.keys()
    not_indexed = ""
    for _, index, _, _, is_partial in connection.execute(f"PRAGMA main.index_list({view})").fetchall():
        index_columns = connection.execute(f"PRAGMA main.index_info({quote(index)})").fetchall()
        if is_partial or any(column is None or column.lower() not in unmasked for _, _, column in index_columns):
            not_indexed = "NOT INDEXED"
    try:
        connection.execute(f"CREATE TEMP VIEW {hidden_view} AS SELECT {selected} FROM main.{view} {not_indexed}")  # noqa: S608
        connection.execute(f"CREATE TEMP VIEW {view} AS SELECT * FROM temp.{hidden_view}")  # noqa: S608
        connection.execute(f"SELECT * FROM temp.{view} LIMIT 0").fetchall()  # noqa: S608
    except sqlite3.Error as error:
        reason = f"the --hide expression for {name} is not valid"
        raise SqlError("bad_settings", reason, "", [str(error)]) from None
    return _Table(name, hidden, visible)


def _read_columns(
    connection: sqlite3.Connection, table: str
) -> list[tuple[int, str, str, int, str | None, int, int]]:
    return connection.execute(f"PRAGMA main.table_xinfo({quote(table)})").fetchall()


def _find_derived(names: set[str], others: Sequence[tuple[str, str]]) -> set[str]:
    """Return the views and virtual tables that are made from the tables `names`, directly or from each other, and all
    names that the shadow tables of these virtual tables may have. `others` are the names of all views and virtual
    tables, each with its SQL."""
    derived: set[str] = set()
    while True:
        matchers = [_make_matcher((name,)) for name in names | derived]
        new_names = (
            {name.lower() for name, sql in others if any(mentions(sql) for mentions in matchers)} - derived - names
        )
        if not new_names:
            virtual = [name.lower() for name, sql in others if _is_virtual(sql)]
            return derived | {
                f"{name}_{suffix}" for name in virtual if name in derived | names for suffix in _SHADOW_SUFFIXES
            }
        derived |= new_names


def _is_virtual(sql: str) -> bool:
    return sql[:21].upper().startswith("CREATE VIRTUAL TABLE")


def _name_view(table: str) -> str:
    return f"{_VIEW_PREFIX}_{table.lower()}"


def _make_matcher(words: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tells whether a text contains the first word, and one of the others if there are any."""
    first = re.compile(rf"(?<!\w){re.escape(words[0])}(?!\w)", re.IGNORECASE)
    others = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words[1:]))})(?!\w)", re.IGNORECASE)
    if len(words) == 1:
        return lambda text: first.search(text) is not None
    return lambda text: first.search(text) is not None and others.search(text) is not None
