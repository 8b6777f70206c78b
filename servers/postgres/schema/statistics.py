"""Statistics of the columns of a table: minimum, maximum, and numbers of distinct values and NULLs.

They are computed from the first rows of the table. If there is no time for some columns, they get the statistics of
the last ANALYZE.
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import anyio

from servers.common.sql.schema.records import ColumnStatistics, Statistics
from servers.common.sql.texts import SqlName, shorten

from ..arrays import parse_array
from ..catalog import Session
from ..engine.link import Ask
from ..values import Type, encode_column
from .entries import Relation

_MAX_ROWS = 100_000
"""Maximum number of rows that are examined."""
_MAX_DISTINCT_BYTES = 16_000_000
"""Maximum total size of the values of a column whose distinct values are counted, since counting sorts them."""
_MAX_VALUE_BYTES = 100
"""Maximum number of bytes of a value that are shown."""
_MAX_COLUMNS = 1_000
"""Maximum number of columns of one table that are examined."""

# A type is comparable if its values have an order, that is, if it has a B-tree operator class. Types such as json,
# xml and point have none. A domain or an array is comparable if its base or element type is.
_COMPARABLE = """
    WITH RECURSIVE based(number, oid) AS (
        SELECT a.attnum, a.atttypid FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid = $1::pg_catalog.oid AND a.attnum > 0 AND NOT a.attisdropped
        UNION ALL
        SELECT b.number, CASE WHEN t.typbasetype <> 0 THEN t.typbasetype ELSE t.typelem END
        FROM based AS b JOIN pg_catalog.pg_type AS t ON t.oid = b.oid
        WHERE t.typbasetype <> 0 OR t.typinput = 'pg_catalog.array_in'::pg_catalog.regproc)
    SELECT a.attname::pg_catalog.text, pg_catalog.quote_ident(a.attname), a.atttypid,
        (SELECT pg_catalog.bool_and(t.typbasetype <> 0 OR t.typinput = 'pg_catalog.array_in'::pg_catalog.regproc
                OR t.typtype = ANY ('{e,r,m}'::pg_catalog."char"[])
                OR EXISTS (SELECT FROM pg_catalog.pg_opclass AS o JOIN pg_catalog.pg_am AS m ON m.oid = o.opcmethod
                    WHERE m.amname = 'btree' AND o.opcdefault AND (o.opcintype = t.oid
                        OR EXISTS (SELECT FROM pg_catalog.pg_cast AS x WHERE x.castsource = t.oid
                            AND x.casttarget = o.opcintype AND x.castmethod = 'b' AND x.castcontext = 'i'))))
            FROM based AS b JOIN pg_catalog.pg_type AS t ON t.oid = b.oid WHERE b.number = a.attnum),
        pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT')
    FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid = $1::pg_catalog.oid AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum LIMIT $2::pg_catalog.int4"""
_ANALYZED = """
    SELECT s.attname::pg_catalog.text, s.null_frac::pg_catalog.float8, s.n_distinct::pg_catalog.float8,
        s.histogram_bounds::pg_catalog.text
    FROM pg_catalog.pg_stats AS s JOIN pg_catalog.pg_namespace AS n ON n.nspname = s.schemaname
    JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = s.tablename
    WHERE c.oid = $1::pg_catalog.oid AND NOT s.inherited"""


class ReadableColumn(NamedTuple):
    """A column whose values the role may read."""

    name: str
    sql: SqlName
    """The name as written in a statement."""
    type: Type
    is_comparable: bool


async def compute_statistics(
    session: Session, relation: Relation, columns: Sequence[ReadableColumn], max_seconds: float
) -> Statistics:
    """Compute statistics of as many columns as possible within `max_seconds` seconds.

    When the time is over, the running query is cancelled, and the transaction is unusable afterwards. Raises
    SqlError.
    """
    end_time = time.monotonic() + max_seconds
    analyzed = await _read_analyzed(session.ask, relation, columns)
    statistics: Statistics = {"rows_examined": 0, "partial": True, "columns": []}
    with anyio.move_on_after(max_seconds):
        await _add_statistics(session.ask, relation, columns, statistics, end_time)
    names = {column["column"] for column in statistics["columns"]}
    statistics["columns"] += [column for column in analyzed if column["column"] not in names]
    return statistics


async def _add_statistics(
    ask: Ask, relation: Relation, columns: Sequence[ReadableColumn], statistics: Statistics, end_time: float
) -> None:
    counts = "".join(
        f", pg_catalog.count({column.sql}), "
        f"coalesce(pg_catalog.sum(pg_catalog.pg_column_size({column.sql})), 0)::pg_catalog.int8"
        for column in columns
    )
    first_rows = _select_first(relation, [column.sql for column in columns], _MAX_ROWS + 1)
    ((rows, *counts_and_sizes),) = await ask(f"SELECT pg_catalog.count(*){counts} FROM ({first_rows}) AS s")  # noqa: S608
    statistics["rows_examined"] = min(rows, _MAX_ROWS)
    is_complete = rows <= _MAX_ROWS
    for column, non_null_count, size in zip(columns, counts_and_sizes[::2], counts_and_sizes[1::2], strict=True):
        if time.monotonic() > end_time:
            return
        nulls = max(statistics["rows_examined"] - non_null_count, 0)
        distinct = least = greatest = None
        if column.is_comparable and size <= _MAX_DISTINCT_BYTES:
            first_rows = _select_first(relation, [column.sql], _MAX_ROWS)
            ((distinct, least, greatest),) = await ask(f"""
                WITH s(x) AS MATERIALIZED ({first_rows})
                SELECT (SELECT pg_catalog.count(DISTINCT x) FROM s),
                    (SELECT pg_catalog.format('%s', x) FROM s WHERE NOT x IS NULL ORDER BY x LIMIT 1),
                    (SELECT pg_catalog.format('%s', x) FROM s WHERE NOT x IS NULL ORDER BY x DESC LIMIT 1)""")  # noqa: S608
        else:
            is_complete = False
        statistics["columns"].append(
            {
                "column": column.sql,
                "nulls": nulls,
                "distinct": distinct,
                "min": _encode(column.type, least),
                "max": _encode(column.type, greatest),
            }
        )
    statistics["partial"] = not is_complete


def _select_first(relation: Relation, columns: Sequence[str], limit: int) -> str:
    return f"SELECT {', '.join(columns)} FROM {relation.name} LIMIT {limit}"  # noqa: S608


async def read_readable_columns(session: Session, relation: Relation) -> list[ReadableColumn]:
    """Return the columns of the relation whose values the role may read."""
    rows = [row for row in await session.ask(_COMPARABLE, relation.oid, _MAX_COLUMNS) if row[-1]]
    types = await session.types.read([oid for _, _, oid, _, _ in rows], session.ask)
    return [
        ReadableColumn(name, SqlName(sql), type_, bool(is_comparable))
        for (name, sql, _, is_comparable, _), type_ in zip(rows, types, strict=True)
    ]


async def _read_analyzed(ask: Ask, relation: Relation, columns: Sequence[ReadableColumn]) -> list[ColumnStatistics]:
    """Return the statistics of the last ANALYZE, which are estimates."""
    rows = relation.rows
    if rows is None:
        return []
    by_name = {column.name: column for column in columns}
    results: list[ColumnStatistics] = []
    for name, nulls, distinct, bounds in await ask(_ANALYZED, relation.oid):
        if name not in by_name:
            continue
        column = by_name[name]
        bounds_of_values = parse_array(bounds) if bounds else [None]
        # A negative n_distinct is the number of distinct values divided by that of rows, negated (manual, pg_stats).
        results.append(
            {
                "column": column.sql,
                "nulls": round(nulls * rows),
                "distinct": round(distinct if distinct >= 0 else -distinct * rows),
                "min": _encode(column.type, bounds_of_values[0]),
                "max": _encode(column.type, bounds_of_values[-1]),
            }
        )
    return results


def _encode(type_: Type, text: str | None) -> Any:
    if text is None:
        return None
    if type_.kind in ("text", "array", "bytea"):
        return shorten(text, _MAX_VALUE_BYTES)
    (encoded,) = encode_column(type_, [text.encode()], _MAX_VALUE_BYTES)
    return encoded
