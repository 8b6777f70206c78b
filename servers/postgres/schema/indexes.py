"""Indexes and foreign keys."""

from servers.common.sql.schema.records import ForeignKey, Index
from servers.common.sql.texts import SqlName, shorten

from ..engine.link import Ask
from .entries import SCOPE

_MAX_SQL_LENGTH = 500
"""Maximum number of characters of a definition that are shown."""
_ACTIONS = {"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}
_ORIGINS = {"p": "PRIMARY KEY", "u": "UNIQUE", "x": "EXCLUDE", "": "CREATE INDEX"}

_INDEXES = f"""
    SELECT c.oid::pg_catalog.regclass::pg_catalog.text, pg_catalog.quote_ident(i.relname), x.indisunique,
        x.indpred IS NOT NULL, x.indisvalid, coalesce(k.contype::pg_catalog.text, ''),
        CASE WHEN $1::pg_catalog.oid IS NOT NULL THEN pg_catalog.pg_get_indexdef(x.indexrelid) END,
        ARRAY(SELECT pg_catalog.quote_ident(a.attname)
            FROM pg_catalog.generate_series(0, x.indnkeyatts - 1) AS p
            LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = x.indkey[p] AND a.attnum <> 0
            ORDER BY p)
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_index AS x ON x.indrelid = c.oid
    JOIN pg_catalog.pg_class AS i ON i.oid = x.indexrelid
    LEFT JOIN pg_catalog.pg_constraint AS k ON k.conindid = x.indexrelid AND k.conrelid = c.oid
        AND k.contype = ANY ('{{p,u,x}}'::pg_catalog."char"[])
    WHERE {SCOPE} AND ($1::pg_catalog.oid IS NOT NULL OR NOT i.relispartition)
    ORDER BY 1, x.indisprimary DESC, 2"""  # noqa: S608
_FOREIGN_KEYS = """
    SELECT k.conrelid::pg_catalog.regclass::pg_catalog.text, k.confrelid::pg_catalog.regclass::pg_catalog.text,
        k.confupdtype::pg_catalog.text, k.confdeltype::pg_catalog.text,
        ARRAY(SELECT pg_catalog.quote_ident(a.attname)
            FROM pg_catalog.unnest(k.conkey) WITH ORDINALITY AS p(number, place)
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = p.number ORDER BY p.place),
        ARRAY(SELECT pg_catalog.quote_ident(a.attname)
            FROM pg_catalog.unnest(k.confkey) WITH ORDINALITY AS p(number, place)
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.confrelid AND a.attnum = p.number ORDER BY p.place)
    FROM pg_catalog.pg_constraint AS k JOIN pg_catalog.pg_class AS c ON c.oid = k.{oid_column}
    LEFT JOIN pg_catalog.pg_constraint AS o ON o.oid = k.conparentid
    WHERE {scope} AND k.contype = 'f'
        AND (o.oid IS NULL OR $1::pg_catalog.oid = k.conrelid AND o.conrelid <> k.conrelid)
    ORDER BY 1, k.conname"""


async def read_indexes(ask: Ask, oid: int | None = None) -> list[tuple[SqlName, Index]]:
    """Return the indexes of one or all tables, each with the name of its table.

    An index that a partition inherits from its table is included only if `oid` is that of the partition.
    """
    indexes: list[tuple[SqlName, Index]] = []
    for table, name, unique, partial, is_valid, constraint, sql, columns in await ask(_INDEXES, oid):
        note = "" if is_valid else " -- not valid: no query uses it; REINDEX, or drop it"
        index: Index = {
            "name": SqlName(name),
            "columns": [None if column is None else SqlName(column) for column in columns],
            "unique": unique,
            "partial": partial,
            "origin": _ORIGINS[constraint],
            "sql": None if sql is None or constraint else shorten(sql, _MAX_SQL_LENGTH) + note,
        }
        indexes.append((SqlName(table), index))
    return indexes


async def read_foreign_keys(ask: Ask, oid: int | None = None) -> list[ForeignKey]:
    """Return the foreign keys of one or all tables, ordered by table."""
    return await _read_keys(ask, "conrelid", oid)


async def read_references(ask: Ask, oid: int) -> list[ForeignKey]:
    """Return the foreign keys of all tables that refer to this one."""
    return await _read_keys(ask, "confrelid", oid)


async def _read_keys(ask: Ask, oid_column: str, oid: int | None) -> list[ForeignKey]:
    """Return the foreign keys whose `oid_column` in pg_constraint, `conrelid` or `confrelid`, is `oid`."""
    return [
        {
            "table": SqlName(table),
            "columns": [*map(SqlName, columns)],
            "to_table": SqlName(to_table),
            "to_columns": [*map(SqlName, to_columns)],
            "on_update": _ACTIONS[on_update],
            "on_delete": _ACTIONS[on_delete],
        }
        for table, to_table, on_update, on_delete, columns, to_columns in await ask(
            _FOREIGN_KEYS.format(oid_column=oid_column, scope=SCOPE), oid
        )
    ]
