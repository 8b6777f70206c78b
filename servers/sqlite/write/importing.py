"""Rows of a CSV put into a table, which is made where there is none."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from servers.common.sql.write.consent import Consent, Figures
from servers.common.sql.write.csvs import infer_types
from servers.common.sql.write.imports import (
    FIRST,
    LAST,
    ONLY,
    Import,
    Imported,
    match_columns,
    name_columns,
    open_rows,
)
from servers.sqlite.engine.deadline import retry_locked
from servers.sqlite.engine.sql import quote
from servers.sqlite.write.replacing import ReplacedRows
from servers.sqlite.write.session import Session

_OF: dict[str, Callable[[str], Any]] = {"INTEGER": int, "REAL": float, "TEXT": str}


def import_csv(wanted: Import, consent: Consent, session: Session) -> Imported | Figures:
    """Puts all rows into the table, in one transaction, or none.

    Gives figures, and changes nothing, where a user must agree to them first.

    An empty field is NULL. Raises SqlError, which names the row.
    """
    began = time.monotonic()
    is_there = bool(retry_locked(session.deadline, partial(_list_columns, session, wanted.table)))
    # To look through the whole text for types takes a while, in which others may write.
    types = [] if is_there else _infer_types(session, wanted)
    with nullcontext() if consent.rows is None else ReplacedRows(session) as replaced, session.transaction():
        there = _list_columns(session, wanted.table)
        before = session.connection.total_changes
        with open_rows(wanted, ONLY if is_there else LAST, session.deadline) as records:
            if there:
                columns = match_columns(records, there)
                rows: Iterator[Sequence[Any]] = ([field or None for field in row] for row in records)
            else:
                columns = name_columns(records, types or _infer_types(session, wanted))
                defined = ", ".join(f"{quote(name)} {kind}" for name, kind in columns)
                session.connection.execute(f"CREATE TABLE main.{quote(wanted.table)} ({defined})").close()
                conversions = [_OF[kind] for _, kind in columns]
                rows = (
                    [of(field) if field else None for of, field in zip(conversions, row, strict=True)]
                    for row in records
                )
            into = f"main.{quote(wanted.table)} ({', '.join(quote(name) for name, _ in columns)})"
            marks = ", ".join("?" * len(columns))
            # The names are quoted.
            insert = f"INSERT INTO {into} VALUES ({marks})"  # noqa: S608
            with nullcontext() if replaced is None else replaced.watch(insert, [None] * len(columns)):
                session.connection.executemany(insert, rows).close()
        changed = session.connection.total_changes - before + (0 if replaced is None else replaced.count)
        figures = Figures(changed, (records.count,), (wanted.table,), not there)
        if not consent.covers(figures):
            return figures
        session.commit(figures)
    return Imported(wanted.table, not there, records.count, columns, time.monotonic() - began)


def _infer_types(session: Session, wanted: Import) -> list[str]:
    with open_rows(wanted, FIRST, session.deadline) as records:
        return infer_types(records)


def _list_columns(session: Session, table: str) -> list[tuple[str, str]]:
    """The columns of the table that take values, with their declared types; none where there is no such table."""
    return [(name, kind) for name, kind, hidden in session.columns(table) if not hidden]
