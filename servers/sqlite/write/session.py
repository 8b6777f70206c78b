"""The transaction of one call on the connection that changes a database.

The transaction ends with the call: everything not committed by `Session.commit` is rolled back, whether the work
failed, was stopped, or was cancelled. The write lock is held during the transaction, so no code here waits for a
user.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from servers.common.sql.jobs import Job
from servers.common.sql.query.query import Parameters
from servers.common.sql.write.consent import Figures
from servers.sqlite.engine.database import CommitCallback, Database, ignore_commit
from servers.sqlite.engine.deadline import StatementDeadline, retry_locked
from servers.sqlite.engine.opening import GuardedConnection
from servers.sqlite.engine.sql import quote

T = TypeVar("T")


class Session:
    """The connection. It runs clients' statements, which its policy checks, and the server's own, which the policy
    does not check."""

    def __init__(self, connection: GuardedConnection, deadline: StatementDeadline, committed: CommitCallback) -> None:
        self.connection = connection
        self.policy = connection.policy
        self.deadline = deadline
        self._committed = committed

    def execute_own(self, sql: str, parameters: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Run one of the server's own statements, which clients can't influence."""
        with self.policy.lift():
            return self.connection.execute(sql, parameters)

    def list_kinds(self) -> dict[str, str]:
        """Return the kind of each name in the schema: "table", "virtual", "view", or "shadow" for a virtual table's
        internal tables."""
        # A table with that name would hide the pragma if it were used as a function in a query.
        return {row[1]: row[2] for row in self.execute_own("PRAGMA main.table_list")}

    def columns(self, table: str) -> list[tuple[str, str, int]]:
        """Return the columns of a table: name, declared type, and a number.

        The number is 0 if a value can be given, 1 if the column is hidden, more if it is generated. Empty if the
        table does not exist.
        """
        rows = self.execute_own(f"PRAGMA main.table_xinfo({quote(table)})")
        hidden = self.policy.hidden
        return [(row[1], row[2], row[6]) for row in rows if hidden is None or hidden.is_shown(table, [row[1]])]

    def find_changed(self, sql: str, parameters: Parameters) -> list[str]:
        """Return the tables whose rows the statement may change, as reported when SQLite compiles it; empty for a
        definition."""
        self.policy.reset()
        try:
            self.connection.execute(f"EXPLAIN {sql}", parameters).close()
        except (sqlite3.Error, sqlite3.Warning):
            return []  # The error is reported when it is run.
        return [] if self.policy.changes_schema else sorted(self.policy.changed)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the write lock during the block. At its end, roll back everything that is not committed."""
        retry_locked(self.deadline, partial(self.execute_own, "BEGIN IMMEDIATE"))
        try:
            yield
        finally:
            # After some errors SQLite itself rolls back: a full disk, ON CONFLICT ROLLBACK.
            if self.connection.in_transaction:
                self.execute_own("ROLLBACK")

    def commit(self, figures: Figures) -> None:
        """Commit the changes, and report them to watchers. Nothing may fail after it."""
        retry_locked(self.deadline, self._commit)
        self._committed(self.policy.changed.union(figures.tables), figures.schema_changed)

    def _commit(self) -> None:
        with self.deadline.mark_committing():
            self.execute_own("COMMIT")


async def write(database: Database, work: Callable[[Session], T], job: Job | None = None) -> T:
    """Do `work` on the connection that changes `database`. Raises SqlError with the position.

    Work that can't be interrupted is done by another process, whose commits are detected like the commits of any
    other process.
    """
    here, elsewhere = (
        partial(_run_in_session, work, database.on_committed),
        partial(_run_in_session, work, ignore_commit),
    )
    async with database.writer() as writer:
        return await writer.run(here, elsewhere, job)


def _run_in_session(
    work: Callable[[Session], T],
    committed: CommitCallback,
    connection: GuardedConnection,
    deadline: StatementDeadline,
) -> T:
    return work(Session(connection, deadline, committed))
