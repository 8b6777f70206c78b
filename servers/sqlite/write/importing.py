"""Imports the rows of a file into a table. A missing table is created."""

import re
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from operator import length_hint
from typing import Any

from servers.common.sql.importing.columns import Column
from servers.common.sql.importing.imports import Import, ImportResult, match_columns, open_rows
from servers.common.sql.importing.readings import Kind
from servers.common.sql.importing.survey import Plan, TargetTable, survey
from servers.common.sql.write.consent import Consent, Figures
from shared.steps import complete

from ..engine.deadline import retry_locked
from ..engine.sql import quote
from .replacing import ReplacedRows
from .session import Session

# A new column of dates is declared TEXT. With any other type, SQLite would convert '2024' in `day > '2024'` to a
# number.
_TYPES: Mapping[Kind, str] = {"integer": "INTEGER", "decimal": "REAL", "boolean": "BOOLEAN"}
_KEEPS_TEXT = re.compile("(?!.*INT)(?:.*(?:CHAR|CLOB|TEXT|BLOB)|$)", re.IGNORECASE | re.DOTALL)
"""Matches declared types of columns that store text as it is, without converting it to numbers
(https://sqlite.org/datatype3.html#determination_of_column_affinity)."""
_CONVERTS_TEXT = re.compile("INT|REAL|FLOA|DOUB|NUM|DEC|STRING", re.IGNORECASE)
"""Occurs in declared types of columns for numbers, which store a text like 007 as 7. STRING is one of them."""
_TRUE = frozenset({"true", "yes", "t", "y", "on", "1"})

Rows = Sequence[Sequence[str]]


def import_csv(request: Import, consent: Consent, session: Session) -> ImportResult | Figures:
    """Insert all rows of the file into the table in one transaction.

    If the user must confirm the changes first, roll back and return the figures to show. Raises SqlError or
    sqlite3.Error; `deadline.position` is then the row, if it is known.
    """
    started_at = time.monotonic()
    surveyed_columns = retry_locked(session.deadline, partial(_list_columns, session, request.table))
    # The survey runs outside the transaction, since it takes a while, in which others must be able to write.
    plan = _survey(request, surveyed_columns, session)
    if request.preview:
        columns = match_columns(plan, surveyed_columns) if surveyed_columns else _new_columns(plan)
        duration = time.monotonic() - started_at
        return ImportResult(
            request.table, not surveyed_columns, plan.rows, columns, duration, plan.decisions, plan.first_rows
        )
    with nullcontext() if consent.rows is None else ReplacedRows(session) as replaced, session.transaction():
        existing = _list_columns(session, request.table)
        # Another process may have altered or created the table during the survey.
        if existing != surveyed_columns:
            plan = _survey(request, existing, session)
        before = session.connection.total_changes
        columns = match_columns(plan, existing) if existing else _new_columns(plan)
        if not existing:
            definitions = ", ".join(f"{quote(name)} {kind}" for name, kind in columns)
            session.connection.execute(f"CREATE TABLE main.{quote(request.table)} ({definitions})").close()
        _insert(session, request, plan, columns, replaced)
        changed = session.connection.total_changes - before + (0 if replaced is None else replaced.count)
        figures = Figures(changed, (plan.rows,), (request.table,), not existing)
        if not consent.covers(figures):
            return figures
        session.commit(figures)
    return ImportResult(
        request.table, not existing, plan.rows, columns, time.monotonic() - started_at, plan.decisions
    )


def _survey(request: Import, columns: Sequence[tuple[str, str]], session: Session) -> Plan:
    target = TargetTable(
        columns,
        # Dates are converted for a column declared TEXT as they are for a new table, so that later files with another
        # notation of dates end up in the same one.
        lambda declared, kind: (
            _KEEPS_TEXT.match(declared) is not None and _TYPES.get(kind, "TEXT") != declared.upper()
        ),
        lambda declared: _CONVERTS_TEXT.search(declared) is not None and _KEEPS_TEXT.match(declared) is None,
        max_columns=session.connection.getlimit(sqlite3.SQLITE_LIMIT_COLUMN),
    )
    return complete(survey(request.opener, request.format_request, target, session.deadline))


def _list_columns(session: Session, table: str) -> list[tuple[str, str]]:
    """Return the names and declared types of the table's columns that accept values; empty if there is no such
    table."""
    return [(name, kind) for name, kind, hidden in session.columns(table) if not hidden]


def _new_columns(plan: Plan) -> list[tuple[str, str]]:
    return [(column.name, _TYPES.get(column.kind, "TEXT")) for column in plan.columns]


def _insert(
    session: Session, request: Import, plan: Plan, columns: Sequence[tuple[str, str]], replaced: ReplacedRows | None
) -> None:
    target = f"main.{quote(request.table)} ({', '.join(quote(name) for name, _ in columns)})"
    sql = f"INSERT INTO {target} VALUES ({', '.join('?' * len(columns))})"  # noqa: S608
    converters = [*map(_make_converter, plan.columns)]
    watch = nullcontext() if replaced is None else replaced.watch(sql, [None] * len(columns))
    with open_rows(request, plan, session.deadline) as records, watch:
        for batch in records:
            converted = [
                convert(fields) for convert, fields in zip(converters, zip(*batch, strict=True), strict=False)
            ]
            rows = iter([*zip(*converted, strict=True)])
            try:
                session.connection.executemany(sql, rows).close()
            except sqlite3.Error:
                session.deadline.position = records.position_of(max(len(batch) - length_hint(rows) - 1, 0))
                raise


def _make_converter(column: Column) -> Callable[[Sequence[str]], Sequence[Any]]:
    """Return a function that converts the fields of a column to SQLite values."""
    convert = _CONVERTERS.get(column.kind)
    if column.reading is None or convert is None:
        return partial(column.convert, null=None)
    nulls = column.nulls
    if column.reading.rewrite is None:
        return lambda fields: [None if field in nulls else convert(field) for field in fields]
    return lambda fields: [None if field is None else convert(field) for field in column.convert(fields, None)]


_CONVERTERS: Mapping[Kind, Callable[[str], Any]] = {
    "integer": int,
    "decimal": float,
    "boolean": lambda field: field.strip().lower() in _TRUE,
}
