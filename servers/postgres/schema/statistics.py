"""What the columns of a table hold: the least and the greatest value, how many differ and how many are NULL, of the
first rows; or where there is no time for that, what ANALYZE has found."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import anyio

from servers.common.sql.schema.records import ColumnStatistics, Statistics
from servers.common.sql.texts import SqlName, shorten
from servers.postgres.arrays import parse_array
from servers.postgres.catalog import Session
from servers.postgres.engine.link import Ask
from servers.postgres.schema.entries import Relation
from servers.postgres.values import Type, encode_column

_ROWS = 100_000
"""The first so many rows are looked at."""
_SIZE = 16_000_000
"""Bytes of all values of a column, up to which those that differ are counted, and sorted for it."""
_VALUE = 100
"""Bytes of a value that are told."""
_COLUMNS = 1_000
"""Columns of one table."""

# Whether there is an order, without which min() is an error: types as json, xml and point have no operator class for
# B-trees, and a domain or an array has that of what it is made of.
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
    """The same as a statement has it."""
    kind: Type
    is_comparable: bool


async def compute_statistics(
    session: Session, relation: Relation, columns: Sequence[ReadableColumn], seconds: float
) -> Statistics:
    """Statistics of those of the columns that can be done in so many seconds. A question of it may be cancelled then,
    so it is the last that the transaction is for. Raises SqlError."""
    ends = time.monotonic() + seconds
    analyzed = await _read_analyzed(session.ask, relation, columns)
    found: Statistics = {"rows_examined": 0, "partial": True, "columns": []}
    with anyio.move_on_after(seconds):
        await _examine(session.ask, relation, columns, found, ends)
    done = {one["column"] for one in found["columns"]}
    found["columns"] += [one for one in analyzed if one["column"] not in done]
    return found


async def _examine(
    ask: Ask, relation: Relation, columns: Sequence[ReadableColumn], found: Statistics, ends: float
) -> None:
    counts = "".join(
        f", pg_catalog.count({one.sql}), "
        f"coalesce(pg_catalog.sum(pg_catalog.pg_column_size({one.sql})), 0)::pg_catalog.int8"
        for one in columns
    )
    first = _select_first(relation, [one.sql for one in columns], _ROWS + 1)
    ((rows, *facts),) = await ask(f"SELECT pg_catalog.count(*){counts} FROM ({first}) AS s")  # noqa: S608
    found["rows_examined"] = min(rows, _ROWS)
    is_whole = rows <= _ROWS
    for one, present, size in zip(columns, facts[::2], facts[1::2], strict=True):
        if time.monotonic() > ends:
            return
        nulls = max(found["rows_examined"] - present, 0)
        if one.is_comparable and size <= _SIZE:
            distinct, least, greatest = await _compare(ask, relation, one)
        else:
            distinct, least, greatest, is_whole = None, None, None, False
        made: ColumnStatistics = {
            "column": one.sql, "nulls": nulls, "distinct": distinct, "min": least, "max": greatest,
        }  # fmt: skip
        found["columns"].append(made)
    found["partial"] = not is_whole


async def _compare(ask: Ask, relation: Relation, one: ReadableColumn) -> tuple[int, Any, Any]:
    """How many values differ, the least and the greatest."""
    first = _select_first(relation, [one.sql], _ROWS)
    ((distinct, least, greatest),) = await ask(f"""
        WITH s(x) AS MATERIALIZED ({first})
        SELECT (SELECT pg_catalog.count(DISTINCT x) FROM s),
            (SELECT pg_catalog.format('%s', x) FROM s WHERE NOT x IS NULL ORDER BY x LIMIT 1),
            (SELECT pg_catalog.format('%s', x) FROM s WHERE NOT x IS NULL ORDER BY x DESC LIMIT 1)""")  # noqa: S608
    return distinct, _encode(one.kind, least), _encode(one.kind, greatest)


def _select_first(relation: Relation, columns: Sequence[str], most: int) -> str:
    return f"SELECT {', '.join(columns)} FROM {relation.name} LIMIT {most}"  # noqa: S608


async def read_readable(session: Session, relation: Relation) -> list[ReadableColumn]:
    """The columns whose values the role may read."""
    rows = [row for row in await session.ask(_COMPARABLE, relation.oid, _COLUMNS) if row[-1]]
    kinds = await session.types.read([oid for _, _, oid, _, _ in rows], session.ask)
    return [
        ReadableColumn(name, SqlName(sql), kind, bool(is_comparable))
        for (name, sql, _, is_comparable, _), kind in zip(rows, kinds, strict=True)
    ]


async def _read_analyzed(ask: Ask, relation: Relation, columns: Sequence[ReadableColumn]) -> list[ColumnStatistics]:
    """What ANALYZE has found, for as many rows as it has seen."""
    rows = relation.rows
    if rows is None:
        return []
    by_name = {one.name: one for one in columns}
    made: list[ColumnStatistics] = []
    for name, nulls, distinct, bounds in await ask(_ANALYZED, relation.oid):
        if name not in by_name:
            continue
        one = by_name[name]
        ends = parse_array(bounds) if bounds else [None]
        # Below zero, n_distinct is a share of the rows, negated (manual, pg_stats).
        made.append(
            {
                "column": one.sql,
                "nulls": round(nulls * rows),
                "distinct": round(distinct if distinct >= 0 else -distinct * rows),
                "min": _encode(one.kind, ends[0]),
                "max": _encode(one.kind, ends[-1]),
            }
        )
    return made


def _encode(kind: Type, text: str | None) -> Any:
    if text is None:
        return None
    if kind.kind in ("text", "array", "bytea"):
        return shorten(text, _VALUE)
    (encoded,) = encode_column(kind, [text.encode()], _VALUE)
    return encoded
