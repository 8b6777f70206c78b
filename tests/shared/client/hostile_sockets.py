"""Servers made of bytes, like `hostile.py`, for WebSocket and HTTP+SSE."""

import asyncio
import base64
import hashlib
import json
from dataclasses import dataclass

from tests.shared.client.hostile import STREAM, Exchange, Hostile, chunk, read_request, response, result_for

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_UPGRADED = b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %b\r\n\r\n"
TEXT, CLOSE = 1, 8


def frame(payload: bytes, opcode: int = TEXT) -> bytes:
    """A whole frame, as servers send them (RFC 6455, section 5.2)."""
    size = len(payload)
    return bytes([0x80 | opcode]) + (bytes([size]) if size < 126 else b"\x7e%b" % size.to_bytes(2, "big")) + payload


def event(data: bytes, kind: bytes = b"message") -> bytes:
    """An event of HTTP+SSE."""
    return b"event: %b\ndata: %b\n\n" % (kind, data)


class Framed(Exchange):
    """A message of a WebSocket or of HTTP+SSE, where all answers share one connection."""

    def text(self) -> bytes:
        """The good answer as it is sent."""
        return frame(json.dumps(result_for(self.message)).encode())

    async def good(self, **_header: str) -> None:
        """Answers as a good server does."""
        if "id" in self.message:
            await self.send(self.text())
        self.kept = True


class Event(Framed):
    """A message of HTTP+SSE."""

    def text(self) -> bytes:
        """The good answer as it is sent."""
        return event(json.dumps(result_for(self.message)).encode())

    async def send(self, data: bytes) -> None:
        """Writes what may be a part of an event."""
        await super().send(chunk(data))

    async def hang(self) -> None:
        """Sends nothing on the stream."""
        self.kept = True


class HostileWebSocket(Hostile):
    """A WebSocket server."""

    @property
    def url(self) -> str:
        """Where it is."""
        return f"ws://127.0.0.1:{self.port}/mcp"

    async def exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serves a connection to its end."""
        key = (await read_request(reader, writer)).headers["sec-websocket-key"].encode()
        writer.write(_UPGRADED % base64.b64encode(hashlib.sha1(key + _GUID).digest()))
        while True:
            opcode, payload = await _read_frame(reader)
            if opcode == CLOSE:
                writer.write(frame(payload, CLOSE))
                return False
            if not await self.handle(Framed("WebSocket", {}, json.loads(payload), reader, writer)):
                return False


async def _read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    opcode, size = await reader.readexactly(2)
    size &= 0x7F
    if size >= 126:
        size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
    mask = await reader.readexactly(4)
    masked = await reader.readexactly(size)
    return opcode & 0x0F, bytes(byte ^ mask[at % 4] for at, byte in enumerate(masked))


@dataclass
class HostileSse(Hostile):
    """A server of HTTP+SSE, for one client at a time."""

    stream: Exchange | None = None

    async def exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serves one request, and returns whether its connection stays open."""
        asked = await read_request(reader, writer)
        if asked.method == "GET":
            self.stream = asked
            await asked.send(STREAM + chunk(event(b"/post", b"endpoint")))
            await asked.hang()
            return False
        assert self.stream is not None
        await asked.send(response(b"", "202 Accepted"))
        message = Event("SSE", {}, asked.message, self.stream.reader, self.stream.writer)
        if not await self.handle(message):
            self.stream.writer.close()
        return True
