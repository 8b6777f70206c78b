"""A small server with a tool for each feature that a client handles, and clients connected to it in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio
from pydantic import BaseModel

from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.concurrency import background
from shared.errors import ResourceNotFound, ToolError
from shared.extensions.dialects import DIALECTS
from shared.protocol.types.base import Implementation
from shared.server.dispatch.connection import serve
from shared.server.dispatch.context import Context
from shared.server.server import Server
from shared.transports.http.limits.endpoint_limits import EndpointLimits
from shared.transports.http.server import HttpOptions, run_http
from shared.transports.memory import MemoryTransport, memory_pair


class End:
    """The client's end of a pair, as a transport."""

    def __init__(self, end: MemoryTransport) -> None:
        self.receive = end.receive
        self.send = end.send
        self._end = end

    async def aclose(self) -> None:
        self._end.close()


class Name(BaseModel):
    name: str


class Served(Protocol):
    """The server of a test, and its run."""

    app: Server[Any]
    running: Any


class Small:
    """The server, and records of its calls."""

    def __init__(self) -> None:
        declared = {"logging": {}, "extensions": {"org.example/view": {}}}
        self.app: Server[Any] = Server(Implementation(name="small", version="1"), capabilities=declared)
        self.started = anyio.Event()
        self.cancelled = anyio.Event()
        self.subscribed: list[str] = []
        self.released = anyio.Event()
        for function in (self.add, self.count, self.wait, self.greet, self.roots, self.think, self.fail):
            self.app.tool()(function)
        self.app.resource("memo://one")(self.one)
        self.app.prompt()(self.plan)
        self.app.on_subscribe(self.hold)
        self.app.on_unsubscribe(lambda _running, key: self.release(key))
        self.running: Any = None
        self.lines: list[End] = []
        """The connections, oldest first. Closing one simulates its loss."""

    @asynccontextmanager
    async def connected(self, **options: Any) -> AsyncIterator[Client]:
        """A client; every wait ends after 30 seconds. With `reconnect` it reopens a lost connection."""
        with anyio.fail_after(30):
            async with self.joined(ClientOptions(**{"reconnect": False, **options})) as client:
                yield client

    @asynccontextmanager
    async def joined(self, options: ClientOptions) -> AsyncIterator[Client]:
        """A client with `options`."""
        async with (
            self.app.open() as self.running,
            self.line() as end,
            Client(end, options, reopen=self.line if options.reconnect else None) as client,
        ):
            yield client

    @asynccontextmanager
    async def line(self) -> AsyncIterator[End]:
        """A client's end of a new connection, which is served during the block."""
        ours, theirs = memory_pair()

        async def run() -> None:
            try:
                await serve(self.running, theirs)
            finally:
                theirs.close()

        async with background() as tasks:
            tasks.start_soon(run)
            end = End(ours)
            self.lines.append(end)
            yield end

    async def add(self, a: int, b: int) -> str:
        """Add."""
        return str(a + b)

    async def count(self, ctx: Context[None], to: int) -> str:
        """Count aloud."""
        for number in range(1, to + 1):
            await ctx.progress(number, to, f"at {number}")
        await ctx.log("warning", "counted")
        return "done"

    async def wait(self) -> str:
        """Wait for ever."""
        self.started.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled.set()
        return "never"

    async def greet(self, ctx: Context[None]) -> str:
        """Ask for a name, in two steps."""
        first = await ctx.ask("first", "Your first name?", Name)
        if first.data is None:
            return first.action
        last = await ctx.ask("last", "Your last name?", Name)
        return f"{first.data.name} {last.data.name if last.data else ''}"

    async def roots(self, ctx: Context[None]) -> str:
        """Ask for the roots."""
        return " ".join(root.uri for root in await ctx.roots())

    async def think(self, ctx: Context[None]) -> str:
        """Ask the model."""
        message = {"role": "user", "content": {"type": "text", "text": "?"}}
        return (await ctx.sample("thought", {"messages": [message], "maxTokens": 9})).text

    async def fail(self) -> str:
        """Fail."""
        raise ToolError("not today")

    async def one(self) -> str:
        """One."""
        return "the text"

    async def plan(self, goal: str) -> str:
        """Plan."""
        return f"Plan {goal}."

    async def hold(self, _ctx: object, uri: str) -> str:
        if not uri.startswith("memo://"):
            raise ResourceNotFound(uri)
        self.subscribed.append(uri)
        return uri

    async def release(self, key: str) -> None:
        self.subscribed.remove(key)
        self.released.set()


def text_of(result: dict[str, Any]) -> str:
    """The text blocks of a tool's result."""
    return "".join(block["text"] for block in result["content"])


@asynccontextmanager
async def listening(
    small: Served, *tokens: str, port: int = 0, dialects: bool = False
) -> AsyncIterator[tuple[str, anyio.Event]]:
    """The host and port of `small`, served over HTTP, and the event that stops it; every wait ends after 30 s."""
    ready, stop, address = anyio.Event(), anyio.Event(), list[Any]()

    def started(*where: Any) -> None:
        address.extend(where)
        ready.set()

    async def run() -> None:
        options = HttpOptions(port=port, tokens=tokens, limits=EndpointLimits(dialects=dialects))
        await run_http(small.running, options, started=started, stop=stop)

    with anyio.fail_after(30):
        extensions = [DIALECTS] if dialects else []
        async with small.app.open(extensions=extensions) as small.running, anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await ready.wait()
            try:
                yield f"127.0.0.1:{address[1]}", stop
            finally:
                stop.set()
