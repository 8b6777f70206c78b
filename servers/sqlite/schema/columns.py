"""Reads the columns, keys, indexes and triggers of an SQLite schema, and computes statistics of columns.

This program's own queries read them. Names are passed to these as values where possible. They run on connections of
readers, under the same policy and limits as statements of clients.
"""

import sqlite3
from contextlib import nullcontext
from itertools import groupby
from operator import itemgetter

from servers.common.sql.schema.records import Entry, ForeignKey, Index, Statistics, TableColumn
from servers.common.sql.texts import shorten

from ..engine.deadline import StatementDeadline
from ..engine.entries import fetch_rows, fetch_schema_rows, find_hidden, select_unnameable
from ..engine.sql import quote, select
from ..values import encode_cells

_MAX_ROWS = 100_000
"""Maximum number of rows that are examined."""
_TIME_SHARE = 0.5
"""The share of a call's timeout that statistics may take."""
_MAX_DISTINCT_BYTES = 16_000_000
"""Maximum total size in bytes of the values of a column whose distinct values are counted, since SQLite keeps them in
memory."""
_MAX_VALUE_BYTES = 100
"""Maximum number of bytes of a value that are shown."""
_COLUMN_KINDS = ("ordinary", "hidden", "generated virtual", "generated stored")
_ORIGINS = {"c": "CREATE INDEX", "u": "UNIQUE", "pk": "PRIMARY KEY"}
_MAX_TYPE_LENGTH, _MAX_DEFAULT_LENGTH, _MAX_INDEX_SQL_LENGTH, _MAX_TRIGGER_SQL_LENGTH = 200, 500, 500, 1_000
"""Maximum number of characters that are shown of a type, a default value, and the SQL of an index and of a
trigger."""
_MAX_EXACT = 1 << 53
"""The largest integer that JSON numbers represent exactly. Larger estimates are possible, since a client may write
any number into the statistics."""


def read_row_estimates(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the numbers of rows that the last ANALYZE estimated, by table; tables without estimate are missing."""
    if not fetch_schema_rows(
        connection, "SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat1' AND type = 'table'"
    ):
        return {}
    # `stat` begins with the number of rows in an index (https://sqlite.org/fileformat2.html, 2.6.3). The maximum is
    # used, since a partial index has fewer rows than its table.
    query = "SELECT tbl, max(CAST(stat AS INTEGER)) FROM sqlite_stat1 WHERE stat IS NOT NULL GROUP BY tbl"
    return {table: min(max(rows, 0), _MAX_EXACT) for table, rows in fetch_schema_rows(connection, query)}


def read_columns(connection: sqlite3.Connection, table: str) -> tuple[list[TableColumn], str | None]:
    """Return the columns of a table or view, and SQLite's error message if it can't compile the view, for example
    because a table was dropped."""
    query = """
        SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?, 'main') ORDER BY cid"""
    # The pragma compiles a view, but does not run it.
    policy = getattr(connection, "policy", None)
    try:
        with nullcontext() if policy is None else policy.allow_compiling():
            rows = fetch_schema_rows(connection, query, table)
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorname", "") not in ("SQLITE_ERROR", "SQLITE_AUTH"):
            raise
        return [], shorten(str(error), _MAX_DEFAULT_LENGTH)
    columns: list[TableColumn] = [
        {
            "name": name,
            "type": shorten(kind, _MAX_TYPE_LENGTH),
            "not_null": bool(not_null),
            "default": None if default is None else shorten(default, _MAX_DEFAULT_LENGTH),
            "primary_key": position,
            "kind": _COLUMN_KINDS[hidden],
        }
        for name, kind, not_null, default, position, hidden in rows
    ]
    hidden = find_hidden(connection)
    encoded = None if hidden is None else hidden.visible_columns(table)
    if hidden is None or encoded is None:
        return columns, None
    names = {name for name, _ in encoded}
    # A default may reveal a masked value.
    for column in columns:
        if not hidden.is_visible(table, [column["name"]]):
            column["default"] = None
    return [column for column in columns if column["name"] in names], None


def read_foreign_keys(connection: sqlite3.Connection) -> list[ForeignKey]:
    """Return all foreign keys, ordered by table."""
    query = f"""
        SELECT s.name, f.id, f."from", f."table", f."to", f.on_update, f.on_delete FROM sqlite_schema AS s,
        pragma_foreign_key_list(s.name, 'main') AS f WHERE s.type = 'table' AND s.name NOT IN
        ({select_unnameable(connection)}) ORDER BY s.name, f.id, f.seq"""  # noqa: S608
    keys: list[ForeignKey] = []
    for (table, _), parts in groupby(fetch_schema_rows(connection, query), itemgetter(0, 1)):
        rows = list(parts)
        keys.append(
            {
                "table": table,
                "columns": [row[2] for row in rows],
                "to_table": rows[0][3],
                # The columns are NULL if REFERENCES names none; it then refers to the primary key.
                "to_columns": [row[4] for row in rows if row[4] is not None],
                "on_update": rows[0][5],
                "on_delete": rows[0][6],
            }
        )
    hidden = find_hidden(connection)
    return [
        key
        for key in keys
        if hidden is None
        or (hidden.is_visible(key["table"], key["columns"]) and hidden.is_visible(key["to_table"], key["to_columns"]))
    ]


def read_indexes(connection: sqlite3.Connection, table: str | None = None) -> list[tuple[str, Index]]:
    """Return the indexes of one table, or of all tables if `table` is None, each with the name of its table."""
    unnameable = select_unnameable(connection)
    query = f"""
        SELECT s.name, i.name, i."unique", i.partial, i.origin, x.name, d.sql
        FROM sqlite_schema AS s, pragma_index_list(s.name, 'main') AS i, pragma_index_xinfo(i.name, 'main') AS x
        LEFT JOIN sqlite_schema AS d ON d.type = 'index' AND d.name = i.name
        WHERE s.type = 'table' AND x.key AND (?1 IS NULL OR s.name = ?1) AND s.name NOT IN ({unnameable})
            AND i.name NOT IN ({unnameable})
        ORDER BY s.name, i.seq, x.seqno"""  # noqa: S608
    indexes: list[tuple[str, Index]] = []
    for (table_name, name), parts in groupby(fetch_schema_rows(connection, query, table), itemgetter(0, 1)):
        rows = list(parts)
        _, _, unique, partial, origin, _, sql = rows[0]
        index: Index = {
            "name": name,
            "columns": [row[5] for row in rows],
            "unique": bool(unique),
            "partial": bool(partial),
            "origin": _ORIGINS.get(origin, origin),
            "sql": None if sql is None else shorten(sql, _MAX_INDEX_SQL_LENGTH),
        }
        indexes.append((table_name, index))
    hidden = find_hidden(connection)
    return [
        (table_name, index)
        for table_name, index in indexes
        if hidden is None
        or (hidden.is_visible(table_name, index["columns"]) and not hidden.mentions_hidden(index["sql"] or ""))
    ]


def read_triggers(connection: sqlite3.Connection, table: str) -> list[str]:
    """Return the SQL of the triggers of a table or view."""
    query = """
        SELECT sql FROM sqlite_schema
        WHERE type = 'trigger' AND sql IS NOT NULL AND tbl_name = ? COLLATE NOCASE ORDER BY name"""
    hidden = find_hidden(connection)
    statements = [
        sql
        for (sql,) in fetch_schema_rows(connection, query, table)
        if hidden is None or not hidden.mentions_hidden(sql)
    ]
    return [shorten(sql, _MAX_TRIGGER_SQL_LENGTH) for sql in statements]


def compute_statistics(
    entry: Entry, columns: list[TableColumn], connection: sqlite3.Connection, deadline: StatementDeadline
) -> Statistics:
    """Compute statistics of as many columns as the time allows. Raises SqlError."""
    # In SQLite, "hidden" columns of a virtual table are its arguments.
    stored = [column for column in columns if column["kind"] != "hidden"]
    statistics: Statistics = {"rows_examined": 0, "partial": False, "columns": []}
    is_complete = False
    with deadline.at_most(deadline.timeout * _TIME_SHARE):
        for column in stored:
            _add_statistics(entry, column, connection, statistics)
        is_complete = True
    statistics["partial"] |= not is_complete
    return statistics


def _add_statistics(
    entry: Entry, column: TableColumn, connection: sqlite3.Connection, statistics: Statistics
) -> None:
    values = select(f"{quote(column['name'])} AS v", entry.name, f"LIMIT {_MAX_ROWS + 1}")
    try:
        query = f"SELECT count(*), count(v), min(v), max(v), total(length(v)) FROM ({values})"  # noqa: S608 - as above
        ((rows, non_null_count, least, greatest, size),) = fetch_rows(connection, query)
        statistics["rows_examined"] = rows
        statistics["partial"] |= rows > _MAX_ROWS
        distinct = None
        if size <= _MAX_DISTINCT_BYTES:
            ((distinct,),) = fetch_rows(connection, f"SELECT count(DISTINCT v) FROM ({values})")  # noqa: S608 - as above
    except (sqlite3.OperationalError, MemoryError) as error:
        if getattr(error, "sqlite_errorname", "SQLITE_NOMEM") not in ("SQLITE_ERROR", "SQLITE_NOMEM"):
            raise
        statistics["partial"] = True
        return
    encoded = encode_cells([least, greatest], _MAX_VALUE_BYTES)
    statistics["columns"].append(
        {
            "column": column["name"],
            "nulls": rows - non_null_count,
            "distinct": distinct,
            "min": encoded[0],
            "max": encoded[1],
        }
    )
