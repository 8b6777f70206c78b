"""Lists tables and views and the SQL that created them, and suggests names for unknown ones in statements.

The lists are read from `sqlite_schema`. PRAGMA table_list would return the same tables, but it compiles every view of
the database; malicious views could make that take minutes, and it can't be stopped. For the same reason, names
similar to an unknown column are searched in tables but not in views. They are searched in all tables, because
SQLite's message does not contain the name of the table.
"""

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from typing import Any

from servers.common.sql.errors import SqlError
from servers.common.sql.schema.records import Entry
from servers.common.sql.schema.script import join_statements
from servers.common.sql.texts import NEEDS_QUOTES, fence, find_nearest, format_name

from .deadline import StatementDeadline, retry_locked
from .hiding import HiddenSchema
from .policy import CLOSED_FUNCTIONS, find_module
from .sql import quote

_SERVER_QUERY_END = f"-- {os.urandom(16).hex()}"
"""The end of this program's own queries: a comment that no client can guess."""
IsHidden = Callable[[str], bool]
"""Returns True if no statement may read the table with that name."""
_MAX_COLUMNS = 5_000
"""Maximum number of columns that are searched for similar names."""
_MAX_TABLES = 3
"""Maximum number of tables that are listed for a suggested column."""
_MAX_LENGTH = 500
"""Maximum number of characters of SQLite's message that are examined."""
_NO_TABLE, _NO_COLUMN, _NO_COLUMN_OF = "no such table: ", "no such column: ", " has no column named "
_NO_FUNCTION = "no such function: "
_BAD_TOKEN = re.compile(r'near "(\w+)": syntax error|unrecognized token: "(\w+)"')
"""SQLite's message for a keyword or a number in the position of a name."""

# Bytes of a name that are not UTF-8 become replacement characters: they can't be sent, and no statement can use them.
_SURROGATES = dict.fromkeys(range(0xDC80, 0xDD00), "\ufffd")
# The tables that contain a virtual table's data are named after it, with one of these suffixes.
_FTS = ("content", "segments", "segdir", "docsize", "stat")
_RTREE = ("node", "rowid", "parent")
_SHADOWS = {
    "fts3": _FTS,
    "fts4": _FTS,
    "fts5": ("data", "idx", "content", "docsize", "config"),
    "rtree": _RTREE,
    "rtree_i32": _RTREE,
    "geopoly": _RTREE,
    # A module of the extension sqlite-vec. It has tables for each column.
    "vec0": (
        *("chunks", "rowids", "info", "auxiliary"),
        *(
            f"{kind}{number:02}"
            for kind in ("vector_chunks", "metadatachunks", "metadatatext")
            for number in range(16)
        ),
    ),
}
_IDENTIFIER = re.compile(
    r"""(?:"?main"?\s*\.\s*)?("(?:[^"]|"")+"|`(?:[^`]|``)+`|\[[^\]]+\]|[^"`\[.]+)""", re.IGNORECASE | re.DOTALL
)
# A comment, quoted text, or a relevant token.
_TOKENS = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|$)|(?P<word>\w+)|(?P<end>\))""",
    re.DOTALL,
)


def is_internal(entry: Entry) -> bool:
    """Return True for a table that SQLite or a virtual table keeps for internal use."""
    return entry.kind == "shadow" or entry.name.startswith("sqlite_")


def find_options(entry: Entry) -> list[str]:
    """Return the words after the columns of a table in capitals, such as STRICT, or WITHOUT and ROWID."""
    message: list[str] = []
    for token in _TOKENS.finditer(entry.sql):
        # Only the words after the last parenthesis are options of the table; those before it belong to columns.
        if token["end"]:
            message = []
        elif token["word"]:
            message.append(token["word"].upper())
    return message if entry.kind in ("table", "shadow") else []


@contextmanager
def hold_snapshot(connection: sqlite3.Connection, deadline: StatementDeadline) -> Iterator[None]:
    """Make all statements in the block see the same state of the database.

    This keeps a statement unfinished, because all statements on its connection then see the same snapshot.
    """
    query = "SELECT count(*) FROM sqlite_schema UNION ALL SELECT 0"
    with closing(retry_locked(deadline, partial(connection.execute, query))):
        yield


def keeps_snapshots(connection: sqlite3.Connection) -> bool:
    """Return True if an unfinished statement does not block writers, because all databases have a write-ahead log."""
    modes = [connection.execute(f"PRAGMA {quote(schema)}.journal_mode") for schema in list_schemas(connection)]
    return all(mode.fetchone() == ("wal",) for mode in modes)


def list_schemas(connection: sqlite3.Connection) -> Sequence[str]:
    """Return the schema names of the database itself (`main`) and of attached ones."""
    policy = getattr(connection, "policy", None)
    return ("main",) if policy is None else policy.schemas


def find_hidden(connection: sqlite3.Connection) -> HiddenSchema | None:
    """Return the names that the operator hides in the database; None if nothing is hidden."""
    policy = getattr(connection, "policy", None)
    return None if policy is None else policy.hidden


def execute_schema(connection: sqlite3.Connection, query: str, *values: Any) -> sqlite3.Cursor:
    """Run one of this program's own queries on the schema. The rows contain hidden names, which the caller must
    drop."""
    if find_hidden(connection) is None:
        return connection.execute(query, values)
    with connection.policy.lift():  # type: ignore[attr-defined]
        # SQLite compiles this statement without the policy, and caches it. It ends with a secret, so that no client
        # can send the same text and use the compiled statement.
        return connection.execute(f"{query} {_SERVER_QUERY_END}", values)


def fetch_schema_rows(connection: sqlite3.Connection, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of one of this program's own queries on the schema (see `execute_schema`)."""
    return _replace_surrogates(execute_schema(connection, query, *values))


def fetch_rows(connection: sqlite3.Connection, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of one of this program's own queries on a table."""
    return _replace_surrogates(connection.execute(query, values))


def _replace_surrogates(rows: sqlite3.Cursor) -> list[tuple[Any, ...]]:
    return [tuple(value.translate(_SURROGATES) if type(value) is str else value for value in row) for row in rows]


def select_unnameable(connection: sqlite3.Connection) -> str:
    """Return a query that selects the names in the schema that are not UTF-8."""
    rows = execute_schema(connection, "SELECT rowid, name FROM sqlite_schema")
    # Use rowids instead of the names: SQLite refuses a statement with such a name, even as the argument of a pragma,
    # because it can't pass the name to the authorizer.
    rowids = ", ".join(str(rowid) for rowid, name in rows if name.translate(_SURROGATES) != name)
    return f"SELECT name FROM sqlite_schema WHERE rowid IN ({rowids})"  # noqa: S608 - these are numbers


def list_all_entries(connection: sqlite3.Connection) -> list[Entry]:
    """Return all tables and views that are not hidden, sorted by name. The `sql` of an entry is empty if it mentions
    a hidden name."""
    # A virtual table has no root page (https://sqlite.org/fileformat2.html, 2.6).
    query = """
        SELECT name, CASE WHEN type = 'view' THEN 'view' WHEN rootpage = 0 THEN 'virtual' ELSE 'table' END, sql
        FROM sqlite_schema WHERE type IN ('table', 'view')"""
    entries = sorted(Entry(name, kind, sql or "") for name, kind, sql in fetch_schema_rows(connection, query))
    virtual = [entry for entry in entries if entry.kind == "virtual"]
    shadows = {f"{entry.name}_{part}" for entry in virtual for part in _SHADOWS.get(find_module(entry.sql), ())}
    entries = [
        entry._replace(kind="shadow") if entry.name in shadows and entry.kind == "table" else entry
        for entry in entries
    ]
    hidden = find_hidden(connection)
    if hidden is None:
        return entries
    return [
        entry._replace(sql="") if hidden.mentions_hidden(entry.sql) else entry
        for entry in entries
        if not hidden.is_closed(entry.name)
    ]


def list_entries(connection: sqlite3.Connection) -> list[Entry]:
    """Return the tables and views that are neither hidden nor internal, sorted by name."""
    return [entry for entry in list_all_entries(connection) if not is_internal(entry)]


def get_entry(connection: sqlite3.Connection, name: str) -> Entry:
    """Return the table or view with this name. The name may be plain or quoted as in a statement, and may follow
    `main.`; case is ignored. Raises SqlError with code `not_found` and the nearest names."""
    entries = list_all_entries(connection)
    # NOCASE compares names as SQLite does: only the case of ASCII letters is ignored.
    query = "SELECT name FROM sqlite_schema WHERE name = ? COLLATE NOCASE AND type IN ('table', 'view')"
    candidates, match = [name], _IDENTIFIER.fullmatch(name.strip())
    if match is not None:
        quoted = match[1]
        candidates.append(quoted[1:-1].replace(quoted[-1] * 2, quoted[-1]) if quoted[0] in '"`[' else quoted)
    for candidate in candidates:
        names = {row_name for (row_name,) in fetch_schema_rows(connection, query, candidate)}
        entry = next((entry for entry in entries if entry.name in names), None)
        if entry is not None:
            return entry
    nearest = find_nearest(name, (entry.name for entry in entries if not is_internal(entry)))
    suggestion = f"The nearest names are:\n{fence(nearest)}" if nearest else "list_tables lists those that exist."
    raise SqlError("not_found", "there is no table or view with that name", suggestion)


def build_schema_sql(max_bytes: int, connection: sqlite3.Connection, deadline: StatementDeadline) -> str:
    """Return the statements that recreate the schema, in at most `max_bytes` bytes, and how many are left out if more
    would not fit.

    Statements that mention hidden names are left out. A table with hidden columns is reduced to its other columns.
    """
    query = """
        SELECT tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND substr(name, 1, 7) <> 'sqlite_'
        ORDER BY CASE type WHEN 'table' THEN 1 WHEN 'index' THEN 2 WHEN 'view' THEN 3 ELSE 4 END, name"""
    with hold_snapshot(connection, deadline):
        # Shadow tables are left out, since their virtual tables create them.
        shadows = {entry.name for entry in list_all_entries(connection) if entry.kind == "shadow"}
        rows = [(table, sql) for table, sql in fetch_schema_rows(connection, query) if table not in shadows]
        hidden = find_hidden(connection)
        statements = []
        for table, sql in rows:
            if hidden is not None and hidden.is_closed(table):
                continue
            visible = None if hidden is None else hidden.visible_columns(table)
            if visible is not None and sql[:12].upper() == "CREATE TABLE":
                columns = ", ".join(f"{quote(name)} {kind}".strip() for name, kind in visible)
                statements.append(f"CREATE TABLE {quote(table)} ({columns});")
            elif hidden is None or not hidden.mentions_hidden(sql):
                statements.append(f"{sql};")
    return join_statements(statements, max_bytes)


def suggest_names(connection: sqlite3.Connection, message: str, is_hidden: IsHidden) -> str:
    """Return a suggestion for an error of SQLite with this message: the most similar names, or the name that must be
    quoted. It is empty if there is no such name, or the search fails."""
    bad_token = _BAD_TOKEN.fullmatch(message)
    try:
        if bad_token is not None:
            token = (bad_token[1] or bad_token[2]).lower()
            pairs = islice(_list_tables_and_columns(connection, is_hidden), _MAX_COLUMNS)
            quoted = {quote(name) for pair in pairs for name in pair if name.lower() == token}
            return f"{NEEDS_QUOTES}\n{fence(sorted(quoted))}" if quoted else ""
        nearest = _find_similar(connection, message[:_MAX_LENGTH], is_hidden)
    except sqlite3.Error:
        return ""
    return f"The nearest names are:\n{fence(nearest)}" if nearest else ""


def _find_similar(connection: sqlite3.Connection, message: str, is_hidden: IsHidden) -> Sequence[str]:
    if message.startswith(_NO_TABLE):
        name = message.removeprefix(_NO_TABLE).removeprefix("main.")
        return [
            format_name(candidate)
            for candidate in find_nearest(
                name, (candidate.name for candidate in list_entries(connection) if not is_hidden(candidate.name))
            )
        ]
    if message.startswith(_NO_COLUMN):
        # c.nam, or "nam" - should this be a string literal in single-quotes?
        name = message.removeprefix(_NO_COLUMN).partition(" - ")[0].strip('"').rpartition(".")[2]
        return _format_nearest(name, _list_tables_and_columns(connection, is_hidden))
    if message.startswith(_NO_FUNCTION):
        functions = fetch_rows(
            connection, "SELECT DISTINCT name FROM pragma_function_list WHERE name GLOB '[a-zA-Z]*'"
        )
        names = (name for (name,) in functions if name.lower() not in CLOSED_FUNCTIONS)
        return [format_name(similar) for similar in find_nearest(message.removeprefix(_NO_FUNCTION), names)]
    table, separator, name = message.removeprefix("table ").partition(_NO_COLUMN_OF)
    return (
        _format_nearest(name, ((table, candidate) for candidate in _list_columns(connection, table)))
        if separator
        else ()
    )


def _list_tables_and_columns(connection: sqlite3.Connection, is_hidden: IsHidden) -> Iterator[tuple[str, str]]:
    """Yield a pair of table and column for each column of each table that is not hidden."""
    for candidate in list_entries(connection):
        if candidate.kind != "view" and not is_hidden(candidate.name):
            for column in _list_columns(connection, candidate.name):
                yield candidate.name, column


def _format_nearest(name: str, columns: Iterator[tuple[str, str]]) -> Sequence[str]:
    """Return the names of columns that are similar to `name`, each with some tables that have it. `columns` are pairs
    of table and column."""
    tables: dict[str, list[str]] = {}
    for table, column in islice(columns, _MAX_COLUMNS):
        tables.setdefault(column, []).append(table)
    return [
        f"{format_name(similar)} (in {', '.join(map(format_name, tables[similar][:_MAX_TABLES]))})"
        for similar in find_nearest(name, tables)
    ]


def _list_columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [
        str(name)
        for (name,) in fetch_rows(connection, "SELECT name FROM pragma_table_xinfo(?) WHERE hidden <> 1", table)
    ]
