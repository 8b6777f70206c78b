"""The connection to one server, which is replaced by a new connection when it is lost.

    entered ──▶ open ──▶ lost ──▶ (a caller asks) ──▶ opening again ──▶ open
                                                              └──▶ failed: callers get the error, the next one tries

One task reopens the connection for all waiting callers; each waits as long as its time limit allows. If the
connection is lost repeatedly, the pauses before it is reopened get longer.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup, TaskStatus

from ...concurrency import background
from ...contracts import ClosableTransport
from ...errors import McpError, PeerError
from ..errors import Unreached
from ..options import ClientOptions
from .connection import Connection
from .opening import open_session
from .restart import Pauses, Start


class _Attempt:
    """The opening of one connection, for all callers that wait for it."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.error: Exception | None = None

    def end(self, error: Exception | None = None) -> None:
        if not self.ended.is_set():
            self.error = error
            self.ended.set()


class Link:
    """The connection to one server, with those that replace it. `connect` makes an unopened connection from a
    transport and a mode; `start` opens a new transport when the connection is lost, or is None if it is not to be
    reopened; `on_reopened` is called for each new connection."""

    def __init__(
        self,
        transport: ClosableTransport,
        options: ClientOptions,
        connect: Callable[[ClosableTransport, str], Connection],
        start: Start | None,
        on_reopened: Callable[[], None],
    ) -> None:
        """Raises ValueError for an unknown mode or version, and if no version is allowed by both."""
        self.connection = connect(transport, options.mode)
        """The newest connection, which may be lost."""
        self.options = options
        """The options for the next connection."""
        self._connect = connect
        self._start = start
        self._on_reopened = on_reopened
        self._pauses = Pauses()
        self._attempt: _Attempt | None = None
        self._over = anyio.Event()
        self._is_entered = False
        self._tasks: TaskGroup

    @property
    def is_usable(self) -> bool:
        """True if requests can still be made, now or after the connection is reopened."""
        return self._is_entered and (self._start is not None or not self.connection.gone.is_set())

    async def ended(self) -> None:
        """Wait until requests can no longer be made."""
        while self.is_usable:
            await (self.connection.gone if self._start is None else self._over).wait()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[TaskGroup]:
        """Open the first connection, and close the last one at the end of the block. Yields a task group that ends
        with the block.

        Raises PeerError if the server refuses, ConnectionError if it has disconnected or supports no common version,
        and TimeoutError if it does not answer.
        """
        self._is_entered = True
        try:
            async with background() as self._tasks:
                await self._tasks.start(self._open_first)
                try:
                    yield self._tasks
                finally:
                    self._start = None
        finally:
            self._over.set()
            # Only now, so that an error that ends the client is raised in the block before calls fail because of the
            # lost connection.
            self.connection.abort("the client is closed")

    async def current(self, timeout_seconds: float | None) -> Connection:
        """Return the connection to use. A lost connection is reopened, if that is enabled.

        Raises TimeoutError after `timeout_seconds`, although the opening continues; Unreached if no connection can be
        opened; and PeerError if the server refuses.
        """
        if not self.connection.gone.is_set() or self._start is None:
            return self.connection
        if self._attempt is None:
            self._attempt = _Attempt()
            self._tasks.start_soon(self._reopen, self._attempt, self._start)
        attempt = self._attempt
        with anyio.move_on_after(timeout_seconds) as timeout_scope:
            await attempt.ended.wait()
        if timeout_scope.cancelled_caught:
            raise TimeoutError(f"the connection was lost, and could not be reopened within {timeout_seconds:g} s")
        if attempt.error is not None:
            raise attempt.error
        return self.connection

    async def _open_first(self, *, task_status: TaskStatus[None]) -> None:
        await self._run_session(self.connection, task_status.started)

    async def _run_session(self, connection: Connection, on_opened: Callable[[], None]) -> None:
        """Open a session on `connection`, make it the current connection, and close it once it is lost."""
        async with connection.run():
            await open_session(connection, self.options)
            if self.options.log_level is not None:  # it may have changed during the opening
                connection.session.log_level(self.options.log_level)
            self.connection = connection
            on_opened()
            await _monitor(connection, self.options.heartbeat_seconds)
            # Over HTTP each answer has its own response, which may arrive after the session has ended.
            await connection.drain()
            connection.abort("the session has ended")

    async def _reopen(self, attempt: _Attempt, start: Start) -> None:
        def on_opened() -> None:
            self._attempt = None
            self._on_reopened()
            attempt.end()

        # The era of a server does not change, so it is not probed again: a server that never answers unknown requests
        # would delay every reconnection.
        uses_handshake = self.options.mode == "auto" and not self.connection.session.stateless
        try:
            # Wait until the last connection is closed: some servers, such as a process, can have only one at a time.
            await self.connection.closed.wait()
            await anyio.sleep(self._pauses.remaining(anyio.current_time()))
            self._pauses.record_start(anyio.current_time())
            async with start() as transport:
                await self._run_session(
                    self._connect(transport, "handshake" if uses_handshake else self.options.mode), on_opened
                )
        except (McpError, OSError) as error:
            if attempt.ended.is_set():
                raise
            self._attempt = None
            if not isinstance(error, McpError):
                unreached = Unreached(str(error) or type(error).__name__)
                unreached.__cause__ = error
                error = unreached
            attempt.end(error)
        finally:
            attempt.end(ConnectionError("the client is closed"))


async def _monitor(connection: Connection, interval: float | None) -> None:
    """Wait until `connection` is lost. If nothing arrives for `interval` seconds, the server is pinged; if it does
    not answer within as many seconds, the connection is lost. If `interval` is None, there are no pings.

    Calls have time limits. But a client that only listens would wait forever on a connection that broke without a
    sign.
    """
    while not connection.gone.is_set():
        silent_seconds = anyio.current_time() - connection.last_received
        # A pending call has its own time limit, and a server at work may be too busy for pings.
        if interval is None or silent_seconds < interval or connection.is_busy or not connection.subscriptions:
            # Wait until the silence has lasted for `interval`. If it has, but a ping is not needed now, check again
            # after `interval`.
            remaining = (
                None if interval is None else interval - silent_seconds if silent_seconds < interval else interval
            )
            with anyio.move_on_after(remaining):
                await connection.gone.wait()
        else:
            method = "server/discover" if connection.session.stateless else "ping"
            try:
                await connection.call(method, {}, timeout_seconds=interval)
            except PeerError:
                pass  # it is alive
            except (TimeoutError, ConnectionError):
                connection.abort(f"the server did not respond within {interval:g} s")
