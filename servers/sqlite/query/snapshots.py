"""Continues queries whose rows did not fit into one result, so that the next call gets the following rows.

In WAL mode the unfinished statement is kept for `SOURCE_SECONDS` seconds. It still sees the state of the database at
its beginning, and does not block writers. In other modes, or after that time, the query is run again, and the rows of
earlier results are skipped. SQLite's `data_version`, read on the same connection as before, then shows whether the
database was changed between the results.
"""

import os
import sqlite3
from collections import OrderedDict
from functools import partial
from typing import NamedTuple

import anyio

from servers.common.sql.jobs import Job
from servers.common.sql.query.cursors import POOL_DIVISOR, SOURCE_SECONDS, Cursors, Position, fingerprint
from servers.common.sql.query.pages import NO_ROWS, AnswerLimits
from servers.common.sql.query.query import Query

from ..engine.connection import Connection, Work
from ..engine.database import Database
from ..engine.deadline import StatementDeadline
from .query import Answer, Remainder, resume, run_query

_MAX_CONNECTIONS = 1_000
"""Maximum number of cursors for which the connection is remembered."""


class RowsAndCursor(NamedTuple):
    """Rows of a query, and the cursor for the rows after them."""

    answer: Answer
    cursor: str | None
    """The cursor; None after the last rows."""
    changed: bool
    """True if the database was changed between these rows and the previous ones: some may be missing or repeated."""


class _OpenStatement(NamedTuple):
    """An unfinished statement that is kept for the next call."""

    database: Database
    connection: Connection
    answer: Answer
    """The answer of the last call, without its rows."""
    rest: Remainder


class Snapshots:
    """Runs queries, and keeps what is needed to continue them. The method `run` must run in a task."""

    def __init__(self, kept_seconds: float = SOURCE_SECONDS) -> None:
        self._cursors: Cursors[_OpenStatement] = Cursors(_release, kept_seconds)
        self._connections: OrderedDict[str, Connection] = OrderedDict()
        """For each cursor, the connection that returned the rows before it. Only this connection can detect whether
        the database was changed after those rows."""
        self._salt = os.urandom(8)
        self.run = self._cursors.run

    async def read(
        self,
        database: Database,
        query: Query,
        limits: AnswerLimits,
        owner: str | None,
        cursor: str | None,
        job: Job | None = None,
    ) -> RowsAndCursor:
        """Return the first rows of `query`, or the rows after those that came with `cursor`.

        Raises SqlError, with code `bad_cursor` if the cursor belongs to another query or client.
        """
        request_fingerprint = fingerprint(owner, database.name, query)
        if cursor is None:
            connection = await database.readers.take()
            return await self._read(
                database, connection, partial(run_query, query, limits), request_fingerprint, None, job
            )
        position = self._cursors.find(cursor, request_fingerprint)
        statement = self._cursors.take(cursor)
        if statement is not None:
            work = partial(resume, statement.answer, statement.rest, limits)
            return await self._read(database, statement.connection, work, request_fingerprint, position, job)
        connection = await database.readers.take(self._connections.get(cursor))
        work = partial(run_query, query._replace(offset=position.offset), limits)
        return await self._read(database, connection, work, request_fingerprint, position, job)

    async def release_oldest(self, database: Database) -> None:
        """Release the oldest kept statement of `database`, so that its connection is free."""
        await self._cursors.release_oldest(lambda statement: statement.database is database)

    async def _read(
        self,
        database: Database,
        connection: Connection,
        work: Work[Answer],
        request_fingerprint: bytes,
        position: Position | None,
        job: Job | None,
    ) -> RowsAndCursor:
        is_kept = False
        try:
            answer = await connection.run(work, job=job)
            state = fingerprint(self._salt, connection.opening_number, answer.data_version)
            changed = position is not None and (position.changed or position.state != state)
            if not answer.has_more:
                return RowsAndCursor(answer, None, changed)
            offset = len(answer.page.rows) + (0 if position is None else position.offset)
            without_rows = answer._replace(page=NO_ROWS, rest=None)
            statement = (
                None if answer.rest is None else _OpenStatement(database, connection, without_rows, answer.rest)
            )
            cursor = self._cursors.make_cursor(Position(request_fingerprint, offset, state, changed), statement)
            self._connections[cursor] = connection
            if len(self._connections) > _MAX_CONNECTIONS:
                self._connections.popitem(last=False)
            is_kept = statement is not None
        finally:
            if not is_kept:
                database.readers.give(connection)
        # Kept statements may occupy only a part of the readers.
        if self._cursors.count(lambda other: other.database is database) > max(
            database.readers.size // POOL_DIVISOR, 1
        ):
            await self.release_oldest(database)
        return RowsAndCursor(answer, cursor, changed)


async def _release(statement: _OpenStatement) -> None:
    # Shield this from cancellation, since the connection can't be returned with an unfinished statement.
    with anyio.CancelScope(shield=True):
        try:
            await statement.connection.run(partial(_close, statement.rest))
        finally:
            statement.database.readers.give(statement.connection)


def _close(rest: Remainder, _: sqlite3.Connection, __: StatementDeadline) -> None:
    rest.cursor.close()
