"""An HTTP client made of httpx and bytes, and the small server of the HTTP tests."""

import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import cache
from typing import Annotated, Any

import anyio
import httpx
import pytest
from anyio.abc import SocketStream
from anyio.from_thread import start_blocking_portal
from pydantic import BaseModel, Field

from shared.protocol.types.base import Implementation
from shared.protocol.wire.framing import ServerSentEvent
from shared.protocol.wire.sse import EventStream
from shared.server.dispatch.context import Context
from shared.server.server import Server
from shared.transports.http.listener import LINGER_SECONDS
from shared.transports.http.server import HttpOptions, run_http
from tests.clock import forward
from tests.quiet import quiet

PATIENCE = 20.0
NEWEST_HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
ACCEPT = "application/json, text/event-stream"

Json = dict[str, Any]
Two = Callable[..., AbstractAsyncContextManager[tuple["Site", "Site"]]]
"""What opens two runs of a server, at an endpoint each."""
IN_BOTH = pytest.mark.parametrize("two", ["memory", "redis"], indirect=True)
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Likes(BaseModel):
    """A form."""

    colour: str


class Probe:
    """Events that the tools of the server set and await."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.cancelled = anyio.Event()
        self.release = anyio.Event()
        self.finished = anyio.Event()


async def probed(_opening: Any) -> AsyncIterator[Probe]:
    yield Probe()


def make_server(lifespan: Any = probed) -> Server[Probe]:  # noqa: C901 - a list of small functions
    """Makes a server with one tool per behaviour."""
    app = Server[Probe](Implementation(name="sample", version="7"), capabilities={"logging": {}})

    app.lifespan(lifespan)

    @app.tool()
    async def echo(text: str) -> str:
        """Give back what came."""
        return text

    @app.tool()
    async def report(ctx: Context[Probe], steps: int = 2) -> str:
        """Report progress, then answer."""
        for step in range(steps):
            await ctx.progress(step + 1, steps)
        return "done"

    @app.tool()
    async def wait(ctx: Context[Probe]) -> str:
        """Wait until released."""
        ctx.state.started.set()
        try:
            await ctx.state.release.wait()
        except anyio.get_cancelled_exc_class():
            ctx.state.cancelled.set()
            raise
        ctx.state.finished.set()
        return "released"

    @app.tool()
    async def favourite(ctx: Context[Probe]) -> str:
        """Ask for a colour."""
        answer = await ctx.ask("colour", "Which one?", Likes)
        return answer.data.colour if answer.data is not None else answer.action

    @app.tool()
    async def routed(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "nowhere") -> str:
        """Mirror an argument in a header."""
        return region

    @app.tool()
    async def flood(ctx: Context[Probe]) -> str:
        """Log 20 MB."""
        ctx.state.started.set()
        for _ in range(2_000):
            await ctx.log("error", "x" * 10_000)
        ctx.state.finished.set()
        return "done"

    @app.tool()
    async def broken() -> str:
        """Fail."""
        raise RuntimeError("secret detail")

    @app.resource("memo://one")
    async def memo() -> str:
        """A memo."""
        return "text"

    @app.prompt()
    async def greet(name: str) -> str:
        """Greet somebody."""
        return f"Hello {name}"

    @app.on_subscribe
    async def begin(_ctx: object, uri: str) -> str:
        return uri

    return app


def endless_server() -> Server[Probe]:
    """Makes the same server with a tool that logs a self-containing list, which can't be encoded."""
    app = make_server()

    @app.tool()
    async def endless(ctx: Context[Probe]) -> str:
        """Log without end."""
        ring: list[Any] = []
        ring.append(ring)
        await ctx.log("error", ring)
        return "done"

    return app


class Site:
    """A running server and a client of it."""

    def __init__(self, running: Any, port: int, stop: anyio.Event, client: httpx.AsyncClient) -> None:
        self.running = running
        self.port = port
        self.stop = stop
        self.client = client
        self._last_id = 0

    @property
    def probe(self) -> Probe:
        """The events of the tools."""
        state: Probe = self.running.state
        return state

    @asynccontextmanager
    async def raw(self, *lines: str, body: bytes = b"", request: str = "POST /mcp") -> AsyncIterator[SocketStream]:
        """Opens a connection and sends a handwritten request or the beginning of one."""
        head = [f"{request} HTTP/1.1", f"Host: localhost:{self.port}", *lines, "", ""]
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            await stream.send("\r\n".join(head).encode() + body)
            yield stream

    def message(self, method: str, params: Json | None = None, id: Any = None) -> Json:
        """Makes a request with a fresh id."""
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id if id is None else id, "method": method}
        return message if params is None else {**message, "params": params}

    async def post(self, message: Any, headers: Json | None = None) -> httpx.Response:
        """POSTs a message as it is, or bytes; header values of None are left out."""
        content = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await self.client.post("/mcp", content=content, headers=merged(headers))

    def stream(self, message: Any, headers: Json | None = None) -> Any:
        """POSTs a message and reads the answer as it comes."""
        content = json.dumps(message).encode()
        return self.client.stream("POST", "/mcp", content=content, headers=merged(headers))

    def stateless(self, method: str, params: Json | None = None, **meta: Any) -> tuple[Json, Json]:
        """Makes a stateless (2026-07-28) request and its headers."""
        params = {**(params or {}), "_meta": {**envelope(), **meta}}
        named = params.get("uri") if method == "resources/read" else params.get("name")
        return self.message(method, params), routing(method, named)

    async def call(self, method: str, params: Json | None = None, **meta: Any) -> httpx.Response:
        """Sends a stateless (2026-07-28) request."""
        return await self.post(*self.stateless(method, params, **meta))

    async def initialize(
        self, version: str = NEWEST_HANDSHAKE, capabilities: Json | None = None, headers: Json | None = None
    ) -> Json:
        """Opens a session; returns the headers of its requests."""
        info = {"name": "test", "version": "1"}
        params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": info}
        answer = await self.post(self.message("initialize", params), headers)
        assert answer.status_code == 200, answer.text
        assert answer.json()["result"]["protocolVersion"] == version
        session = {**(headers or {}), "Mcp-Session-Id": answer.headers["mcp-session-id"]}
        if version >= "2025-06-18":
            session["MCP-Protocol-Version"] = version
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        accepted = await self.post(initialized, session)
        assert (accepted.status_code, accepted.content) == (202, b"")
        return session

    async def health(self) -> Json:
        """Returns the JSON of /healthz."""
        return (await self.client.get("/healthz")).json()

    async def idle(self) -> None:
        """Waits until nothing is being served."""
        while (await self.health())["streams"]:
            await anyio.lowlevel.checkpoint()


def envelope() -> Json:
    """Returns the `_meta` of every stateless (2026-07-28) request."""
    return {"io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {}}


def routing(method: str, name: str | None = None) -> Json:
    """Returns the headers of a stateless (2026-07-28) request."""
    return {"MCP-Protocol-Version": STATELESS, "Mcp-Method": method, "Mcp-Name": name}


def merged(headers: Json | None) -> list[tuple[str, str]]:
    """Returns the usual headers, overridden by `headers`."""
    usual = {"Accept": ACCEPT, "Content-Type": "application/json"}
    return [(name, value) for name, value in {**usual, **(headers or {})}.items() if value is not None]


async def events(response: httpx.Response) -> AsyncIterator[Json]:
    """Yields the messages of an event stream."""
    assert response.headers["content-type"] == "text/event-stream", response.headers
    async for line in response.aiter_lines():
        if line.removeprefix("data: ") not in (line, ""):
            yield json.loads(line.removeprefix("data: "))


async def read_events(response: httpx.Response) -> AsyncIterator[ServerSentEvent]:
    """Yields the events of a stream, including those without data."""
    assert response.headers["content-type"] == "text/event-stream", response.headers
    stream = EventStream(10_000_000)
    async for chunk in response.aiter_bytes():
        for event in stream.feed(chunk):
            assert isinstance(event, ServerSentEvent)
            yield event


async def first_events(response: httpx.Response, count: int) -> list[ServerSentEvent]:
    """Returns the first events of a stream."""
    events = read_events(response)
    return [await anext(events) for _ in range(count)]


@cache
def _sample() -> Server[Probe]:
    """Declares the server once for all tests that do not change it."""
    return make_server()


@asynccontextmanager
async def served(
    app: Server[Probe] | None = None, *, patience: float = 3 * PATIENCE, **options: Any
) -> AsyncIterator[Site]:
    """Opens a server and serves it on a free port; yields the site."""
    async with (app or _sample()).open() as running, listening(running, patience=patience, **options) as site:
        yield site


@asynccontextmanager
async def listening(running: Any, *, patience: float = 3 * PATIENCE, **options: Any) -> AsyncIterator[Site]:
    """Serves an open server on a free port; yields the site."""
    ready, stop, ports = anyio.Event(), anyio.Event(), []

    def started(_host: str, port: int) -> None:
        ports.append(port)
        ready.set()

    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await run_http(running, HttpOptions(port=0, **options), started=started, stop=stop)

        tasks.start_soon(run)
        with anyio.fail_after(PATIENCE):
            await ready.wait()
        async with _client(ports[0]) as client:
            with anyio.fail_after(patience):
                yield Site(running, ports[0], stop, client)
        stop.set()
        # uvicorn sleeps for a tenth of a second before it looks whether its connections are closed.
        with anyio.move_on_after(0.1):
            await quiet()
        forward(0.1)


def _client(port: int) -> httpx.AsyncClient:
    return plain_client(base_url=f"http://127.0.0.1:{port}")


def plain_client(**options: Any) -> httpx.AsyncClient:
    """Makes a client for many connections without TLS. It skips loading CA certificates, which takes longer than most
    tests."""
    options.setdefault("limits", httpx.Limits(max_connections=200, max_keepalive_connections=20))
    return httpx.AsyncClient(trust_env=False, verify=_NO_TLS, timeout=PATIENCE, **options)


@contextmanager
def served_meanwhile(**options: Any) -> Iterator[Site]:
    """Runs a server in a thread, for several tests to visit."""
    standing = served(patience=600, **options)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(standing) as site:
        yield site


@asynccontextmanager
async def visited(site: Site) -> AsyncIterator[Site]:
    """Yields a site of a server in a thread, with its own client. The probe belongs to that thread."""
    async with _client(site.port) as client:
        with anyio.fail_after(3 * PATIENCE):
            yield Site(site.running, site.port, site.stop, client)


async def first_lines(response: httpx.Response, count: int) -> AsyncIterator[str]:
    """Yields the first lines of an event stream."""
    async for line in response.aiter_lines():
        yield line
        count -= 1
        if not count:
            return


@asynccontextmanager
async def coming_from(site: Site, address: str) -> AsyncIterator[Site]:
    """Yields a site whose client has an address of its own."""
    transport = httpx.AsyncHTTPTransport(local_address=address)
    async with plain_client(base_url=f"http://127.0.0.1:{site.port}", transport=transport) as client:
        yield Site(site.running, site.port, site.stop, client)


async def stopped(site: Site) -> None:
    """Stops one of several replicas, and lets the time pass in which it serves its open connections."""
    site.stop.set()
    for _ in range(2):  # a moment for new connections, then the open ones
        await quiet()
        forward(LINGER_SECONDS)


@asynccontextmanager
async def calling(site: Site, *requests: tuple[Json, Json]) -> AsyncIterator[list[httpx.Response]]:
    """Runs these calls, which wait to be released, within the block; the list has their answers after it."""
    answers: list[httpx.Response] = []

    async def call(message: Json, headers: Json) -> None:
        answers.append(await site.post(message, headers))

    async with anyio.create_task_group() as tasks:
        for request in requests:
            tasks.start_soon(call, *request)
        while (await site.health())["streams"] < len(requests):
            await anyio.lowlevel.checkpoint()
        yield answers
