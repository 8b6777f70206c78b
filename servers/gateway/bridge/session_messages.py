"""Forwards everything outside calls: subscriptions, log levels, and changes to lists and roots. It also keeps the
description of the bridge up to date."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from shared.concurrency import TaskSet
from shared.errors import McpError
from shared.extensions.tasks.extension import TASK_AUDIENCES
from shared.protocol.identity import LOG_LEVELS
from shared.protocol.session.client_events import Notified
from shared.protocol.session.events import Change, UnknownNotification
from shared.protocol.types.client import LogLevel
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.connection import Connection
from shared.server.dispatch.context import Context
from shared.server.running import Opening

from .calls.dedicated_sessions import DedicatedSession
from .connection import BridgeConnection
from .description import UNKNOWN, capabilities_of
from .log_level import SharedLevel, send_level
from .repairs import repair_log
from .tasks import TASK_NOTIFICATIONS
from .upstream import Upstream
from .watching.resources import ResourceWatcher
from .watching.subscriptions import Subscriptions

ANSWER_SECONDS = 15.0
"""The time limit, in seconds, for requests of the bridge itself."""
_LIST_CHANGES = tuple(Change(what) for what in ("tools", "prompts", "resources"))
"""One change for each list."""
_CHANGES = {f"notifications/{change.kind}/list_changed": change for change in _LIST_CHANGES}
_CONDITION = "bridge"


def forward_notification(link: Connection, message: Notified) -> None:
    """Forward a notification to the client of `link`. Changes of one list that wait to be sent are merged. Log
    messages below the client's level, and notifications about the server's tasks, are dropped. All others are sent
    unchanged. While too many messages wait for the client, all but changes of lists are dropped. Never waits or
    raises."""
    if message.method in _CHANGES:
        link.on_change(_CHANGES[message.method])
    elif link.is_behind or message.method.startswith(TASK_NOTIFICATIONS):
        return
    elif message.method != "notifications/message":
        link.session.notify_session(message.method, message.params)
        link.send_soon()
    else:
        peer, level = link.session.peer, message.params.get("level")
        if peer is not None and isinstance(level, str) and level in LOG_LEVELS and peer.wants_log(level):
            link.session.notify_session(message.method, repair_log(message.params))
            link.send_soon()


class RootsWatcher:
    """Watches one client of a shared session, and notifies the server when the client's roots have changed. `forget`
    is called when the client has disconnected."""

    def __init__(self, connection: BridgeConnection, forget: Callable[[], None]) -> None:
        self._connection = connection
        self._forget = forget

    def on_roots_changed(self) -> None:
        """Notify the server that the roots of the client have changed."""
        if self._connection.up and not self._connection.stateless and not self._connection.client.is_behind:
            self._connection.client.roots_changed()

    def on_client_notification(self, event: UnknownNotification) -> None:
        """Ignore other notifications: the server would attribute them to all clients."""

    def on_close(self) -> None:
        """Forget the client, which has disconnected."""
        self._forget()


class SessionMessages:
    """Forwards everything outside calls. It is the listener of the dedicated sessions."""

    def __init__(self, upstream: Upstream, connection: BridgeConnection, tasks: TaskSet, opening: Opening) -> None:
        self.watching = ResourceWatcher(connection, opening.changes, tasks, ANSWER_SECONDS)
        self.subscriptions = Subscriptions(self.watching, opening.changes, tasks, ANSWER_SECONDS)
        self._upstream = upstream
        self._connection = connection
        self._opening = opening
        self._registered: set[Connection] = set()
        self.shared_level = SharedLevel(connection, tasks, ANSWER_SECONDS)
        """The log level of the session shared by all clients, if there is one."""
        self._publish_description()
        connection.watch(self._on_connection_change)
        connection.listen(self.watching.on_server_message)

    def register_client(self, link: Connection) -> None:
        """Register a client, after its handshake or before a call. If all clients share one session, the server is
        notified when this client's roots change."""
        if self._upstream.shares_session and link not in self._registered:
            self._registered.add(link)

            def forget() -> None:
                self._registered.discard(link)
                self.shared_level.forget(link)

            link.watchers = (*link.watchers, RootsWatcher(self._connection, forget))

    async def set_level(self, context: Context[Any], session: DedicatedSession | None, level: str) -> None:
        """Set the log level of a client: for the bridge's own messages, and at the server, in the client's `session`
        or the shared one. Raises PeerError, ConnectionError and TimeoutError, and RpcError while the server is
        down."""
        link = context.link
        link.session.set_log_level(level)
        # If this bridge is one of several joined servers, the gateway sends their conditions to the client.
        if link.calls is context.running.calls:
            for condition in context.running.conditions.active.values():
                link.session.log(context.call, condition.level, condition.data, condition.logger)
        if session is not None:
            session.level = level
            await send_level(await session.open(), level, ANSWER_SECONDS)
        elif self._upstream.shares_session and not self._connection.stateless:
            await self.shared_level.set_level(link, level)

    # Events of clients' sessions

    def on_session_notification(self, link: Connection, message: Notified) -> None:
        """Forward a notification from the server to the client of `link`. Never waits or raises."""
        forward_notification(link, message)

    def on_update(self, session: DedicatedSession, message: Notified | Gap) -> None:
        """Notify the client of `session` that a resource to which it has subscribed has changed; after a `Gap`, in
        which messages were lost, that any of these resources and any list may have changed. Never waits or raises."""
        self.subscriptions.on_update(session, message)
        if isinstance(message, Gap):
            for change in _LIST_CHANGES:
                session.link.on_change(change)

    async def on_reopen(self, session: DedicatedSession) -> None:
        """Restore the log level and the subscriptions of a session that was lost and reopened. Never raises."""
        client = session.client
        if client is not None:
            if session.level is not None:
                with suppress(McpError, OSError):
                    await send_level(client, session.level, ANSWER_SECONDS)
            await self.subscriptions.on_reopen(session, client)
            for change in _LIST_CHANGES:
                session.link.on_change(change)

    # The description of the bridge

    def _on_connection_change(self) -> None:
        conditions = self._opening.conditions
        if self._connection.up:
            conditions.end(_CONDITION)
            self._publish_description()
        else:
            text = f"the server {self._upstream.name} is not available: {self._connection.reason}"
            conditions.begin(_CONDITION, "warning", text)
        self.shared_level.on_reconnected()
        self.watching.on_connection_change()

    def _publish_description(self) -> None:
        description = self._connection.description
        if description is None:
            self._opening.describe(UNKNOWN, None)
            return
        capabilities = capabilities_of(description, stateless=self._connection.stateless)
        # A server with sessions may send log messages before a client has set a level, and all of them are forwarded.
        # A stateless server sends none without a level.
        level: LogLevel = "info" if self._connection.stateless else "debug"
        self._opening.describe(
            capabilities, description.instructions, description.info, audiences=TASK_AUDIENCES, log_level=level
        )
