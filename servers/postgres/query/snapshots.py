"""Continues queries whose rows did not fit into one result, so that the next call gets the following rows.

The transaction of a query is kept open for `SOURCE_SECONDS` seconds, with its cursor and the state of the database
that it sees. During that time it holds back VACUUM, prevents others from altering the tables that it has read, and
occupies a connection. So at most half of the connections are used for kept transactions, and the oldest transaction
is released when another query finds no free connection. After its transaction was released, a query is run again, and
the rows of earlier results are skipped.

In that case, PostgreSQL's snapshots show whether the database was changed in between. If both snapshots are the same,
no writing transaction has ended in between, so the rows are the same, but their order may differ if the query does
not determine it. If the snapshots differ, some transaction has ended, which may have changed any table or database of
the PostgreSQL server.
"""

from typing import NamedTuple

from servers.common.sql.errors import SqlError
from servers.common.sql.jobs import Job
from servers.common.sql.query.cursors import POOL_DIVISOR, SOURCE_SECONDS, Cursors, Position, fingerprint
from servers.common.sql.query.pages import NO_ROWS, AnswerLimits
from servers.common.sql.query.query import Query, QueryRows

from ..engine.deadline import Deadline
from ..engine.link import Link
from ..engine.pool import Pool
from .columns import ColumnTypes
from .reading import MODE, Answer, Remainder, resume, run_query


class _OpenTransaction(NamedTuple):
    """A transaction that is kept open for the next call."""

    link: Link
    answer: Answer
    """The last result, without its rows."""
    rest: Remainder


class Snapshots:
    """The queries of one database that can be continued. The method `run` must run in a task."""

    def __init__(
        self, name: str, pool: Pool, columns: ColumnTypes, timeout: float, kept_seconds: float = SOURCE_SECONDS
    ) -> None:
        """Transactions of `pool`, to the database `name`, are kept for `kept_seconds`. `timeout` is the time limit of
        a query without a job, in seconds."""
        self._name = name
        self._pool = pool
        self._columns = columns
        self._timeout = timeout
        self._cursors: Cursors[_OpenTransaction] = Cursors(
            lambda transaction: pool.end(transaction.link), kept_seconds
        )
        self.run = self._cursors.run
        pool.on_exhausted = self.release_oldest

    async def read(
        self, query: Query, limits: AnswerLimits, owner: str | None, cursor: str | None, job: Job | None = None
    ) -> QueryRows:
        """Return the first rows of `query`, or the rows after those that came with `cursor`.

        Raises SqlError, with code `bad_cursor` if the cursor belongs to another query, database or client.
        """
        request_fingerprint = fingerprint(owner, self._name, query)
        deadline = Deadline(self._timeout, job)
        if cursor is None:
            return await self._run(query, limits, deadline, Position(request_fingerprint, 0, b"", False))
        position = self._cursors.find(cursor, request_fingerprint)
        rows = await self._resume(cursor, position, limits, deadline)
        if rows is not None:
            return rows
        return await self._run(query._replace(offset=position.offset), limits, deadline, position)

    async def release(self) -> None:
        """Release all kept transactions, for a statement that needs exclusive access to a table they have read."""
        while await self._cursors.release_oldest(lambda _: True):
            """Each call releases the oldest one."""

    async def release_oldest(self) -> None:
        """Release the oldest kept transaction, so that its connection is free."""
        await self._cursors.release_oldest(lambda _: True)

    async def _run(self, query: Query, limits: AnswerLimits, deadline: Deadline, position: Position) -> QueryRows:
        link = await self._pool.begin(deadline, MODE)
        is_kept = False
        try:
            answer = await run_query(link, query, limits, self._columns, deadline)
            changed = position.changed or (query.offset > 0 and position.state != fingerprint(answer.snapshot))
            rows, is_kept = self._store(link, answer, position._replace(changed=changed))
        finally:
            if not is_kept:
                await self._pool.end(link)
        # At most one in `POOL_DIVISOR` connections is used for a kept transaction.
        if self._cursors.count(lambda _: True) > max(self._pool.size // POOL_DIVISOR, 1):
            await self.release_oldest()
        return rows

    async def _resume(
        self, cursor: str, position: Position, limits: AnswerLimits, deadline: Deadline
    ) -> QueryRows | None:
        """Return the next rows from the kept transaction; None if it was released."""
        transaction = self._cursors.take(cursor)
        if transaction is None:
            return None
        is_kept = False
        try:
            answer = await resume(transaction.link, transaction.answer, transaction.rest, limits, deadline)
            rows, is_kept = self._store(transaction.link, answer, position)
        except SqlError:
            if not transaction.link.is_broken:
                raise
            return None
        finally:
            if not is_kept:
                await self._pool.end(transaction.link)
        return rows

    def _store(self, link: Link, answer: Answer, position: Position) -> tuple[QueryRows, bool]:
        """Return the rows of a result, with a cursor if there are more, and True if the transaction is kept for the
        cursor."""
        names, declared = answer.columns.names, answer.columns.declared
        rows = QueryRows(names, declared, answer.page, False, None, position.changed, answer.duration)
        if answer.rest is None:
            return rows, False
        offset, state = position.offset + len(answer.page.rows), fingerprint(answer.snapshot)
        transaction = (
            _OpenTransaction(link, answer._replace(page=NO_ROWS, rest=None), answer.rest)
            if answer.rest.can_resume
            else None
        )
        cursor = self._cursors.make_cursor(Position(position.request, offset, state, position.changed), transaction)
        return rows._replace(has_more=True, cursor=cursor), answer.rest.can_resume
