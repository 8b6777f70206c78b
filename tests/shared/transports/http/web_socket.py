"""A WebSocket client made of bytes, which may send invalid frames (RFC 6455, section 5.2)."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.shared.transports.http.http_wire import NEWEST_HANDSHAKE, PATIENCE, Json, Site

CONTINUED, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "mcp",
}
"""The headers of the example of the specification (section 1.2), which is answered with `ACCEPTED`."""
ACCEPTED = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
MASK = b"\x01\x02\x03\x04"


@dataclass(frozen=True)
class Frame:
    """A frame sent by the server."""

    opcode: int
    data: bytes

    @property
    def closing(self) -> tuple[int, str]:
        """The code and the reason of a close frame."""
        assert self.opcode == CLOSE, self
        return int.from_bytes(self.data[:2]), self.data[2:].decode()


class WebSocket:
    """One connection, after the handshake."""

    def __init__(self, site: Site, stream: SocketStream, received: BufferedByteReceiveStream, head: str) -> None:
        self.site = site
        self.stream = stream
        self.head = head
        """The answer to the handshake, in lower case."""
        self._received = received

    async def send(self, message: Any) -> None:
        """Sends a message, or text unchanged."""
        await self.frame(TEXT, message if isinstance(message, bytes) else json.dumps(message).encode())

    async def frame(self, opcode: int, data: bytes = b"", *, last: bool = True) -> None:
        """Sends one frame."""
        await self.stream.send(frame(opcode, data, last=last))

    async def next(self) -> Frame:
        """Returns the next frame. Raises EndOfStream or IncompleteRead at the end."""
        with anyio.fail_after(PATIENCE):
            first, length = await self._received.receive_exactly(2)
            if length > 125:
                length = int.from_bytes(await self._received.receive_exactly(2 if length == 126 else 8))
            return Frame(first & 0x0F, await self._received.receive_exactly(length))

    async def receive(self) -> Json:
        """Returns the next message."""
        frame = await self.next()
        assert frame.opcode == TEXT, frame
        message: Json = json.loads(frame.data)
        return message

    async def request(self, method: str, params: Json | None = None) -> Json:
        """Sends a request; returns the next message, its answer."""
        message = self.site.message(method, params)
        await self.send(message)
        answer = await self.receive()
        assert answer["id"] == message["id"], answer
        return answer

    async def call(self, tool: str, **arguments: Any) -> Json:
        """Calls a tool; returns the next message, its answer."""
        return await self.request("tools/call", {"name": tool, "arguments": arguments})

    async def closed(self, *, answers: bool = True) -> tuple[int, str]:
        """Reads and answers the next frame, a close frame; returns its code and reason. Nothing may follow it."""
        closing = (await self.next()).closing
        if answers:
            with suppress(anyio.BrokenResourceError):
                await self.frame(CLOSE, closing[0].to_bytes(2))
        with anyio.fail_after(PATIENCE):
            try:
                rest = await self._received.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return closing
        raise AssertionError(f"after the close frame came {rest!r}")

    async def initialize(self, capabilities: Json | None = None) -> Json:
        """Runs the MCP handshake; returns the answer."""
        info = {"name": "test", "version": "1"}
        params = {"protocolVersion": NEWEST_HANDSHAKE, "capabilities": capabilities or {}, "clientInfo": info}
        answer = await self.request("initialize", params)
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer


def frame(opcode: int, data: bytes = b"", *, last: bool = True) -> bytes:
    """Encodes one masked frame."""
    size = len(data)
    head = bytes([opcode | (0x80 if last else 0)])
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 65_536:
        head += bytes([0x80 | 126]) + size.to_bytes(2)
    else:
        head += bytes([0x80 | 127]) + size.to_bytes(8)
    mask = MASK * (size // 4 + 1)
    masked = int.from_bytes(data) ^ int.from_bytes(mask[:size])
    return head + MASK + masked.to_bytes(size)


@asynccontextmanager
async def upgrading(
    site: Site,
    headers: dict[str, str | None] | None = None,
    *,
    early_data: bytes = b"",
    address: str | None = None,
    path: str = "/mcp",
) -> AsyncIterator[tuple[SocketStream, BufferedByteReceiveStream, str]]:
    """Requests an upgrade; yields the connection, its received bytes and the head of the answer. `headers` override
    those of the handshake, and None omits one. `early_data` is sent with the handshake."""
    lines = [f"{name}: {value}" for name, value in {**UPGRADE, **(headers or {})}.items() if value is not None]
    head = "\r\n".join([f"GET {path} HTTP/1.1", f"Host: localhost:{site.port}", *lines, "", ""]).encode()
    async with await anyio.connect_tcp("127.0.0.1", site.port, local_host=address) as stream:
        received = BufferedByteReceiveStream(stream)
        await stream.send(head + early_data)
        with anyio.fail_after(PATIENCE):
            answer = await received.receive_until(b"\r\n\r\n", 10_000)
        yield stream, received, answer.decode().lower()


@asynccontextmanager
async def web_socket(
    site: Site,
    headers: dict[str, str | None] | None = None,
    *,
    early_data: bytes = b"",
    address: str | None = None,
    path: str = "/mcp",
) -> AsyncIterator[WebSocket]:
    """Opens a WebSocket to a server."""
    async with upgrading(site, headers, early_data=early_data, address=address, path=path) as (
        stream,
        received,
        head,
    ):
        assert head.startswith("http/1.1 101 "), head
        yield WebSocket(site, stream, received, head)
