"""`bridge`: a server that represents another one, of any version and over any transport.

    a call ──▶ Bridge.call ──▶ a `CallRoute` ──▶ the server

    StatelessCalls       if the server is stateless: over one connection, for all clients
    DedicatedSessions    if server and client have sessions: in a session for each client
    SessionPool          if only the server has sessions: in a session from a pool, for one call at a time
    SharedSession        if the operator configures it: in one session for all clients

The bridge itself handles subscriptions and log levels, because it combines those of many clients.
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

from .calls.dedicated_sessions import DedicatedSession, DedicatedSessions
from .calls.pool import SessionPool
from .calls.shared_session import SharedSession
from .calls.stateless import StatelessCalls
from .connection import BridgeConnection, reason_of
from .description import announces_changes
from .forwarding import drop_era_fields, error_for, lost_error
from .repairs import ToolSchemas, repair
from .session_messages import SessionMessages
from .tasks import UpstreamTasks, declare_tasks, supports_tasks
from .upstream import Upstream

_log = logging.getLogger("shared.gateway.bridge.bridge")

_OWN_METHODS = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen"})
"""The methods of the protocol that a bridge handles itself."""


class CallRoute(Protocol):
    """Makes calls at the server, in sessions of one kind or without sessions."""

    async def call(self, context: Context[Any], params: Any) -> dict[str, Any]:
        """Return the server's result unchanged. Raises PeerError with the server's error, ConnectionError or
        TimeoutError if there is no answer, and other kinds of McpError. `Bridge.handle_request` translates them."""


class Bridge:
    """One run of a bridge: its connections to the server, and the routing of calls."""

    def __init__(self, upstream: Upstream, opening: Opening) -> None:
        self.upstream = upstream
        self.tasks = TaskSet(lambda error: _log.error("a task of the bridge failed", exc_info=error))
        """The tasks of the bridge; one that fails is logged, and does not affect the others."""
        self._shared = SharedSession(self.tasks)
        self.connection = BridgeConnection(
            upstream, self._shared.options if upstream.shares_session else ClientOptions()
        )
        self._upstream_tasks = UpstreamTasks()
        self.session_messages = SessionMessages(upstream, self.connection, self.tasks, opening)
        self.dedicated_sessions = DedicatedSessions(
            self.connection, self.tasks, self.session_messages, self._upstream_tasks
        )
        """The sessions that each belong to one client."""
        self._stateless = StatelessCalls(self.connection)
        self._session_pool = SessionPool(upstream, self.tasks, self.connection.on_server_message)
        self._shared.upstream_tasks = self._session_pool.upstream_tasks = self._upstream_tasks
        self._tool_schemas = ToolSchemas()
        self.connection.listen(self._upstream_tasks.on_server_message)
        self._shared.join(self.connection, self.session_messages.shared_level)

    @asynccontextmanager
    async def keep_open(self) -> AsyncIterator[None]:
        """Keep the bridge open during the block, which begins after the first attempt to reach the server."""
        self.tasks.start(self.connection.keep_connected())
        try:
            with anyio.move_on_after(self.upstream.opening_seconds):
                await self.connection.first_attempt_ended.wait()
            await self.session_messages.watching.begin()
            yield
        finally:
            self._session_pool.close()
            self._shared.close()
            with anyio.CancelScope(shield=True):
                await self.tasks.stop()

    def route_for(self, context: Context[Any]) -> CallRoute:
        """Return the route for the call of `context`. Raises RpcError until the server has been reached once, and
        while a stateless server is down."""
        if self.connection.description is None or self.connection.stateless:
            self.connection.client  # noqa: B018 - raises the reason
            return self._stateless
        if self.upstream.shares_session:
            return self._shared
        return self.dedicated_sessions if context.peer.has_handshake else self._session_pool

    def session(self, context: Context[Any]) -> DedicatedSession | None:
        """Return the dedicated session of the client of `context`, open or not; None if the client has none."""
        return (
            self.dedicated_sessions.session_of(context.link)
            if context.peer.has_handshake and self._has_dedicated_sessions()
            else None
        )

    @property
    def needs_fresh_lists(self) -> bool:
        """True if each request for a list must reach the server: the lists may differ by client, or the server does
        not announce changes, so that a cached list would never be replaced."""
        description = self.connection.description
        return self._has_dedicated_sessions() or (description is not None and not announces_changes(description))

    def on_handshake(self, link: Connection) -> None:
        """Register a client after its handshake, and open its session at once: the server may send notifications
        before the client sends its first request."""
        self.session_messages.register_client(link)
        if self._has_dedicated_sessions():
            self.dedicated_sessions.session_of(link).begin()

    def _has_dedicated_sessions(self) -> bool:
        return (
            self.connection.description is not None
            and not self.connection.stateless
            and not self.upstream.shares_session
        )

    async def call(self, context: Context[Any], params: Any) -> dict[str, Any]:
        """Forward the call of `context` to the server; return its result. Raises McpError for the client."""
        method = context.call.method.name
        if method == "tools/call":
            arguments = self._tool_schemas.repair_arguments(params.name, params.arguments)
            params = params.model_copy(update={"arguments": arguments})
        async with self.handle_request(context):
            if not self.connection.up:
                await self.connection.wait_until_up()
            result = repair(method, drop_era_fields(await self.route_for(context).call(context, params)))
        if not is_well_formed(method, result):
            raise RpcError(f"the server {self.upstream.name} answered {method} with a malformed result")
        if method == "tools/call":
            return self._tool_schemas.repair_result(self.upstream.name, params.name, result)
        if method != "tools/list":
            return result
        self._tool_schemas.learn(result)
        self._upstream_tasks.learn(result)
        return declare_tasks(result) if self.connection.stateless and self.supports_tasks else result

    @property
    def supports_tasks(self) -> bool:
        """True if calls may become tasks at the server."""
        return supports_tasks(self.connection.description, stateless=self.connection.stateless)

    @asynccontextmanager
    async def handle_request(self, context: Context[Any]) -> AsyncIterator[None]:
        """Register the client of `context`, and translate the server's errors in the block to those for that client.
        Raises McpError."""
        name = self.upstream.name
        if context.peer.has_handshake:
            self.session_messages.register_client(context.link)
        try:
            yield
        except PeerError as error:
            raise error_for(context, error, name, stateless=self.connection.stateless) from None
        except (TaskLost, InvalidResult) as error:
            raise RpcError(f"the task at the server {name} returned no result: {reason_of(error)}") from None
        except (OSError, TimeoutError) as error:
            self.connection.check_liveness()
            raise lost_error(name, error) from None


def bridge(upstream: Upstream, *, extensions: Sequence[Extension[Any]] = ()) -> Server[Bridge]:
    """Return a server that represents `upstream`, for clients of any version. `extensions` see the requests of
    clients before they are forwarded, and the results.

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
            opening.on_handshake(state.on_handshake)
            opening.represent_remote(lambda: state.connection.up)
            yield state

    @server.on_subscribe
    async def subscribe(context: Context[Any], uri: str) -> str:
        state: Bridge = context.state
        async with state.handle_request(context):
            return await state.session_messages.subscriptions.begin(context, uri, state.session(context))

    @server.on_unsubscribe
    async def unsubscribe(run: Run[Bridge], key: str) -> None:
        await run.state.session_messages.subscriptions.end(key)

    @server.on_ready
    async def find_problem(run: Run[Bridge]) -> str | None:
        connection = run.state.connection
        return None if connection.up else f"not available: {connection.reason}"

    return server


async def _forward(run: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
    name, state = context.call.method.name, cast("Bridge", context.state)
    if name.startswith("tasks/"):
        raise MethodNotFound(f"method not found: {name[:100]}")
    return await state.call(context, params)


async def _task_support(run: Run[Any], context: Context[Any], name: str) -> ToolTasks:
    state: Bridge = run.state
    return "handler decides" if state.supports_tasks else None


async def _set_level(run: Run[Any], context: Context[Any], params: SetLevelParams) -> dict[str, Any]:
    state: Bridge = context.state
    async with state.handle_request(context):
        await state.session_messages.set_level(context, state.session(context), params.level)
    return {}


def _wrap(method: Method, handler: Handler) -> Handler:
    if method.name == "subscriptions/listen":

        async def handle(run: Run[Any], context: Context[Any], params: ListenParams) -> dict[str, Any]:
            state: Bridge = context.state
            uris = dict.fromkeys(params.notifications.resource_subscriptions)
            if not 1 < len(uris) <= run.calls.limits.subscriptions:
                return await handler(run, context, params)
            async with state.session_messages.subscriptions.subscribe_ahead(context, uris):
                return await handler(run, context, params)

        return handle
    return _forward if method.name in PROTOCOL_METHODS and method.name not in _OWN_METHODS else handler
