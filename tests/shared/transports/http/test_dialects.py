"""Messages of a dialect over real sockets: each POST is served by itself, and answered in the form it asks for."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import httpx
import pytest

from shared.extensions.dialects import DIALECTS
from shared.protocol.types.base import CLIENT_CAPABILITIES
from shared.transports.http.limits import EndpointLimits
from tests.shared.transports.http.http_wire import (
    ACCEPT,
    PATIENCE,
    Json,
    Site,
    events,
    listening,
    make_server,
    routing,
)
from tests.shared.transports.http.sse_wire import streaming
from tests.shared.transports.http.web_socket import web_socket

JSON, STREAM = "application/json", "text/event-stream"
LIMITS = EndpointLimits(dialects=True, body_bytes=10_000)


@asynccontextmanager
async def spoken() -> AsyncIterator[Site]:
    """A server that may be spoken to in a dialect."""
    async with make_server().open(extensions=[DIALECTS]) as running, listening(running, limits=LIMITS) as site:
        yield site


def execute(tool: str, id: Any = 1, **inputs: Any) -> Json:
    params = {"toolId": f"sample/{tool}", "inputs": inputs}
    return {"jsonrpc": "2.0", "id": id, "method": "mcp/tool/execute", "params": params}


async def raw_answer(site: Site, message: Json, *headers: str) -> tuple[str, Json]:
    """The status line and the JSON that a POST without an Accept header is answered with."""
    body = json.dumps(message).encode()
    length = f"Content-Length: {len(body)}"
    async with site.raw("Content-Type: application/json", length, *headers, "Connection: close", body=body) as stream:
        received = b"".join([part async for part in stream])
    head, _, content = received.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0].decode(), json.loads(content)


async def test_without_an_accept_header_the_answer_is_json() -> None:
    async with spoken() as site:
        status, answer = await raw_answer(site, execute("echo", text="hi"))
    assert status == "HTTP/1.1 200 OK"
    assert answer == {"jsonrpc": "2.0", "id": 1, "result": "hi"}


async def test_whoever_names_no_stream_gets_json_and_the_answer_alone() -> None:
    async with spoken() as site:
        for accept in (JSON, "*/*", "application/*"):
            answer = await site.post(execute("report", steps=3), {"Accept": accept})
            assert answer.headers["content-type"] == JSON
            assert answer.json() == {"jsonrpc": "2.0", "id": 1, "result": "done"}


async def test_whoever_takes_a_stream_alone_gets_one_whole_message_in_each_event() -> None:
    async with spoken() as site:
        async with site.stream(execute("report", "x", steps=2), {"Accept": STREAM}) as answer:
            assert answer.status_code == 200
            first, second, last = [one async for one in events(answer)]
        async with site.stream(execute("echo", text="hi"), {"Accept": STREAM}) as answer:
            assert [one async for one in events(answer)] == [{"jsonrpc": "2.0", "id": 1, "result": "hi"}]
    assert first["method"] == second["method"] == "mcp/notifications/progress"
    assert second["params"] == {"progressToken": "x", "progress": 2, "total": 2}
    assert last == {"jsonrpc": "2.0", "id": "x", "result": "done"}


async def test_whoever_takes_both_gets_what_fits() -> None:
    async with spoken() as site:
        assert (await site.post(execute("echo", text="hi"))).headers["content-type"] == JSON
        assert (await site.post(execute("report"))).headers["content-type"] == STREAM


async def test_an_error_is_an_answer_like_any_other() -> None:
    async with spoken() as site:
        for method in ("mcp/none", "mcp/tool/execute", "mcp/dialects/000/listTools"):
            answer = await site.post({"jsonrpc": "2.0", "id": None, "method": method}, {"Accept": JSON})
            assert answer.status_code == 200
            assert answer.json()["id"] is None
            assert answer.json()["error"]["code"] < 0


async def test_initialize_opens_no_session() -> None:
    async with spoken() as site:
        answer = await site.post({"jsonrpc": "2.0", "id": 1, "method": "mcp/initialize", "params": {}})
        assert (await site.health())["sessions"] == 0
    assert "mcp-session-id" not in answer.headers
    told = answer.json()["result"]
    assert told["name"] == "sample"
    assert {"mcp/listTools", "mcp/tools/call", "mcp/subscriptions/listen"} < set(told["methods"])
    assert not {"mcp/resources/subscribe", "mcp/logging/setLevel"} & set(told["methods"])


async def test_a_notification_is_taken() -> None:
    async with spoken() as site:
        cancelled = {"jsonrpc": "2.0", "method": "mcp/notifications/cancelled", "params": {"requestId": 1}}
        answer = await site.post(cancelled, {"Accept": JSON})
    assert (answer.status_code, answer.content) == (202, b"")


async def test_what_is_no_request_of_the_dialect_is_refused_under_its_id() -> None:
    async with spoken() as site:
        answer = await site.post({"id": 7, "method": "mcp/listTools"}, {"Accept": JSON})
        assert (answer.status_code, answer.json()["id"]) == (400, 7)
        assert site.running is not None
        answer = await site.post(
            {"jsonrpc": "2.0", "id": 7, "method": "mcp/listTools", "params": 1}, {"Accept": JSON}
        )
        assert answer.json()["error"]["code"] == -32602


@pytest.mark.parametrize("method", ["mcp/resources/subscribe", "mcp/logging/setLevel"])
async def test_what_lives_in_a_handshake_needs_a_stream(method: str) -> None:
    async with spoken() as site:
        answer = await site.post({"jsonrpc": "2.0", "id": 7, "method": method}, {"Accept": JSON})
    assert (answer.status_code, answer.json()["id"]) == (400, 7)
    assert "needs a stream" in answer.json()["error"]["message"]


async def test_whoever_takes_no_stream_can_not_listen() -> None:
    async with spoken() as site:
        listen = {"jsonrpc": "2.0", "id": 7, "method": "mcp/subscriptions/listen", "params": {"notifications": {}}}
        answer = await site.post(listen, {"Accept": JSON})
        assert (answer.status_code, answer.json()["id"]) == (406, 7)
        assert STREAM in answer.json()["error"]["message"]
        async with site.stream(listen, {"Accept": STREAM}) as stream:
            first = await anext(events(stream))
        assert first["method"] == "mcp/notifications/subscriptions/acknowledged"


async def test_a_client_that_goes_away_has_cancelled_its_call() -> None:
    async with spoken() as site:
        body = json.dumps(execute("wait")).encode()
        async with site.raw("Content-Type: application/json", f"Content-Length: {len(body)}", body=body):
            await site.probe.started.wait()
        with anyio.fail_after(20):
            await site.probe.cancelled.wait()


async def test_on_a_websocket_the_first_message_settles_what_is_spoken() -> None:
    async with spoken() as site, web_socket(site) as socket:
        await socket.send({"jsonrpc": "2.0", "id": None, "method": "mcp/initialize", "params": {}})
        told = await socket.receive()
        assert (told["id"], told["result"]["name"]) == (None, "sample")
        await socket.send(
            {"jsonrpc": "2.0", "id": 1, "method": "mcp/resources/subscribe", "params": [{"uri": "memo://one"}]}
        )
        assert (await socket.receive())["result"] == {}
        await socket.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        assert "document 000" in (await socket.receive())["error"]["message"]


async def test_over_http_with_sse_the_first_message_settles_what_is_spoken() -> None:
    async with spoken() as site, streaming(site) as client:
        await client.send({"jsonrpc": "2.0", "id": None, "method": "mcp/initialize", "params": {}})
        told = await client.next()
        assert (told["id"], told["result"]["name"]) == (None, "sample")
        await client.send(execute("echo", text="hi"))
        assert (await client.next())["result"] == "hi"
        await client.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        assert "document 000" in (await client.next())["error"]["message"]


async def test_a_tool_that_asks_is_refused_whatever_the_peer_declares() -> None:
    asking = execute("favourite")
    asking["params"]["_meta"] = {CLIENT_CAPABILITIES: {"elicitation": {"form": {}}}}
    async with spoken() as site, web_socket(site) as socket, streaming(site) as stream:
        answers = [(await site.post(asking, {"Accept": JSON})).json()]
        await socket.send(asking)
        answers.append(await socket.receive())
        await stream.send(asking)
        answers.append(await stream.next())
    assert [(one["id"], one["error"]["code"]) for one in answers] == [(1, -32021)] * 3


# Clients of the specification see no difference

STANDARD: list[tuple[Json, Any]] = [
    ({"Accept": JSON}, {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    ({"Accept": STREAM}, {"jsonrpc": "2.0", "id": 1, "method": "initialize"}),
    ({"Accept": "text/html"}, execute("echo", text="hi")),
    ({"Accept": JSON}, "x" * 20_000),
    ({"Accept": JSON}, b"{"),
    ({"Content-Type": "text/plain"}, execute("echo", text="hi")),
    ({"Accept": JSON, "Content-Encoding": "br"}, execute("echo", text="hi")),
    ({"Accept": JSON, "Mcp-Session-Id": "x"}, execute("echo", text="hi")),
    ({"Mcp-Session-Id": "x"}, execute("echo", text="hi")),
    (routing("mcp/tool/execute"), execute("echo", text="hi")),
    ({}, [execute("echo", text="hi")]),
]


@pytest.mark.slow
async def test_all_else_is_answered_as_where_dialects_are_off() -> None:
    off = replace(LIMITS, dialects=False)
    async with spoken() as site, make_server().open() as running, listening(running, limits=off) as other:
        for headers, body in STANDARD:
            told, usual = await site.post(body, headers), await other.post(body, headers)
            assert told.status_code == usual.status_code >= 400
            assert (told.content, said(told)) == (usual.content, said(usual)), (headers, body)


def said(answer: httpx.Response) -> list[tuple[str, str]]:
    return [header for header in answer.headers.multi_items() if header[0] != "date"]


async def test_in_a_session_the_methods_of_a_dialect_are_unknown() -> None:
    async with spoken() as site:
        answer = await site.post(execute("echo", text="hi"), {**await site.initialize(), "Accept": ACCEPT})
    assert answer.json()["error"] == {"code": -32601, "message": "method not found: mcp/tool/execute"}


async def test_who_asks_before_a_body_is_sent_is_refused_at_once() -> None:
    lines = ("Expect: 100-continue", f"Accept: {JSON}", f"Content-Type: {JSON}", "Content-Length: 40")
    async with spoken() as site, site.raw(*lines) as stream:
        with anyio.fail_after(PATIENCE):
            assert (await stream.receive()).startswith(b"HTTP/1.1 406 ")
