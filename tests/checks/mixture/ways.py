"""The ways to a server: each brings messages there, and hands on what comes."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Protocol

import anyio
import httpx
from anyio.abc import TaskGroup

from shared.server.run import Run
from shared.testing import connected
from tests.shared.transports.http.http_wire import Site, events, plain_client, routing
from tests.shared.transports.http.web_socket import CLOSE, PING, PONG, TEXT, web_socket

Json = dict[str, Any]
Take = Callable[[Any], None]
GONE = (
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    anyio.IncompleteRead,
    anyio.ClosedResourceError,
    httpx.HTTPError,
)


class Way(Protocol):
    """One connection, or what stands for one."""

    async def send(self, message: Any) -> None:
        """Brings a message, or a batch."""

    async def give_up(self, id: Any) -> None:
        """Cancels a request."""


class Ordered:
    """A connection on which messages keep their order."""

    def __init__(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._write = write
        self.turn = anyio.Lock()
        """Held by who writes."""

    async def send(self, message: Any) -> None:
        """Bring a message, where the connection is still there."""
        async with self.turn:
            with suppress(*GONE):
                await self._write(json.dumps(message).encode())

    async def give_up(self, id: Any) -> None:
        """Cancel a request."""
        await self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})


@asynccontextmanager
async def memory(run: Run[Any], take: Take, tasks: TaskGroup) -> AsyncIterator[Ordered]:
    """A pair of queues, as stdio is."""
    async with connected(run) as end:

        async def read() -> None:
            with suppress(*GONE):
                while True:
                    take(json.loads(await end.receive_bytes()))

        tasks.start_soon(read)
        yield Ordered(end.send_bytes)


@asynccontextmanager
async def websocket(site: Site, take: Take, tasks: TaskGroup) -> AsyncIterator[Ordered]:
    """A WebSocket."""
    token = {"authorization": site.client.headers["authorization"]}
    async with web_socket(site, token) as socket:
        way = Ordered(lambda data: socket.frame(TEXT, data))

        async def read() -> None:
            with suppress(*GONE):
                while True:
                    with suppress(TimeoutError):  # the server had nothing to say
                        frame = await socket.next()
                        if frame.opcode == TEXT:
                            take(json.loads(frame.data))
                        elif frame.opcode == PING:
                            async with way.turn:
                                await socket.frame(PONG, frame.data)
                        elif frame.opcode == CLOSE:
                            return

        tasks.start_soon(read)
        yield way


@asynccontextmanager
async def http_sse(site: Site, take: Take, tasks: TaskGroup) -> AsyncIterator[Ordered]:
    """HTTP+SSE: one stream of events, and a POST for each message."""
    endpoint, ready, ended = list[str](), anyio.Event(), anyio.CancelScope()

    async def read() -> None:
        with suppress(*GONE), ended:
            async with site.client.stream("GET", "/sse") as response:
                async for line in response.aiter_lines():
                    data = line.removeprefix("data: ")
                    if data in (line, ""):
                        continue
                    if endpoint:
                        take(json.loads(data))
                    else:
                        endpoint.append(data)
                        ready.set()

    async def write(data: bytes) -> None:
        headers = {"Content-Type": "application/json"}
        answer = await site.client.post(f"/{endpoint[0].lstrip('/')}", content=data, headers=headers)
        assert answer.status_code == 202, answer.text

    tasks.start_soon(read)
    await ready.wait()
    try:
        yield Ordered(write)
    finally:
        ended.cancel()


class Posts:
    """A POST for each message, whose answers come as they are ready."""

    def __init__(
        self, site: Site, take: Take, tasks: TaskGroup, session: Json | None, *, stands_alone: bool = False
    ) -> None:
        """`session` are the headers of each POST, or None for those that its message wants. What `stands_alone` is
        cancelled by ending its response."""
        self._stands_alone = stands_alone
        self._site = site
        self._take = take
        self._tasks = tasks
        self._session = session
        self._scopes: dict[Any, anyio.CancelScope] = {}

    async def send(self, message: Any) -> None:
        """Bring a message."""
        headers = self._session
        if headers is None:
            params = message["params"]
            headers = routing(message["method"], params.get("name") if "name" in params else params.get("uri"))
        self._tasks.start_soon(self._post, message, headers)

    async def give_up(self, id: Any) -> None:
        """Cancel a request."""
        if self._stands_alone:
            self._scopes[id].cancel()
        else:
            params = {"requestId": id}
            await self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    async def _post(self, message: Any, headers: Json) -> None:
        id_ = message.get("id") if isinstance(message, dict) else None
        with suppress(*GONE), anyio.CancelScope() as scope:
            self._scopes[id_] = scope
            async with self._site.stream(message, headers) as response:
                if response.headers.get("content-type") == "text/event-stream":
                    async for event in events(response):
                        self._take(event)
                elif data := await response.aread():
                    self._take(json.loads(data))


@asynccontextmanager
async def session(site: Site, take: Take, tasks: TaskGroup, opened: Json) -> AsyncIterator[Posts]:
    """A session of Streamable HTTP, which is ended in the end."""
    try:
        yield Posts(site, take, tasks, opened)
    finally:
        with anyio.CancelScope(shield=True), suppress(*GONE):
            await site.client.delete("/mcp", headers=opened)


@asynccontextmanager
async def visiting(run: Run[Any], port: int, token: str) -> AsyncIterator[Site]:
    """A client of the listener at a port, with a token."""
    headers = {"authorization": f"Bearer {token}"}
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(plain_client(base_url=f"http://127.0.0.1:{port}", headers=headers))
        client.timeout = httpx.Timeout(None)
        yield Site(run, port, anyio.Event(), client)
