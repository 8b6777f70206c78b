"""`connect_http` against our own HTTP server, in what HTTP has of its own, and against a scripted one."""

import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import anyio
import pytest

from shared.client.client import Client
from shared.client.connect import connect_http
from shared.client.errors import Unreached
from shared.client.options import ClientOptions
from shared.errors import PeerError
from tests.shared.client.small import Small, listening
from tests.shared.transports.http.scripted import Answer, Asked, Script, result, said, serving, stream


@pytest.fixture(autouse=True)
def _asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the transport makes of an answer, without the client's asking again."""
    monkeypatch.setattr("shared.client.retry.ATTEMPTS", 1)


class Recorder:
    """Keeps what every request said, as a middleware of the HTTP session."""

    def __init__(self) -> None:
        self.requests: list[Asked] = []

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = await request.body.as_bytes() if isinstance(request.body, aiohttp.Payload) else b""
        self.requests.append(Asked(request.method, request.url.path, headers, body))
        return await handler(request)

    def of(self, method: str) -> dict[str, str]:
        """The headers of the last POST with that JSON-RPC method."""
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
    async with listening(Small(), "secret-secret-secret") as (address, _):
        url = f"http://{address}/mcp"
        async with connect_http(url, token="secret-secret-secret") as client:
            assert client.stateless
        with pytest.raises(PeerError) as caught:
            async with connect_http(url):
                pass
        assert caught.value.code == 401


async def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with anyio.fail_after(30), pytest.raises(Unreached, match=f"^no connection to 127.0.0.1:{port}: "):
        async with connect_http(f"http://127.0.0.1:{port}/mcp"):
            pass


# Servers that are odd


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


async def test_a_stream_that_breaks_is_resumed() -> None:
    broken = stream("id: 7\nretry: 1\ndata:\n\n")
    server = Script(**OPEN, list=broken, GET=[Answer(405), stream("id: 8\n\n"), stream(f"data: {TOOLS}\n\n")])
    async with _scripted(server) as client:
        assert await client.plain.list_tools() == [{"name": "x"}]
    resumed = [one.headers.get("last-event-id") for one in server.requests if one.method == "GET"]
    assert resumed == [None, "7", "8"]


async def test_a_stream_that_ends_without_an_answer() -> None:
    async with _scripted(Script(**OPEN, call=stream(": nothing\n\n"))) as client:
        with pytest.raises(ConnectionError, match="without an answer"):
            await client.plain.call_tool("x")


async def test_of_the_answer_to_a_notification_little_is_read() -> None:
    chunks: list[int] = []

    async def endless() -> AsyncGenerator[bytes, None]:
        while len(chunks) < 2_000:
            chunks.append(65_536)
            yield bytes(65_536)

    server = Script(**{**OPEN, "initialized": Answer(202, pieces=endless())}, list=result(2, {"tools": []}))
    async with _scripted(server) as client:
        await client.plain.list_tools()
    assert len(chunks) < 500  # the rest fits into the buffers of the two sockets


async def test_a_server_without_sessions_is_not_told_of_the_end() -> None:
    server = Script(**OPEN)
    async with _scripted(server):
        pass
    assert "DELETE" not in [one.method for one in server.requests]


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (Answer(500, "oh"), PeerError, "HTTP 500"),
        (Answer(200, "oh"), ConnectionError, "no answer"),
        (Answer(202), ConnectionError, "no answer"),
        (
            said({"error": {"code": -32600, "message": "gone"}}, 404),
            PeerError,
            "404: gone",
        ),
        (said({"error": {"code": -32600, "message": "bad"}}, 400), PeerError, "bad"),
    ],
)
async def test_answers_that_are_none(answer: Answer, error: type[Exception], text: str) -> None:
    async with _scripted(Script(**OPEN, call=answer)) as client:
        with pytest.raises(error, match=text):
            await client.plain.call_tool("x")


@pytest.mark.parametrize("discovered", [Answer(400, "no session"), Answer(202)])
async def test_an_old_server_gets_a_handshake(discovered: Answer) -> None:
    opened = result(2, {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {}})
    server = Script(discover=discovered, initialize=opened, initialized=Answer(202))
    async with _scripted(server, "auto") as client:
        assert client.server.version == "2025-03-26"


@pytest.mark.parametrize("mode", ["auto", "handshake", "stateless"])
async def test_an_error_in_a_400_is_the_word_of_a_server_that_takes_posts(mode: str) -> None:
    refused = said({"id": None, "error": {"code": -32600, "message": "bad"}}, 400)
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
    discovered = result(1, {"supportedVersions": ["2026-07-28"], "capabilities": {}})
    async with _scripted(Script(**OPEN, discover=discovered, list=result(2, {"tools": tools})), mode) as client:
        assert [tool["name"] for tool in await client.plain.list_tools()] == surfaced
    assert ("the tool 'bad' is left out" in caplog.text) is (mode == "stateless")
