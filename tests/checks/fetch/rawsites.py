"""A site that sends just the bytes that a test has made, one answer for each connection."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def opened_raw_site(answer: Callable[[str], bytes]) -> AsyncIterator[int]:
    """The port of a site that answers each path with these bytes and closes, and closes on what is no GET."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            if await reader.readexactly(4) == b"GET ":
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(answer(head.split(b" ", 1)[0].decode("latin-1")))
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def redirect_to(location: str) -> bytes:
    """A redirect to what may be no URL at all."""
    written = location.replace("\r", "").replace("\n", "").encode("utf-8", "surrogatepass")
    return b"HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: " + written + b"\r\n\r\n"
