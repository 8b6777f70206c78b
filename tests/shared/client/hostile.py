"""An HTTP server made of bytes: a test sets a fault for a method; other requests get good answers.

    async with hostile() as server:
        server.on("tools/call", lambda exchange: exchange.send(b"HTTP/1.1 200"))
        async with connect_http(server.url) as client:
            ...

It shares no code with the client under test.
"""

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, TypeVar

Json = dict[str, Any]

RESULTS: dict[str, Json] = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {"subscribe": True}}},
    "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
    "tools/list": {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
}
"""The good results; other methods get an empty one."""
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\n\r\n"
STREAM = CHUNKED % b"text/event-stream"


def result_for(message: Json) -> Json:
    """A good answer to `message`."""
    result = {"serverInfo": {"name": "hostile", "version": "1"}, **RESULTS.get(message["method"], {})}
    return {"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete", **result}}


def response(body: bytes, status: str = "200 OK", kind: str = "application/json", more: str = "") -> bytes:
    """A whole response; `more` are header lines, each with its end."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


def chunk(data: bytes) -> bytes:
    """A chunk of a body without a length."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


@dataclass
class Exchange:
    """One request, and its connection, which a fault closes unless it sets `kept`."""

    method: str
    headers: dict[str, str]
    message: Json
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    kept: bool = False
    sent: int = 0

    async def send(self, data: bytes) -> None:
        """Writes what may be part of a response. Raises ConnectionError once the client has closed."""
        self.writer.write(data)
        await self.writer.drain()
        self.sent += len(data)

    async def good(self, **header: str) -> None:
        """Answers as a good server does, and goes on."""
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in header.items())
        if self.method == "DELETE":
            await self.send(response(b""))
        elif self.method == "GET":
            await self.send(response(b"", "405 Method Not Allowed"))
        elif "id" not in self.message:
            await self.send(response(b"", "202 Accepted"))
        else:
            await self.send(response(json.dumps(result_for(self.message)).encode(), more=more))
        self.kept = True

    async def hang(self) -> None:
        """Sends nothing until the client closes the connection."""
        while await self.reader.read(65_536):
            pass

    def reset(self) -> None:
        """Ends the connection by a reset."""
        self.writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Fault = Callable[[Exchange], Awaitable[None]]


async def closes(_exchange: Exchange) -> None:
    """Ends the connection."""


async def resets(exchange: Exchange) -> None:
    """Ends the connection by a reset."""
    exchange.reset()


def says(data: bytes, *, kept: bool = False) -> Fault:
    """Sends `data`, and ends the connection unless it is `kept`."""

    async def fault(exchange: Exchange) -> None:
        exchange.kept = kept
        await exchange.send(data)

    return fault


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange:
    """Reads the next request of a connection. Raises IncompleteReadError at its end."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Exchange(head[0].split(" ")[0], headers, json.loads(body or b"{}"), reader, writer)


@dataclass
class Hostile:
    """A listener on the loopback interface."""

    port: int = 0
    seen: list[str] = field(default_factory=list)
    """The method of each request: of JSON-RPC for a POST, otherwise of HTTP."""
    exchanges: list[Exchange] = field(default_factory=list)
    """The exchanges that had a fault."""
    _faults: dict[str, tuple[Fault, int]] = field(default_factory=dict)
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def on(self, method: str, fault: Fault, times: int = 1_000_000) -> None:
        """Applies `fault` to the next `times` requests of `method`; later ones are served."""
        self._faults[method] = (fault, times)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection to its end."""
        self._writers.add(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self.exchange(reader, writer):
                pass
        writer.close()
        self._writers.discard(writer)

    async def exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serves one request, and returns whether the connection stays open."""
        return await self.handle(await read_request(reader, writer))

    async def handle(self, exchange: Exchange) -> bool:
        """Applies the fault of a request, or answers it; returns whether the connection stays open."""
        asked = exchange.message.get("method", exchange.method)
        self.seen.append(asked)
        fault, left = self._faults.get(asked, (None, 0))
        if fault is None or not left:
            await exchange.good()
        else:
            self._faults[asked] = (fault, left - 1)
            self.exchanges.append(exchange)
            await fault(exchange)
        return exchange.kept

    def close_connections(self) -> None:
        """Closes all open connections."""
        for writer in self._writers:
            writer.transport.abort()


H = TypeVar("H", bound=Hostile)


@asynccontextmanager
async def hostile(kind: type[H] = Hostile) -> AsyncIterator[H]:
    """Runs a server during the block; its connections end with it."""
    made = kind()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, limit=2**20)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        made.close_connections()
        await server.wait_closed()
