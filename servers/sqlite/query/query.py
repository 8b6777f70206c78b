"""One query: its statement run, its rows cut to what one answer may have."""

import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from servers.sqlite.engine.limits import StatementDeadline, retry_locked
from servers.sqlite.query.cells import decode_value
from servers.sqlite.query.pages import AnswerLimits, Page, Row, fill_page

__all__ = ["Answer", "Parameters", "Query", "Remainder", "bind", "resume", "run_query"]

Parameters = Sequence[Any] | Mapping[str, Any]

_SKIPPED = 1_000
"""Rows that are left out in one step."""


class Query(NamedTuple):
    """A statement and its parameters."""

    sql: str
    parameters: Parameters
    offset: int = 0
    """Rows that were given already, by earlier answers."""


class Remainder(NamedTuple):
    """What is left of a query after an answer, while its statement is kept at the row where that ended."""

    cursor: sqlite3.Cursor
    waiting: Sequence[Row]
    """Rows that were fetched and had no room."""


class Answer(NamedTuple):
    """Some rows of a query."""

    names: tuple[str, ...]
    page: Page
    more: bool
    """Whether there are rows after these."""
    rest: Remainder | None
    """Where they come from, if the statement could be kept."""
    schema_version: int
    data_version: int
    """Another number on the same connection says that another connection changed the database."""
    seconds: float


def bind(parameters: Parameters) -> Parameters:
    """The parameters as SQLite takes them. Raises SqliteError."""
    if isinstance(parameters, Mapping):
        return {name.lstrip(":@$"): decode_value(value) for name, value in parameters.items()}
    return [decode_value(value) for value in parameters]


def run_query(
    query: Query, limits: AnswerLimits, connection: sqlite3.Connection, deadline: StatementDeadline
) -> Answer:
    """Runs the query up to the rows that it shall give."""
    began = time.monotonic()
    data_version, schema_version = (
        retry_locked(deadline, partial(_read_pragma, connection, name)) for name in ("data_version", "schema_version")
    )
    with ExitStack() as unless_kept:
        cursor = retry_locked(deadline, partial(connection.execute, query.sql, query.parameters))
        unless_kept.callback(cursor.close)
        names = tuple(column[0] for column in cursor.description or ())
        _skip(cursor, query.offset, deadline)
        page, rest = _fill(names, Remainder(cursor, ()), limits, deadline)
        kept = rest if rest is not None and _keeps_snapshots(connection) else None
        if kept is not None:
            unless_kept.pop_all()
    return Answer(names, page, rest is not None, kept, schema_version, data_version, time.monotonic() - began)


def resume(
    answer: Answer, rest: Remainder, limits: AnswerLimits, _: sqlite3.Connection, deadline: StatementDeadline
) -> Answer:
    """The rows after those of `answer`, from the statement that was kept for them."""
    began = time.monotonic()
    with ExitStack() as unless_kept:
        unless_kept.callback(rest.cursor.close)
        page, left = _fill(answer.names, rest, limits, deadline)
        if left is not None:
            unless_kept.pop_all()
    return answer._replace(page=page, more=left is not None, rest=left, seconds=time.monotonic() - began)


def _read_pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


def _keeps_snapshots(connection: sqlite3.Connection) -> bool:
    # Without a write-ahead log, a statement that is not finished keeps all writers out.
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    return bool(mode == "wal")


def _skip(cursor: sqlite3.Cursor, offset: int, deadline: StatementDeadline) -> None:
    while offset > 0:
        skipped = sum(1 for _ in islice(cursor, min(offset, _SKIPPED)))
        if skipped == 0:
            return
        offset -= skipped
        deadline.check()


def _fill(
    names: Sequence[str], rest: Remainder, limits: AnswerLimits, deadline: StatementDeadline
) -> tuple[Page, Remainder | None]:
    waiting = iter(rest.waiting)
    made, left = fill_page(names, chain(waiting, rest.cursor), limits)
    deadline.check()
    left += waiting
    return made, Remainder(rest.cursor, left) if left else None
