"""`Client`: what a program calls to use an MCP server, in either era.

    async with connect_stdio(["python", "-m", "servers.filesystem", "."]) as client:
        tools = await client.list_tools()
        result = await client.call_tool("read_text_file", {"path": "README.md"})

Params and results of `request`, `notify` and `plain` are dictionaries, as on the wire.
"""

import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup, TaskStatus

from ..contracts import ClosableTransport
from ..errors import McpError, PeerError
from ..kit.tasks import background
from ..protocol.session.client import ClientSession, ServerDescription, first_version
from ..protocol.session.client_events import InputWanted, Notified
from ..protocol.session.questions import MAX_ROUNDS
from ..protocol.types.client import LogLevel
from ..protocol.wire.jsonrpc import Failure
from .connection import Connection, Waiter, result_of
from .opening import OPENING_SECONDS, open_session
from .options import ClientOptions, Notify, Progress
from .plain import PlainCalls
from .restart import Pauses, Start
from .subscription import Subscription
from .typed import TypedCalls

__all__ = ["Client"]

FAREWELL_SECONDS = 2.0


class Client(TypedCalls):
    """One server, from the opening of the session to its end. Any number of calls may run at once.

    Entering it raises what opening does: PeerError when the server refuses, ConnectionError when it is gone or no
    version is shared, TimeoutError when it gives no answer.
    """

    def __init__(
        self, transport: ClosableTransport, options: ClientOptions | None = None, *, restart: Start | None = None
    ) -> None:
        """`restart` starts the server again when the connection was lost, where the options say so.

        Raises ValueError for a mode or a version that does not exist, and where they leave none to speak.
        """
        super().__init__(self.request)
        self._options = options or ClientOptions()
        self._connection = self._connect(transport, self._options.mode)
        self._restart = restart if self._options.restart else None
        self._pauses = Pauses()
        self._restarting = anyio.Lock()
        self._starting = anyio.CancelScope()
        self._tasks: TaskGroup
        self._subscriptions: list[Subscription] = []
        self._life: AbstractAsyncContextManager[None] | None = None
        self.plain = PlainCalls(self.request)
        """The calls whose results are dictionaries, as they came."""

    async def __aenter__(self) -> Self:
        self._life = self._living()
        await self._life.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._life.__aexit__(kind, error, traceback) if self._life is not None else None

    @asynccontextmanager
    async def _living(self) -> AsyncIterator[None]:
        async with background() as self._tasks:
            await self._tasks.start(self._live, self._connection)
            try:
                yield
            finally:
                self._restart = None
                self._starting.cancel()

    @property
    def server(self) -> ServerDescription:
        """What the server says of itself. Raises RuntimeError before the client is entered."""
        server = self._connection.session.server
        if server is None:
            raise RuntimeError("enter the client first: async with client")
        return server

    @property
    def stateless(self) -> bool:
        """Which era was chosen."""
        return self._connection.session.stateless

    # Connections

    def _connect(self, transport: ClosableTransport, mode: str) -> Connection:
        accepted = self._options.accepted()
        first = first_version(mode, accepted)
        session = ClientSession(self._options.identity(), first, accepted)
        return Connection(transport, session, self._options.handlers(), self._notified)

    async def _live(self, connection: Connection, *, task_status: TaskStatus[None]) -> None:
        """Opens a session on `connection`, tells that it is the one to use, and closes it once it is lost."""
        async with connection.running():
            await open_session(connection, self._options)
            self._connection = connection
            task_status.started()
            await connection.gone.wait()

    async def _live_again(self, restart: Start, *, task_status: TaskStatus[None]) -> None:
        # The era of a server stays: one that never answers what it does not know is waited for once.
        mode = "handshake" if self._options.mode == "auto" and not self.stateless else self._options.mode
        async with restart() as transport:
            await self._live(self._connect(transport, mode), task_status=task_status)

    async def _revive(self, seconds: float | None) -> None:
        """Has a new server and a new session in place of those that were lost, where that is wanted.

        Raises TimeoutError where the start could not begin in `seconds`, and what entering the client does.
        """
        with anyio.move_on_after(seconds) as scope:
            async with self._restarting:
                if self._restart is None or not self._connection.gone.is_set():
                    return
                await self._connection.closed.wait()
                await anyio.sleep(self._pauses.left(anyio.current_time()))
                # A start that was given up would be made again by the next call, after a longer pause.
                scope.deadline = math.inf
                await self._start()
        if scope.cancelled_caught:
            raise TimeoutError(f"the server was lost, and not started again in {seconds:g} s")

    async def _start(self) -> None:
        if self._restart is None:  # the client has been closed
            return
        self._pauses.started(anyio.current_time())
        with anyio.CancelScope() as self._starting:
            await self._tasks.start(self._live_again, self._restart)

    # Requests

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = 60,  # noqa: ASYNC109 - every request has a limit, asked for or not
        on_progress: Progress | None = None,
    ) -> dict[str, Any]:
        """The result of any request. Questions that the server answers with are put to the handlers, and the
        request is made again with their answers, up to 10 rounds.

        Raises PeerError for an error answer; TimeoutError when a round took longer than `timeout` seconds, not
        counting our own answers; ConnectionError when the connection is lost; McpError for questions that were not
        declared or have no end. A request that is given up or cancelled is cancelled at the server too.

        Where the server was lost and is to be started again, this is done first. TimeoutError is raised when it could
        not begin in `timeout` seconds; once begun it takes its own time, and raises what entering the client does.
        """
        if self._connection.gone.is_set():
            await self._revive(timeout)
        asked = dict(params or {})
        on_notice = None if on_progress is None else _reporting(on_progress)
        inputs: dict[str, Any] = {}
        for _ in range(MAX_ROUNDS):
            result = await self._connection.call(method, {**asked, **inputs}, seconds=timeout, on_notice=on_notice)
            if not isinstance(result, InputWanted):
                return result
            inputs = await self._connection.inputs(result)
        raise McpError(f"{method} was not settled in {MAX_ROUNDS} rounds")

    async def ping(self) -> None:
        """Returns when the server has answered; where there is no ping any more, it is asked what it is.

        Raises like `request`.
        """
        await self.request("server/discover" if self.stateless else "ping")

    async def set_log_level(self, level: LogLevel) -> None:
        """Has the server send the log messages of this level and graver ones from now on. Raises like `request`."""
        self._options = replace(self._options, log_level=level)
        self._connection.session.log_level(level)
        if not self.stateless:
            await self.request("logging/setLevel", {"level": level})

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Sends a notification, soon."""
        self._connection.notify(method, dict(params or {}))

    # Subscriptions

    @asynccontextmanager
    async def subscribed(
        self, uris: Sequence[str], callback: Notify, *, lists: bool = True
    ) -> AsyncIterator[Subscription]:
        """Has `callback` told of changes of `uris`, and with `lists` of the lists, until the end of the block.

        The server has taken the subscription when the block begins. In the stateless era it may leave out what it
        does not serve: see `honoured`. Raises like `request`.
        """
        if self._connection.gone.is_set():
            await self._revive(OPENING_SECONDS)
        subscription = Subscription(tuple(uris), callback, lists)
        open_one = self._listening if self.stateless else self._subscribing
        async with open_one(subscription):
            yield subscription

    @asynccontextmanager
    async def _listening(self, subscription: Subscription) -> AsyncIterator[None]:
        connection = self._connection
        id_ = connection.session.request("subscriptions/listen", {"notifications": subscription.filter()})
        with connection.sent(id_, subscription.take) as waiter:
            subscription.wait_for_end = waiter.wait
            with anyio.fail_after(OPENING_SECONDS):
                await _opened(subscription, waiter)
            yield

    @asynccontextmanager
    async def _subscribing(self, subscription: Subscription) -> AsyncIterator[None]:
        taken: list[str] = []
        connection = self._connection
        subscription.wait_for_end = connection.gone.wait
        self._subscriptions.append(subscription)
        try:
            for uri in subscription.uris:
                await self.request("resources/subscribe", {"uri": uri})
                taken.append(uri)
            yield
        finally:
            self._subscriptions.remove(subscription)
            held = {uri for other in self._subscriptions for uri in other.uris}
            if not connection.gone.is_set():
                await self._unsubscribe([uri for uri in taken if uri not in held])

    async def _unsubscribe(self, uris: Sequence[str]) -> None:
        failures = (PeerError, ConnectionError, TimeoutError)
        with anyio.CancelScope(shield=True), anyio.move_on_after(FAREWELL_SECONDS), suppress(*failures):
            for uri in uris:
                await self.request("resources/unsubscribe", {"uri": uri}, timeout=None)

    def _notified(self, notice: Notified) -> None:
        taken = [subscription.offer(notice) for subscription in tuple(self._subscriptions)]
        if not any(taken) and self._options.on_notification is not None:
            self._options.on_notification(notice.method, notice.params)


async def _opened(subscription: Subscription, waiter: Waiter) -> None:
    """Waits for the acknowledgement of a listen stream. Raises PeerError or ConnectionError in place of one."""

    async def refused() -> None:
        answer = await waiter.wait()
        if isinstance(answer, Failure):
            result_of(answer)
        raise ConnectionError("the server ended the stream before it began")

    async with background() as tasks:
        tasks.start_soon(refused)
        await subscription.acknowledged.wait()


def _reporting(report: Progress) -> Callable[[Notified], None]:
    """Takes progress notifications; those without a number are ignored."""

    def take(notice: Notified) -> None:
        params = notice.params
        if isinstance(params.get("progress"), int | float):
            report(params["progress"], params.get("total"), params.get("message"))

    return take
