"""`connect_http` against our own HTTP server, in what HTTP has of its own, and against a scripted one."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from shared.client.client import Client
from shared.client.connect import connect_http
from shared.client.options import ClientOptions
from shared.errors import PeerError
from tests.client.small import Small, listening


@pytest.fixture(autouse=True)
def _asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the transport makes of an answer, without the client's asking again."""
    monkeypatch.setattr("shared.client.retry.ATTEMPTS", 1)


class Recorder:
    """Keeps what every request said."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []

    async def note(self, request: httpx.Request) -> None:
        self.requests.append(request)

    def of(self, method: str) -> httpx.Headers:
        """The headers of the last POST with that JSON-RPC method."""
        posts = [one for one in self.requests if one.method == "POST"]
        return next(one.headers for one in reversed(posts) if json.loads(one.content).get("method") == method)


@asynccontextmanager
async def _connected(small: Small, recorder: Recorder | None = None, **options: Any) -> AsyncIterator[Client]:
    hooks = {"request": [(recorder or Recorder()).note]}
    async with (
        listening(small) as (address, _),
        httpx.AsyncClient(trust_env=False, timeout=10, event_hooks=hooks) as http,
        connect_http(f"http://{address}/mcp", ClientOptions(**options), http=http) as client,
    ):
        yield client


async def test_stateless_requests_repeat_their_body_in_headers() -> None:
    recorder = Recorder()
    async with _connected(Small(), recorder, mode="stateless") as client:
        await client.plain.call_tool("add", {"a": 1, "b": 1})
        with pytest.raises(PeerError):
            await client.plain.read_resource("memo://é")
    headers = recorder.of("tools/call")
    assert headers["mcp-method"] == "tools/call"
    assert headers["mcp-name"] == "add"
    assert headers["mcp-protocol-version"] == "2026-07-28"
    assert recorder.of("resources/read")["mcp-name"] == "=?base64?bWVtbzovL8Op?="
    assert {request.method for request in recorder.requests} == {"POST"}


async def test_a_handshake_opens_and_ends_a_session() -> None:
    recorder = Recorder()
    async with _connected(Small(), recorder, mode="handshake") as client:
        await client.plain.list_tools()
    first, later = recorder.of("initialize"), recorder.of("tools/list")
    assert "mcp-session-id" not in first
    assert later["mcp-session-id"]
    assert later["mcp-protocol-version"] == "2025-11-25"
    last = recorder.requests[-1]
    assert (last.method, last.headers["mcp-session-id"]) == ("DELETE", later["mcp-session-id"])


async def test_a_token_lets_us_in() -> None:
    async with listening(Small(), "secret-secret-secret") as (address, _), httpx.AsyncClient(trust_env=False) as http:
        url = f"http://{address}/mcp"
        async with connect_http(url, token="secret-secret-secret", http=http) as client:
            assert client.stateless
        with pytest.raises(PeerError) as caught:
            async with connect_http(url, http=http):
                pass
        assert caught.value.code == 401


async def test_nobody_listens() -> None:
    with anyio.fail_after(30), pytest.raises(ConnectionError, match="ConnectError"):
        async with httpx.AsyncClient(trust_env=False) as http, connect_http("http://127.0.0.1:9/mcp", http=http):
            pass


@pytest.mark.parametrize("failed", [httpx.ConnectError, httpx.ConnectTimeout])
async def test_a_server_that_is_not_reached_is_tried_once(failed: type[httpx.TransportError]) -> None:
    asked: list[httpx.Request] = []

    def fail(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        raise failed("nobody")

    async with httpx.AsyncClient(transport=httpx.MockTransport(fail)) as http:
        with anyio.fail_after(30), pytest.raises(ConnectionError, match=f"^{failed.__name__}: nobody"):
            async with connect_http("http://server/mcp", http=http):
                pass
    assert len(asked) == 1


# A server of a few bytes, for what ours never does


class Bytes:
    """Answers by method: JSON-RPC for POSTs, HTTP for others. What it is not told is 405."""

    def __init__(self, **answers: httpx.Response | list[httpx.Response]) -> None:
        self.requests: list[httpx.Request] = []
        self._answers = {key: one if isinstance(one, list) else [one] for key, one in answers.items()}

    async def handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        name = request.method
        if name == "POST":
            name = json.loads(request.content)["method"].rpartition("/")[2]
        waiting = self._answers.get(name)
        return waiting.pop(0) if waiting else httpx.Response(405)


def _result(id: int, result: dict[str, Any], **headers: str) -> httpx.Response:
    return httpx.Response(200, json={"jsonrpc": "2.0", "id": id, "result": result}, headers=headers)


def _stream(text: str) -> httpx.Response:
    return httpx.Response(200, text=text, headers={"content-type": "text/event-stream"})


OPEN = {
    "initialize": _result(1, {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}),
    "initialized": httpx.Response(202),
}
TOOLS = '{"jsonrpc": "2.0", "id": 2, "result": {"tools": [{"name": "x"}]}}'


@asynccontextmanager
async def _scripted(server: Bytes, mode: str = "handshake") -> AsyncIterator[Client]:
    with anyio.fail_after(30):
        async with (
            httpx.AsyncClient(transport=httpx.MockTransport(server.handle)) as http,
            connect_http("http://server/mcp", ClientOptions(mode=mode), http=http) as client,
        ):
            yield client


async def test_a_stream_that_breaks_is_resumed() -> None:
    broken = _stream("id: 7\nretry: 1\ndata:\n\n")
    server = Bytes(
        **OPEN, list=broken, GET=[httpx.Response(405), _stream("id: 8\n\n"), _stream(f"data: {TOOLS}\n\n")]
    )
    async with _scripted(server) as client:
        assert await client.plain.list_tools() == [{"name": "x"}]
    resumed = [one.headers.get("last-event-id") for one in server.requests if one.method == "GET"]
    assert resumed == [None, "7", "8"]


async def test_a_stream_that_ends_without_an_answer() -> None:
    async with _scripted(Bytes(**OPEN, list=_stream(": nothing\n\n"))) as client:
        with pytest.raises(ConnectionError, match="without an answer"):
            await client.plain.list_tools()


async def test_of_the_answer_to_a_notification_little_is_read() -> None:
    chunks: list[int] = []

    async def endless() -> AsyncIterator[bytes]:
        while len(chunks) < 100:
            chunks.append(65_536)
            yield bytes(65_536)

    server = Bytes(**{**OPEN, "initialized": httpx.Response(202, content=endless())}, list=_result(2, {"tools": []}))
    async with _scripted(server) as client:
        await client.plain.list_tools()
    assert len(chunks) <= 2


async def test_a_server_without_sessions_is_not_told_of_the_end() -> None:
    server = Bytes(**OPEN)
    async with _scripted(server):
        pass
    assert "DELETE" not in [one.method for one in server.requests]


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (httpx.Response(500, text="oh"), PeerError, "HTTP 500"),
        (httpx.Response(200, text="oh"), ConnectionError, "no answer"),
        (httpx.Response(202), ConnectionError, "no answer"),
        (
            httpx.Response(404, json={"jsonrpc": "2.0", "error": {"code": -32600, "message": "gone"}}),
            PeerError,
            "404: gone",
        ),
        (httpx.Response(400, json={"jsonrpc": "2.0", "error": {"code": -32600, "message": "bad"}}), PeerError, "bad"),
    ],
)
async def test_answers_that_are_none(answer: httpx.Response, error: type[Exception], text: str) -> None:
    async with _scripted(Bytes(**OPEN, list=answer)) as client:
        with pytest.raises(error, match=text):
            await client.plain.list_tools()


@pytest.mark.parametrize("discovered", [httpx.Response(400, text="no session"), httpx.Response(202)])
async def test_an_old_server_gets_a_handshake(discovered: httpx.Response) -> None:
    opened = _result(2, {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {}})
    server = Bytes(discover=discovered, initialize=opened, initialized=httpx.Response(202))
    async with _scripted(server, "auto") as client:
        assert client.server.version == "2025-03-26"


@pytest.mark.parametrize("mode", ["auto", "handshake", "stateless"])
async def test_an_error_in_a_400_is_the_word_of_a_server_that_takes_posts(mode: str) -> None:
    refused = httpx.Response(400, json={"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "bad"}})
    server = Bytes(discover=refused, initialize=refused)
    with pytest.raises(PeerError, match="bad") as caught:
        async with _scripted(server, mode):
            pass
    assert caught.value.code == -32600
    assert "GET" not in [one.method for one in server.requests]


async def test_marked_arguments_are_repeated_in_headers() -> None:
    region = {"type": "string", "x-mcp-header": "Region"}
    tool = {"name": "x", "inputSchema": {"type": "object", "properties": {"region": region}}}
    discovered = _result(1, {"supportedVersions": ["2026-07-28"], "capabilities": {}})
    server = Bytes(discover=discovered, list=_result(2, {"tools": [tool]}), call=_result(3, {"content": []}))
    async with _scripted(server, "stateless") as client:
        await client.plain.list_tools()
        await client.plain.call_tool("x", {"region": "eu"})
    assert server.requests[-1].headers["mcp-param-region"] == "eu"


@pytest.mark.parametrize(("mode", "surfaced"), [("stateless", ["good"]), ("handshake", ["good", "bad"])])
async def test_tools_with_wrong_marks_are_left_out(
    mode: str, surfaced: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    region = {"type": "number", "x-mcp-header": "Region"}
    wrong = {"type": "object", "properties": {"region": region}}
    tools = [{"name": "good", "inputSchema": {"type": "object"}}, {"name": "bad", "inputSchema": wrong}]
    discovered = _result(1, {"supportedVersions": ["2026-07-28"], "capabilities": {}})
    async with _scripted(Bytes(**OPEN, discover=discovered, list=_result(2, {"tools": tools})), mode) as client:
        assert [tool["name"] for tool in await client.plain.list_tools()] == surfaced
    assert ("the tool 'bad' is left out" in caplog.text) is (mode == "stateless")
