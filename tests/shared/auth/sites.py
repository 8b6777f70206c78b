"""A web server whose answers a test sets, also those that no framework would send."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import pytest

from shared.auth.addresses import AddressFinder


@dataclass
class Received:
    """A received request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def form(self) -> dict[str, list[str]]:
        return parse_qs(self.body.decode())


@dataclass
class Answer:
    """An answer to send."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def as_json(document: Any, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, json.dumps(document).encode(), {"content-type": "application/json", **named})


class Silence:
    """Never answers; `received` is set at the first request."""

    def __init__(self) -> None:
        self.received = asyncio.Event()

    async def __call__(self, received: Received) -> Answer:
        self.received.set()
        await asyncio.Event().wait()
        return NOT_FOUND


class Naming:
    """The requested URLs, each with that of the document that names it, against which its addresses are checked."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.urls: set[tuple[str, str | None]] = set()
        find = AddressFinder.find

        def record(addresses: AddressFinder, url: str, referrer: str | None = None) -> Awaitable[Sequence[str]]:
            self.urls.add((url, referrer))
            return find(addresses, url, referrer)

        patched.setattr(AddressFinder, "find", record)


NOT_FOUND = Answer(404, b"not found")
ReplyContext = Callable[[Received], Awaitable[Answer]]


@dataclass
class Site:
    """The port of a server, and its received requests."""

    port: int
    received: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def count(self, path: str) -> int:
        return sum(one.path.partition("?")[0] == path for one in self.received)


@asynccontextmanager
async def serving(answer: ReplyContext, tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    """Runs a site during the block, over TLS if its certificate is given."""
    site = Site(0)
    writers: list[asyncio.StreamWriter] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            received = await _read(reader)
            site.received.append(received)
            given = await answer(received)
            head = {"content-length": str(len(given.body)), "connection": "close", **given.headers}
            lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
            writer.write(f"HTTP/1.1 {given.status} X\r\n{lines}\r\n".encode() + given.body)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
        # close() alone would leave connections open when the event loop ends.
        for writer in writers:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
    return Received(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))
