"""2026-07-28 over real sockets: one POST, one peer."""

import json
from typing import Any

import anyio
import pytest

from shared.transports.http.limits import EndpointLimits
from tests.shared.transports.http.http_wire import (
    Json,
    Site,
    envelope,
    events,
    first_lines,
    merged,
    routing,
    served,
    visited,
)

LISTEN = "subscriptions/listen"


def echo(text: str = "hi") -> Json:
    return {"name": "echo", "arguments": {"text": text}}


async def test_an_answer_is_json() -> None:
    async with served() as site:
        answer = await site.call("tools/call", echo())
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert "mcp-session-id" not in answer.headers
        assert answer.json()["result"]["content"] == [{"type": "text", "text": "hi"}]
        assert answer.json()["result"]["resultType"] == "complete"


async def test_a_session_id_is_ignored() -> None:
    async with served() as site:
        message, headers = site.stateless("tools/call", echo())
        answer = await site.post(message, {**headers, "Mcp-Session-Id": "anything"})
        assert answer.status_code == 200
        assert "mcp-session-id" not in answer.headers
        assert (await site.health())["sessions"] == 0


async def test_notifications_make_it_a_stream() -> None:
    async with served() as site:
        message, headers = site.stateless("tools/call", {"name": "report", "arguments": {}}, progressToken="t")
        async with site.stream(message, headers) as answer:
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == "no-cache, no-transform"
            assert answer.headers["x-accel-buffering"] == "no"
            got = [one async for one in events(answer)]
        assert [one.get("method", "answer") for one in got] == ["notifications/progress"] * 2 + ["answer"]
        assert got[-1]["id"] == message["id"]


@pytest.mark.parametrize(
    ("method", "params", "status", "code"),
    [
        ("initialize", {}, 404, -32601),
        ("ping", {}, 404, -32601),
        ("logging/setLevel", {"level": "info"}, 404, -32601),
        ("resources/subscribe", {"uri": "memo://one"}, 404, -32601),
        ("resources/unsubscribe", {"uri": "memo://one"}, 404, -32601),
        ("tasks/result", {"name": "x"}, 404, -32601),
        ("nonsense", {}, 404, -32601),
        ("tools/call", {"name": "none", "arguments": {}}, 400, -32602),
        ("tools/call", {"name": "echo", "arguments": 5}, 400, -32602),
        ("prompts/get", {"name": "none"}, 400, -32602),
        ("resources/read", {"uri": "memo://none"}, 400, -32602),
        ("tools/list", {"cursor": "forged"}, 400, -32602),
        (LISTEN, {}, 400, -32602),
        ("tools/call", {"name": "favourite", "arguments": {}}, 400, -32021),
        ("tools/call", {"name": "broken", "arguments": {}}, 200, -32603),
    ],
)
async def test_the_status_of_an_error(standing: Site, method: str, params: Json, status: int, code: int) -> None:
    async with visited(standing) as site:
        answer = await site.call(method, params)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        assert answer.json()["id"] == 1
        assert "secret" not in answer.text


async def test_the_ladder_from_top_to_bottom() -> None:
    """Each request has the fault named, and all those below it."""
    async with served() as site:
        host, method, accept = {"Host": "evil.example"}, "GET", {"Accept": "text/html"}
        kind, version = {"Content-Type": "text/plain"}, {"MCP-Protocol-Version": "2026-07-28"}

        async def ask(body: Any, *headers: Json, method: str = "POST") -> tuple[int, int | None]:
            sent: Json = {}
            for one in headers:
                sent.update(one)
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            answer = await site.client.request(method, "/mcp", content=content, headers=merged(sent))
            return answer.status_code, answer.json()["error"]["code"]

        assert await ask(b"{", host, accept, kind, version, method=method) == (403, -32600)
        assert await ask(b"{", accept, kind, version, method=method) == (405, -32600)
        assert await ask(b"{", accept, kind, version) == (406, -32600)
        assert await ask(b"{", kind, version) == (415, -32600)
        assert await ask(b"{", version) == (400, -32700)
        assert await ask([], version) == (400, -32600)
        assert await ask({"jsonrpc": "2.0", "id": 1, "result": {}}, version) == (400, -32600)
        assert await ask(site.message("tools/list"), version) == (400, -32602)
        later = {"name": "echo", "arguments": 5, "_meta": {**envelope()}}
        later["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01"
        message = site.message("tools/call", later)
        assert await ask(message) == (400, -32020)
        assert await ask(message, version) == (400, -32020)
        version = {"MCP-Protocol-Version": "2099-01-01"}
        assert await ask(message, version) == (400, -32020)
        assert await ask(message, version, {"Mcp-Method": "tools/list"}) == (400, -32020)
        assert await ask(message, version, {"Mcp-Method": "tools/call"}) == (400, -32020)
        assert await ask(message, version, routing("tools/call", "echo"), version) == (400, -32022)
        message = site.message("tools/call", {**later, "_meta": envelope()})
        assert await ask(message, routing("tools/call", "echo")) == (400, -32602)
        assert (await site.health()) == {
            "status": "ok",
            "server": "sample",
            "version": "7",
            "sessions": 0,
            "streams": 0,
        }


async def test_a_repeated_routing_header() -> None:
    async with served() as site:
        message, headers = site.stateless("tools/call", echo())
        for name in ("Mcp-Method", "MCP-Protocol-Version", "Mcp-Name"):
            sent = [*merged(headers), (name, str(headers[name]))]
            answer = await site.client.post("/mcp", json=message, headers=sent)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020), name


async def test_blanks_around_header_values() -> None:
    async with served() as site:
        message, headers = site.stateless("tools/call", echo())
        padded = {name: f"\t {value} \t" for name, value in headers.items()}
        lines = [f"{name}: {value}" for name, value in merged(padded)]
        body = json.dumps(message).encode()
        async with site.raw(*lines, f"Content-Length: {len(body)}", body=body) as stream:
            assert (await stream.receive()).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("arguments", "header", "status"),
    [
        ({"region": "eu"}, "eu", 200),
        ({"region": "é"}, "=?base64?w6k=?=", 200),
        ({"region": "eu"}, None, 400),
        ({"region": "eu"}, "us", 400),
        ({}, None, 200),
    ],
)
async def test_parameters_in_headers(standing: Site, arguments: Json, header: str | None, status: int) -> None:
    async with visited(standing) as site:
        message, headers = site.stateless("tools/call", {"name": "routed", "arguments": arguments})
        answer = await site.post(message, {**headers, "Mcp-Param-Region": header})
        assert answer.status_code == status
        assert status == 200 or answer.json()["error"]["code"] == -32020


async def test_a_notification_is_accepted() -> None:
    async with served() as site:
        notification = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": envelope()}}
        for headers in ({}, {"MCP-Protocol-Version": "2026-07-28"}):
            answer = await site.post(notification, headers)
            assert (answer.status_code, answer.content) == (202, b"")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "OPTIONS"])
async def test_only_post(standing: Site, method: str) -> None:
    async with visited(standing) as site:
        headers = {"MCP-Protocol-Version": "2026-07-28"}
        answer = await site.client.request(method, "/mcp", headers=headers)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_a_client_that_leaves_cancels() -> None:
    async with served() as site:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(site.call, "tools/call", {"name": "wait", "arguments": {}})
            await site.probe.started.wait()
            tasks.cancel_scope.cancel()
        await site.probe.cancelled.wait()
        assert not site.probe.finished.is_set()
        await site.idle()


async def test_a_listen_stream() -> None:
    async with served() as site:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["memo://one"]}
        message, headers = site.stateless(LISTEN, {"notifications": wanted})
        async with site.stream({**message, "id": "sub"}, headers) as answer:
            stream = events(answer)
            ack = await anext(stream)
            assert ack["method"] == "notifications/subscriptions/acknowledged"
            assert ack["params"]["notifications"] == wanted
            assert ack["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "sub"}
            site.running.changes.prompts()
            site.running.changes.resource("memo://one")
            assert (await anext(stream))["params"]["uri"] == "memo://one"
            site.running.changes.tools()
            assert (await anext(stream))["method"] == "notifications/tools/list_changed"
            assert site.running.changes.held == 1
        await site.idle()
        assert site.running.changes.held == 0


async def test_stopping_ends_a_listen_stream_in_order() -> None:
    got: list[Json] = []

    async with served() as site, anyio.create_task_group() as tasks:
        acknowledged = anyio.Event()

        async def listen() -> None:
            message, headers = site.stateless(LISTEN, {"notifications": {"toolsListChanged": True}})
            async with site.stream(message, headers) as answer:
                async for one in events(answer):
                    got.append(one)
                    acknowledged.set()

        tasks.start_soon(listen)
        await acknowledged.wait()
        site.stop.set()
    assert {one.get("method", "answer") for one in got[1:]} == {"notifications/cancelled", "answer"}
    answer = next(one for one in got if "result" in one)
    assert answer["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == answer["id"]


async def test_keep_alive_comments() -> None:
    async with served(limits=EndpointLimits(keep_alive_seconds=0.01)) as site:
        message, headers = site.stateless(LISTEN, {"notifications": {}})
        async with site.stream(message, headers) as answer:
            lines = [line async for line in first_lines(answer, 8)]
        assert lines.count(":") >= 2


async def test_several_rounds() -> None:
    async with served() as site:
        params = {"name": "favourite", "arguments": {}}
        meta = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
        first = (await site.call("tools/call", params, **meta)).json()["result"]
        assert first["resultType"] == "input_required"
        assert first["inputRequests"]["colour"]["method"] == "elicitation/create"
        again = {
            **params,
            "requestState": first["requestState"],
            "inputResponses": {"colour": {"action": "accept", "content": {"colour": "red"}}},
        }
        second = (await site.call("tools/call", again, **meta)).json()["result"]
        assert second["content"] == [{"type": "text", "text": "red"}]


async def test_the_state_belongs_to_its_principal() -> None:
    async with served(tokens=("one", "two")) as site:
        params = {"name": "favourite", "arguments": {}}
        meta = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        message, headers = site.stateless("tools/call", params, **meta)
        first = (await site.post(message, {**headers, "X-API-Key": "one"})).json()["result"]
        message, headers = site.stateless("tools/call", {**params, "requestState": first["requestState"]}, **meta)
        assert (await site.post(message, {**headers, "X-API-Key": "one"})).status_code == 200
        assert (await site.post(message, {**headers, "X-API-Key": "two"})).status_code == 400
