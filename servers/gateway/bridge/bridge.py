"""`bridge`: a server that represents another one, of any version and over any transport.

    a call ──▶ forward ──▶ Bridge.call ──▶ the kind of session for it ──▶ the server
                                              stateless server            one connection for all
                                              sessions on both sides      a session for each client
                                              sessions on the server      one that is lent for the call
                                              one session for all         where the operator says so

Subscriptions and log levels are handled by this server itself, which combines those of many clients.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, cast

import anyio

from shared.client.options import ClientOptions
from shared.concurrency import TaskSet
from shared.errors import InvalidResult, MethodNotFound, PeerError, RpcError, TaskLost
from shared.extensions.tasks import tasks
from shared.extensions.tasks.runner import ToolTasks
from shared.protocol.methods import PROTOCOL_METHODS, SET_LEVEL, Method
from shared.protocol.shaping import is_well_formed
from shared.protocol.types.base import Implementation
from shared.protocol.types.client import SetLevelParams
from shared.protocol.types.resources import ListenParams
from shared.server.dispatch.connection import Connection
from shared.server.dispatch.context import Context
from shared.server.extension import Extension
from shared.server.features import Handler
from shared.server.run import Run
from shared.server.running import Opening
from shared.server.server import Server
from shared.version import __version__

from .base import Base, reason_of
from .calls.own_sessions import OwnSession, OwnSessions
from .calls.pool import Pool
from .calls.shared_session import SharedSession
from .calls.stateless import StatelessCalls
from .description import announces_changes
from .forwarding import drop_era_fields, error_for, lost_error
from .repairs import OutputSchemas, repair
from .session_messages import SessionMessages
from .tasks import UpstreamTasks, declare_tasks, has_tasks
from .upstream import Upstream

_log = logging.getLogger("shared.gateway.bridge.bridge")

_OWN_METHODS = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen"})
"""The methods of the protocol that a bridge does not simply forward."""


class SessionKind(Protocol):
    """A kind of session in which calls are made at the server."""

    async def call(self, context: Context[Any], params: Any) -> dict[str, Any]:
        """Return the server's result unchanged. Raises PeerError for its error, ConnectionError or TimeoutError if
        there is no answer, and other kinds of McpError for the client."""


class Bridge:
    """One run of a bridge: its connections to the server, and the routing of calls."""

    def __init__(self, upstream: Upstream, opening: Opening) -> None:
        self.upstream = upstream
        self.tasks = TaskSet(lambda error: _log.error("a task of the bridge failed", exc_info=error))
        """The tasks of the bridge; one that fails is logged, and does not affect the others."""
        self._shared = SharedSession(self.tasks)
        self.base = Base(upstream, self._shared.options if upstream.shared else ClientOptions())
        self._upstream_tasks = UpstreamTasks()
        self.session_messages = SessionMessages(upstream, self.base, self.tasks, opening)
        self.own = OwnSessions(self.base, self.tasks, self.session_messages, self._upstream_tasks)
        """The sessions of clients that have one each."""
        self._stateless = StatelessCalls(self.base)
        self._pool = Pool(upstream, self.tasks, self.base.on_server_message)
        self._shared.upstream_tasks = self._pool.upstream_tasks = self._upstream_tasks
        self._output_schemas = OutputSchemas()
        self.base.listen(self._upstream_tasks.on_server_message)
        self._shared.join(self.base, self.session_messages.level)

    @asynccontextmanager
    async def keep_open(self) -> AsyncIterator[None]:
        """Keep the bridge open during the block, which begins after the first attempt to reach the server."""
        self.tasks.start(self.base.live())
        try:
            with anyio.move_on_after(self.upstream.opening_seconds):
                await self.base.settled.wait()
            await self.session_messages.watching.begin()
            yield
        finally:
            self._pool.close()
            self._shared.close()
            with anyio.CancelScope(shield=True):
                await self.tasks.stop()

    def session_kind(self, context: Context[Any]) -> SessionKind:
        """Return the kind of session for the call of `context`. Raises RpcError while the server is still unknown."""
        if self.base.description is None or self.base.stateless:
            self.base.client  # noqa: B018 - raises the reason
            return self._stateless
        if self.upstream.shared:
            return self._shared
        return self.own if context.peer.has_handshake else self._pool

    def session(self, context: Context[Any]) -> OwnSession | None:
        """Return the session that belongs only to the client of `context`, open or not; None if it has none."""
        return self.own.session_of(context.link) if context.peer.has_handshake and self._has_own() else None

    @property
    def differs_by_client(self) -> bool:
        """True if lists may differ by client. Those of a server that announces no changes count as such, since a
        stored one would never be replaced."""
        description = self.base.description
        return self._has_own() or (description is not None and not announces_changes(description))

    def greet(self, link: Connection) -> None:
        """Open the session of a client after its handshake, since the server may notify it before its first
        request."""
        self.session_messages.greet(link)
        if self._has_own():
            self.own.session_of(link).begin()

    def _has_own(self) -> bool:
        return self.base.description is not None and not self.base.stateless and not self.upstream.shared

    async def call(self, context: Context[Any], params: Any) -> dict[str, Any]:
        """Forward a call and return its result. Raises McpError with the error for its client."""
        method = context.call.method.name
        async with self.translate_errors(context):
            if not self.base.up:
                await self.base.wait_until_up()
            result = repair(method, drop_era_fields(await self.session_kind(context).call(context, params)))
        if not is_well_formed(method, result):
            raise RpcError(f"the server {self.upstream.name} answered {method} with a malformed result")
        if method == "tools/call":
            return self._output_schemas.add_structured(self.upstream.name, params.name, result)
        if method != "tools/list":
            return result
        self._output_schemas.learn(result)
        self._upstream_tasks.learn(result)
        return declare_tasks(result) if self.base.stateless and self.has_tasks else result

    @property
    def has_tasks(self) -> bool:
        """True if calls may become tasks at the server."""
        return has_tasks(self.base.description, stateless=self.base.stateless)

    @asynccontextmanager
    async def translate_errors(self, context: Context[Any]) -> AsyncIterator[None]:
        """Use the server for the client of `context` during the block; its errors are translated for that client.
        Raises McpError."""
        name = self.upstream.name
        if context.peer.has_handshake:
            self.session_messages.greet(context.link)
        try:
            yield
        except PeerError as error:
            raise error_for(context, error, name, stateless=self.base.stateless) from None
        except (TaskLost, InvalidResult) as error:
            raise RpcError(f"the task at the server {name} returned no result: {reason_of(error)}") from None
        except (OSError, TimeoutError) as error:
            self.base.check_liveness()
            raise lost_error(name, error) from None


def bridge(upstream: Upstream, *, extensions: Sequence[Extension[Any]] = ()) -> Server[Bridge]:
    """Return a server that represents `upstream`, for clients of any version. `extensions` wrap it: they see clients'
    requests and the results.

    It opens even if the server can't be reached, and keeps trying while it is open.
    """
    forwarding = Extension[Bridge](
        "bridge", methods=[SET_LEVEL], handlers={SET_LEVEL.name: _set_level}, around=_wrap, fallback=_forward
    )
    server = Server[Bridge](
        Implementation(name=upstream.name, version=__version__),
        extensions=[forwarding, tasks(support=_task_support), *extensions],
    )

    @server.lifespan
    async def open_bridge(opening: Opening) -> AsyncIterator[Bridge]:
        state = Bridge(upstream, opening)
        async with state.keep_open():
            opening.greet(state.greet)
            opening.represent_remote(lambda: state.base.up)
            yield state

    @server.on_subscribe
    async def subscribe(context: Context[Any], uri: str) -> str:
        state: Bridge = context.state
        async with state.translate_errors(context):
            return await state.session_messages.subscriptions.begin(context, uri, state.session(context))

    @server.on_unsubscribe
    async def unsubscribe(running: Run[Bridge], key: str) -> None:
        await running.state.session_messages.subscriptions.end(key)

    @server.on_ready
    async def find_fault(running: Run[Bridge]) -> str | None:
        base = running.state.base
        return None if base.up else f"not available: {base.reason}"

    return server


async def _forward(running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
    name, state = context.call.method.name, cast("Bridge", context.state)
    if name.startswith("tasks/"):
        raise MethodNotFound(f"method not found: {name[:100]}")
    return await state.call(context, params)


async def _task_support(running: Run[Any], context: Context[Any], name: str) -> ToolTasks:
    state: Bridge = running.state
    return "handler decides" if state.has_tasks else None


async def _set_level(running: Run[Any], context: Context[Any], params: SetLevelParams) -> dict[str, Any]:
    state: Bridge = context.state
    async with state.translate_errors(context):
        await state.session_messages.set_level(context, state.session(context), params.level)
    return {}


def _wrap(method: Method, handler: Handler) -> Handler:
    if method.name == "subscriptions/listen":

        async def handle(running: Run[Any], context: Context[Any], params: ListenParams) -> dict[str, Any]:
            state: Bridge = context.state
            uris = dict.fromkeys(params.notifications.resource_subscriptions)
            if not 1 < len(uris) <= running.calls.limits.subscriptions:
                return await handler(running, context, params)
            async with state.session_messages.subscriptions.subscribe_ahead(context, uris):
                return await handler(running, context, params)

        return handle
    return _forward if method.name in PROTOCOL_METHODS and method.name not in _OWN_METHODS else handler
