"""Stateless requests (2026-07-28) over real sockets, and requests in dialects on every transport."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import httpx

from shared.extensions.dialects import DIALECTS
from shared.protocol.types.base import CLIENT_CAPABILITIES
from shared.transports.http.limits.endpoint_limits import EndpointLimits
from tests.document_apps import document_002
from tests.shared.transports.http.http_wire import (
    ACCEPT,
    PATIENCE,
    Json,
    Site,
    envelope,
    events,
    first_lines,
    listening,
    make_server,
    merged,
    routing,
    served,
    visited,
)
from tests.shared.transports.http.sse_wire import streaming
from tests.shared.transports.http.web_socket import web_socket

LISTEN = "subscriptions/listen"


def echo(text: str = "hi") -> Json:
    return {"name": "echo", "arguments": {"text": text}}


async def test_an_answer_without_notifications_is_json() -> None:
    async with served() as site:
        answer = await site.call("tools/call", echo())
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert "mcp-session-id" not in answer.headers
        assert answer.json()["result"]["content"] == [{"type": "text", "text": "hi"}]
        assert answer.json()["result"]["resultType"] == "complete"


async def test_a_connector_with_the_header_of_an_older_version_is_served() -> None:
    async with served() as site:
        message, _ = site.stateless("tools/call", echo())
        message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = {"name": "claude-ai", "version": "1"}
        answer = await site.post(message, {"MCP-Protocol-Version": "2025-11-25"})
        assert (answer.status_code, answer.json()["result"]["resultType"]) == (200, "complete")


async def test_a_session_id_is_ignored() -> None:
    async with served() as site:
        message, headers = site.stateless("tools/call", echo())
        answer = await site.post(message, {**headers, "Mcp-Session-Id": "anything"})
        assert answer.status_code == 200
        assert "mcp-session-id" not in answer.headers
        assert (await site.health())["sessions"] == 0


async def test_notifications_make_the_answer_a_stream() -> None:
    async with served() as site:
        message, headers = site.stateless("tools/call", {"name": "report", "arguments": {}}, progressToken="t")
        async with site.stream(message, headers) as answer:
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == "no-cache, no-transform"
            assert answer.headers["x-accel-buffering"] == "no"
            got = [one async for one in events(answer)]
        assert [one.get("method", "answer") for one in got] == ["notifications/progress"] * 2 + ["answer"]
        assert got[-1]["id"] == message["id"]


async def test_a_client_that_accepts_one_media_type_gets_that() -> None:
    async with served() as site:
        message, headers = site.stateless("tools/call", {"name": "report", "arguments": {}}, progressToken="t")
        answer = await site.post(message, {**headers, "Accept": "application/json"})
        assert answer.json()["id"] == message["id"]
        message, headers = site.stateless("tools/call", echo())
        async with site.stream(message, {**headers, "Accept": "text/event-stream"}) as stream:
            assert [one["id"] async for one in events(stream)] == [message["id"]]
        message, headers = site.stateless(LISTEN, {"notifications": {}})
        answer = await site.post(message, {**headers, "Accept": "application/json"})
        assert (answer.status_code, answer.json()["id"]) == (406, message["id"])


ERRORS: list[tuple[str, Json, int, int]] = [
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
]


async def test_errors_have_their_http_status(standing: Site) -> None:
    wrong = []
    async with visited(standing) as site:
        for method, params, status, code in ERRORS:
            answer = await site.call(method, params, id=1)
            body = answer.json()
            if (answer.status_code, body["error"]["code"]) != (status, code) or "secret" in answer.text:
                wrong.append((method, params, answer.text))
    assert not wrong


async def test_the_most_basic_fault_is_reported_first() -> None:
    """Each request has the fault of its status, and all faults of the following lines."""
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


async def test_a_repeated_routing_header_is_refused() -> None:
    async with served() as site:
        message, headers = site.stateless("tools/call", echo())
        for name in ("Mcp-Method", "MCP-Protocol-Version", "Mcp-Name"):
            sent = [*merged(headers), (name, str(headers[name]))]
            answer = await site.client.post("/mcp", json=message, headers=sent)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020), name


PARAMETERS: list[tuple[Json, str | None, int]] = [
    ({"region": "eu"}, "eu", 200),
    ({"region": "é"}, "=?base64?w6k=?=", 200),
    ({"region": "eu"}, None, 400),
    ({"region": "eu"}, "us", 400),
    ({}, None, 200),
]


async def test_argument_headers_must_match_the_body(standing: Site) -> None:
    async with visited(standing) as site:
        for arguments, header, status in PARAMETERS:
            message, headers = site.stateless("tools/call", {"name": "routed", "arguments": arguments})
            answer = await site.post(message, {**headers, "Mcp-Param-Region": header})
            assert answer.status_code == status, (arguments, header)
            assert status == 200 or answer.json()["error"]["code"] == -32020


async def test_a_notification_is_accepted() -> None:
    async with served() as site:
        notification = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": envelope()}}
        for headers in ({}, {"MCP-Protocol-Version": "2026-07-28"}):
            answer = await site.post(notification, headers)
            assert (answer.status_code, answer.content) == (202, b"")


async def test_other_methods_than_post_get_405(standing: Site) -> None:
    async with visited(standing) as site:
        headers = {"MCP-Protocol-Version": "2026-07-28"}
        for method in ("GET", "DELETE", "PUT", "PATCH", "OPTIONS"):
            answer = await site.client.request(method, "/mcp", headers=headers)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST"), method


async def test_a_disconnect_cancels_a_stateless_call() -> None:
    async with served() as site:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(site.call, "tools/call", {"name": "wait", "arguments": {}})
            await site.probe.started.wait()
            tasks.cancel_scope.cancel()
        await site.probe.cancelled.wait()
        assert not site.probe.finished.is_set()
        await site.idle()


async def test_a_listen_stream_is_acknowledged_and_sends_changes() -> None:
    async with served() as site:
        notifications = {"toolsListChanged": True, "resourceSubscriptions": ["memo://one"]}
        message, headers = site.stateless(LISTEN, {"notifications": notifications})
        async with site.stream({**message, "id": "sub"}, headers) as answer:
            stream = events(answer)
            ack = await anext(stream)
            assert ack["method"] == "notifications/subscriptions/acknowledged"
            assert ack["params"]["notifications"] == notifications
            assert ack["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "sub"}
            site.running.changes.prompts()
            site.running.changes.resource("memo://one")
            assert (await anext(stream))["params"]["uri"] == "memo://one"
            site.running.changes.tools()
            assert (await anext(stream))["method"] == "notifications/tools/list_changed"
            assert site.running.changes.subscribed_resources == 1
        await site.idle()
        assert site.running.changes.subscribed_resources == 0


async def test_a_stopping_server_ends_a_listen_stream_with_its_result() -> None:
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


async def test_a_listen_stream_sends_keep_alive_comments() -> None:
    async with served(limits=EndpointLimits(keep_alive_seconds=0.01)) as site:
        message, headers = site.stateless(LISTEN, {"notifications": {}})
        async with site.stream(message, headers) as answer:
            lines = [line async for line in first_lines(answer, 8)]
        assert lines.count(":") >= 2


async def test_a_call_with_input_requests_takes_several_rounds() -> None:
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


async def test_request_state_is_valid_only_for_its_principal() -> None:
    async with served(tokens=("one", "two")) as site:
        params = {"name": "favourite", "arguments": {}}
        meta = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        message, headers = site.stateless("tools/call", params, **meta)
        first = (await site.post(message, {**headers, "X-API-Key": "one"})).json()["result"]
        message, headers = site.stateless("tools/call", {**params, "requestState": first["requestState"]}, **meta)
        assert (await site.post(message, {**headers, "X-API-Key": "one"})).status_code == 200
        assert (await site.post(message, {**headers, "X-API-Key": "two"})).status_code == 400


# Dialects: each POST stands alone, and is answered in the form that it accepts
JSON, STREAM = "application/json", "text/event-stream"
LIMITS = EndpointLimits(dialects=True, body_bytes=10_000)


@asynccontextmanager
async def spoken() -> AsyncIterator[Site]:
    """Serves with dialects enabled."""
    async with make_server().open(extensions=[DIALECTS]) as running, listening(running, limits=LIMITS) as site:
        yield site


def execute(tool: str, id: Any = 1, **inputs: Any) -> Json:
    params = {"toolId": f"sample/{tool}", "inputs": inputs}
    return {"jsonrpc": "2.0", "id": id, "method": "mcp/tool/execute", "params": params}


async def raw_answer(site: Site, message: Json, *headers: str) -> tuple[str, Json]:
    """POSTs without an Accept header; returns the status line and the JSON of the answer."""
    body = json.dumps(message).encode()
    length = f"Content-Length: {len(body)}"
    async with site.raw("Content-Type: application/json", length, *headers, "Connection: close", body=body) as stream:
        received = b"".join([part async for part in stream])
    head, _, content = received.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0].decode(), json.loads(content)


async def test_a_dialect_request_without_accept_is_answered_with_json() -> None:
    async with spoken() as site:
        status, answer = await raw_answer(site, execute("echo", text="hi"))
    assert status == "HTTP/1.1 200 OK"
    assert answer == {"jsonrpc": "2.0", "id": 1, "result": "hi"}


async def test_a_dialect_request_accepting_json_gets_the_answer_alone() -> None:
    async with spoken() as site:
        for accept in (JSON, "*/*", "application/*"):
            answer = await site.post(execute("report", steps=3), {"Accept": accept})
            assert answer.headers["content-type"] == JSON
            assert answer.json() == {"jsonrpc": "2.0", "id": 1, "result": "done"}


async def test_a_dialect_request_accepting_a_stream_gets_one_message_per_event() -> None:
    async with spoken() as site:
        async with site.stream(execute("report", "x", steps=2), {"Accept": STREAM}) as answer:
            assert answer.status_code == 200
            first, second, last = [one async for one in events(answer)]
        async with site.stream(execute("echo", text="hi"), {"Accept": STREAM}) as answer:
            assert [one async for one in events(answer)] == [{"jsonrpc": "2.0", "id": 1, "result": "hi"}]
    assert first["method"] == second["method"] == "mcp/notifications/progress"
    assert second["params"] == {"progressToken": "x", "progress": 2, "total": 2}
    assert last == {"jsonrpc": "2.0", "id": "x", "result": "done"}


async def test_a_dialect_request_accepting_both_gets_the_fitting_form() -> None:
    async with spoken() as site:
        assert (await site.post(execute("echo", text="hi"))).headers["content-type"] == JSON
        assert (await site.post(execute("report"))).headers["content-type"] == STREAM


async def test_dialect_errors_have_status_200() -> None:
    async with spoken() as site:
        for method in ("mcp/none", "mcp/tool/execute", "mcp/dialects/000/listTools"):
            answer = await site.post({"jsonrpc": "2.0", "id": None, "method": method}, {"Accept": JSON})
            assert answer.status_code == 200
            assert answer.json()["id"] is None
            assert answer.json()["error"]["code"] < 0


async def test_a_dialect_initialize_opens_no_session() -> None:
    async with spoken() as site:
        answer = await site.post({"jsonrpc": "2.0", "id": 1, "method": "mcp/initialize", "params": {}})
        assert (await site.health())["sessions"] == 0
    assert "mcp-session-id" not in answer.headers
    greeting = answer.json()["result"]
    assert greeting["name"] == "sample"
    assert {"mcp/listTools", "mcp/tools/call", "mcp/subscriptions/listen"} < set(greeting["methods"])
    assert not {"mcp/resources/subscribe", "mcp/logging/setLevel"} & set(greeting["methods"])


async def test_a_dialect_notification_is_accepted() -> None:
    async with spoken() as site:
        cancelled = {"jsonrpc": "2.0", "method": "mcp/notifications/cancelled", "params": {"requestId": 1}}
        answer = await site.post(cancelled, {"Accept": JSON})
    assert (answer.status_code, answer.content) == (202, b"")


async def test_an_invalid_dialect_request_is_refused_with_its_id() -> None:
    async with spoken() as site:
        answer = await site.post({"id": 7, "method": "mcp/listTools"}, {"Accept": JSON})
        assert (answer.status_code, answer.json()["id"]) == (400, 7)
        assert site.running is not None
        answer = await site.post(
            {"jsonrpc": "2.0", "id": 7, "method": "mcp/listTools", "params": 1}, {"Accept": JSON}
        )
        assert answer.json()["error"]["code"] == -32602


async def test_dialect_methods_of_a_session_need_a_stream() -> None:
    async with spoken() as site:
        for method in ("mcp/resources/subscribe", "mcp/logging/setLevel"):
            answer = await site.post({"jsonrpc": "2.0", "id": 7, "method": method}, {"Accept": JSON})
            assert (answer.status_code, answer.json()["id"]) == (400, 7)
            assert "needs a stream" in answer.json()["error"]["message"]


async def test_a_dialect_listen_request_must_accept_a_stream() -> None:
    async with spoken() as site:
        listen = {"jsonrpc": "2.0", "id": 7, "method": "mcp/subscriptions/listen", "params": {"notifications": {}}}
        answer = await site.post(listen, {"Accept": JSON})
        assert (answer.status_code, answer.json()["id"]) == (406, 7)
        assert STREAM in answer.json()["error"]["message"]
        async with site.stream(listen, {"Accept": STREAM}) as stream:
            first = await anext(events(stream))
        assert first["method"] == "mcp/notifications/subscriptions/acknowledged"


async def test_the_first_websocket_message_selects_the_dialect() -> None:
    async with spoken() as site, web_socket(site) as socket:
        await socket.send({"jsonrpc": "2.0", "id": None, "method": "mcp/initialize", "params": {}})
        greeting = await socket.receive()
        assert (greeting["id"], greeting["result"]["name"]) == (None, "sample")
        await socket.send(
            {"jsonrpc": "2.0", "id": 1, "method": "mcp/resources/subscribe", "params": [{"uri": "memo://one"}]}
        )
        assert (await socket.receive())["result"] == {}
        await socket.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        assert "document 000" in (await socket.receive())["error"]["message"]


async def test_the_first_sse_message_selects_the_dialect() -> None:
    async with spoken() as site, streaming(site) as client:
        await client.send({"jsonrpc": "2.0", "id": None, "method": "mcp/initialize", "params": {}})
        greeting = await client.next()
        assert (greeting["id"], greeting["result"]["name"]) == (None, "sample")
        await client.send(execute("echo", text="hi"))
        assert (await client.next())["result"] == "hi"
        await client.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        assert "document 000" in (await client.next())["error"]["message"]


async def test_a_dialect_call_with_elicitation_is_refused_on_every_transport() -> None:
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
    ({"Accept": STREAM}, {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    ({"Accept": "text/html"}, execute("echo", text="hi")),
    ({"Accept": JSON}, "x" * 20_000),
    ({"Content-Type": "text/plain"}, execute("echo", text="hi")),
    ({"Accept": JSON, "Content-Encoding": "br"}, execute("echo", text="hi")),
    ({"Accept": JSON, "Mcp-Session-Id": "x"}, execute("echo", text="hi")),
    ({"Mcp-Session-Id": "x"}, execute("echo", text="hi")),
    (routing("mcp/tool/execute"), execute("echo", text="hi")),
    ({}, [execute("echo", text="hi")]),
]


async def test_standard_errors_are_the_same_with_and_without_dialects() -> None:
    off = replace(LIMITS, dialects=False)
    async with spoken() as site, make_server().open() as running, listening(running, limits=off) as other:
        for headers, body in STANDARD:
            answer, usual = await site.post(body, headers), await other.post(body, headers)
            assert answer.status_code == usual.status_code >= 400
            assert (answer.content, headers_of(answer)) == (usual.content, headers_of(usual)), (headers, body)


def headers_of(answer: httpx.Response) -> list[tuple[str, str]]:
    return [header for header in answer.headers.multi_items() if header[0] != "date"]


async def test_dialect_methods_are_unknown_in_a_session() -> None:
    async with spoken() as site:
        answer = await site.post(execute("echo", text="hi"), {**await site.initialize(), "Accept": ACCEPT})
    assert answer.json()["error"] == {"code": -32601, "message": "method not found: mcp/tool/execute"}


async def test_a_refusal_does_not_wait_for_an_expected_body() -> None:
    lines = ("Expect: 100-continue", "Accept: text/html", f"Content-Type: {JSON}", "Content-Length: 40")
    async with spoken() as site, site.raw(*lines) as stream:
        with anyio.fail_after(PATIENCE):
            assert (await stream.receive()).startswith(b"HTTP/1.1 406 ")


# Document 002
AS_JSON, AS_STREAM = {"Accept": "application/json"}, {"Accept": "text/event-stream"}
SPOKEN = EndpointLimits(dialects=True)
JSON_BODY = {"Content-Type": "application/json"}
NOTIFIED = b'{"jsonrpc":"2.0","method":"notifications/x"}'
INITIALIZE: Json = {"jsonrpc": "2.0", "method": "initialize", "params": {}, "id": "1"}
READ: Json = {"method": "read_resource", "params": {"uri": "data://users/123"}, "id": "req-1"}


@asynccontextmanager
async def document() -> AsyncIterator[Site]:
    """Serves the dialect of document 002."""
    async with document_002().open(extensions=[DIALECTS]) as running, listening(running, limits=SPOKEN) as site:
        yield site


async def test_posts_of_document_002_need_no_session() -> None:
    async with document() as site:
        greeted = await site.post(INITIALIZE, AS_JSON)
        read = await site.post(READ, AS_JSON)
        assert (await site.health())["sessions"] == 0
    assert "mcp-session-id" not in greeted.headers
    assert greeted.json()["result"]["version"] == "0.7.0"
    assert read.json()["result"]["content"] == [{"type": "text", "text": "用户资料内容..."}]
    assert read.json().keys() == {"id", "result"}


async def test_posts_fitting_any_document_may_accept_json_alone() -> None:
    async with document() as site:
        refused = await site.client.post("/mcp", content=b"{", headers={**JSON_BODY, **AS_JSON})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32700)
        notified = await site.client.post("/mcp", content=NOTIFIED, headers={**JSON_BODY, **AS_JSON})
        assert (notified.status_code, notified.content) == (202, b"")
        answer = await site.client.post("/mcp", content=b"{", headers={**JSON_BODY, "Accept": "text/html"})
        assert answer.status_code == 406


async def test_errors_of_document_002_have_its_codes() -> None:
    async with document() as site:
        for message, status, code in (
            ({**READ, "params": {"uri": "data://users/999"}}, 200, 3001),
            ({**READ, "id": None}, 400, -32600),
            ({**READ, "params": []}, 400, -32602),
            ({**INITIALIZE, "params": {"version": "1.0.0"}}, 400, 1001),
        ):
            answer: Any = await site.post(message, AS_JSON)
            assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), message


async def test_the_first_message_selects_document_002_over_sse_and_websocket() -> None:
    async with document() as site, streaming(site) as client, web_socket(site) as socket:
        await client.send(INITIALIZE)
        assert (await client.next())["result"]["version"] == "0.7.0"
        await client.send(READ)
        assert (await client.next()).keys() == {"id", "result"}
        assert (await client.ask("tools/list"))["error"]["code"] == -32601
        await socket.send(INITIALIZE)
        assert (await socket.receive())["result"]["version"] == "0.7.0"
        await socket.send({"method": "notifications/initialized"})
        await socket.send(READ)
        assert (await socket.receive()).keys() == {"id", "result"}
        assert (await socket.request("tools/list"))["error"]["code"] == -32601


async def test_a_websocket_without_dialects_refuses_document_002() -> None:
    async with document_002().open() as running, listening(running) as site, web_socket(site) as socket:
        await socket.send(INITIALIZE)
        assert (await socket.receive())["error"]["message"] == "protocolVersion: Field required"
