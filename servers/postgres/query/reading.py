"""Runs a query, and returns as many rows as fit into one result.

A query that can have many rows is read with a cursor of PostgreSQL, in a transaction that sees the database as it was
when the transaction began. If there are more rows, the transaction stays open so that the client can continue. SHOW
and EXPLAIN can't have a cursor, but return few rows.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from anyio import to_thread

from servers.common.sql.query.pages import AnswerLimits, Page, PageBuilder
from servers.common.sql.query.query import Query

from ..engine.answers import Cell
from ..engine.deadline import Deadline
from ..engine.link import Column, Link
from ..engine.statement_text import CURSOR_WORDS, Statement, bind_named, check_reads
from ..values import Codec, encode_parameter
from .columns import ColumnDescriptions, ColumnTypes

Row = tuple[Cell, ...]

MODE = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
"""The mode of a transaction in which all statements, including those for later pages, see the same state."""
_BOM = "\ufeff"
"""The byte order mark, with which SQL that was copied from a file may begin."""
_CURSOR = "mcp_bundle_rows"
_SAMPLE_ROWS = 50
"""Number of rows from which the size of the others is estimated."""
_THREAD_CHARACTERS = 20_000
"""A statement with at least this many characters is checked in a thread, because the check takes a while."""
_SNAPSHOT = "SELECT pg_catalog.pg_current_snapshot()::pg_catalog.text"


class Remainder(NamedTuple):
    """What remains of a query after a result."""

    buffered: Sequence[Row]
    """Rows that were fetched but did not fit into the result."""
    can_resume: bool
    """True if the transaction can return the remaining rows; otherwise the query must be run again."""
    is_ended: bool
    """True if the cursor has no rows after the buffered ones."""


class Answer(NamedTuple):
    """Some rows of a query."""

    columns: ColumnDescriptions
    page: Page
    rest: Remainder | None
    """What remains of the query; None after the last rows."""
    snapshot: str
    """The snapshot that the query saw, in PostgreSQL's notation; empty if no later call needs it."""
    duration: float
    """The time that it took to get these rows, in seconds."""


class _Source:
    """The source of rows: first the buffered rows, then the rows of the cursor."""

    def __init__(self, link: Link, deadline: Deadline, rest: Remainder) -> None:
        self._link = link
        self._deadline = deadline
        self._buffered = list(rest.buffered)
        self._can_resume = rest.can_resume
        self.is_ended = rest.is_ended
        """True if the cursor is at its end."""
        self._lost_rows = False
        self.columns: Sequence[Column] = ()

    async def fetch(self, max_rows: int) -> list[Row]:
        """Return the next `max_rows` rows; fewer at the end, or if they exceed the memory limit. Rows beyond the
        limit are lost: to read them, the query must be run again."""
        if self._buffered:
            next_rows, self._buffered = self._buffered[:max_rows], self._buffered[max_rows:]
            return next_rows
        if self.is_ended:
            return []
        result = await self._link.run(
            f"FETCH FORWARD {max_rows} FROM {_CURSOR}",
            deadline=self._deadline,
            max_bytes=self._link.limits.value_bytes,
        )
        self.columns = result.columns
        self._lost_rows = result.is_truncated
        self.is_ended = result.is_truncated or len(result.rows) < max_rows
        return result.rows

    def make_remainder(self, not_fitting: Sequence[Row]) -> Remainder | None:
        """Return what remains of the query, including the fetched rows that did not fit; None if nothing remains."""
        buffered = [*not_fitting, *self._buffered]
        if not buffered and self.is_ended and not self._lost_rows:
            return None
        return Remainder(buffered, self._can_resume and not self._lost_rows, self.is_ended)


async def check(sql: str) -> Statement:
    """Return the statement if it may be run for reading. Raises SqlError."""
    return check_reads(sql) if len(sql) < _THREAD_CHARACTERS else await to_thread.run_sync(check_reads, sql)


def bind(query: Query) -> tuple[str, list[Cell]]:
    """Return the statement with numbered parameters (`$1`), and their encoded values. Raises SqlError with code
    `bad_parameters`."""
    if isinstance(query.parameters, Mapping):
        sql, values = bind_named(query.sql, query.parameters)
        return sql.removeprefix(_BOM), [*map(encode_parameter, values)]
    return query.sql.removeprefix(_BOM), [*map(encode_parameter, query.parameters)]


async def run_query(
    link: Link, query: Query, limits: AnswerLimits, columns: ColumnTypes, deadline: Deadline
) -> Answer:
    """Run the query in a transaction with `MODE`, and return as many rows as fit into one result. Raises SqlError.

    The first `query.offset` rows are skipped, but PostgreSQL still has to compute them.
    """
    started_at = time.monotonic()
    sql, values = bind(query)
    statement = await check(sql)
    if statement.first_word in CURSOR_WORDS:
        declare = f"DECLARE {_CURSOR} NO SCROLL CURSOR FOR "
        await link.run(statement.body, values, deadline=deadline, prefix=declare)
        if query.offset:
            await link.run(f"MOVE FORWARD {query.offset} FROM {_CURSOR}", deadline=deadline)
        # Behind a pooler that shares connections, the transaction is not kept open for the next call: it would occupy
        # one of the pooler's few connections.
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
    return Answer(described, page, rest, snapshot, time.monotonic() - started_at)


async def resume(link: Link, answer: Answer, rest: Remainder, limits: AnswerLimits, deadline: Deadline) -> Answer:
    """Return the rows after those in `answer`, from the transaction that was kept open for them. Raises SqlError."""
    started_at = time.monotonic()
    source = _Source(link, deadline, rest)
    rows = await source.fetch(min(_SAMPLE_ROWS, limits.rows))
    page, remainder = await _fill_page(answer.columns, source, rows, limits)
    return answer._replace(page=page, rest=remainder, duration=time.monotonic() - started_at)


async def _fill_page(
    columns: ColumnDescriptions, source: _Source, rows: Sequence[Row], limits: AnswerLimits
) -> tuple[Page, Remainder | None]:
    """Return a page that begins with `rows` and continues with rows of `source`, and what remains of the query."""
    page = PageBuilder(columns.names, limits, Codec(columns.types).encode)
    not_fitting = page.add(rows)
    while rows and not not_fitting and (count := page.rows_to_fetch):
        rows = await source.fetch(count)
        not_fitting = page.add(rows)
    if rows and not not_fitting:
        # Fetch one more row to find out whether there are more.
        not_fitting = await source.fetch(1)
    return Page(page.encoded, [kind.name for kind in columns.types]), source.make_remainder(not_fitting)
