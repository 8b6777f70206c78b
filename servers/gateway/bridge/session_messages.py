"""Messages of a session outside calls: subscriptions, log levels, changes to lists and roots, and the description
of a bridge."""

from contextlib import suppress
from typing import Any

from shared.concurrency import TaskSet
from shared.errors import McpError
from shared.extensions.tasks.extension import TASK_SPANS
from shared.protocol.session.client_events import Notified
from shared.protocol.types.client import LogLevel
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.connection import Connection
from shared.server.dispatch.context import Context
from shared.server.running import Opening

from .base import Base
from .calls.own_sessions import OwnSession
from .description import UNKNOWN, capabilities_of
from .log_level import SharedLevel, send_level
from .notices import LISTS, RootsWatcher, forward
from .upstream import Upstream
from .watching.resources import Watching
from .watching.subscriptions import Subscriptions

ANSWER_SECONDS = 15.0
"""The time limit for requests of the bridge itself."""
_CONDITION = "bridge"


class SessionMessages:
    """The work of a bridge other than forwarding calls. It receives the events of clients' sessions."""

    def __init__(self, upstream: Upstream, base: Base, tasks: TaskSet, opening: Opening) -> None:
        self.watching = Watching(base, opening.changes, tasks, ANSWER_SECONDS)
        self.subscriptions = Subscriptions(self.watching, opening.changes, tasks, ANSWER_SECONDS)
        self._upstream = upstream
        self._base = base
        self._opening = opening
        self._known: set[Connection] = set()
        self.level = SharedLevel(base, tasks, ANSWER_SECONDS)
        """The log level of a session that all clients share."""
        self._describe()
        base.watch(self._on_connection_change)
        base.listen(self.watching.on_server_message)

    def greet(self, link: Connection) -> None:
        """Register a client after its handshake or at a call. If one session is shared, the server is notified of the
        client's changes."""
        if self._upstream.shared and link not in self._known:
            self._known.add(link)

            def forget() -> None:
                self._known.discard(link)
                self.level.forget(link)

            link.watchers = (*link.watchers, RootsWatcher(self._base, forget))

    async def set_level(self, context: Context[Any], session: OwnSession | None, level: str) -> None:
        """Set the log level for a client: for the bridge's own messages, and in its `session`, if it has one. Raises
        PeerError, ConnectionError and TimeoutError, and RpcError while the server is not available."""
        link = context.link
        link.session.set_log_level(level)
        # A client of several joined servers gets their conditions from the gateway.
        if link.calls is context.running.calls:
            for condition in context.running.conditions.active.values():
                link.session.log(context.call, condition.level, condition.data, condition.logger)
        if session is not None:
            session.level = level
            await send_level(await session.open(), level, ANSWER_SECONDS)
        elif self._upstream.shared and not self._base.stateless:
            await self.level.set_level(link, level)

    # Events of clients' sessions

    def on_session_notification(self, link: Connection, notice: Notified) -> None:
        """Forward a notification from the server to the client of `link`. Never waits or raises."""
        forward(link, notice)

    def on_update(self, session: OwnSession, notice: Notified | Gap) -> None:
        """Notify clients that a resource to which `session` has subscribed has changed, or, after a gap, may have
        changed. Never waits or raises."""
        self.subscriptions.on_update(session, notice)
        if isinstance(notice, Gap):
            for change in LISTS:
                session.link.on_change(change)

    async def on_reopen(self, session: OwnSession) -> None:
        """Restore the log level and the subscriptions in a session that was lost and opened again. Never raises."""
        client = session.client
        if client is not None:
            if session.level is not None:
                with suppress(McpError, OSError):
                    await send_level(client, session.level, ANSWER_SECONDS)
            await self.subscriptions.on_reopen(session, client)
            for change in LISTS:
                session.link.on_change(change)

    # The description of the bridge

    def _on_connection_change(self) -> None:
        conditions = self._opening.conditions
        if self._base.up:
            conditions.end(_CONDITION)
            self._describe()
        else:
            text = f"the server {self._upstream.name} is not available: {self._base.reason}"
            conditions.begin(_CONDITION, "warning", text)
        self.level.on_reconnected()
        self.watching.on_connection_change()

    def _describe(self) -> None:
        description = self._base.description
        if description is None:
            self._opening.describe(UNKNOWN, None)
            return
        capabilities = capabilities_of(description, stateless=self._base.stateless)
        # Until a client sets a level, it gets everything that its server sends. A stateless server sends nothing
        # until a level is set.
        level: LogLevel = "info" if self._base.stateless else "debug"
        self._opening.describe(
            capabilities, description.instructions, description.info, spans=TASK_SPANS, log_level=level
        )
