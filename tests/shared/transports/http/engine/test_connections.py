"""Hostile requests, and the end of a connection."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import cast

import anyio
import pytest
import uvloop

from shared.server.dispatch.limits import Limits
from shared.transports.http import server as http_server
from shared.transports.http.engine import connections as http_connections
from shared.transports.http.limits.endpoint_limits import EndpointLimits
from tests.descriptors import descriptors
from tests.quiet import quiet
from tests.shared.transports.http.http_wire import PATIENCE, Site, coming_from, make_server, merged, served


def requested(site: Site, *lines: str) -> bytes:
    head = ["POST /mcp HTTP/1.1", f"Host: localhost:{site.port}", "Content-Type: application/json", *lines]
    return "\r\n".join([*head, "Accept: application/json, text/event-stream", ""]).encode()


CHUNKED = "Transfer-Encoding: chunked"
ENDLESS = {
    "a header": ([], b"X: ", b"x" * 10_000),
    "headers": ([], b"", b"x: y\r\n" * 1_000),
    "trailers": ([CHUNKED], b"\r\n0\r\n", b"x: y\r\n" * 1_000),
    "a trailer": ([CHUNKED], b"\r\n0\r\nX: ", b"x" * 10_000),
    "a chunk extension": ([CHUNKED], b"\r\n1;x=", b"x" * 10_000),
    "chunk extensions": ([CHUNKED], b"\r\n", b"1;x=y;x=y;x=y;x=y\r\nx\r\n" * 500),
    "the size of a chunk": ([CHUNKED], b"\r\n", b"0" * 10_000),
    "a body": (["Content-Length: 1000000000"], b"\r\n", b"x" * 100_000),
}


@pytest.mark.parametrize("token", ["secret", "wrong"])
async def test_endless_heads_bodies_and_trailers_are_cut_off(token: str) -> None:
    async with served(tokens=("secret",)) as site:
        for part, (lines, start, bytes_per_body_byte) in ENDLESS.items():
            async with await anyio.connect_tcp("127.0.0.1", site.port) as stream:
                sent = requested(site, f"Authorization: Bearer {token}", *lines) + start
                with pytest.raises(anyio.BrokenResourceError):  # noqa: PT012
                    for _ in range(1_000):
                        await stream.send(sent)
                        sent = bytes_per_body_byte
                    pytest.fail(f"{part} went on")
        assert (await site.client.get("/healthz")).status_code == 200


async def test_a_too_long_chunk_header_is_answered_with_an_error() -> None:
    async with (
        served() as site,
        await anyio.connect_tcp("127.0.0.1", site.port) as stream,
        anyio.create_task_group() as tasks,
    ):

        async def send() -> None:
            await stream.send(requested(site, CHUNKED) + b"\r\n1;x=")
            with suppress(anyio.BrokenResourceError):
                while True:
                    await stream.send(b"x" * 10_000)

        tasks.start_soon(send)
        answer = await stream.receive()
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"chunks or trailers of the request are too large" in answer
        tasks.cancel_scope.cancel()


async def test_a_broken_request_is_not_refused_before_the_request_ahead_of_it_is_answered() -> None:
    app = make_server()
    app.limits = Limits(drain_seconds=0.02)
    async with served(app) as site, await anyio.connect_tcp("127.0.0.1", site.port) as stream:
        message, headers = site.stateless("tools/call", {"name": "wait"})
        body = json.dumps(message).encode()
        lines = (*(f"{name}: {value}" for name, value in headers.items()), f"Content-Length: {len(body)}")
        await stream.send(requested(site, *lines) + b"\r\n" + body)
        await stream.send(requested(site, CHUNKED) + b"\r\nnot a size\r\n")
        # The client would read an error as the answer to its first request.
        with pytest.raises(anyio.EndOfStream):
            await stream.receive()


SLOW = {
    "a head": ([], b"", b"x"),
    "a body": (["Content-Length: 1000"], b"\r\n", b"x"),
    "trailers": ([CHUNKED], b"\r\n0\r\n", b"x: y\r\n"),
    "a chunk extension": ([CHUNKED], b"\r\n1;x=", b"x"),
    "blank lines after a request": (["Content-Length: 0"], b"\r\n", b"\r\n"),
}
AWAITING_A_HEAD = ("a head", "blank lines after a request")


@pytest.mark.slow
@pytest.mark.parametrize("token", ["secret", "wrong"])
@pytest.mark.parametrize("what", SLOW)
async def test_heads_and_bodies_sent_byte_by_byte_are_cut_off(
    what: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    head_seconds, body_seconds = (0.1, 60.0) if what in AWAITING_A_HEAD else (60.0, 0.1)
    monkeypatch.setattr(http_connections, "HEAD_SECONDS", head_seconds)
    lines, start, bytes_per_body_byte = SLOW[what]
    async with (
        served(tokens=("secret",), limits=EndpointLimits(body_seconds=body_seconds)) as site,
        await anyio.connect_tcp("127.0.0.1", site.port) as stream,
    ):
        await stream.send(requested(site, f"Authorization: Bearer {token}", *lines) + start)
        with pytest.raises(anyio.BrokenResourceError), anyio.fail_after(PATIENCE):  # noqa: PT012
            while True:
                await stream.send(bytes_per_body_byte)
                await anyio.sleep(0.01)


@pytest.mark.parametrize(("token", "status"), [("secret", b"413"), ("wrong", b"401")])
async def test_a_refusal_reaches_a_client_that_is_still_sending(token: str, status: bytes) -> None:
    lines = f"Authorization: Bearer {token}", "Connection: close", "Content-Length: 5000000"
    async with served(tokens=("secret",)) as site, await anyio.connect_tcp("127.0.0.1", site.port) as stream:
        await stream.send(requested(site, *lines) + b"\r\n")
        await quiet()
        for _ in range(50):
            await stream.send(b"x" * 100_000)
        answer = await stream.receive()
        assert answer.startswith(b"HTTP/1.1 " + status)
        with suppress(anyio.EndOfStream), anyio.fail_after(PATIENCE):
            while True:
                await stream.receive()


async def test_the_number_of_headers_has_a_limit() -> None:
    async with served() as site:
        for count, status in ((http_connections.MAX_HEADERS, 200), (http_connections.MAX_HEADERS + 1, 400)):
            lines = [f"X-{number}: {number}" for number in range(count - 2)]  # Host and Connection make up the rest
            async with site.raw("Connection: close", *lines, request="GET /healthz") as stream:
                assert (await stream.receive()).startswith(f"HTTP/1.1 {status}".encode())


@pytest.mark.parametrize("name", ["Authorization: Bearer secret", "X-API-Key: secret"])
async def test_credentials_in_a_trailer_are_ignored(name: str) -> None:
    async with served(tokens=("secret",)) as site:
        body = json.dumps(site.message("ping")).encode()
        trailed = b"%x\r\n%b\r\n0\r\n%b\r\n\r\n" % (len(body), body, name.encode())
        async with site.raw(*[f"{one}: {value}" for one, value in merged(None)], CHUNKED, body=trailed) as stream:
            assert (await stream.receive()).startswith(b"HTTP/1.1 401")


@pytest.mark.slow
async def test_a_body_in_tiny_chunks_is_accepted() -> None:
    """Clients that stream JSON piece by piece send such chunks."""
    async with served() as site:
        session = await site.initialize()
        body = json.dumps(site.message("tools/call", {"name": "echo", "arguments": {"text": "x" * 50_000}})).encode()

        async def chunks() -> AsyncIterator[bytes]:
            for at in range(0, len(body), 5):
                yield body[at : at + 5]

        answer = await site.client.post("/mcp", content=chunks(), headers=merged(session))
        assert answer.json()["result"]["content"][0]["text"] == "x" * 50_000


@pytest.mark.slow
async def test_closing_does_not_wait_for_a_client_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is dropped after the linger time."""
    monkeypatch.setattr(http_connections, "_LINGER_SECONDS", 0.05)
    monkeypatch.setattr(http_server, "KEEP_ALIVE_SECONDS", 0.05)
    app = make_server()
    app.budget = replace(app.budget, result_bytes=64_000_000)
    async with served(app, limits=EndpointLimits(body_bytes=64_000_000)) as site:
        call, headers = site.stateless("tools/call", {"name": "echo", "arguments": {"text": "x" * 20_000_000}})
        body = json.dumps(call).encode()
        lines = [f"{name}: {value}" for name, value in merged(headers)]
        previous = len(descriptors())
        async with site.raw(*lines, f"Content-Length: {len(body)}", body=body):
            for still_open in (2, 1):
                with anyio.fail_after(PATIENCE):
                    while len(descriptors()) - previous != still_open:
                        await anyio.sleep(0.01)


# The requested host
TARGETS = [
    ("http://localhost:1/healthz", 200),
    ("HTTP://127.0.0.1/healthz", 200),
    ("http://evil.example/healthz", 403),
    ("http://evil.example:80/healthz", 403),
    ("http://localhost@evil.example/healthz", 403),
    ("http://evil.example#@localhost/healthz", 400),
    ("ftp://evil.example/healthz", 403),
]


async def test_the_host_of_an_absolute_target_replaces_the_header() -> None:
    """RFC 9112, section 3.2.2: the header is ignored."""
    async with served() as site:
        for target, status in TARGETS:
            async with site.raw("Connection: close", request=f"GET {target}") as stream:
                assert (await stream.receive()).startswith(f"HTTP/1.1 {status}".encode()), target


async def test_writing_to_a_closed_transport_does_not_raise() -> None:
    """In uvloop, writing to a closed transport raises."""
    faults: list[object] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        transport = cast("asyncio.Transport", writer.transport)
        corked = http_connections._CorkedTransport(transport, loop, lambda: True)
        transport.abort()
        corked.write(b"answer")
        for _ in range(10):
            await asyncio.sleep(0)
        ended.set()

    async def connect() -> None:
        loop.set_exception_handler(lambda _, fault: faults.append(fault))
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            await ended.wait()
            writer.close()

    loop, ended = uvloop.new_event_loop(), asyncio.Event()
    try:
        await asyncio.to_thread(loop.run_until_complete, connect())
    finally:
        loop.close()
    assert not faults


async def test_idle_connections_of_one_address_leave_room_for_others(caplog: pytest.LogCaptureFixture) -> None:
    async with served(connections=8) as site, coming_from(site, "127.0.0.2") as other, AsyncExitStack() as idle:
        for _ in range(7):
            await idle.enter_async_context(await anyio.connect_tcp("127.0.0.1", site.port))
        async with await anyio.connect_tcp("127.0.0.1", site.port) as refused:
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await refused.receive()
        assert "no more connections from 127.0.0.1 are accepted: it has 7 of 7" in caplog.text
        assert (await other.client.get("/healthz")).status_code == 200
        await idle.aclose()
        await quiet()
        assert (await site.client.get("/healthz")).status_code == 200


async def test_connections_of_a_trusted_proxy_are_not_counted_by_address() -> None:
    async with served(connections=2, trusted_proxies=("127.0.0.1",)) as site, AsyncExitStack() as idle:
        for _ in range(4):
            await idle.enter_async_context(await anyio.connect_tcp("127.0.0.1", site.port))
        assert (await site.client.get("/healthz")).status_code == 200
