"""The connection to one server while it lasts, and a new one where it was lost.

    entered ──▶ open ──▶ lost ──▶ (somebody asks) ──▶ opening again ──▶ open
                                                              └──▶ failed: who asked is told, the next one tries

A connection is opened again by one task, however many wait for it; each waits as long as it has time. Pauses grow
where it is lost again and again.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup, TaskStatus

from ...concurrency import background
from ...contracts import ClosableTransport
from ...errors import McpError
from ..errors import Unreached
from ..options import ClientOptions
from .connection import Connection
from .heartbeat import watch_over
from .opening import open_session
from .restart import Pauses, Start


class _Attempt:
    """The opening of one connection, for all who wait for it."""

    def __init__(self) -> None:
        self.over = anyio.Event()
        self.error: Exception | None = None

    def end(self, error: Exception | None = None) -> None:
        if not self.over.is_set():
            self.error = error
            self.over.set()


class Link:
    """The way to one server. `connect` makes a connection that is not open yet, in a mode, of a transport; `start`
    opens another transport where one was lost, and None leaves it lost; `reopened` hears of each new connection."""

    def __init__(
        self,
        transport: ClosableTransport,
        options: ClientOptions,
        connect: Callable[[ClosableTransport, str], Connection],
        start: Start | None,
        reopened: Callable[[], None],
    ) -> None:
        """Raises ValueError for a mode or a version that does not exist, and where they leave none to speak."""
        self.connection = connect(transport, options.mode)
        """The newest one, which may be lost."""
        self.options = options
        """With which the next connection is opened."""
        self._connect = connect
        self._start = start
        self._reopened = reopened
        self._pauses = Pauses()
        self._attempt: _Attempt | None = None
        self._over = anyio.Event()
        self._is_entered = False
        self._tasks: TaskGroup

    @property
    def lasts(self) -> bool:
        """Whether requests can still be made, now or after the connection was opened again."""
        return self._is_entered and (self._start is not None or not self.connection.gone.is_set())

    async def ended(self) -> None:
        """Waits until requests can no longer be made."""
        while self.lasts:
            await (self.connection.gone if self._start is None else self._over).wait()

    @asynccontextmanager
    async def living(self) -> AsyncIterator[TaskGroup]:
        """Opens the first connection, and closes the last one; what it gives are tasks that end with the block.

        Raises PeerError when the server refuses, ConnectionError when it is gone or no version is shared, and
        TimeoutError when it gives no answer.
        """
        self._is_entered = True
        try:
            async with background() as self._tasks:
                await self._tasks.start(self._first)
                try:
                    yield self._tasks
                finally:
                    self._start = None
        finally:
            self._over.set()
            # Where the client ends of an error, the block hears of that first.
            self.connection.lose("the client is closed")

    async def current(self, seconds: float | None) -> Connection:
        """The connection to use. One that was lost is opened again, where that is wanted.

        Raises TimeoutError where there is none in `seconds`; the opening goes on then. Raises Unreached where it
        can't be opened, and PeerError where the server refuses.
        """
        if not self.connection.gone.is_set() or self._start is None:
            return self.connection
        if self._attempt is None:
            self._attempt = _Attempt()
            self._tasks.start_soon(self._open_again, self._attempt, self._start)
        attempt = self._attempt
        with anyio.move_on_after(seconds) as patience:
            await attempt.over.wait()
        if patience.cancelled_caught:
            raise TimeoutError(f"the connection was lost, and could not be opened again in {seconds:g} s")
        if attempt.error is not None:
            raise attempt.error
        return self.connection

    async def _first(self, *, task_status: TaskStatus[None]) -> None:
        await self._live(self.connection, task_status.started)

    async def _live(self, connection: Connection, opened: Callable[[], None]) -> None:
        """Opens a session on `connection`, tells that it is the one to use, and closes it once it is lost."""
        async with connection.running():
            await open_session(connection, self.options)
            if self.options.log_level is not None:  # which may be another one by now
                connection.session.log_level(self.options.log_level)
            self.connection = connection
            opened()
            await watch_over(connection, self.options.heartbeat_seconds)
            # Over HTTP each answer comes on a response of its own, which may still arrive.
            await connection.drained()
            connection.lose("the session is over")

    async def _open_again(self, attempt: _Attempt, start: Start) -> None:
        def opened() -> None:
            self._attempt = None
            self._reopened()
            attempt.end()

        # The era of a server stays: one that never answers what it does not know is waited for once.
        stays = self.options.mode == "auto" and not self.connection.session.stateless
        try:
            # Not before the last one is closed: two connections to a server that takes one, as a process does,
            # would stand in each other's way.
            await self.connection.closed.wait()
            await anyio.sleep(self._pauses.left(anyio.current_time()))
            self._pauses.started(anyio.current_time())
            async with start() as transport:
                await self._live(self._connect(transport, "handshake" if stays else self.options.mode), opened)
        except (McpError, OSError) as error:
            if attempt.over.is_set():
                raise
            self._attempt = None
            if not isinstance(error, McpError):
                unreached = Unreached(str(error) or type(error).__name__)
                unreached.__cause__ = error
                error = unreached
            attempt.end(error)
        finally:
            attempt.end(ConnectionError("the client is closed"))
