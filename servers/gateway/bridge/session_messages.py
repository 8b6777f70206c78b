"""What belongs to no call: subscriptions, log levels, changes of lists and of roots, and what a bridge says it is."""

from contextlib import suppress
from functools import partial
from typing import Any

from shared.concurrency import Crew
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
from .log_level import SharedLevel, say_level
from .notices import LISTS, RootsOf, told
from .upstream import Upstream
from .watching.resources import Watching
from .watching.subscriptions import Subscriptions

ANSWER_SECONDS = 15.0
"""Time for the server to answer what the bridge asks by itself."""
_CONDITION = "bridge"


class Apart:
    """All that a bridge does besides passing calls on. It is what sessions of clients tell of themselves."""

    def __init__(self, upstream: Upstream, base: Base, tasks: Crew, opening: Opening) -> None:
        self.watching = Watching(base, opening.changes, tasks, ANSWER_SECONDS)
        self.subscriptions = Subscriptions(self.watching, opening.changes, tasks, ANSWER_SECONDS)
        self._upstream = upstream
        self._base = base
        self._opening = opening
        self._known: set[Connection] = set()
        self.level = SharedLevel(base, tasks, ANSWER_SECONDS)
        """What is logged in a session that all clients share."""
        self._describe()
        base.watch(self._turned)
        base.listen(self.watching.heard)

    def greet(self, link: Connection) -> None:
        """A client has shaken hands, or calls. Where one session is shared, that hears what concerns it."""
        if self._upstream.shared and link not in self._known:
            self._known.add(link)
            link.watchers = (*link.watchers, RootsOf(self._base, partial(self._forget, link)))

    def _forget(self, link: Connection) -> None:
        self._known.discard(link)
        self.level.forget(link)

    async def set_level(self, context: Context[Any], session: OwnSession | None, level: str) -> None:
        """The client wants log messages of this level and graver ones from now on: from the bridge, and from its
        `session`, where it has one. Raises PeerError, ConnectionError and TimeoutError, and RpcError while the
        server is not available."""
        link = context.link
        link.session.set_log_level(level)
        # A client of several servers that are joined is told there what holds at each of them.
        if link.calls is context.running.calls:
            for condition in context.running.conditions.standing.values():
                link.session.log(context.call, condition.level, condition.data, condition.logger)
        if session is not None:
            session.level = level
            await say_level(await session.open(), level, ANSWER_SECONDS)
        elif self._upstream.shared and not self._base.stateless:
            await self.level.want(link, level)

    # What sessions of clients tell

    def told(self, link: Connection, notice: Notified) -> None:
        """The server has told the client of `link` something. Never waits or raises."""
        told(link, notice)

    def updated(self, session: OwnSession, notice: Notified | Gap) -> None:
        """A resource has changed that `session` has subscribed to, or anything may have. Never waits or raises."""
        self.subscriptions.updated(session, notice)
        if isinstance(notice, Gap):
            for change in LISTS:
                session.link.changed(change)

    async def reopened(self, session: OwnSession) -> None:
        """The session was lost, and there is another one now, which is told what held before. Never raises."""
        client = session.client
        if client is not None:
            if session.level is not None:
                with suppress(McpError, OSError):
                    await say_level(client, session.level, ANSWER_SECONDS)
            await self.subscriptions.reopened(session, client)
            for change in LISTS:
                session.link.changed(change)

    # What the bridge says of itself

    def _turned(self) -> None:
        conditions = self._opening.conditions
        if self._base.up:
            conditions.end(_CONDITION)
            self._describe()
        else:
            text = f"the server {self._upstream.name} is not available: {self._base.reason}"
            conditions.begin(_CONDITION, "warning", text)
        self.level.turned()
        self.watching.turned()

    def _describe(self) -> None:
        said = self._base.description
        if said is None:
            self._opening.describe(UNKNOWN, None)
            return
        capabilities = capabilities_of(said, stateless=self._base.stateless)
        # Before a client has asked for a level, it gets what its server sends. One without sessions sends nothing
        # unless it is told a level.
        level: LogLevel = "info" if self._base.stateless else "debug"
        self._opening.describe(capabilities, said.instructions, said.info, spans=TASK_SPANS, log_level=level)
