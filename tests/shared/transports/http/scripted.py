"""A scripted server on a real socket, for answers that ours never gives, and a client transport to it."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel

from shared.protocol.session.events import Outgoing
from shared.protocol.wire.jsonrpc import Message, Notification, Request, Response
from shared.transports.http.client.client import HttpTransport, open_http
from shared.transports.http.client.pool import open_pool

Pieces = AsyncGenerator[bytes, None] | Iterable[bytes]


@dataclass
class ReceivedRequest:
    """A received request. Header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def name(self) -> str:
        """The last part of the posted JSON-RPC method, or else the HTTP method."""
        return json.loads(self.body)["method"].rpartition("/")[2] if self.method == "POST" else self.method


@dataclass
class Answer:
    """A response: `body` with its length, or `pieces` in chunks, after which the connection is closed unless they are
    `whole`."""

    status: int = 200
    body: bytes | str = b""
    headers: dict[str, str] = field(default_factory=dict)
    pieces: Pieces | None = None
    whole: bool = True

    async def write(self, writer: asyncio.StreamWriter) -> None:
        body = self.body.encode() if isinstance(self.body, str) else self.body
        length = f"content-length: {len(body)}" if self.pieces is None else "transfer-encoding: chunked"
        others = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        writer.write(f"HTTP/1.1 {self.status} Status\r\n{length}\r\n{others}\r\n".encode())
        if self.pieces is None:
            writer.write(body)
            return
        async with aclosing(_each(self.pieces)) as pieces:
            async for piece in pieces:
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                await writer.drain()
        if not self.whole:
            raise ConnectionError
        writer.write(b"0\r\n\r\n")


async def _each(pieces: Pieces) -> AsyncGenerator[bytes, None]:
    if isinstance(pieces, AsyncGenerator):
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece
    else:
        for piece in pieces:
            yield piece


def stream(text: str, *, whole: bool = True) -> Answer:
    """Makes an event stream that sends `text` and ends."""
    return Answer(headers={"content-type": "text/event-stream"}, pieces=[text.encode()], whole=whole)


def json_answer(message: dict[str, Any], status: int = 200, **headers: str) -> Answer:
    """A JSON-RPC message."""
    text = json.dumps({"jsonrpc": "2.0", **message})
    return Answer(status, text, {"content-type": "application/json", **headers})


def result(id: int, result: dict[str, Any], **headers: str) -> Answer:
    """Makes the successful answer to request `id`."""
    return json_answer({"id": id, "result": result}, **headers)


class Script:
    """Answers by name: the last part of a JSON-RPC method, or GET and DELETE. Other requests get 405. Bytes are
    written unchanged, and end the connection."""

    def __init__(self, **answers: Answer | bytes | list[Answer | bytes]) -> None:
        self.requests: list[ReceivedRequest] = []
        self.connections = 0
        self._answers = {key: one if isinstance(one, list) else [one] for key, one in answers.items()}

    async def answer(self, asked: ReceivedRequest) -> Answer | bytes:
        self.requests.append(asked)
        waiting = self._answers.get(asked.name)
        return waiting.pop(0) if waiting else Answer(405)

    def count(self, method: str) -> int:
        """Returns the number of requests with this HTTP method."""
        return sum(one.method == method for one in self.requests)


@asynccontextmanager
async def serving(
    script: Script | Callable[[ReceivedRequest], Awaitable[Answer | bytes]], path: str = "/mcp"
) -> AsyncIterator[str]:
    """Serves the answers of `script`; yields the URL."""
    answer = script.answer if isinstance(script, Script) else script
    tasks: set[asyncio.Task[Any] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        if isinstance(script, Script):
            script.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                given = await answer(await _request(reader))
                if isinstance(given, bytes):
                    writer.write(given)
                    await writer.drain()
                    break
                await given.write(writer)
                await writer.drain()
        writer.transport.close()

    server = await asyncio.start_server(serve, "127.0.0.1")
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{path}"
    finally:
        server.close()
        open_ones = [task for task in tasks if task is not None and not task.done()]
        for task in open_ones:
            task.cancel()
        await asyncio.gather(*open_ones)


async def _request(reader: asyncio.StreamReader) -> ReceivedRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    return ReceivedRequest(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


SESSION = {"mcp-session-id": "s-1"}
OPENED = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
NOTED = '{"jsonrpc": "2.0", "method": "notifications/x"}'
CALL = Request(2, "tools/call", {"name": "x", "arguments": {}})


@asynccontextmanager
async def transport_to(script: Any) -> AsyncIterator[HttpTransport]:
    """Yields the bare transport of `connect_http` to a server with the answers of `script`."""
    with anyio.fail_after(30):
        async with serving(script) as url, open_pool(None, url) as http, open_http(url, {}, http) as transport:
            yield transport


async def say(transport: HttpTransport, *messages: Message) -> None:
    """Sends these messages."""
    await transport.send([Outgoing(message, None) for message in messages])


async def shake_hands(transport: HttpTransport) -> None:
    """Opens a session, which the script must answer."""
    await say(transport, Request(1, "initialize", {}))
    assert isinstance((await transport.receive())[0], Response)
    await say(transport, Notification("notifications/initialized"))


def handshake(**answers: Any) -> Script:
    """Makes a script that opens the session s-1, with `answers` to other requests."""
    return Script(initialize=result(1, OPENED, **SESSION), initialized=Answer(202), **answers)


async def until_lost(transport: HttpTransport) -> list[Message]:
    """Returns all messages received before the connection is lost."""
    received: list[Message] = []
    with suppress(anyio.BrokenResourceError):
        while True:
            received += await transport.receive()
    return received


async def answer_to(answer: Answer | bytes) -> Message:
    """Returns what a client receives for a call with this answer."""
    async with transport_to(Script(call=answer)) as transport:
        await say(transport, CALL)
        return (await transport.receive())[0]
