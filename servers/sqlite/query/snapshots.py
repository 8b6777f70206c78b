"""Queries that an answer could not hold whole, so that the next call goes on with the very same rows.

In WAL mode the statement is kept where it stopped, with the state of the database that it sees, for `KEPT` seconds:
it hinders no writer. Otherwise, and after that time, the query is run again and what was given already is skipped;
whether the database was changed meanwhile is what SQLite's `data_version` says on the same connection.
"""

import os
import sqlite3
from collections import OrderedDict
from functools import partial
from typing import NamedTuple

import anyio

from servers.common.sql.jobs import Job
from servers.common.sql.query.cursors import KEPT, KEPT_SHARE, Cursors, Position, fingerprint
from servers.common.sql.query.pages import NO_ROWS, AnswerLimits
from servers.common.sql.query.query import Query
from servers.sqlite.engine.connection import Connection, Work
from servers.sqlite.engine.database import Database
from servers.sqlite.engine.deadline import StatementDeadline
from servers.sqlite.query.query import Answer, Remainder, resume, run_query

_MOST_CONNECTIONS = 1_000
"""Cursors of which is known which connection gave them."""


class Found(NamedTuple):
    """Rows of a query, and where it goes on."""

    answer: Answer
    cursor: str | None
    """None after the last rows."""
    changed: bool
    """Whether the database was changed between these rows and those before, so that some may be missing or double."""


class _KeptStatement(NamedTuple):
    """A statement that waits for its next call."""

    database: Database
    connection: Connection
    answer: Answer
    """The last one, without its rows."""
    rest: Remainder


class Snapshots:
    """The queries that can go on. `run` must run meanwhile."""

    def __init__(self, kept_seconds: float = KEPT) -> None:
        self._cursors: Cursors[_KeptStatement] = Cursors(_let_go, kept_seconds)
        self._connections: OrderedDict[str, Connection] = OrderedDict()
        """Which one gave a cursor: it alone can tell that the database was not changed since."""
        self._process = os.urandom(8)
        self.run = self._cursors.run

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

        Raises SqlError, `bad_cursor` where it is none of this query and this client.
        """
        asked = fingerprint(who, database.name, query)
        if cursor is None:
            connection = await database.readers.take()
            return await self._read(database, connection, partial(run_query, query, limits), asked, None, job)
        position = self._cursors.find(cursor, asked)
        kept = self._cursors.take(cursor)
        if kept is not None:
            work = partial(resume, kept.answer, kept.rest, limits)
            return await self._read(database, kept.connection, work, asked, position, job)
        connection = await database.readers.take(self._connections.get(cursor))
        work = partial(run_query, query._replace(offset=position.offset), limits)
        return await self._read(database, connection, work, asked, position, job)

    async def press(self, database: Database) -> None:
        """Lets go of the oldest statement that is kept in `database`, for a query that has no connection."""
        await self._cursors.press(lambda kept: kept.database is database)

    async def _read(
        self,
        database: Database,
        connection: Connection,
        work: Work[Answer],
        asked: bytes,
        position: Position | None,
        job: Job | None,
    ) -> Found:
        keeps = False
        try:
            answer = await connection.run(work, job=job)
            state = fingerprint(self._process, connection.opening, answer.data_version)
            changed = position is not None and (position.changed or position.state != state)
            if not answer.more:
                return Found(answer, None, changed)
            offset = len(answer.page.rows) + (0 if position is None else position.offset)
            told = answer._replace(page=NO_ROWS, rest=None)
            kept = None if answer.rest is None else _KeptStatement(database, connection, told, answer.rest)
            cursor = self._cursors.place(Position(asked, offset, state, changed), kept)
            self._connections[cursor] = connection
            if len(self._connections) > _MOST_CONNECTIONS:
                self._connections.popitem(last=False)
            keeps = kept is not None
        finally:
            if not keeps:
                database.readers.give(connection)
        # No more than a share of the readers is kept from other queries.
        if self._cursors.count(lambda one: one.database is database) > max(database.readers.size // KEPT_SHARE, 1):
            await self.press(database)
        return Found(answer, cursor, changed)


async def _let_go(kept: _KeptStatement) -> None:
    # A connection that has a statement is not closed when it is closed.
    with anyio.CancelScope(shield=True):
        try:
            await kept.connection.run(partial(_close, kept.rest))
        finally:
            kept.database.readers.give(kept.connection)


def _close(rest: Remainder, _: sqlite3.Connection, __: StatementDeadline) -> None:
    rest.cursor.close()
