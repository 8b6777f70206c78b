"""The transaction of one call on the connection that changes a database.

The transaction ends with the call: unless `Session.commit` commits it, everything is rolled back, whether the work
failed, was stopped, or was cancelled. Rows are locked during the transaction, so no code here waits for a user.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

import anyio

from servers.common.sql.errors import SqlError
from servers.common.sql.write.consent import Figures
from servers.postgres.catalog import Types
from servers.postgres.commits import Commit, CommitCallback
from servers.postgres.engine.deadline import Deadline
from servers.postgres.engine.link import Ask, Link
from servers.postgres.errors import PostgresError
from servers.postgres.write.allowed import NO_MORE_DDL, AllowedDdl

_FLUSH_VERSION = 150_000
"""The first version of PostgreSQL that can publish the counts of a transaction's changes at once, for other sessions
that watch them."""

_SESSION_STATE = """
    SELECT (
        SELECT pg_catalog.string_agg(name || '=' || setting, ',' ORDER BY name)
        FROM pg_catalog.pg_settings WHERE source = 'session'
    ), session_user, current_user, (SELECT count(*) FROM pg_catalog.pg_prepared_statements),
    (SELECT count(*) FROM pg_catalog.pg_cursors WHERE is_holdable)"""
"""Selects everything that a transaction could leave behind in its session, since a function may change it."""


class SessionParts(NamedTuple):
    """The connections and rules of a session."""

    link: Link
    """The writing connection."""
    lend_reader: Callable[[], AbstractAsyncContextManager[Link]]
    """Lends another connection, which sees the committed state, for the time of a block."""
    on_committed: CommitCallback
    allowed: AllowedDdl = NO_MORE_DDL
    """What the operator lets clients manage in addition to tables."""


class Session:
    """A connection for a client's statements, and for the server's own queries during them."""

    def __init__(self, parts: SessionParts, deadline: Deadline) -> None:
        self.link = parts.link
        self.lend_reader = parts.lend_reader
        self.allowed = parts.allowed
        self.deadline = deadline
        self.types = Types()
        """A separate cache, since types that the transaction creates must not be cached for other calls."""
        self.ask: Ask = partial(self.link.ask, deadline=deadline)
        self._on_committed = parts.on_committed
        self._state_before: list[tuple[Any, ...]] = []

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Open a transaction. Everything not committed within the block is rolled back at its end."""
        async with self.link.transaction(self.deadline, "READ WRITE"):
            self._state_before = await self.ask(_SESSION_STATE) if self.link.is_shared else []
            yield

    async def commit(self, figures: Figures) -> None:
        """Commit the changes, and report them to watchers. Nothing may fail after it."""
        if self.link.version >= _FLUSH_VERSION:
            await self.ask("SELECT pg_catalog.pg_stat_force_next_flush()")
        if self.link.is_shared and await self.ask(_SESSION_STATE) != self._state_before:
            reason = (
                "it would leave a setting, a role, a cursor or a prepared statement to other clients of the pooler"
            )
            raise SqlError("refused", reason, "A function can have settings of its own: CREATE FUNCTION ... SET.")
        # From here on, the call can no longer be cancelled.
        with anyio.CancelScope(shield=True):
            try:
                await self.link.commit(self.deadline)
            except PostgresError as error:
                if error.state:
                    raise
                reason = "the connection broke while committing the changes, so they may or may not have been made"
                raise SqlError("unavailable", reason, "Check whether they were made.") from None
        self._on_committed(Commit(frozenset(figures.tables), figures.schema_changed, self.link.backend))
