"""Queries that an answer could not hold whole, so that the next call goes on with the very same rows.

The transaction is kept where it stopped, with the state of the database that it sees, for `KEPT` seconds. Meanwhile
it holds back VACUUM, lets nobody alter the tables that it reads, and takes a connection. So at most half of these are
kept, and the oldest one goes when another query has none. After that the query is run again, and what was given
already is passed over.

Whether the database was changed in between is told by PostgreSQL's snapshots: where both are the same, no transaction
that writes has ended in between, so the rows are the same but for an order that the query leaves open. Where they are
not, some transaction has, of whatever table or database of the server: nobody can say more without reading the rows.
"""

from typing import NamedTuple

from servers.common.sql.errors import SqlError
from servers.common.sql.jobs import Job
from servers.common.sql.query.cursors import KEPT, KEPT_SHARE, Cursors, Position, fingerprint
from servers.common.sql.query.pages import NO_ROWS, AnswerLimits
from servers.common.sql.query.query import Found, Query
from servers.postgres.engine.deadline import Deadline
from servers.postgres.engine.link import Link
from servers.postgres.engine.pool import Pool
from servers.postgres.query.columns import ColumnTypes
from servers.postgres.query.reading import MODE, Answer, Remainder, resume, run_query


class _Kept(NamedTuple):
    """A transaction that waits for its next call."""

    link: Link
    answer: Answer
    """The last one, without its rows."""
    rest: Remainder


class Snapshots:
    """The queries of one database that can go on. `run` must run meanwhile."""

    def __init__(self, pool: Pool, columns: ColumnTypes, seconds: float, kept_seconds: float = KEPT) -> None:
        """`seconds` are what a query may take that is no job."""
        self._pool = pool
        self._columns = columns
        self._seconds = seconds
        self._cursors: Cursors[_Kept] = Cursors(lambda kept: pool.end(kept.link), kept_seconds)
        self.run = self._cursors.run
        pool.on_exhausted = self.press

    async def read(
        self, query: Query, limits: AnswerLimits, who: str | None, cursor: str | None, job: Job | None = None
    ) -> Found:
        """The first rows of `query`, or with a `cursor` those after the rows that came with it.

        Raises SqlError, `bad_cursor` where it is none of this query and this client.
        """
        asked = fingerprint(who, query)
        deadline = Deadline(self._seconds, job)
        if cursor is None:
            return await self._run(query, limits, deadline, Position(asked, 0, b"", False))
        position = self._cursors.find(cursor, asked)
        found = await self._go_on(cursor, position, limits, deadline)
        if found is not None:
            return found
        return await self._run(query._replace(offset=position.offset), limits, deadline, position)

    async def release(self) -> None:
        """Lets go of all transactions that are kept, for who needs a table that they have read for itself."""
        while await self._cursors.press(lambda _: True):
            """The oldest one has gone."""

    async def press(self) -> None:
        """Lets go of the transaction that is kept longest, for a query that has no connection."""
        await self._cursors.press(lambda _: True)

    async def _run(self, query: Query, limits: AnswerLimits, deadline: Deadline, position: Position) -> Found:
        link = await self._pool.begin(deadline, MODE)
        keeps = False
        try:
            answer = await run_query(link, query, limits, self._columns, deadline)
            changed = position.changed or (query.offset > 0 and position.state != fingerprint(answer.snapshot))
            found, keeps = self._place(link, answer, position._replace(changed=changed))
        finally:
            if not keeps:
                await self._pool.end(link)
        # No more than a share of the connections is kept from other queries.
        if self._cursors.count(lambda _: True) > max(self._pool.size // KEPT_SHARE, 1):
            await self.press()
        return found

    async def _go_on(self, cursor: str, position: Position, limits: AnswerLimits, deadline: Deadline) -> Found | None:
        """The next rows from the transaction that was kept; None where there is none any more."""
        kept = self._cursors.take(cursor)
        if kept is None:
            return None
        keeps = False
        try:
            answer = await resume(kept.link, kept.answer, kept.rest, limits, deadline)
            found, keeps = self._place(kept.link, answer, position)
        except SqlError:
            if not kept.link.is_broken:
                raise
            return None
        finally:
            if not keeps:
                await self._pool.end(kept.link)
        return found

    def _place(self, link: Link, answer: Answer, position: Position) -> tuple[Found, bool]:
        """The rows of an answer with a cursor for those after them, and whether the transaction is kept for it."""
        names, declared = answer.columns.names, answer.columns.declared
        found = Found(names, declared, answer.page, False, None, position.changed, answer.seconds)
        if answer.rest is None:
            return found, False
        offset, state = position.offset + len(answer.page.rows), fingerprint(answer.snapshot)
        kept = _Kept(link, answer._replace(page=NO_ROWS, rest=None), answer.rest) if answer.rest.is_kept else None
        cursor = self._cursors.place(Position(position.asked, offset, state, position.changed), kept)
        return found._replace(more=True, cursor=cursor), answer.rest.is_kept
