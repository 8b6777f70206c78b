"""Runs a query up to the rows that fit into one result.

A query that can have many rows is read with a cursor, in a transaction that sees the database as it was at its
beginning. If there are more rows, the transaction stays open so that the client can continue. SHOW and EXPLAIN have
no cursor, and few rows.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from anyio import to_thread

from servers.common.sql.query.pages import AnswerLimits, Page, PageBuilder
from servers.common.sql.query.query import Query
from servers.postgres.engine.answers import Cell
from servers.postgres.engine.deadline import Deadline
from servers.postgres.engine.link import Column, Link
from servers.postgres.engine.statement_text import CURSOR_WORDS, Statement, bind_named, check_reads
from servers.postgres.query.columns import ColumnDescriptions, ColumnTypes
from servers.postgres.values import Codec, encode_parameter

Row = tuple[Cell, ...]

MODE = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
"""The mode of a transaction in which all statements, including those for later pages, see the same state of the
database."""
_BOM = "\ufeff"
"""The byte order mark, with which SQL copied from a file may begin."""
_CURSOR = "mcp_bundle_rows"
_SAMPLE_ROWS = 50
"""Number of rows from which the size of the others is estimated."""
_THREAD_CHARACTERS = 20_000
"""A statement with at least this many characters is checked in a thread, because that takes a while."""
_SNAPSHOT = "SELECT pg_catalog.pg_current_snapshot()::pg_catalog.text"


class Remainder(NamedTuple):
    """The rest of a query after a result."""

    waiting: Sequence[Row]
    """Rows that were fetched but did not fit."""
    is_kept: bool
    """True if the transaction can return the rest; otherwise the query must be run again."""
    is_ended: bool
    """True if there are no rows after the waiting ones."""


class Answer(NamedTuple):
    """Some rows of a query."""

    columns: ColumnDescriptions
    page: Page
    rest: Remainder | None
    """None after the last rows."""
    snapshot: str
    """The snapshot that the query saw, in PostgreSQL's notation; empty if it is not needed because the query has
    ended."""
    seconds: float


class _Source:
    """The source of rows: first the waiting rows, then the rows of the cursor."""

    def __init__(self, link: Link, deadline: Deadline, rest: Remainder) -> None:
        self._link = link
        self._deadline = deadline
        self._waiting = list(rest.waiting)
        self._is_kept = rest.is_kept
        self.is_ended = rest.is_ended
        """True if the cursor is at its end."""
        self._is_lost = False
        self.columns: Sequence[Column] = ()

    async def fetch(self, max_rows: int) -> list[Row]:
        """Return the next rows: `max_rows`, unless there are fewer.

        Rows beyond the memory limit are lost, and can only be read by running the query again.
        """
        if self._waiting:
            next_rows, self._waiting = self._waiting[:max_rows], self._waiting[max_rows:]
            return next_rows
        if self.is_ended:
            return []
        result = await self._link.run(
            f"FETCH FORWARD {max_rows} FROM {_CURSOR}",
            deadline=self._deadline,
            max_bytes=self._link.limits.value_bytes,
        )
        self.columns = result.columns
        self._is_lost = result.is_truncated
        self.is_ended = result.is_truncated or len(result.rows) < max_rows
        return result.rows

    def make_remainder(self, rejected: Sequence[Row]) -> Remainder | None:
        """Return the rest of the query, including the rows that did not fit."""
        waiting = [*rejected, *self._waiting]
        if not waiting and self.is_ended and not self._is_lost:
            return None
        return Remainder(waiting, self._is_kept and not self._is_lost, self.is_ended)


async def check(sql: str) -> Statement:
    """Return the statement if it may be run for reading. Raises SqlError."""
    return check_reads(sql) if len(sql) < _THREAD_CHARACTERS else await to_thread.run_sync(check_reads, sql)


def bind(query: Query) -> tuple[str, list[Cell]]:
    """Return the statement with `$1`, … and the encoded values for them. Raises SqlError with code
    `bad_parameters`."""
    if isinstance(query.parameters, Mapping):
        sql, values = bind_named(query.sql, query.parameters)
        return sql.removeprefix(_BOM), [*map(encode_parameter, values)]
    return query.sql.removeprefix(_BOM), [*map(encode_parameter, query.parameters)]


async def run_query(
    link: Link, query: Query, limits: AnswerLimits, columns: ColumnTypes, deadline: Deadline
) -> Answer:
    """Run the query up to the rows of its first result, in a transaction with `MODE`. Raises SqlError.

    The first `query.offset` rows are skipped, which takes as long as reading them.
    """
    began = time.monotonic()
    sql, values = bind(query)
    statement = await check(sql)
    if statement.first_word in CURSOR_WORDS:
        declare = f"DECLARE {_CURSOR} NO SCROLL CURSOR FOR "
        await link.run(statement.body, values, deadline=deadline, prefix=declare)
        if query.offset:
            await link.run(f"MOVE FORWARD {query.offset} FROM {_CURSOR}", deadline=deadline)
        # A waiting transaction would take one of the pooler's connections from other clients.
        source = _Source(link, deadline, Remainder((), not link.is_shared, False))
        rows = await source.fetch(min(_SAMPLE_ROWS, limits.rows))
    else:
        result = await link.run(statement.body, values, deadline=deadline)
        source = _Source(link, deadline, Remainder(result.rows[query.offset :], False, True))
        source.columns = result.columns
        rows = await source.fetch(limits.rows)
    ask = partial(link.ask, deadline=deadline)
    described = await columns.describe(source.columns, ask)
    page, rest = await _fill_page(described, source, rows, limits)
    snapshot = ""
    if rest is not None or query.offset:
        ((snapshot,),) = await ask(_SNAPSHOT)
    return Answer(described, page, rest, snapshot, time.monotonic() - began)


async def resume(link: Link, answer: Answer, rest: Remainder, limits: AnswerLimits, deadline: Deadline) -> Answer:
    """Return the rows after the rows in `answer`, from the transaction kept for them. Raises SqlError."""
    began = time.monotonic()
    source = _Source(link, deadline, rest)
    rows = await source.fetch(min(_SAMPLE_ROWS, limits.rows))
    page, remainder = await _fill_page(answer.columns, source, rows, limits)
    return answer._replace(page=page, rest=remainder, seconds=time.monotonic() - began)


async def _fill_page(
    columns: ColumnDescriptions, source: _Source, rows: Sequence[Row], limits: AnswerLimits
) -> tuple[Page, Remainder | None]:
    """Return a page of the `rows` and those after them, and the rest of the query."""
    page = PageBuilder(columns.names, limits, Codec(columns.types).encode)
    rejected = page.add(rows)
    while rows and not rejected and (count := page.rows_to_fetch):
        rows = await source.fetch(count)
        rejected = page.add(rows)
    if rows and not rejected:
        # Only fetching one more row shows whether there are more.
        rejected = await source.fetch(1)
    return Page(page.encoded, [kind.name for kind in columns.types]), source.make_remainder(rejected)
