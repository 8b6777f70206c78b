"""Queries that an answer could not hold whole, so that the next call goes on with the very same rows.

The transaction is kept where it stopped, with the state of the database that it sees, for `_KEPT` seconds. Meanwhile
it holds back VACUUM, lets nobody alter the tables that it reads, and takes a connection. So at most half of these are
kept, and the oldest one goes when another query has none. After that the query is run again, and what was given
already is passed over.

Whether the database was changed in between is told by PostgreSQL's snapshots: where both are the same, no transaction
that writes has ended in between, so the rows are the same but for an order that the query leaves open. Where they are
not, some transaction has, of whatever table or database of the server: nobody can say more without reading the rows.
"""

import hashlib
import time
from collections import OrderedDict
from typing import NamedTuple

import anyio

from servers.common.sql.errors import SqlError
from servers.common.sql.handles import HeldNames
from servers.common.sql.jobs import Job
from servers.common.sql.query.pages import AnswerLimits, Page
from servers.common.sql.query.query import Found, Query
from servers.postgres.engine.deadline import Deadline
from servers.postgres.engine.link import Link
from servers.postgres.engine.pool import Pool
from servers.postgres.query.columns import ColumnTypes, Described
from servers.postgres.query.reading import Answer, Remainder, resume, run_query

_KEPT = 30.0
"""Seconds."""
_MOST_POSITIONS = 1_000
_NOTHING = Page([], [])
_NOTHING_YET = Answer(Described((), (), ()), _NOTHING, None, "", 0)
_SHARE = 2
"""Of the connections that read one in so many is kept at most."""


class _Position(NamedTuple):
    """How far a query has come."""

    asked: bytes
    """A fingerprint of who asks what of which database."""
    offset: int
    answer: Answer
    changed: bool


class _Kept(NamedTuple):
    """A transaction that waits for its next call."""

    link: Link
    rest: Remainder
    until: float


class Snapshots:
    """The queries of one database that can go on. `run` must run meanwhile."""

    def __init__(self, pool: Pool, columns: ColumnTypes, seconds: float, kept_seconds: float = _KEPT) -> None:
        """`seconds` are what a query may take that is no job."""
        self._pool = pool
        self._columns = columns
        self._seconds = seconds
        self._kept_seconds = kept_seconds
        self._names = HeldNames()
        self._positions: OrderedDict[str, _Position] = OrderedDict()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._some = anyio.Event()
        pool.on_exhausted = self.press

    async def read(
        self, query: Query, limits: AnswerLimits, who: str | None, cursor: str | None, job: Job | None = None
    ) -> Found:
        """The first rows of `query`, or with a `cursor` those after the rows that came with it.

        Raises SqlError, `bad_cursor` where it is none of this query and this client, or too many came after it,
        `elsewhere` where another process gave it.
        """
        asked = hashlib.sha256(repr((who, query)).encode("utf-8", "replace")).digest()
        deadline = Deadline(self._seconds, job)
        if cursor is None:
            return await self._run(query, limits, deadline, _Position(asked, 0, _NOTHING_YET, False))
        position = self._positions.get(cursor)
        if position is None or position.asked != asked:
            self._names.check_here(cursor, "what comes after this cursor", "Run the query again without a cursor.")
            reason = "the cursor is not one that this query gave, or it is too old"
            raise SqlError("bad_cursor", reason, "Leave it out to begin at the first row.")
        found = await self._go_on(cursor, position, limits, deadline)
        if found is not None:
            return found
        return await self._run(query._replace(offset=position.offset), limits, deadline, position)

    async def run(self) -> None:
        """Lets transactions go whose time is over, until it is cancelled; then all others."""
        try:
            while True:
                await self._expire()
        finally:
            while self._kept:
                await self._let_go(self._kept.popitem()[1].link)

    async def release(self) -> None:
        """Lets go of all transactions that are kept, for who needs a table that they have read for itself."""
        while self._kept:
            await self.press()

    async def press(self) -> None:
        """Lets go of the transaction that is kept longest, for a query that has no connection."""
        if self._kept:
            await self._let_go(self._kept.popitem(last=False)[1].link)

    async def _expire(self) -> None:
        await self._some.wait()
        if not self._kept:
            self._some = anyio.Event()
            return
        # All are kept for the same time, so the first is over first.
        cursor, kept = next(iter(self._kept.items()))
        await anyio.sleep(max(kept.until - time.monotonic(), 0))
        if cursor in self._kept:
            await self._let_go(self._kept.pop(cursor).link)

    async def _run(self, query: Query, limits: AnswerLimits, deadline: Deadline, position: _Position) -> Found:
        link = await self._pool.take()
        keeps = False
        try:
            answer = await run_query(link, query, limits, self._columns, deadline)
            changed = position.changed or (query.offset > 0 and position.answer.snapshot != answer.snapshot)
            found, keeps = self._place(link, answer, position._replace(offset=query.offset, changed=changed))
        finally:
            if not keeps:
                await self._let_go(link)
        # No more than a share of the connections is kept from other queries.
        if len(self._kept) > max(self._pool.size // _SHARE, 1):
            await self.press()
        return found

    async def _go_on(
        self, cursor: str, position: _Position, limits: AnswerLimits, deadline: Deadline
    ) -> Found | None:
        """The next rows from the transaction that was kept; None where there is none any more."""
        kept = self._kept.pop(cursor, None)
        if kept is None:
            return None
        keeps = False
        try:
            answer = await resume(kept.link, position.answer, kept.rest, limits, deadline)
            found, keeps = self._place(kept.link, answer, position)
        except SqlError:
            if not kept.link.is_broken:
                raise
            return None
        finally:
            if not keeps:
                await self._let_go(kept.link)
        return found

    def _place(self, link: Link, answer: Answer, position: _Position) -> tuple[Found, bool]:
        """The rows of an answer with a cursor for those after them, and whether the transaction is kept for it."""
        names, declared = answer.columns.names, answer.columns.declared
        found = Found(names, declared, answer.page, False, None, position.changed, answer.seconds)
        if answer.rest is None:
            return found, False
        cursor = self._names.new()
        told = answer._replace(page=_NOTHING, rest=None)
        offset = position.offset + len(answer.page.rows)
        self._positions[cursor] = position._replace(offset=offset, answer=told)
        if len(self._positions) > _MOST_POSITIONS:
            self._positions.popitem(last=False)
        if answer.rest.is_kept:
            self._kept[cursor] = _Kept(link, answer.rest, time.monotonic() + self._kept_seconds)
            self._some.set()
        return found._replace(more=True, cursor=cursor), answer.rest.is_kept

    async def _let_go(self, link: Link) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await link.roll_back()
            finally:
                self._pool.give(link)
