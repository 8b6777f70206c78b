"""Dedicated sessions: each client that did a handshake has its own session on the server while it is connected.

its first call ──▶ opening ──▶ open ──▶ lost ──▶ its next call ──▶ opening again
                                 └──▶ closed when the client disconnects
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Protocol

import anyio

from shared.client.client import Client
from shared.client.connection.restart import Pauses
from shared.client.errors import Unreached
from shared.client.options import ClientOptions
from shared.concurrency import Signal, TaskSet, wait_for_first
from shared.errors import McpError
from shared.protocol.session.client_events import Notified, ServerRequest
from shared.protocol.session.events import UnknownNotification
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.connection import Connection
from shared.server.dispatch.context import Context
from shared.server.dispatch.portions import Portions

from ..connection import BridgeConnection
from ..forwarding import caller_of, identity_of, params_of, unopened_error
from ..tasks import TASK_NOTIFICATIONS, UpstreamTasks, run_as_task
from .call_relay import CallRelay, ask_standalone


class SessionListener(Protocol):
    """Receives the events of a session that belong to none of its calls. None of its methods raises."""

    def on_session_notification(self, link: Connection, message: Notified) -> None:
        """Handle a notification from the server to the client of `link`. Never waits."""

    def on_update(self, session: "DedicatedSession", message: Notified | Gap) -> None:
        """Called when a resource to which `session` has subscribed has changed; after a `Gap`, in which messages were
        lost, any of them may have changed. Never waits."""

    async def on_reopen(self, session: "DedicatedSession") -> None:
        """Restore the state of a session that was lost and reopened."""


class _ServerSession:
    """One session on the server, from the attempt to open it to its end."""

    def __init__(self) -> None:
        self.client: Client | None = None
        self.error: Exception | None = None
        self.settled = anyio.Event()
        """Set when it is open, or when opening it has failed."""
        self.closing = anyio.Event()

    @property
    def is_lost(self) -> bool:
        return self.error is not None or (self.client is not None and not self.client.connected)


class DedicatedSession:
    """Connects the session of one client at the bridge with a session on the server, which is reopened after it was
    lost. It receives the events of the client's connection, and is the relay of the server's messages."""

    def __init__(
        self,
        connection: BridgeConnection,
        link: Connection,
        options: ClientOptions,
        tasks: TaskSet,
        listener: SessionListener,
        process_limit: "_ProcessLimit | None",
    ) -> None:
        """`process_limit` is set if each session on the server is a process."""
        self.link = link
        self.level: str | None = None
        """The log level that the client has set."""
        self._connection = connection
        self._upstream = connection.upstream
        self._options = replace(options, relay=self, mode="handshake", reconnect=False, restart=False)
        self._tasks = tasks
        self._listener = listener
        self._process_limit = process_limit
        self._calls: list[CallRelay] = []
        self._pauses = Pauses()
        self._server_session: _ServerSession | None = None
        self._was_open = False
        self.client_has_left = False
        """True if the client has disconnected, so that the session is no longer reopened."""

    @property
    def client(self) -> Client | None:
        """The client of the session on the server while that is open; else None."""
        server_session = self._server_session
        return None if server_session is None or server_session.is_lost else server_session.client

    def begin(self) -> None:
        """Start opening the session on the server, unless it is open or being opened."""
        if not self.client_has_left and (self._server_session is None or self._server_session.is_lost):
            self._server_session = _ServerSession()
            self._tasks.start(self._run(self._server_session))

    async def open(self) -> Client:
        """Open the session on the server, if necessary, and return its client. Raises RpcError with the reason if it
        can't be opened in time; while the server is down, that takes at most about a second."""
        if self.client is None:
            await self._connection.wait_until_up()
        self.begin()
        server_session = self._server_session
        if server_session is not None:
            with anyio.move_on_after(self._upstream.opening_seconds):
                await server_session.settled.wait()
        if (client := self.client) is None:
            raise unopened_error(self._upstream.name, None if server_session is None else server_session.error)
        return client

    @contextmanager
    def relay_call(self, context: Context[Any]) -> Iterator[CallRelay]:
        """Yield a relay for one call, which is in progress during the block."""
        relay = CallRelay(context, self.on_server_message)
        self._calls.append(relay)
        try:
            yield relay
        finally:
            self._calls.remove(relay)
            relay.close()
            self._close_if_unused()

    async def _run(self, server_session: _ServerSession) -> None:
        try:
            with anyio.move_on_after(self._pauses.remaining(anyio.current_time())):
                await server_session.closing.wait()
            if self.client_has_left:
                return
            self._pauses.record_start(anyio.current_time())
            async with nullcontext() if self._process_limit is None else self._process_limit.reserve(self):
                await self._run_connected(server_session)
        except (McpError, OSError, ValueError) as error:
            server_session.error = error
        finally:
            server_session.error = server_session.error or ConnectionError("the session has ended")
            server_session.settled.set()

    @property
    def is_closable(self) -> bool:
        """True if the session is open and its client has no work in progress. It can then be closed: the next call
        reopens it."""
        return self.client is not None and not self._calls and not self.link.is_busy

    def close(self) -> None:
        """Close the session on the server, which makes room for the session of another client."""
        if self._server_session is not None:
            self._server_session.closing.set()

    async def _run_connected(self, server_session: _ServerSession) -> None:
        async with self._upstream.connect(self._options) as server_session.client:
            if self._was_open:
                await self._listener.on_reopen(self)
            self._was_open = True
            server_session.settled.set()
            await wait_for_first(server_session.client.ended, server_session.closing.wait)

    # Events of the client's connection

    def on_roots_changed(self) -> None:
        """Notify the server that the client's roots have changed; the server may request them again."""
        if (client := self.client) is not None and not client.is_behind:
            client.roots_changed()

    def on_client_notification(self, event: UnknownNotification) -> None:
        """Forward a notification from the client to the server, such as the progress of an answer to its request."""
        client = self.client
        if client is not None and not client.is_behind and not event.method.startswith(TASK_NOTIFICATIONS):
            client.notify(event.method, event.params)

    def on_close(self) -> None:
        """Close the session on the server, at once or when the client's last task has ended."""
        self.client_has_left = True
        self._close_if_unused()

    def _close_if_unused(self) -> None:
        """Close the session on the server if the client has disconnected and none of its calls is a task: tasks
        outlive the connection of their client."""
        if (
            self.client_has_left
            and self._server_session is not None
            and not any(relay.is_detached for relay in self._calls)
        ):
            self._server_session.closing.set()

    # The relay of the session

    async def answer(self, request: ServerRequest) -> dict[str, Any]:
        """Return the client's answer to a request from the server that can't be attributed to a call. It is forwarded
        as part of the call that began last, or outside calls if none is in progress. Raises RpcError."""
        if not self._calls:
            return await ask_standalone(self.link, request)
        *others, newest = self._calls
        with ExitStack() as paused:
            for other in others:
                paused.enter_context(self.link.calls.pause_clock(other.context.call))
            return await newest.answer(request)

    def on_server_message(self, message: Notified | Gap) -> None:
        """Pass a message that belongs to no call to the listener."""
        if isinstance(message, Gap) or message.method == "notifications/resources/updated":
            self._listener.on_update(self, message)
        else:
            self._listener.on_session_notification(self.link, message)


class _ProcessLimit:
    """Limits the number of sessions that are processes. One client gets at most half of them, and the least recently
    used idle session is closed to make room for another."""

    def __init__(self, processes: int) -> None:
        self._portions = Portions(processes)
        self._open: dict[DedicatedSession, None] = {}
        """The sessions that have a process, the most recently used one last."""
        self._left = Signal()

    def use(self, session: DedicatedSession) -> None:
        """Mark `session` as the most recently used one."""
        if session in self._open:
            self._open[session] = self._open.pop(session)

    @asynccontextmanager
    async def reserve(self, session: DedicatedSession) -> AsyncIterator[None]:
        """Reserve a process for `session` during the block. Raises ConnectionError if none is available."""
        client = session.link.client
        while not self._portions.reserve(client):
            idle = [other for other in self._open if other.is_closable]
            if any(other.link.client == client for other in self._open):
                # A client that has processes makes room for itself.
                idle = [other for other in idle if other.link.client == client]
            if not idle:
                raise ConnectionError("this client has the maximum number of processes for one client; end a session")
            idle[0].close()
            await self._left.wait()
        self._open[session] = None
        try:
            yield
        finally:
            del self._open[session]
            self._portions.release(client)
            self._left.wake()


class DedicatedSessions:
    """The sessions of all clients that did a handshake."""

    def __init__(
        self, connection: BridgeConnection, tasks: TaskSet, listener: SessionListener, upstream_tasks: UpstreamTasks
    ) -> None:
        self._connection = connection
        self._tasks = tasks
        self._listener = listener
        self._upstream_tasks = upstream_tasks
        max_processes = connection.upstream.max_processes
        self._process_limit = None if max_processes is None else _ProcessLimit(max_processes)
        self._by_link: dict[Connection, DedicatedSession] = {}

    def session_of(self, link: Connection) -> DedicatedSession:
        """Return the session of the client of `link`, which has completed its handshake. If there is none, create one
        that is not open yet."""
        session = self._by_link.get(link)
        if session is None:
            identity = identity_of(link.session.peer)
            options = ClientOptions(info=identity.info, capabilities=identity.capabilities)
            session = DedicatedSession(
                self._connection, link, options, self._tasks, self._listener, self._process_limit
            )
            self._by_link[link] = session
            link.watchers = (*link.watchers, session, _CloseListener(lambda: self._by_link.pop(link, None)))
        return session

    async def call(self, context: Context[Any], params: Any) -> dict[str, Any]:
        """Return the server's result. If the session was lost before the server received the request, it is reopened
        and the request is sent again.

        Raises PeerError, ConnectionError and TimeoutError like `Client.exchange`, and RpcError if the session can't
        be opened.
        """
        session = self.session_of(context.link)
        if self._process_limit is not None:
            self._process_limit.use(session)
        client = await session.open()
        try:
            return await self._exchange(session, client, context, params)
        except Unreached:
            # The server has not received this call, so it is repeated. After any other error it may have executed it.
            if client.connected or (context.call.task is not None and context.call.task.is_detached):
                raise
        return await self._exchange(session, await session.open(), context, params)

    async def _exchange(
        self, session: DedicatedSession, client: Client, context: Context[Any], params: Any
    ) -> dict[str, Any]:
        task_params = await self._upstream_tasks.task_param(client, context, getattr(params, "name", None))
        with session.relay_call(context) as relay:
            caller, method = caller_of(context, relay), context.call.method.name
            return await run_as_task(client, caller, method, params_of(context, params), task_params, relay)


class _CloseListener:
    """A watcher of a connection that only calls `forget` when it closes."""

    def __init__(self, forget: Callable[[], object]) -> None:
        self._forget = forget

    def on_roots_changed(self) -> None:
        pass

    def on_client_notification(self, event: UnknownNotification) -> None:
        pass

    def on_close(self) -> None:
        self._forget()
