"""A small web server made of bytes: it says exactly what it is told to say, right or wrong."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import NamedTuple, Self

HTML = "text/html; charset=utf-8"


class Request(NamedTuple):
    """What a client asked for."""

    target: str
    headers: Mapping[str, str]
    """By name in lower case."""


Answer = bytes | AsyncIterator[bytes]
Page = Callable[[Request], Answer]


def reply(body: bytes | str, type: str = HTML, status: str = "200 OK", **headers: str) -> bytes:
    """A whole answer; `content_encoding="gzip"` is a header, and a type that is empty is left out."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", *([f"Content-Type: {type}"] if type else []), f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + data


def head(type: str = HTML, **headers: str) -> bytes:
    """The beginning of an answer that ends with its connection."""
    return re.sub(rb"Content-Length: 0\r\n", b"", reply("", type, **headers))


NOT_FOUND = reply("<p>There is no such page.</p>", status="404 Not Found")


def _not_found(_request: Request) -> bytes:
    return NOT_FOUND


class Site:
    """Listens on one address, at a port that the system chooses. What is not in `pages`, `otherwise` answers."""

    def __init__(
        self,
        pages: Mapping[str, Page | bytes],
        *,
        otherwise: Page = _not_found,
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.pages = dict(pages)
        self.asked: list[Request] = []
        self.left = asyncio.Event()
        """Set when a client has gone before its answer was complete."""
        self._otherwise, self._tls, self._host = otherwise, tls, host
        self._server: asyncio.Server
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self._host, 0, ssl=self._tls, backlog=200)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def url(self, target: str = "/", host: str | None = None) -> str:
        """The URL of a page of this site."""
        return f"{'https' if self._tls else 'http'}://{host or self._host}:{self.port}{target}"

    def count(self, target: str) -> int:
        """How often a page was asked for."""
        return sum(request.target == target for request in self.asked)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._serving.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await self._answer(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._serving.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = _parsed(await reader.readuntil(b"\r\n\r\n"))
        self.asked.append(request)
        page = self.pages.get(request.target, self._otherwise)
        answer = page if isinstance(page, bytes) else page(request)
        if isinstance(answer, bytes):
            writer.write(answer)
            await writer.drain()
            return
        try:
            async for chunk in answer:
                writer.write(chunk)
                await writer.drain()
        except OSError:
            self.left.set()


def _parsed(data: bytes) -> Request:
    first, *lines = data.decode("latin-1").rstrip().split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Request(first.split(" ")[1], {name.lower(): value.strip() for name, _, value in pairs})
