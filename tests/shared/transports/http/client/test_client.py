"""`connect_http` and its transport, against our own HTTP server and against a scripted one."""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import anyio
import anyio.lowlevel
import pytest

from shared.client.client import Client
from shared.client.connect import connect_http
from shared.client.options import ClientOptions
from shared.errors import PeerError
from shared.protocol.session.events import Outgoing
from shared.protocol.wire.jsonrpc import Failure, Message, Notification, OnStream, Request, Response, Unanswered
from shared.transports.http.client import client as client_module
from tests.descriptors import left_open, settled_descriptors
from tests.shared.client.small import Small, listening
from tests.shared.transports.http.scripted import (
    CALL,
    NOTED,
    OPENED,
    SESSION,
    Answer,
    ReceivedRequest,
    Script,
    handshake,
    json_answer,
    result,
    say,
    serving,
    shake_hands,
    stream,
    transport_to,
)


@pytest.fixture(autouse=True)
def _asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns off the client's retries, which would hide the transport's own result."""
    monkeypatch.setattr("shared.client.connection.retry.MAX_ATTEMPTS", 1)


class Recorder:
    """Records every request, as a middleware of the HTTP session."""

    def __init__(self) -> None:
        self.requests: list[ReceivedRequest] = []

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = await request.body.as_bytes() if isinstance(request.body, aiohttp.Payload) else b""
        self.requests.append(ReceivedRequest(request.method, request.url.path, headers, body))
        return await handler(request)

    def of(self, method: str) -> dict[str, str]:
        """Returns the headers of the last POST with that JSON-RPC method."""
        posts = [one for one in self.requests if one.method == "POST"]
        return next(one.headers for one in reversed(posts) if json.loads(one.body).get("method") == method)


@asynccontextmanager
async def _connected(small: Small, recorder: Recorder | None = None, **options: Any) -> AsyncIterator[Client]:
    async with (
        listening(small) as (address, _),
        aiohttp.ClientSession(middlewares=(recorder or Recorder(),)) as http,
        connect_http(f"http://{address}/mcp", ClientOptions(**options), http=http) as client,
    ):
        yield client


async def test_stateless_requests_repeat_their_body_in_headers() -> None:
    recorder = Recorder()
    async with _connected(Small(), recorder, mode="stateless") as client:
        await client.raw.call_tool("add", {"a": 1, "b": 1})
        with pytest.raises(PeerError):
            await client.raw.read_resource("memo://é")
    headers = recorder.of("tools/call")
    assert headers["mcp-method"] == "tools/call"
    assert headers["mcp-name"] == "add"
    assert headers["mcp-protocol-version"] == "2026-07-28"
    assert recorder.of("resources/read")["mcp-name"] == "=?base64?bWVtbzovL8Op?="
    assert {request.method for request in recorder.requests} == {"POST"}


async def test_a_handshake_opens_and_ends_a_session() -> None:
    recorder = Recorder()
    async with _connected(Small(), recorder, mode="handshake") as client:
        await client.raw.list_tools()
    first, later = recorder.of("initialize"), recorder.of("tools/list")
    assert "mcp-session-id" not in first
    assert later["mcp-session-id"]
    assert later["mcp-protocol-version"] == "2025-11-25"
    last = recorder.requests[-1]
    assert (last.method, last.headers["mcp-session-id"]) == ("DELETE", later["mcp-session-id"])


async def test_a_token_is_sent_and_required() -> None:
    async with listening(Small(), "secret-secret-secret") as (address, _):
        url = f"http://{address}/mcp"
        async with connect_http(url, token="secret-secret-secret") as client:
            assert client.stateless
        with pytest.raises(PeerError) as caught:
            async with connect_http(url):
                pass
        assert caught.value.code == 401


# Unusual servers
OPEN = {
    "initialize": result(1, {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}),
    "initialized": Answer(202),
}
TOOLS = '{"jsonrpc": "2.0", "id": 2, "result": {"tools": [{"name": "x"}]}}'


@asynccontextmanager
async def _scripted(server: Script, mode: str = "handshake") -> AsyncIterator[Client]:
    with anyio.fail_after(30):
        async with serving(server) as url, connect_http(url, ClientOptions(mode=mode)) as client:
            yield client


async def test_a_broken_stream_is_resumed() -> None:
    broken = stream("id: 7\nretry: 1\ndata:\n\n")
    server = Script(**OPEN, list=broken, GET=[Answer(405), stream("id: 8\n\n"), stream(f"data: {TOOLS}\n\n")])
    async with _scripted(server) as client:
        assert await client.raw.list_tools() == [{"name": "x"}]
    resumed = [one.headers.get("last-event-id") for one in server.requests if one.method == "GET"]
    assert resumed == [None, "7", "8"]


async def test_the_answer_to_a_notification_is_not_read_to_its_end() -> None:
    chunks: list[int] = []

    async def endless() -> AsyncGenerator[bytes, None]:
        while len(chunks) < 2_000:
            chunks.append(65_536)
            yield bytes(65_536)

    server = Script(**{**OPEN, "initialized": Answer(202, pieces=endless())}, list=result(2, {"tools": []}))
    async with _scripted(server) as client:
        await client.raw.list_tools()
    assert len(chunks) < 500  # more fits into the buffers of the two sockets


async def test_a_server_without_sessions_gets_no_delete() -> None:
    server = Script(**OPEN)
    async with _scripted(server):
        pass
    assert "DELETE" not in [one.method for one in server.requests]


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (Answer(500, "oh"), PeerError, "HTTP 500"),
        (Answer(200, "oh"), ConnectionError, "not an answer"),
        (Answer(202), ConnectionError, "not an answer"),
        (json_answer({"error": {"code": -32600, "message": "gone"}}, 404), PeerError, "404: gone"),
        (json_answer({"error": {"code": -32600, "message": "bad"}}, 400), PeerError, "bad"),
    ],
)
async def test_invalid_answers_raise(answer: Answer, error: type[Exception], text: str) -> None:
    async with _scripted(Script(**OPEN, call=answer)) as client:
        with pytest.raises(error, match=text):
            await client.raw.call_tool("x")


@pytest.mark.parametrize("origin", ["", "http://internal:8080"])
@pytest.mark.parametrize(("path", "other"), [("/mcp", "/mcp/"), ("/mcp/", "/mcp")])
async def test_a_redirect_is_followed_if_only_a_slash_differs(path: str, other: str, origin: str) -> None:
    script = Script(**OPEN, list=result(2, {"tools": [{"name": "x"}]}))

    async def answer(received: ReceivedRequest) -> Answer | bytes:
        moved = Answer(307, headers={"location": f"{origin}{other}"})
        return await script.answer(received) if received.path == f"{other}?key=1" else moved

    async with serving(answer, f"{path}?key=1") as url, connect_http(url, ClientOptions(mode="handshake")) as client:
        assert await client.raw.list_tools() == [{"name": "x"}]


@pytest.mark.parametrize("location", ["/elsewhere", "http://[", ""])
async def test_another_redirect_is_an_error(location: str) -> None:
    script = Script(initialize=Answer(307, headers={"location": location}))
    with pytest.raises(PeerError, match=re.escape(f"HTTP 307: {location and 'the server is at '}{location}")):
        async with _scripted(script):
            pass
    assert len(script.requests) == 1


@pytest.mark.parametrize("discovered", [Answer(400, "no session"), Answer(202)])
async def test_an_old_server_gets_a_handshake(discovered: Answer) -> None:
    opened = result(2, {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {}})
    server = Script(discover=discovered, initialize=opened, initialized=Answer(202))
    async with _scripted(server, "auto") as client:
        assert client.server.version == "2025-03-26"


@pytest.mark.parametrize("mode", ["auto", "handshake", "stateless"])
async def test_a_json_rpc_error_in_a_400_causes_no_fallback_to_sse(mode: str) -> None:
    refused = json_answer({"id": None, "error": {"code": -32600, "message": "bad"}}, 400)
    server = Script(discover=refused, initialize=refused)
    with pytest.raises(PeerError, match="bad") as caught:
        async with _scripted(server, mode):
            pass
    assert caught.value.code == -32600
    assert "GET" not in [one.method for one in server.requests]


async def test_marked_arguments_are_repeated_in_headers() -> None:
    region = {"type": "string", "x-mcp-header": "Region"}
    tool = {"name": "x", "inputSchema": {"type": "object", "properties": {"region": region}}}
    discovered = result(1, {"supportedVersions": ["2026-07-28"], "capabilities": {}})
    server = Script(discover=discovered, list=result(2, {"tools": [tool]}), call=result(3, {"content": []}))
    async with _scripted(server, "stateless") as client:
        await client.raw.list_tools()
        await client.raw.call_tool("x", {"region": "eu"})
    assert server.requests[-1].headers["mcp-param-region"] == "eu"


@pytest.mark.parametrize(("mode", "surfaced"), [("stateless", ["good"]), ("handshake", ["good", "bad"])])
async def test_tools_with_invalid_header_marks_are_skipped(
    mode: str, surfaced: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    region = {"type": "number", "x-mcp-header": "Region"}
    wrong = {"type": "object", "properties": {"region": region}}
    tools = [{"name": "good", "inputSchema": {"type": "object"}}, {"name": "bad", "inputSchema": wrong}]
    discovered = result(1, {"supportedVersions": ["2026-07-28"], "capabilities": {}})
    async with _scripted(Script(**OPEN, discover=discovered, list=result(2, {"tools": tools})), mode) as client:
        assert [tool["name"] for tool in await client.raw.list_tools()] == surfaced
    assert ("the tool 'bad' was skipped" in caplog.text) is (mode == "stateless")


# The transport


def refusal(id: object, text: str) -> Answer:
    """Returns an error that a server sends instead of handling the request."""
    return json_answer({"id": id, "error": {"code": -32000, "message": f"Bad Request: {text}"}}, 400)


@pytest.mark.parametrize(
    "call",
    [Answer(404), refusal(None, "No valid session ID provided"), refusal("server-error", "Server not initialized")],
)
async def test_a_server_that_has_forgotten_the_session_gets_no_delete(call: Answer) -> None:
    script = handshake(call=call, DELETE=Answer(204))
    async with transport_to(script) as transport:
        await shake_hands(transport)
        await say(transport, CALL)
        (lost,) = await transport.receive()
    assert lost == Unanswered(2, "the server has forgotten the session", "session over")
    assert script.count("DELETE") == 0


@pytest.mark.parametrize("call", [refusal(2, "no such session"), refusal("2", "session"), refusal(None, "no")])
async def test_another_400_does_not_end_the_session(call: Answer) -> None:
    script = handshake(call=call, DELETE=Answer(204))
    async with transport_to(script) as transport:
        await shake_hands(transport)
        await say(transport, CALL)
        (answer,) = await transport.receive()
    assert isinstance(answer, Failure)
    assert (answer.id, answer.code, script.count("DELETE")) == (2, -32000, 1)


async def test_a_404_to_a_notification_breaks_the_connection() -> None:
    async with transport_to(handshake(list_changed=Answer(404))) as transport:
        await shake_hands(transport)
        await say(transport, Notification("notifications/roots/list_changed"))
        with pytest.raises(anyio.BrokenResourceError):
            await transport.receive()


async def test_a_cancelled_call_needs_no_answer_to_its_cancellation() -> None:
    requested = anyio.Event()

    async def answer(request: ReceivedRequest) -> Answer | bytes:
        if request.name == "call":
            requested.set()
            await anyio.sleep_forever()
        return {"initialize": result(1, OPENED, **SESSION), "cancelled": b"", "list": result(3, {})}.get(
            request.name, Answer(202)
        )

    async with transport_to(answer) as transport:
        await shake_hands(transport)
        await say(transport, CALL)
        await requested.wait()
        await transport.send([Outgoing(Notification("notifications/cancelled", {"requestId": 2}), 2)])
        await say(transport, Request(3, "tools/list"))
        assert await transport.receive() == [Response(3, {})]


async def test_an_unsent_request_is_not_cancelled_at_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_CALLS", 1)
    cancelled: list[int] = []
    requested = anyio.Event()

    async def answer(request: ReceivedRequest) -> Answer:
        if request.name == "cancelled":
            cancelled.append(json.loads(request.body)["params"]["requestId"])
            return Answer(202)
        requested.set()
        await anyio.sleep_forever()
        raise AssertionError

    def withdrawn(id_: int) -> Outgoing:
        return Outgoing(Notification("notifications/cancelled", {"requestId": id_}), id_)

    async with transport_to(answer) as transport:
        await say(transport, CALL)
        await requested.wait()
        await say(transport, Request(3, "tools/call"))
        await anyio.lowlevel.checkpoint()
        await transport.send([Outgoing(Request(4, "tools/call"), None), withdrawn(4), withdrawn(3), withdrawn(2)])
        while not cancelled:
            await anyio.lowlevel.checkpoint()
    assert cancelled == [2]


async def test_an_unanswered_notification_does_not_delay_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CLOSING_SECONDS", 0.01)

    async def answer(request: ReceivedRequest) -> Answer:
        if request.name == "list_changed":
            await anyio.sleep_forever()
        return result(2, {})

    async with transport_to(answer) as transport:
        await say(transport, Notification("notifications/roots/list_changed"), CALL)
        assert await transport.receive() == [Response(2, {})]


async def test_try_send_sends_requests_but_not_the_initialized_notification() -> None:
    script = handshake(call=result(2, {}))
    async with transport_to(script) as transport:
        assert transport.try_send([Outgoing(Request(1, "initialize", {}), None)])
        assert isinstance((await transport.receive())[0], Response)
        assert not transport.try_send([Outgoing(Notification("notifications/initialized"), None)])
        await say(transport, Notification("notifications/initialized"))
        assert transport.try_send([Outgoing(CALL, None)])
        assert await transport.receive() == [Response(2, {})]
    assert [one.name for one in script.requests if one.method == "POST"] == ["initialize", "initialized", "call"]


async def test_calls_over_the_limit_wait_but_open_streams_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_CALLS", 2)
    running, most, go = 0, 0, anyio.Event()

    async def forever() -> AsyncGenerator[bytes, None]:
        yield f"data: {NOTED}\n\n".encode()
        await anyio.sleep_forever()

    async def answer(request: ReceivedRequest) -> Answer:
        nonlocal running, most
        if request.name == "listen":
            return Answer(headers={"content-type": "text/event-stream"}, pieces=forever())
        running += 1
        most = max(most, running)
        await go.wait()
        running -= 1
        return Answer(500)

    async with transport_to(answer) as transport:
        await say(transport, *(Request(id_, "tools/call") for id_ in range(10, 15)))
        while running < 2:
            await anyio.lowlevel.checkpoint()
        await say(transport, *(Request(id_, "subscriptions/listen") for id_ in range(3)))
        received: list[Message] = []
        while len(received) < 3:
            received += await transport.receive()
        go.set()
        while len(received) < 8:
            received += await transport.receive()
    assert most == 2


async def test_try_send_fails_when_the_session_is_over() -> None:
    """The client learns of the end by `receive`, and still has its unsent message."""
    script = handshake(GET=[stream("id: 1\nretry: 1\ndata:\n\n"), Answer(404)])
    async with transport_to(script) as transport:
        await shake_hands(transport)
        while transport.try_send([Outgoing(Notification("notifications/x"), None)]):
            await anyio.lowlevel.checkpoint()
        with pytest.raises(anyio.BrokenResourceError):
            await transport.receive()


async def test_cancelling_a_request_closes_its_stream() -> None:
    closed = anyio.Event()

    async def noisy() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield f"data: {NOTED}\n\n".encode()
                await anyio.lowlevel.checkpoint()
        finally:
            closed.set()

    async def answer(_request: ReceivedRequest) -> Answer:
        return Answer(headers={"content-type": "text/event-stream"}, pieces=noisy())

    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    async with transport_to(answer) as transport:
        await say(transport, Request(2, "tools/call", {"name": "x", **meta}))
        assert (await transport.receive())[0] == OnStream(Notification("notifications/x"), 2)
        await transport.send([Outgoing(Notification("notifications/cancelled", {"requestId": 2}), 2)])
        await closed.wait()


async def test_closing_the_transport_ends_running_requests() -> None:
    requested = anyio.Event()

    async def answer(_request: ReceivedRequest) -> Answer:
        requested.set()
        await anyio.sleep_forever()
        return Answer()

    previous = settled_descriptors()
    async with transport_to(answer) as transport:
        await say(transport, CALL)
        await requested.wait()
        await transport.aclose()
        await transport.aclose()
        with pytest.raises(anyio.EndOfStream):
            await transport.receive()
    while left_open(previous):
        await anyio.lowlevel.checkpoint()


async def test_a_large_message_is_sent_whole() -> None:
    async def answer(request: ReceivedRequest) -> Answer:
        return result(2, {"length": len(request.body)})

    async with transport_to(answer) as transport:
        await say(transport, Request(2, "tools/call", {"name": "x", "arguments": {"text": "x" * 3_000_000}}))
        (answered,) = await transport.receive()
    assert isinstance(answered, Response)
    assert answered.result["length"] > 3_000_000
