"""Reads the first rows of a table or one row by its key, and completes keys.

The key is the primary key, or the rowid of a table without one. In a URI its values are strings, so a string matches
values of all types that could be written as this string.
"""

import math
import re
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.query.query import TableRows, make_table_rows
from servers.common.sql.schema.records import Entry
from servers.common.sql.uris import (
    COMPLETION_SECONDS,
    MAX_COMPLETED_KEYS,
    MAX_COMPLETED_VALUE_LENGTH,
    join_key,
    split_key,
)

from ..engine.deadline import StatementDeadline, retry_locked
from ..engine.entries import find_hidden, get_entry, hold_snapshot
from ..engine.sql import quote, select
from ..paging import fill_page
from ..schema.columns import read_columns

_MAX_KEYS_COMPARED = 10_000
"""Maximum number of rows whose keys are compared with what the user has typed."""
_BLOB = re.compile(r"x'((?:[0-9a-f]{2})*)'")


def read_first_rows(
    table: str, limits: AnswerLimits, connection: sqlite3.Connection, deadline: StatementDeadline
) -> TableRows:
    """Return as many of the table's first rows, in the order of its key, as fit. Raises SqlError."""
    with hold_snapshot(connection, deadline):
        entry = get_entry(connection, table)
        key = _find_key_columns(connection, entry)
        query = select("*", entry.name, f"{_order_by(key)}LIMIT {limits.rows + 1}")
        cursor = retry_locked(deadline, partial(connection.execute, query))
        names = [column[0] for column in cursor.description]
        page, remaining_rows = fill_page(names, cursor, limits)
    rest = f"{_order_by(key)}LIMIT {limits.rows} OFFSET {len(page.rows)}"
    return make_table_rows(entry.name, key, names, page, select("*", entry.name, rest) if remaining_rows else None)


def _order_by(key: list[str]) -> str:
    """Return an ORDER BY clause for the columns of the key; empty if there are none."""
    return f"ORDER BY {', '.join(map(quote, key))} " if key else ""


def find_row(
    table: str, key: str, limits: AnswerLimits, connection: sqlite3.Connection, deadline: StatementDeadline
) -> TableRows:
    """Return the row with this key, which is written as by `uris.join_key`. Raises SqlError with code `not_found` if
    there is no such row."""
    with hold_snapshot(connection, deadline):
        entry = get_entry(connection, table)
        columns = _find_key_columns(connection, entry)
        parts = split_key(key, len(columns))
        if not columns or len(parts) != len(columns):
            raise SqlError("not_found", "no row has such a key")
        values = [_parse_values(part) for part in parts]
        conditions = (
            f"{quote(column)} IN ({', '.join('?' * len(alternatives))})"
            for column, alternatives in zip(columns, values, strict=True)
        )
        query = select("*", entry.name, f"WHERE {' AND '.join(conditions)} LIMIT 1")
        cursor = retry_locked(
            deadline, partial(connection.execute, query, [value for alternatives in values for value in alternatives])
        )
        names = [column[0] for column in cursor.description]
        page, _ = fill_page(names, cursor, limits)
    if not page.rows:
        raise SqlError("not_found", "no row has this key")
    return make_table_rows(entry.name, columns, names, page)


def find_keys(table: str, prefix: str, connection: sqlite3.Connection, deadline: StatementDeadline) -> list[str]:
    """Return keys of rows that begin with `prefix`, as many as are found within `COMPLETION_SECONDS`. Raises
    SqlError."""
    with hold_snapshot(connection, deadline):
        entry = get_entry(connection, table)
        columns = _find_key_columns(connection, entry)
        matching: list[str] = []
        with deadline.at_most(COMPLETION_SECONDS):
            keys = (key for key in _list_keys(entry, columns, connection) if key.startswith(prefix))
            # `extend` adds each key at once, so the keys that were found before the time limit remain.
            matching.extend(islice(keys, MAX_COMPLETED_KEYS))
    return matching


def _find_key_columns(connection: sqlite3.Connection, entry: Entry) -> list[str]:
    if entry.kind == "view":
        return []
    columns, _ = read_columns(connection, entry.name)
    keyed = sorted((column["primary_key"], column["name"]) for column in columns if column["primary_key"])
    if keyed:
        return [name for _, name in keyed]
    hidden = find_hidden(connection)
    if hidden is not None and hidden.visible_columns(entry.name) is not None:
        return []  # the view that replaces a table with hidden columns has no rowid
    column_names = {column["name"].lower() for column in columns}
    return [name for name in ("rowid", "_rowid_", "oid") if name not in column_names][:1]


def _list_keys(entry: Entry, columns: list[str], connection: sqlite3.Connection) -> Iterator[str]:
    if not columns:
        return
    query = select(", ".join(map(quote, columns)), entry.name, f"LIMIT {_MAX_KEYS_COMPARED}")
    for row in connection.execute(query):
        parts = [part for part in map(_format_value, row) if part is not None]
        if len(parts) == len(row) and any(parts):  # a URI can't contain an empty key
            yield join_key(parts)


def _parse_values(part: str) -> list[Any]:
    """Return every value that is written as `part` in a key."""
    values: list[Any] = [part]
    blob = _BLOB.fullmatch(part)
    if blob is not None:
        values.append(bytes.fromhex(blob[1]))
    if re.fullmatch(r"-?[0-9]{1,19}", part) and str(int(part)) == part and abs(int(part)) < 1 << 63:
        values.append(int(part))
    elif re.fullmatch(r"-?[0-9][0-9.e+-]{0,30}", part):
        with suppress(ValueError):
            values += [float(part)] if repr(float(part)) == part else []
    return values


def _format_value(value: Any) -> str | None:
    """Return a value as it is written in a key; None if it can't be written or is too long."""
    match value:
        case str() if len(value) <= MAX_COMPLETED_VALUE_LENGTH and value.isprintable():
            return value
        case bytes() if len(value) <= MAX_COMPLETED_VALUE_LENGTH:
            return f"x'{value.hex()}'"
        case float() if math.isfinite(value):
            return repr(value)
        case int():
            return str(value)
    return None
