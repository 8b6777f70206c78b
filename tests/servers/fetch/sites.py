"""Web sites for tests: servers on real sockets that send exactly the given bytes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from ssl import SSLContext
from typing import NamedTuple


class ReceivedRequest(NamedTuple):
    """A request that a site received."""

    target: str
    headers: dict[str, str]
    """Values by lower-case name."""
    reader: asyncio.StreamReader

    async def until_closed(self) -> None:
        """Returns when the client has closed the connection."""
        with suppress(ConnectionError):
            await self.reader.read()


Route = bytes | Callable[[ReceivedRequest, asyncio.StreamWriter], Awaitable[None]]
"""The whole response, or a function that writes it, after which the connection is closed."""


def answer(body: bytes | str = b"", status: int = 200, **headers: str) -> bytes:
    """Makes a response with its length; `content_type="text/plain"` becomes the header Content-Type."""
    body = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} X", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode("latin-1") + body


def redirect(where: str, status: int = 302) -> bytes:
    return answer(status=status, location=where)


class Gate:
    """A route that answers once it is open, and counts the waiting requests."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.now = 0
        self.most = 0

    async def __call__(self, _: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await self.open.wait()
        # Counted down before the answer: the next request may come as soon as the client has read it.
        self.now -= 1
        out.write(answer("x"))

    async def until(self, count: int) -> None:
        async with asyncio.timeout(30):
            while self.now < count:
                await asyncio.sleep(0)


class Site:
    """A server with a route for each path, `*` for all others. Without `/robots.txt` there is none (404)."""

    def __init__(self, routes: Mapping[str, Route]) -> None:
        self.routes = dict(routes)
        self.requests: list[ReceivedRequest] = []
        """The requests in order, without those for robots.txt."""
        self.robots_requests: list[ReceivedRequest] = []
        self.connections = 0
        self.port = 0

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        return [one.target for one in self.requests]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._answer(reader, writer):
                pass
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.split(": ", 1) for line in head[1:] if line)
        request = ReceivedRequest(head[0].split(" ")[1], {name.lower(): value for name, value in pairs}, reader)
        (self.robots_requests if request.target == "/robots.txt" else self.requests).append(request)
        route = self.routes.get(request.target.partition("?")[0])
        if route is None:
            route = (
                answer(status=404) if request.target == "/robots.txt" else self.routes.get("*", answer(status=404))
            )
        if not isinstance(route, bytes):
            await route(request, writer)
            return False
        writer.write(route)
        await writer.drain()
        return b"content-length" in route.partition(b"\r\n\r\n")[0].lower()


@asynccontextmanager
async def opened_site(routes: Mapping[str, Route], secure: SSLContext | None = None) -> AsyncIterator[Site]:
    """Runs a site on a free port of 127.0.0.1, with TLS if it is `secure`."""
    site = Site(routes)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(asyncio.CancelledError):
            await site.serve(reader, writer)
        writer.close()
        tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=secure)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks)
