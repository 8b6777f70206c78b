"""HTTP+SSE, the transport of 2024-11-05, over real sockets."""

import asyncio
import json
import re
import socket
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from shared.server.dispatch.limits import Limits
from shared.transports.http.legacy_sse import session as legacy_session
from shared.transports.http.legacy_sse.endpoint import sse_paths
from shared.transports.http.limits import client_shares
from shared.transports.http.limits.endpoint_limits import EndpointLimits, SessionLimits
from shared.transports.http.streamable.session import CATCH_UP_SECONDS
from tests.clock import forward
from tests.quiet import quiet
from tests.shared.transports.http.http_wire import (
    PATIENCE,
    Json,
    Site,
    coming_from,
    endless_server,
    envelope,
    first_events,
    first_lines,
    make_server,
    served,
    visited,
)
from tests.shared.transports.http.sse_wire import CLIENT, initialized, streaming

PAGE = Path(__file__).resolve().parents[5] / "docs" / "http.md"
VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
UNKNOWN = "/messages?session_id=" + "x" * 43


async def closed(site: Site, but: int = 0) -> None:
    """Waits until at most so many sessions are open."""
    with anyio.fail_after(PATIENCE):
        while (await site.health())["sessions"] > but:
            await anyio.lowlevel.checkpoint()


# A session


async def test_every_handshake_version_is_served(standing: Site) -> None:
    async with visited(standing) as site:
        for version in VERSIONS:
            async with streaming(site) as client:
                assert (await client.initialize(version))["protocolVersion"] == version
                assert await client.call("echo", {"text": "hi"}) == "hi"


async def test_the_endpoint_address_is_relative_and_unguessable(standing: Site) -> None:
    async with visited(standing) as site:
        addresses = set[bytes]()
        for _ in range(3):
            async with site.client.stream("GET", "/sse") as answer:
                (first,) = await first_events(answer, 1)
            addresses.add(first.data)
    assert all(re.fullmatch(rb"messages\?session_id=[\w-]{43}", one) for one in addresses)
    assert len(addresses) == 3


async def test_the_stream_matches_the_example_in_the_documentation(standing: Site) -> None:
    shown = re.findall(r"^\$ curl -N \S+/sse\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[0]
    async with visited(standing) as site, site.client.stream("GET", "/sse") as answer:
        text, received = answer.aiter_text(), ""
        while not (found := re.findall("data: (.*)\n\n", received)):
            received += await anext(text)
        await site.client.post(found[0], json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        while not received.endswith("}\n\n"):  # it may arrive in several pieces, and on a slow machine after comments
            received = (received + await anext(text)).replace(":\n\n", "")
    assert re.sub(r"(?<=_id=)[\w-]+", "", received) == re.sub(r"(?<=_id=)[\w-]+", "", shown) + "\n"


async def test_a_session_counts_as_one_stream() -> None:
    async with served() as site:
        async with initialized(site):
            assert await site.health() == {**await site.health(), "sessions": 1, "streams": 1}
        await closed(site)
        assert (await site.health())["streams"] == 0


async def test_resource_updates_arrive_on_the_stream() -> None:
    async with served() as site, initialized(site) as client:
        await client.ask("resources/subscribe", {"uri": "memo://one"})
        site.running.changes.resource("memo://one")
        assert (await client.next())["params"] == {"uri": "memo://one"}


async def test_progress_arrives_before_the_answer(standing: Site) -> None:
    async with visited(standing) as site, initialized(site) as client:
        assert await client.call("report", {"steps": 3}, progressToken="t") == "done"
        assert [one["params"]["progress"] for one in client.told] == [1, 2, 3]


async def test_an_elicitation_is_answered_by_a_post(standing: Site) -> None:
    async with visited(standing) as site, initialized(site, capabilities={"elicitation": {}}) as client:
        asking = site.message("tools/call", {"name": "favourite", "arguments": {}})
        await client.send(asking)
        question = await client.next()
        answer = {"action": "accept", "content": {"colour": "red"}}
        await client.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        assert (await client.next())["result"]["content"][0]["text"] == "red"


async def test_a_call_is_cancelled_by_a_post() -> None:
    async with served() as site, initialized(site) as client:
        waiting = site.message("tools/call", {"name": "wait", "arguments": {}})
        await client.send(waiting)
        await site.probe.started.wait()
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": waiting["id"]}}
        await client.send(cancel)
        await site.probe.cancelled.wait()
        assert await client.ask("ping") == {"jsonrpc": "2.0", "id": waiting["id"] + 1, "result": {}}


async def test_a_batch_of_2025_03_26_is_answered_as_a_batch(standing: Site) -> None:
    async with visited(standing) as site, initialized(site, version="2025-03-26") as client:
        batch = [site.message("ping"), site.message("ping")]
        await client.send(batch)
        answers: Any = json.loads((await client.event()).data)
        assert [one["id"] for one in answers] == [one["id"] for one in batch]


async def test_comments_keep_the_stream_open() -> None:
    async with (
        served(limits=EndpointLimits(keep_alive_seconds=0.02)) as site,
        site.client.stream("GET", "/sse") as got,
    ):
        lines = [line async for line in first_lines(got, 7)]
        assert (lines[0], lines[3:]) == ("event: endpoint", [":", "", ":", ""])


# Refusals
REFUSED: list[tuple[str, str, Json, int]] = [
    ("POST", "/sse", {}, 405),
    ("DELETE", "/sse", {}, 405),
    ("GET", "/messages", {}, 405),
    ("GET", "/sse", {"Accept": "application/json"}, 406),
    ("GET", "/sse", {"MCP-Protocol-Version": "2026-07-28"}, 400),
    ("GET", "/sse", {"Host": "evil.example"}, 403),
    ("GET", "/sse", {"Origin": "https://evil.example"}, 403),
    ("POST", "/messages", {}, 404),
    ("POST", UNKNOWN, {}, 404),
    ("POST", UNKNOWN, {"Host": "evil.example"}, 403),
    ("POST", UNKNOWN, {"Origin": "https://evil.example"}, 403),
    ("POST", UNKNOWN, {"Content-Type": "text/plain"}, 415),
]


async def test_invalid_requests_are_refused(standing: Site) -> None:
    async with visited(standing) as site:
        for method, path, headers, status in REFUSED:
            sent = {"Content-Type": "application/json", "Accept": "*/*", **headers}
            answer = await site.client.request(method, path, headers=sent, content=b"{}")
            assert answer.status_code == status, (method, path, headers, answer.text)
            assert answer.json()["error"]["message"]
            allowed = {"/sse": "GET", "/messages": "POST"}[path] if status == 405 else None
            assert answer.headers.get("allow") == allowed


BODIES: list[tuple[Any, Json, int, int]] = [
    (b"garbage", {}, 400, -32700),
    (b"[]", {}, 400, -32600),
    (b"[1]", {}, 400, -32600),
    ({"id": 1}, {}, 400, -32600),
    ({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"MCP-Protocol-Version": "2025-06-18"}, 400, -32600),
    ({"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": envelope()}}, {}, 400, -32600),
]


async def test_a_refused_body_does_not_end_the_session(standing: Site) -> None:
    async with visited(standing) as site, initialized(site) as client:
        for body, headers, status, code in BODIES:
            refused = await client.post(body, headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (status, code), body
            assert await client.call("echo", {"text": "still here"}) == "still here"


async def test_stateless_requests_are_refused_with_an_answer_on_the_stream(standing: Site) -> None:
    async with visited(standing) as site, streaming(site) as client:
        for params, headers in (({"_meta": envelope()}, {}), ({}, {"MCP-Protocol-Version": "2026-07-28"})):
            await client.send(site.message("server/discover", params, id=1), headers)
            error = {"code": -32600, "message": "this protocol version is not supported over HTTP+SSE"}
            assert await client.next() == {"jsonrpc": "2.0", "id": 1, "error": error}
        await client.initialize()
        assert await client.call("echo", {"text": "x"}) == "x"


async def test_a_body_over_the_limit_is_refused() -> None:
    async with served(limits=EndpointLimits(body_bytes=1_000)) as site, initialized(site) as client:
        assert (await client.post(b" " * 1_001)).status_code == 413
        assert await client.call("echo", {"text": "x"}) == "x"


async def test_the_streamable_http_endpoint_refuses_a_legacy_session_id(standing: Site) -> None:
    async with visited(standing) as site, initialized(site) as client:
        session = {"Mcp-Session-Id": client.address.partition("=")[2]}
        assert (await site.post(site.message("ping"), session)).status_code == 404


async def test_an_address_with_two_session_ids_is_unknown(standing: Site) -> None:
    async with visited(standing) as site, initialized(site) as client:
        client.address += f"&{client.address.partition('?')[2]}"
        assert (await client.post(site.message("ping"))).status_code == 404


async def test_a_session_belongs_to_its_principal() -> None:
    async with served(tokens=("one", "two")) as site:
        assert (await site.client.get("/sse")).status_code == 401
        async with initialized(site, {"X-API-Key": "one"}) as client:
            for token, status in (("", 401), ("two", 404), ("one", 202)):
                answer = await client.post(site.message("ping"), {"X-API-Key": token})
                assert answer.status_code == status


async def test_pages_of_localhost_may_read_the_stream(standing: Site) -> None:
    async with (
        visited(standing) as site,
        site.client.stream("GET", "/sse", headers={"Origin": "http://localhost:3000"}) as answer,
    ):
        assert answer.headers["access-control-allow-origin"] == "*"


# Its end


async def test_closing_the_stream_ends_calls_subscriptions_and_the_session() -> None:
    async with served() as site:
        async with initialized(site) as client:
            await client.ask("resources/subscribe", {"uri": "memo://one"})
            await client.send(site.message("tools/call", {"name": "wait", "arguments": {}}))
            await site.probe.started.wait()
        await site.probe.cancelled.wait()
        await closed(site)
        assert (await client.post(site.message("ping"))).status_code == 404
        assert site.running.changes.subscribed_resources == 0


async def test_a_post_completed_after_the_stream_ended_is_refused() -> None:
    async with served() as site, AsyncExitStack() as stack:
        ping = json.dumps(site.message("ping")).encode()
        lines = ("Content-Type: application/json", f"Content-Length: {len(ping)}")
        async with initialized(site) as client:
            raw = await stack.enter_async_context(site.raw(*lines, body=ping[:5], request=f"POST {client.address}"))
            await client.ask("ping")  # sent after the incomplete body
        await closed(site)
        await raw.send(ping[5:])
        assert b" 404 " in await raw.receive()


async def test_a_stopping_server_finishes_running_calls() -> None:
    async with served() as site, initialized(site) as client:
        await client.send(site.message("tools/call", {"name": "wait", "arguments": {}}))
        await site.probe.started.wait()
        site.stop.set()
        site.probe.release.set()
        assert [one["result"]["content"][0]["text"] for one in await client.rest()] == ["released"]


async def test_a_stopping_server_cancels_calls_after_the_drain_time() -> None:
    app = make_server()
    app.limits = Limits(drain_seconds=0.02)
    async with served(app) as site, initialized(site) as client:
        await client.send(site.message("tools/call", {"name": "wait", "arguments": {}}))
        await site.probe.started.wait()
        site.stop.set()
        assert await client.rest() == []
        await site.probe.cancelled.wait()


async def test_a_failing_session_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    app = make_server()

    @app.on_unsubscribe
    async def fail(_running: object, _key: str) -> None:
        raise RuntimeError("the hook is broken")

    async with served(app) as site, initialized(site) as other:
        async with initialized(site) as client:
            await client.ask("resources/subscribe", {"uri": "memo://one"})
        await closed(site, but=1)
        assert await other.call("echo", {"text": "x"}) == "x"
    assert "a session failed" in caplog.text


async def test_an_unwritable_message_ends_its_stream(caplog: pytest.LogCaptureFixture) -> None:
    async with served(endless_server()) as site, initialized(site) as client:
        await client.send(site.message("tools/call", {"name": "endless", "arguments": {}}))
        with anyio.fail_after(PATIENCE):
            await client.rest()
        async with initialized(site) as other:
            assert await other.call("echo", {"text": "hi"}) == "hi"
    assert "a session failed" in caplog.text


async def test_ending_a_stream_does_not_wait_for_a_client_that_does_not_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = EndpointLimits(sessions=SessionLimits(stream_bytes=100_000_000))
    async with served(endless_server(), limits=limits) as site:
        reader, writer = await narrow(site.port)
        writer.write(b"GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n")
        address = "/" + re.findall(r"messages\?\S+", (await reader.readuntil(b"\n\n")).decode())[0]
        params = {"protocolVersion": VERSIONS[0], "capabilities": {}, "clientInfo": CLIENT}
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        # Much more than the system buffers, then the call that ends the stream.
        calls = [site.message("tools/call", {"name": name, "arguments": {}}) for name in ("flood", "endless")]
        for message in (site.message("initialize", params), initialized, *calls):
            assert (await site.client.post(address, json=message)).status_code == 202
        await quiet()
        forward(CATCH_UP_SECONDS)
        await closed(site)
        writer.close()
    assert "uvicorn.error" not in {record.name for record in caplog.records}


async def test_an_uninitialized_stream_expires() -> None:
    limits = EndpointLimits(sessions=SessionLimits(idle_seconds=0.5))
    async with served(limits=limits) as site, streaming(site) as idle, initialized(site) as used:
        assert await idle.rest() == []
        assert (await idle.post(site.message("ping"))).status_code == 404
        assert await used.call("echo", {"text": "x"}) == "x"


async def test_a_session_without_the_initialized_notification_does_not_expire() -> None:
    limits = EndpointLimits(sessions=SessionLimits(idle_seconds=0.5))
    async with served(limits=limits) as site, streaming(site) as client:
        params = {"protocolVersion": VERSIONS[0], "capabilities": {}, "clientInfo": CLIENT}
        await client.ask("initialize", params)
        async with streaming(site) as idle:
            assert await idle.rest() == []  # it was opened later
        assert (await client.ask("ping"))["result"] == {}


async def test_streams_and_sessions_share_a_limit() -> None:
    async with served(limits=EndpointLimits(sessions=SessionLimits(sessions=2))) as site:
        session = await site.initialize()
        async with initialized(site):
            refused = await site.client.get("/sse")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "60")
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
            assert (await site.post(site.message("initialize", params))).status_code == 503
        await closed(site, but=1)
        async with initialized(site) as client:
            assert await client.call("echo", {"text": "x"}) == "x"
        assert (await site.post(site.message("ping"), session)).status_code == 200


async def test_a_new_client_replaces_an_unused_stream_of_the_largest_client() -> None:
    limits = EndpointLimits(sessions=SessionLimits(sessions=4))
    async with served(limits=limits) as site, coming_from(site, "127.0.0.2") as other, AsyncExitStack() as stack:
        used = await stack.enter_async_context(initialized(site))
        unused = [await stack.enter_async_context(streaming(site)) for _ in range(3)]
        assert (await site.client.get("/sse")).status_code == 503
        async with initialized(other) as client:
            assert await unused[0].rest() == []
            assert await client.call("echo", {"text": "x"}) == "x"
        assert await used.call("echo", {"text": "x"}) == "x"


async def test_a_new_stream_replaces_an_unused_one_of_the_same_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_shares, "UNUSED_SECONDS", 0.0)
    limits = EndpointLimits(sessions=SessionLimits(sessions=1))
    async with served(limits=limits) as site, streaming(site) as unused, initialized(site) as client:
        assert await unused.rest() == []
        assert await client.call("echo", {"text": "x"}) == "x"


@pytest.mark.slow
async def test_a_client_that_never_reads_is_cut_off(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(legacy_session, "STALL_SECONDS", 0.2)
    limits = EndpointLimits(sessions=SessionLimits(stream_bytes=100_000))
    async with served(limits=limits) as site, initialized(site) as other, initialized(site) as client:
        await client.send(site.message("tools/call", {"name": "flood", "arguments": {}}))
        await site.probe.started.wait()
        assert await other.call("echo", {"text": "x"}) == "x"
        await closed(site, but=1)
        assert (await client.post(site.message("ping"))).status_code == 404
    assert "a stream was closed: its client is" in caplog.text


async def narrow(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Opens a connection with small buffers in the system and the reader."""
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    peer.connect(("127.0.0.1", port))
    return await asyncio.open_connection(sock=peer, limit=65_536)


@pytest.mark.slow
async def test_a_slow_client_that_reads_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy_session, "STALL_SECONDS", 0.2)
    async with served() as site, asyncio.timeout(PATIENCE):
        reader, writer = await narrow(site.port)
        writer.write(b"GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n")
        address = "/" + re.findall(r"messages\?\S+", (await reader.readuntil(b"\n\n")).decode())[0]
        params = {"protocolVersion": VERSIONS[0], "capabilities": {}, "clientInfo": CLIENT}
        large = {"name": "echo", "arguments": {"text": "x" * 800_000}}
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        calls = [site.message("tools/call", large) for _ in range(15)]

        async def post() -> None:
            for message in (site.message("initialize", params), initialized, *calls):
                assert (await site.client.post(address, json=message)).status_code == 202

        got = 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(post)
            while got < 12_000_000:
                await site.health()  # which takes a moment
                part = await reader.read(65_536)
                assert part, f"cut off after {got} bytes"
                got += len(part)
        writer.close()


# Paths


def test_sse_paths_derive_from_the_endpoint_path() -> None:
    paths = ("/mcp", "/files/mcp", "/here", "/sse", "/")
    assert [sse_paths(path) for path in paths] == [
        ("/sse", "/messages"),
        ("/files/sse", "/files/messages"),
        ("/here/sse", "/here/messages"),
        ("/sse/sse", "/sse/messages"),
        ("/sse", "/messages"),
    ]
