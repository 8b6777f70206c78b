"""One call's time with the connection that changes a database, in one transaction, and the user's consent to it.

The transaction ends with the call: what is not committed by `Session.commit` is rolled back, whether the work failed,
was stopped, or nobody waits for it any more. Meanwhile the write lock is held, so no human is waited for in here.

Where a user is asked before changes are made, they are made and rolled back first, which gives the figures to ask
with; nothing is locked while a human thinks. With the user's consent they are made again, and committed only where
the figures are still the same.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from servers.sqlite.engine.database import Committed, Database, ignore_commit
from servers.sqlite.engine.limits import Job, StatementDeadline, retry_locked
from servers.sqlite.engine.opening import GuardedConnection
from servers.sqlite.engine.sql import quote
from servers.sqlite.errors import SqliteError
from servers.sqlite.texts import format_names

T = TypeVar("T")


class Figures(NamedTuple):
    """How much changes."""

    rows: int
    """In all: also by triggers and foreign keys, and within virtual tables."""
    affected: tuple[int, ...]
    """By the words of each statement."""
    tables: tuple[str, ...]
    defined: bool
    """Whether the schema changes."""

    def __str__(self) -> str:
        parts = ["the schema changes"] if self.defined else []
        if self.rows or not parts:
            where = f" ({format_names(self.tables)})" if self.tables else ""
            parts.append(f"{self.rows:,} {'row changes' if self.rows == 1 else 'rows change'}{where}")
        return " and ".join(parts)


class Consent(NamedTuple):
    """How much may change without asking, and what the user has agreed to."""

    rows: int | None = None
    """Rows that may change; None where nobody needs to be asked, whatever changes."""
    agreed: Figures | None = None

    def covers(self, figures: Figures) -> bool:
        """Whether these changes may be made. Raises SqliteError `changed` where the user has agreed to others."""
        if self.rows is None or (figures.rows <= self.rows and not figures.defined) or figures == self.agreed:
            return True
        if self.agreed is None:
            return False
        reason = "the database was changed since the user was asked"
        quoted = (f"asked: {self.agreed}", f"now: {figures}")
        raise SqliteError("changed", reason, "Call again to have the user asked again.", quoted)


class Session:
    """The connection, for statements of clients, which its policy judges, and for our own, which it does not."""

    def __init__(self, connection: GuardedConnection, deadline: StatementDeadline, committed: Committed) -> None:
        self.connection = connection
        self.policy = connection.policy
        self.deadline = deadline
        self._committed = committed

    def execute_own(self, sql: str, parameters: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Runs a statement of our own, which no client has a word in."""
        with self.policy.lifted():
            return self.connection.execute(sql, parameters)

    def kinds(self) -> dict[str, str]:
        """What each name of the database's schema is: "table", "virtual", "view", or "shadow" for the inner tables of
        a virtual one."""
        # As a function in a query, a pragma is hidden by a table of its name.
        return {row[1]: row[2] for row in self.execute_own("PRAGMA main.table_list")}

    def columns(self, table: str) -> list[tuple[str, str, int]]:
        """The columns of a table: name, declared type, and 0 where a value can be given, 1 where it is hidden, more
        where it is generated. None where there is no such table."""
        return [(row[1], row[2], row[6]) for row in self.execute_own(f"PRAGMA main.table_xinfo({quote(table)})")]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Holds the write lock within the block; what is not committed then is rolled back."""
        retry_locked(self.deadline, partial(self.execute_own, "BEGIN IMMEDIATE"))
        try:
            yield
        finally:
            # Some errors have SQLite roll back by itself: a full disk, ON CONFLICT ROLLBACK.
            if self.connection.in_transaction:
                self.execute_own("ROLLBACK")

    def commit(self, figures: Figures) -> None:
        """Makes the changes last, and has them told. Nothing may fail after it."""
        retry_locked(self.deadline, self._commit)
        self._committed(self.policy.changed.union(figures.tables), figures.defined)

    def _commit(self) -> None:
        with self.deadline.committing():
            self.execute_own("COMMIT")


async def write(database: Database, work: Callable[[Session], T], job: Job | None = None) -> T:
    """Does `work` with the connection that changes `database`. Raises SqliteError, which says where it happened.

    What can't be interrupted is done by another process. Its commits are noticed like those of any other.
    """
    here, elsewhere = (
        partial(_run_in_session, work, database.on_committed),
        partial(_run_in_session, work, ignore_commit),
    )
    async with database.writer() as writer:
        return await writer.run(here, elsewhere, job)


def _run_in_session(
    work: Callable[[Session], T], committed: Committed, connection: GuardedConnection, deadline: StatementDeadline
) -> T:
    return work(Session(connection, deadline, committed))
