"""One call's time with the connection that changes a database, in one transaction.

The transaction ends with the call: what is not committed by `Session.commit` is rolled back, whether the work failed,
was stopped, or nobody waits for it any more. Meanwhile the write lock is held, so no human is waited for in here.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from servers.sqlite.access.database import Committed, Database
from servers.sqlite.access.policy import Policy
from servers.sqlite.access.stopping import Stop, patiently
from servers.sqlite.describing.names import quoted
from servers.sqlite.errors import SqliteError
from servers.sqlite.writing.consent import Figures

__all__ = ["Session", "write"]

T = TypeVar("T")


class Session:
    """The connection, for statements of clients, which its policy judges, and for our own, which it does not."""

    def __init__(self, connection: sqlite3.Connection, policy: Policy, stop: Stop, committed: Committed) -> None:
        self.connection = connection
        self.policy = policy
        self.stop = stop
        self._committed = committed
        self.where = ""
        """Which of several statements or rows the work is at, for the words of an error."""

    def own(self, sql: str, parameters: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Runs a statement of our own, which no client has a word in."""
        with self.policy.lifted():
            return self.connection.execute(sql, parameters)

    def kinds(self) -> dict[str, str]:
        """What each name of the database's schema is: "table", "virtual", "view", or "shadow" for the inner tables of
        a virtual one."""
        # As a function in a query, a pragma is hidden by a table of its name.
        return {row[1]: row[2] for row in self.own("PRAGMA main.table_list")}

    def columns(self, table: str) -> list[tuple[str, str, int]]:
        """The columns of a table: name, declared type, and 0 where a value can be given, 1 where it is hidden, more
        where it is generated. None where there is no such table."""
        return [(row[1], row[2], row[6]) for row in self.own(f"PRAGMA main.table_xinfo({quoted(table)})")]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Holds the write lock within the block; what is not committed then is rolled back."""
        patiently(self.stop, partial(self.own, "BEGIN IMMEDIATE"))
        try:
            yield
        finally:
            # Some errors have SQLite roll back by itself: a full disk, ON CONFLICT ROLLBACK.
            if self.connection.in_transaction:
                self.own("ROLLBACK")

    def commit(self, figures: Figures) -> None:
        """Makes the changes last, and has them told. Nothing may fail after it."""
        patiently(self.stop, self._commit)
        self._committed(self.policy.changed.union(figures.tables), figures.defined)

    def _commit(self) -> None:
        with self.stop.committing():
            self.own("COMMIT")


async def write(database: Database, work: Callable[[Session], T]) -> T:
    """Does `work` with the connection that changes `database`. Raises SqliteError, which says where it happened."""
    sessions: list[Session] = []

    def begun(connection: sqlite3.Connection, stop: Stop) -> T:
        sessions.append(Session(connection, writer.policy, stop, database.committed))
        return work(sessions[0])

    async with database.writer() as writer:
        try:
            return await writer.run(begun)
        except SqliteError as error:
            if not sessions or not sessions[0].where:
                raise
            raise SqliteError(error.code, f"{sessions[0].where}: {error.reason}", error.suggestion) from None
