"""What becomes of a call whose HTTP answer is none: it ends with a typed error, and the next call is served."""

import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from shared.client.client import Client
from shared.client.connect import connect_http
from shared.client.options import ClientOptions
from shared.errors import McpError, PeerError
from tests.shared.client.hostile import (
    CHUNKED,
    STREAM,
    Exchange,
    Fault,
    Hostile,
    chunk,
    closes,
    hostile,
    resets,
    response,
    says,
)
from tests.shared.client.leavings import nothing_left
from tests.shared.client.small import text_of

ERAS = pytest.mark.parametrize("mode", ["handshake", "stateless"])


@asynccontextmanager
async def connected(mode: str = "handshake", **options: Any) -> AsyncIterator[tuple[Hostile, Client]]:
    async with nothing_left():
        with anyio.fail_after(30):
            async with hostile() as server, connect_http(server.url, ClientOptions(mode=mode, **options)) as client:
                yield server, client


async def resets_later(exchange: Exchange) -> None:
    await exchange.send(STREAM)
    exchange.reset()


async def endless_headers(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await exchange.send(b"X-More: %b\r\n" % (b"x" * 1_000))


async def an_endless_header(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\nX-More: ")
    while True:
        await exchange.send(b"x" * 65_536)


async def endless_status(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 ")
    while True:
        await exchange.send(b"x" * 65_536)


async def endless_interim(exchange: Exchange) -> None:
    while True:
        await exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


HTML = b"<!doctype html><title>Welcome</title><h1>It works!</h1>"
JSON_HEAD = CHUNKED % b"application/json"
PACKED = "Content-Encoding: gzip\r\n"
NO_ANSWER: dict[str, Fault] = {
    "closes before": closes,
    "resets": resets,
    "closes in the status line": says(b"HTTP/1.1 20"),
    "closes in the headers": says(b"HTTP/1.1 200 OK\r\nContent-Ty"),
    "closes after the headers": says(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"
    ),
    "closes after the headers of a stream": says(STREAM),
    "resets after the headers of a stream": resets_later,
    "ends a stream at once": says(STREAM + b"0\r\n\r\n", kept=True),
    "says nothing": says(response(b""), kept=True),
    "HTML": says(response(HTML, kind="text/html"), kept=True),
    "HTML that is said to be JSON": says(response(HTML), kept=True),
    "HTML that is said to be a stream": says(response(HTML, kind="text/event-stream"), kept=True),
    "accepted": says(response(b"", "202 Accepted"), kept=True),
    "no content": says(b"HTTP/1.1 204 No Content\r\n\r\n", kept=True),
    "a part of JSON": says(response(b'{"jsonrpc": "2.0", "id": 2, "res'), kept=True),
    "no size of a chunk": says(JSON_HEAD + b"rubbish\r\n{}\r\n0\r\n\r\n"),
    "a negative size of a chunk": says(JSON_HEAD + b"-5\r\n{}\r\n0\r\n\r\n"),
    "a huge size of a chunk": says(JSON_HEAD + b"f" * 100 + b"\r\n{}\r\n0\r\n\r\n"),
    "chunks without an end": says(JSON_HEAD + chunk(b"{}")),
    "two lengths": says(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}{}"),
    "no HTTP": says(b"SSH-2.0-OpenSSH_9.9\r\n"),
    "rubbish": says(bytes(range(256)) * 4),
    "HTTP/3.0": says(response(b"{}").replace(b"HTTP/1.1", b"HTTP/3.0")),
    "packed rubbish": says(response(b"no gzip", more=PACKED)),
    "a part of a packed answer": says(response(gzip.compress(b"{}" * 100)[:20], more=PACKED)),
    "endless headers": endless_headers,
    "an endless header": an_endless_header,
    "an endless status": endless_status,
}


@ERAS
async def test_an_answer_that_is_none(mode: str) -> None:
    async with connected(mode) as (server, client):
        for fault in NO_ANSWER.values():
            server.on("tools/call", fault, times=1)
            with pytest.raises(ConnectionError):
                await client.raw.call_tool("work")
            assert text_of(await client.raw.call_tool("work")) == "done"


async def test_a_list_is_asked_for_again() -> None:
    async with connected() as (server, client):
        for fault in NO_ANSWER.values():
            server.on("tools/list", fault, times=1)
            assert [tool["name"] for tool in await client.raw.list_tools()] == ["work"]


@ERAS
async def test_a_server_that_can_not_be_opened(mode: str) -> None:
    async with nothing_left(), hostile() as server:
        for fault in NO_ANSWER.values():
            server.on("initialize", fault)
            server.on("server/discover", fault)
            with anyio.fail_after(30), pytest.raises((ConnectionError, McpError)):
                async with connect_http(server.url, ClientOptions(mode=mode)):
                    pass


STATUSES = (301, 302, 307, 308, 400, 404, 410, 429, 500, 502, 503, 504)


async def test_a_status_is_told() -> None:
    async with connected("stateless") as (server, client):
        for status in STATUSES:
            more = f"Location: {server.url}\r\n"
            server.on("tools/call", says(response(HTML, f"{status} Status", "text/html", more), kept=True), times=1)
            with pytest.raises(PeerError) as caught:
                await client.raw.call_tool("work")
            assert caught.value.code == status
            assert text_of(await client.raw.call_tool("work")) == "done"


BUSY = (429, 502, 503, 504)
PAST, FUTURE = "Wed, 21 Oct 2015 07:28:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"


@pytest.mark.parametrize("after", ["0", PAST, "soon", "-5", "1e3", "", "9" * 5_000, "31 Feb 2030"])
async def test_a_server_that_is_busy_is_asked_again(after: str) -> None:
    """At once, or after a pause of ours where it names none that can be kept."""
    async with connected() as (server, client):
        for status in BUSY:
            busy = says(response(b"", f"{status} Busy", more=f"Retry-After: {after}\r\n"), kept=True)
            server.on("tools/list", busy, times=3)
            assert [tool["name"] for tool in await client.raw.list_tools()] == ["work"]
        assert server.seen.count("tools/list") == 4 * len(BUSY)


@pytest.mark.parametrize("after", ["99999", FUTURE])
async def test_a_server_that_is_busy_for_longer_than_we_wait(after: str) -> None:
    async with connected() as (server, client):
        server.on("tools/list", says(response(b"", "503 Busy", more=f"Retry-After: {after}\r\n"), kept=True))
        with pytest.raises(PeerError) as caught:
            await client.raw.list_tools()
        assert caught.value.code == 503
        assert caught.value.data["retryAfter"] > 60
        assert server.seen.count("tools/list") == 1


NEVER: dict[str, Fault] = {"hangs": Exchange.hang, "endless interim answers": endless_interim}


@ERAS
@pytest.mark.parametrize("fault", NEVER)
async def test_an_answer_that_never_comes(fault: str, mode: str) -> None:
    async with connected(mode) as (server, client):
        server.on("tools/call", NEVER[fault], times=1)
        with pytest.raises(TimeoutError):
            await client.raw.call_tool("work", timeout=0.05)
        assert text_of(await client.raw.call_tool("work")) == "done"


PINGS = 50


async def pings(exchange: Exchange) -> None:
    asked = [{"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"} for number in range(PINGS)]
    await exchange.send(STREAM + chunk(b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in asked)))
    await exchange.hang()


async def test_answers_that_are_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server asks on and on, and each answer that it does not accept takes a connection."""
    monkeypatch.setattr("shared.transports.http.client.client.MAX_POSTS_AT_ONCE", 5)
    monkeypatch.setattr("shared.transports.http.client.client.MAX_PENDING_POSTS", 8)
    accepts = anyio.Event()

    async def wait(exchange: Exchange) -> None:
        await accepts.wait()
        await exchange.send(response(b"", "202 Accepted"))
        exchange.kept = True

    async with nothing_left(), hostile() as server:
        server.on("GET", pings)
        server.on("POST", wait)
        with anyio.fail_after(30):
            async with connect_http(server.url, ClientOptions(mode="handshake")) as client:
                for expected in (5, 8):
                    while server.seen.count("POST") < expected:
                        await anyio.sleep(0.001)
                    for _ in range(10):
                        assert text_of(await client.raw.call_tool("work")) == "done"
                    assert server.seen.count("POST") == expected
                    accepts.set()
