"""Queries that an answer could not hold whole, so that the next call goes on with the very same rows.

In WAL mode the statement is kept where it stopped, with the state of the database that it sees, for `_KEPT` seconds:
it hinders no writer. Otherwise, and after that time, the query is run again and what was given already is skipped;
whether the database was changed meanwhile is what SQLite's `data_version` says on the same connection.
"""

import hashlib
import sqlite3
import time
from collections import OrderedDict
from functools import partial
from typing import NamedTuple

import anyio

from servers.common.sql.errors import SqlError
from servers.common.sql.handles import HeldNames
from servers.common.sql.jobs import Job
from servers.common.sql.query.pages import AnswerLimits, Page
from servers.common.sql.query.query import Query
from servers.sqlite.engine.connection import Connection, Work
from servers.sqlite.engine.database import Database
from servers.sqlite.engine.deadline import StatementDeadline
from servers.sqlite.query.query import Answer, Remainder, resume, run_query

_KEPT = 30.0
"""Seconds."""
_MOST_STANDS = 1_000
_NOTHING = Page([], [])
_SHARE = 2
"""Of the readers of a database one in so many is kept at most."""


class Found(NamedTuple):
    """Rows of a query, and where it goes on."""

    answer: Answer
    cursor: str | None
    """None after the last rows."""
    changed: bool
    """Whether the database was changed between these rows and those before, so that some may be missing or double."""


class _Position(NamedTuple):
    """How far a query has come."""

    asked: bytes
    """A fingerprint of who asks what of which database."""
    offset: int
    answer: Answer
    connection: Connection
    opening: int
    changed: bool


class _KeptStatement(NamedTuple):
    """A statement that waits for its next call."""

    database: Database
    connection: Connection
    rest: Remainder
    until: float


class Snapshots:
    """The queries that can go on. `run` must run meanwhile."""

    def __init__(self, kept_seconds: float = _KEPT) -> None:
        self._kept_seconds = kept_seconds
        self._names = HeldNames()
        self._stands: OrderedDict[str, _Position] = OrderedDict()
        self._kept: OrderedDict[str, _KeptStatement] = OrderedDict()
        self._some = anyio.Event()

    async def read(
        self,
        database: Database,
        query: Query,
        limits: AnswerLimits,
        who: str | None,
        cursor: str | None,
        job: Job | None = None,
    ) -> Found:
        """The first rows of `query`, or with a `cursor` those after the rows that came with it.

        Raises SqlError, `bad_cursor` where it is none of this query and this client, or too many came after it,
        `elsewhere` where another process gave it.
        """
        asked = hashlib.sha256(repr((who, database.name, query)).encode("utf-8", "replace")).digest()
        if cursor is None:
            connection = await database.readers.take()
            return await self._read(database, connection, partial(run_query, query, limits), asked, None, job)
        stand = self._stands.get(cursor)
        if stand is None or stand.asked != asked:
            self._names.check_here(cursor, "what comes after this cursor", "Run the query again without a cursor.")
            reason = "the cursor is not one that this query gave, or it is too old"
            raise SqlError("bad_cursor", reason, "Leave it out to begin at the first row.")
        kept = self._kept.pop(cursor, None)
        if kept is not None:
            work = partial(resume, stand.answer, kept.rest, limits)
            return await self._read(database, kept.connection, work, asked, stand, job)
        connection = await database.readers.take(stand.connection)
        work = partial(run_query, query._replace(offset=stand.offset), limits)
        return await self._read(database, connection, work, asked, stand, job)

    async def run(self) -> None:
        """Lets statements go whose time is over, until it is cancelled; then all others."""
        try:
            while True:
                await self._expire()
        finally:
            # A connection that has a statement is not closed when it is closed.
            while self._kept:
                await self._let_go(self._kept.popitem()[1])

    async def _expire(self) -> None:
        await self._some.wait()
        if not self._kept:
            self._some = anyio.Event()
            return
        # All are kept for the same time, so the first is over first.
        cursor, kept = next(iter(self._kept.items()))
        await anyio.sleep(max(kept.until - time.monotonic(), 0))
        if cursor in self._kept:
            await self._let_go(self._kept.pop(cursor))

    async def press(self, database: Database) -> None:
        """Lets go of the oldest statement that is kept in `database`, for a query that has no connection."""
        for cursor, kept in self._kept.items():
            if kept.database is database:
                await self._let_go(self._kept.pop(cursor))
                return

    async def _read(
        self,
        database: Database,
        connection: Connection,
        work: Work[Answer],
        asked: bytes,
        stand: _Position | None,
        job: Job | None,
    ) -> Found:
        keeps = False
        try:
            answer = await connection.run(work, job=job)
            changed = stand is not None and (
                stand.changed
                or stand.opening != connection.opening
                or stand.answer.data_version != answer.data_version
            )
            if not answer.more:
                return Found(answer, None, changed)
            cursor = self._names.new()
            keeps = answer.rest is not None
            if answer.rest is not None:
                self._kept[cursor] = _KeptStatement(
                    database, connection, answer.rest, time.monotonic() + self._kept_seconds
                )
                self._some.set()
        finally:
            if not keeps:
                database.readers.give(connection)
        offset = len(answer.page.rows) + (0 if stand is None else stand.offset)
        told = answer._replace(page=_NOTHING, rest=None)
        self._stands[cursor] = _Position(asked, offset, told, connection, connection.opening, changed)
        if len(self._stands) > _MOST_STANDS:
            self._stands.popitem(last=False)
        # No more than a share of the readers is kept from other queries.
        if sum(kept.database is database for kept in self._kept.values()) > max(database.readers.size // _SHARE, 1):
            await self.press(database)
        return Found(answer, cursor, changed)

    async def _let_go(self, kept: _KeptStatement) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await kept.connection.run(partial(_close, kept.rest))
            finally:
                kept.database.readers.give(kept.connection)


def _close(rest: Remainder, _: sqlite3.Connection, __: StatementDeadline) -> None:
    rest.cursor.close()
