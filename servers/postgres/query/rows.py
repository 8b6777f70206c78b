"""Reads the first rows of a table, or one row by its key, and completes keys.

The key is the primary key, or else a unique index on columns that are never NULL. In a URI, the values of a key are
strings, which PostgreSQL converts to the types of the columns. A string that is not a value of the type matches no
row.
"""

from typing import NamedTuple

import anyio

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.query.query import TableRows, make_table_rows
from servers.common.sql.uris import (
    COMPLETION_SECONDS,
    MAX_COMPLETED_KEYS,
    MAX_COMPLETED_VALUE_LENGTH,
    join_key,
    split_key,
)

from ..catalog import Session
from ..engine.answers import encode_text
from ..engine.link import Ask
from ..paging import fill_page
from ..schema.entries import Relation
from ..schema.names import find_relation

_MAX_KEYS_COMPARED = 100_000
"""Maximum number of rows whose keys are compared with the typed text."""

_KEY = """
    SELECT a.attname::pg_catalog.text, pg_catalog.quote_ident(a.attname)
    FROM (
        SELECT x.indrelid, x.indkey, x.indnkeyatts FROM pg_catalog.pg_index AS x
        WHERE x.indrelid = $1::pg_catalog.oid AND x.indisunique AND x.indisvalid AND x.indimmediate
            AND x.indpred IS NULL AND x.indexprs IS NULL
            AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = x.indrelid
                AND NOT a.attnotnull AND a.attnum = ANY ((x.indkey::pg_catalog.int2[])[0:x.indnkeyatts - 1]))
        ORDER BY x.indisprimary DESC, x.indnkeyatts, x.indexrelid LIMIT 1
    ) AS k CROSS JOIN pg_catalog.generate_series(0, k.indnkeyatts - 1) AS p
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.indrelid AND a.attnum = k.indkey[p]
    ORDER BY p"""

_READABLE = """
    SELECT pg_catalog.string_agg(pg_catalog.quote_ident(r.attname), ', ' ORDER BY r.attnum)
            FILTER (WHERE r.is_readable),
        pg_catalog.bool_and(r.is_readable)
    FROM (SELECT a.attname, a.attnum, pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT') AS is_readable
        FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid = $1::pg_catalog.oid AND a.attnum > 0 AND NOT a.attisdropped) AS r"""


class _KeyColumn(NamedTuple):
    """A column of a key."""

    name: str
    sql: str
    """The name as it is written in a statement."""


async def read_first_rows(table: str, limits: AnswerLimits, session: Session) -> TableRows:
    """Return the first rows in the order of the key, as many as fit. Raises SqlError."""
    relation = await find_relation(session.ask, table)
    key = await _find_key(session.ask, relation)
    order = f" ORDER BY {', '.join(column.sql for column in key)}" if key else ""
    column_list = await _list_readable(session.ask, relation)
    query = f"SELECT {column_list} FROM {relation.name}{order} LIMIT"  # noqa: S608
    filled = await fill_page(session, f"{query} {limits.rows + 1}", (), limits)
    next_query = f"{query} {limits.rows} OFFSET {len(filled.page.rows)}" if filled.has_more else None
    return make_table_rows(relation.name, [column.name for column in key], filled.names, filled.page, next_query)


async def find_row(table: str, key: str, limits: AnswerLimits, session: Session) -> TableRows:
    """Return the row with that key, as `uris.join_key` writes it. Raises SqlError `not_found` if there is none."""
    relation = await find_relation(session.ask, table)
    columns = await _find_key(session.ask, relation)
    parts = split_key(key, len(columns))
    if not columns or len(parts) != len(columns):
        raise SqlError("not_found", "no row has such a key")
    conditions = " AND ".join(f"{column.sql} = ${number}" for number, column in enumerate(columns, 1))
    column_list = await _list_readable(session.ask, relation)
    query = f"SELECT {column_list} FROM {relation.name} WHERE {conditions} LIMIT 1"  # noqa: S608
    try:
        filled = await fill_page(session, query, [encode_text(part) for part in parts], limits)
    except SqlError as error:
        if error.code not in ("bad_value", "bad_parameters"):
            raise
        raise SqlError("not_found", "no row can have that key") from None
    if not filled.page.rows:
        raise SqlError("not_found", "no row has this key")
    return make_table_rows(relation.name, [column.name for column in columns], filled.names, filled.page)


async def find_keys(table: str, prefix: str, session: Session) -> list[str]:
    """Return row keys that begin with `prefix`, as many as are found within one second.

    The transaction may be unusable afterwards. Raises SqlError.
    """
    relation = await find_relation(session.ask, table)
    columns = await _find_key(session.ask, relation)
    parts = split_key(prefix, len(columns))
    if not columns or len(parts) > len(columns) or "\0" in prefix:
        return []
    names = ", ".join(column.sql for column in columns)
    texts = ", ".join(
        f"pg_catalog.format('%s', {column.sql}) AS t{number}" for number, column in enumerate(columns, 1)
    )
    # The last part is a prefix of its value; the values before it must be equal.
    conditions = [f"t{number} = ${number}::pg_catalog.text" for number in range(1, len(parts))]
    conditions.append(f"pg_catalog.starts_with(t{len(parts)}, ${len(parts)}::pg_catalog.text)")
    query = f"""
        SELECT {", ".join(f"t{number}" for number in range(1, len(columns) + 1))}
        FROM (SELECT {texts} FROM {relation.name} ORDER BY {names} LIMIT {_MAX_KEYS_COMPARED}) AS k
        WHERE {" AND ".join(conditions)} LIMIT {MAX_COMPLETED_KEYS}"""  # noqa: S608
    rows = []
    with anyio.move_on_after(COMPLETION_SECONDS):
        rows = await session.ask(query, *parts)
    return [
        join_key(row)
        for row in rows
        if any(row) and all(len(value) <= MAX_COMPLETED_VALUE_LENGTH and value.isprintable() for value in row)
    ]


async def _list_readable(ask: Ask, relation: Relation) -> str:
    """Return the columns that the role may read, as written in SELECT; `*` if it may read all columns or none."""
    ((readable, reads_all),) = await ask(_READABLE, relation.oid)
    return "*" if reads_all or readable is None else str(readable)


async def _find_key(ask: Ask, relation: Relation) -> list[_KeyColumn]:
    return [_KeyColumn(*row) for row in await ask(_KEY, relation.oid)]
