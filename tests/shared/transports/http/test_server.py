"""The HTTP server as a whole: guards, limits, misbehaving clients, start and stop."""

import asyncio
import contextlib
import gc
import gzip
import json
import socket
import struct
from collections.abc import AsyncIterator

import anyio
import httpx
import pytest
from anyio.abc import SocketAttribute

from shared.transports.http.engine import connections as http_connections
from shared.transports.http.limits.endpoint_limits import EndpointLimits, SessionLimits
from shared.transports.http.listener import listen
from shared.transports.http.server import HttpOptions, http_app, run_http
from tests.shared.transports.http.http_wire import (
    Json,
    Site,
    events,
    make_server,
    merged,
    plain_client,
    served,
    visited,
)

SMALL = EndpointLimits(body_bytes=1_000)


# Guards
GUARDED: list[tuple[Json, int]] = [
    ({"Host": "evil.example"}, 403),
    ({"Host": "localhost:1"}, 200),
    ({"Host": "[::1]:1"}, 200),
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": "http://localhost:6274"}, 200),
]


async def test_host_and_origin_headers_are_checked(standing: Site) -> None:
    async with visited(standing) as site:
        for headers, status in GUARDED:
            message, routing = site.stateless("tools/list")
            answer = await site.post(message, {**routing, **headers})
            assert answer.status_code == status, headers
            if status == 403:
                assert "evil" not in answer.text
                assert "id" not in answer.json()
            for method in ("GET", "DELETE", "OPTIONS"):
                answer = await site.client.request(method, "/mcp", headers=headers)
                assert (answer.status_code == 403) is (status == 403), (method, headers)
            assert (await site.client.get("/healthz", headers=headers)).status_code == status


async def test_allowed_hosts_and_origins_are_accepted() -> None:
    async with served(allowed_hosts=("mcp.example",), allowed_origins=("https://app.example",)) as site:
        headers = {"Host": "mcp.example", "Origin": "https://app.example"}
        message, routing = site.stateless("tools/list")
        assert (await site.post(message, {**routing, **headers})).status_code == 200


async def test_pages_of_an_allowed_origin_pass_cors() -> None:
    async with served(tokens=("secret",)) as site:
        origin = {"Origin": "http://localhost:6274"}
        preflight_headers = {
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization, mcp-param-x",
        }
        preflight = await site.client.options("/mcp", headers={**origin, **preflight_headers})
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-headers"] == "authorization, mcp-param-x"
        evil = await site.client.options("/mcp", headers={"Origin": "http://evil.example", **preflight_headers})
        assert (evil.status_code, evil.headers.get("access-control-allow-origin")) == (403, None)
        refused = await site.post(site.message("ping"), origin)
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, "*")
        answer = await site.call("tools/list")
        assert "access-control-allow-origin" not in answer.headers
        await site.initialize(headers={**origin, "X-API-Key": "secret"})


NO_TOKEN: list[tuple[Json, str]] = [
    ({}, "Bearer"),
    ({"Authorization": "Bearer wrong"}, 'Bearer error="invalid_token"'),
    ({"X-API-Key": "wrong"}, 'Bearer error="invalid_token"'),
]


async def test_requests_without_a_valid_token_get_401() -> None:
    async with served(tokens=("secret",)) as site:
        session = await site.initialize(headers={"Authorization": "Bearer secret"})
        for wrong, challenge in NO_TOKEN:
            headers = {"Mcp-Session-Id": session["Mcp-Session-Id"], **wrong}
            for request in ("POST /mcp", "GET /mcp", "DELETE /mcp", "PUT /mcp", "GET /x"):
                answer = await site.client.request(*request.split(), headers=headers, content=b"{")
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, challenge), (request, wrong)
        assert (await site.client.get("/healthz")).status_code == 200
        for right in ({"Authorization": "bearer secret"}, {"X-API-Key": "secret"}):
            answer = await site.post(site.message("ping"), {**session, "Authorization": None, **right})
            assert answer.status_code == 200


async def test_the_path_of_a_server_may_end_in_a_slash() -> None:
    async with served() as site:
        message, headers = site.stateless("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
        answer = await site.client.post("/mcp/", json=message, headers=merged(headers))
        assert (answer.status_code, answer.json()["id"]) == (200, message["id"])


async def test_other_paths_get_404() -> None:
    async with served() as site:
        for path in ("/", "/mcp//", "/mcp/x", "/healthz/", "/docs"):
            answer = await site.client.get(path)
            assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json"), path
        assert (await site.client.post("/healthz")).status_code == 405
        assert "server" not in answer.headers


# Limits


async def test_a_too_large_body_gets_413() -> None:
    async with served(limits=SMALL) as site:

        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(20):
                yield b" " * 100

        for content in (b" " * 1_001, chunks()):
            answer = await site.client.post("/mcp", content=content, headers=merged(None))
            assert answer.status_code == 413
        fits = json.dumps(site.message("ping")).encode().ljust(1_000)
        assert (await site.post(fits, await site.initialize())).status_code == 200


@pytest.mark.parametrize("stateless", [True, False])
async def test_a_gzipped_body_is_accepted(standing: Site, stateless: bool) -> None:
    async with visited(standing) as site:
        if stateless:
            message, headers = site.stateless("tools/list")
        else:
            message, headers = site.message("tools/list"), await site.initialize()
        packed = gzip.compress(json.dumps(message).encode())
        answer = await site.post(packed, {**headers, "Content-Encoding": "gzip"})
        assert answer.json() == (await site.post(message, headers)).json()


REFUSED_BODIES = [
    (gzip.compress(bytes(1_001), mtime=0), "gzip", 413, "the body may have at most 1,000 bytes"),
    (gzip.compress(b"{}", mtime=0)[:-1], "gzip", 400, "the gzipped body ends too early"),
    (2 * gzip.compress(b"{}", mtime=0), "gzip", 400, "the gzipped body continues after its end"),
    (b"{}", "gzip", 400, "the body is not valid gzip"),
    (b"{}", "br", 415, "a body may be compressed only with gzip"),
    (b"{}", "gzip, gzip", 415, "a body may be compressed only with gzip"),
]


async def test_invalid_compressed_bodies_are_refused() -> None:
    async with served(limits=SMALL) as site:
        for body, coding, status, reason in REFUSED_BODIES:
            answer = await site.post(body, {"Content-Encoding": coding})
            assert (answer.status_code, answer.json()["error"]["message"]) == (status, reason)
            assert answer.headers.get("accept-encoding") == ("gzip" if status == 415 else None)
        assert (await site.post(site.message("ping"), await site.initialize())).status_code == 200


async def test_a_body_that_never_arrives_gets_408() -> None:
    async with served(limits=EndpointLimits(body_seconds=0.02)) as site:
        lines = [f"{name}: {value}" for name, value in merged(None)]
        async with site.raw(*lines, "Content-Length: 10", body=b"{") as stream:
            answer = await stream.receive()
            assert answer.startswith(b"HTTP/1.1 408")
            assert b"connection: close" in answer
            assert b"the body did not arrive in time" in answer
            with contextlib.suppress(anyio.EndOfStream):
                await stream.receive()


async def test_an_endless_head_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served() as site:
        async with await anyio.connect_tcp("127.0.0.1", site.port) as stream:
            await stream.send(b"GET /mcp HTTP/1.1\r\nX: ")
            with contextlib.suppress(anyio.BrokenResourceError):
                for _ in range(1_000):
                    await stream.send(b"x" * 10_000)
            with contextlib.suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                assert b"400" in await stream.receive()
        with monkeypatch.context() as patch:
            patch.setattr(http_connections, "HEAD_SECONDS", 0.02)
            async with await anyio.connect_tcp("127.0.0.1", site.port) as stream:
                # On a busy machine the end may arrive before the incomplete head.
                with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):  # noqa: PT012
                    await stream.send(b"GET /mcp HTTP/1.1\r\nX: ")
                    await stream.receive()
        assert (await site.client.get("/healthz")).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("stateless", [True, False])
async def test_a_client_that_does_not_read_does_not_block_others(
    stateless: bool, caplog: pytest.LogCaptureFixture
) -> None:
    limits = EndpointLimits(sessions=SessionLimits(stream_bytes=100_000))
    async with served(limits=limits) as site:
        session = await site.initialize()
        params = {"name": "flood", "arguments": {}}
        level = {"io.modelcontextprotocol/logLevel": "info"}
        message, headers = site.stateless("tools/call", params, **level)
        if not stateless:
            message, headers = site.message("tools/call", params), session
        body = json.dumps(message).encode()
        lines = [f"{name}: {value}" for name, value in merged(headers)]
        async with site.raw(*lines, f"Content-Length: {len(body)}", body=body):
            await site.probe.started.wait()
            for _ in range(5):
                assert (await site.post(site.message("ping"), session)).status_code == 200
            if not stateless:
                await site.probe.finished.wait()
                await site.idle()
        await site.idle()
    assert "uvicorn.error" not in {record.name for record in caplog.records}


async def test_disconnected_clients_leave_no_tasks() -> None:
    async with served() as site:
        await site.health()
        previous = len(asyncio.all_tasks())
        lines = [f"{name}: {value}" for name, value in merged(None)]
        opening = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", '
        for request, body in (("POST /mcp", b'{"jsonrpc"'), ("POST /mcp", opening), ("GET /mcp", b"")):
            for _ in range(20):
                async with site.raw(*lines, f"Content-Length: {len(body) + 9}", body=body, request=request):
                    pass
        await _settled(previous)
        assert await site.health() == {**await site.health(), "sessions": 0, "streams": 0}


@pytest.mark.parametrize("count", [20, pytest.param(500, marks=pytest.mark.slow)])
async def test_abandoned_calls_leave_no_tasks(count: int) -> None:
    async with served() as site:
        await site.health()
        previous = len(asyncio.all_tasks())
        for name in ("wait", "report"):
            message, headers = site.stateless("tools/call", {"name": name, "arguments": {}}, progressToken=1)
            body = json.dumps(message).encode()
            lines = [f"{key}: {value}" for key, value in merged(headers)]
            for _ in range(count):
                async with site.raw(*lines, f"Content-Length: {len(body)}", body=body):
                    pass
        await site.idle()
        await _settled(previous)
        assert (await site.health())["sessions"] == 0


async def _settled(tasks: int) -> None:
    while len(asyncio.all_tasks()) > tasks:
        await anyio.lowlevel.checkpoint()


# Start and stop


async def test_a_busy_port_raises_os_error() -> None:
    app = make_server()
    with socket.create_server(("127.0.0.1", 0)) as busy:
        async with app.open() as running:
            with pytest.raises(OSError, match="in use"):
                await run_http(running, HttpOptions(port=busy.getsockname()[1]))


@pytest.mark.parametrize(
    "options", [HttpOptions(tokens=("",)), HttpOptions(allowed_hosts=("a b",)), HttpOptions(allowed_origins=("x",))]
)
async def test_unusable_options_are_refused(options: HttpOptions) -> None:
    async with make_server().open() as running:
        with pytest.raises(ValueError, match=r"token|host"):
            await run_http(running, options)
        assert http_app(running, HttpOptions()).mounts[0].endpoint.sessions == 0


@pytest.mark.slow
async def test_a_reset_connection_is_freed() -> None:
    def count_connections() -> int:
        gc.collect()
        return sum(isinstance(one, http_connections.Connection) for one in gc.get_objects())

    async with served() as site:
        previous = count_connections()
        async with site.raw(request="GET /healthz") as stream:
            await stream.receive()
            assert count_connections() == previous + 1
            # It is reset, not closed in order.
            raw = stream.extra(SocketAttribute.raw_socket)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        while count_connections() > previous:
            await anyio.lowlevel.checkpoint()


async def test_stopping_closes_the_port() -> None:
    async with served() as site:
        session = await site.initialize()
        async with site.client.stream("GET", "/mcp", headers=merged(session)) as stream:
            site.stop.set()
            assert [one async for one in events(stream)] == []
    with pytest.raises(httpx.ConnectError):
        await _connect(site)


async def test_a_stopping_worker_closes_connections_and_leaves_new_ones_to_others() -> None:
    loop, listener = asyncio.get_running_loop(), listen("127.0.0.1", 0)
    with listener.dup() as others:
        async with served(listener=listener) as site, anyio.create_task_group() as tasks:
            answers = []

            async def wait() -> None:
                answers.append(await site.call("tools/call", {"name": "wait", "arguments": {}}))

            assert "connection" not in (await site.call("tools/list")).headers
            tasks.start_soon(wait)
            await site.running.state.started.wait()
            assert "connection" not in (await site.call("tools/list")).headers
            site.stop.set()
            # The connection was idle; the answer on the other is still due.
            answers.append(await site.call("tools/list"))
            site.running.state.release.set()
            with socket.create_connection(("127.0.0.1", site.port)):
                accepted, _ = await loop.sock_accept(others)
                accepted.close()
        assert [(answer.status_code, answer.headers["connection"]) for answer in answers] == [(200, "close")] * 2


async def test_cancelling_closes_the_port() -> None:
    app, ready, ports = make_server(), anyio.Event(), []

    def started(_host: str, port: int) -> None:
        ports.append(port)
        ready.set()

    async with app.open() as running, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: run_http(running, HttpOptions(port=0), started=started))
        with anyio.fail_after(30):
            await ready.wait()
        tasks.cancel_scope.cancel()
    with socket.socket() as sock, pytest.raises(ConnectionRefusedError):
        sock.connect(("127.0.0.1", ports[0]))


async def _connect(site: Site) -> None:
    async with plain_client() as client:
        await client.get(f"http://127.0.0.1:{site.port}/healthz")
