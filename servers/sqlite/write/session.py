"""Runs the transaction of one call on the connection that changes a database.

The transaction ends with the call: unless `Session.commit` commits it, everything is rolled back. It holds the write
lock, so nothing may wait for a user within it.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from servers.common.sql.jobs import Job
from servers.common.sql.query.query import Parameters
from servers.common.sql.write.consent import Figures

from ..engine.database import CommitCallback, Database, ignore_commit
from ..engine.deadline import StatementDeadline, retry_locked
from ..engine.opening import GuardedConnection
from ..engine.sql import quote

T = TypeVar("T")


class Session:
    """The writing connection during one call. It runs statements of the client, which its policy checks, and this
    program's own statements, which the policy does not check."""

    def __init__(
        self, connection: GuardedConnection, deadline: StatementDeadline, on_committed: CommitCallback
    ) -> None:
        self.connection = connection
        self.policy = connection.policy
        self.deadline = deadline
        self._on_committed = on_committed

    def execute_unchecked(self, sql: str, parameters: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Run one of this program's own statements. They must not contain text from clients."""
        with self.policy.lift():
            return self.connection.execute(sql, parameters)

    def list_kinds(self) -> dict[str, str]:
        """Return the kind of each table and view, by name: "table", "virtual", "view", or "shadow" for an internal
        table of a virtual one."""
        # A table of the database could hide the function pragma_table_list, but not the pragma.
        return {row[1]: row[2] for row in self.execute_unchecked("PRAGMA main.table_list")}

    def columns(self, table: str) -> list[tuple[str, str, int]]:
        """Return the name, the declared type and the kind of each visible column; empty if there is no such table.

        The kind is 0 if statements can give the column a value, 1 if it is an argument of a virtual table, and more
        if it is generated.
        """
        rows = self.execute_unchecked(f"PRAGMA main.table_xinfo({quote(table)})")
        hidden = self.policy.hidden
        return [(row[1], row[2], row[6]) for row in rows if hidden is None or hidden.is_visible(table, [row[1]])]

    def find_changed(self, sql: str, parameters: Parameters) -> list[str]:
        """Return the tables whose rows the statement may change, as SQLite reports when it compiles the statement.
        The list is empty if the statement changes the schema or can't be compiled."""
        self.policy.reset()
        try:
            self.connection.execute(f"EXPLAIN {sql}", parameters).close()
        except (sqlite3.Error, sqlite3.Warning):
            return []  # The caller reports the error when it runs the statement.
        return [] if self.policy.changes_schema else sorted(self.policy.changed)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a transaction with the write lock. What was not committed within the block is rolled back at its
        end."""
        retry_locked(self.deadline, partial(self.execute_unchecked, "BEGIN IMMEDIATE"))
        try:
            yield
        finally:
            # SQLite itself rolls back after some errors, such as a full disk, or a conflict with ON CONFLICT
            # ROLLBACK.
            if self.connection.in_transaction:
                self.execute_unchecked("ROLLBACK")

    def commit(self, figures: Figures) -> None:
        """Commit the changes, and report them to watchers. Nothing after this may fail, since the call has
        succeeded."""
        retry_locked(self.deadline, self._commit)
        self._on_committed(self.policy.changed.union(figures.tables), figures.schema_changed)

    def _commit(self) -> None:
        with self.deadline.mark_committing():
            self.execute_unchecked("COMMIT")


async def write(database: Database, work: Callable[[Session], T], job: Job | None = None) -> T:
    """Do `work` on the connection that changes `database`, and return the result. Raises SqlError, with the number of
    the statement or row.

    Another process does work that can't be interrupted. Its commits are not reported to watchers, because they detect
    them like those of any other process.
    """
    in_thread, in_process = (
        partial(_run_in_session, work, database.on_committed),
        partial(_run_in_session, work, ignore_commit),
    )
    async with database.writer() as writer:
        return await writer.run(in_thread, in_process, job)


def _run_in_session(
    work: Callable[[Session], T],
    on_committed: CommitCallback,
    connection: GuardedConnection,
    deadline: StatementDeadline,
) -> T:
    return work(Session(connection, deadline, on_committed))
