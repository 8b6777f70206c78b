"""Runs the transaction of one call on the connection that changes a database.

The transaction ends with the call: unless `Session.commit` commits it, everything is rolled back. Changed rows are
locked during the transaction, so nothing may wait for a user within it.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

import anyio

from servers.common.sql.errors import SqlError
from servers.common.sql.write.consent import Figures

from ..catalog import Types
from ..commits import Commit, CommitCallback
from ..engine.deadline import Deadline
from ..engine.link import Ask, Link
from ..errors import PostgresError
from .allowed import NO_MORE_DDL, AllowedDdl

_FLUSH_VERSION = 150_000
"""The first version of PostgreSQL with `pg_stat_force_next_flush`. It makes the counts of changed rows visible to
other sessions at once, so that programs that watch them need not wait."""

_SESSION_STATE = """
    SELECT (
        SELECT pg_catalog.string_agg(name || '=' || setting, ',' ORDER BY name)
        FROM pg_catalog.pg_settings WHERE source = 'session'
    ), session_user, current_user, (SELECT count(*) FROM pg_catalog.pg_prepared_statements),
    (SELECT count(*) FROM pg_catalog.pg_cursors WHERE is_holdable)"""
"""Selects everything that a transaction could leave behind in its session, for example by calling a function."""


class SessionParts(NamedTuple):
    """The connections and rules of a session."""

    link: Link
    """The writing connection."""
    lend_reader: Callable[[], AbstractAsyncContextManager[Link]]
    """Lends another connection for the time of a block. It sees the committed state."""
    on_committed: CommitCallback
    allowed: AllowedDdl = NO_MORE_DDL
    """What the operator lets clients manage in addition to tables."""


class Session:
    """The writing connection during one call. It runs the statements of the client, and queries of this program."""

    def __init__(self, parts: SessionParts, deadline: Deadline) -> None:
        self.link = parts.link
        self.lend_reader = parts.lend_reader
        self.allowed = parts.allowed
        self.deadline = deadline
        self.types = Types()
        """A cache for this call only, because the transaction may create types and then be rolled back."""
        self.ask: Ask = partial(self.link.ask, deadline=deadline)
        self._on_committed = parts.on_committed
        self._state_before: list[tuple[Any, ...]] = []

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Open a transaction. What was not committed within the block is rolled back at its end."""
        async with self.link.transaction(self.deadline, "READ WRITE"):
            self._state_before = await self.ask(_SESSION_STATE) if self.link.is_shared else []
            yield

    async def commit(self, figures: Figures) -> None:
        """Commit the changes, and report them to watchers. Nothing after this may fail, since the call has succeeded.

        Raises SqlError with code `refused` if the transaction would leave something behind in a pooled session.
        """
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
