"""A client of a server that is somewhere else: over HTTP and on a WebSocket, in both eras."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup, TaskStatus

from shared.client.changes import Change
from shared.client.client import Client
from shared.client.connect import connect, connect_http, connect_sse, connect_websocket
from shared.client.options import ClientOptions
from shared.errors import PeerError
from shared.protocol.types.client import Root
from tests.shared.client.small import Small, listening, text_of

CONNECT = {"http": connect_http, "ws": connect_websocket, "sse": connect_sse}
EVERYWHERE = pytest.mark.parametrize("scheme", ["http", "ws"])
LOSABLE = pytest.mark.parametrize(
    ("scheme", "mode"),
    [("http", "handshake"), ("http", "stateless"), ("ws", "handshake"), ("ws", "stateless"), ("sse", "handshake")],
)
ERAS = pytest.mark.parametrize("mode", ["handshake", "stateless"])
EVERY_MODE = pytest.mark.parametrize("mode", ["auto", "handshake", "stateless", "2025-03-26"])


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@asynccontextmanager
async def connected(scheme: str, small: Small, **options: Any) -> AsyncIterator[Client]:
    async with (
        listening(small) as (address, _),
        CONNECT[scheme](f"{scheme}://{address}/mcp", ClientOptions(**options)) as client,
    ):
        yield client


@EVERYWHERE
@EVERY_MODE
async def test_a_tool_is_called(scheme: str, mode: str) -> None:
    async with connected(scheme, Small(), mode=mode) as client:
        assert client.stateless == (mode in ("auto", "stateless"))
        assert len(await client.plain.list_tools()) == 7
        assert text_of(await client.plain.call_tool("add", {"a": 2, "b": 3})) == "5"


@EVERYWHERE
@ERAS
async def test_an_error_is_raised_as_it_came(scheme: str, mode: str) -> None:
    async with connected(scheme, Small(), mode=mode) as client:
        with pytest.raises(PeerError, match="method not found") as caught:
            await client.request("no/such")
        assert caught.value.code == -32601


@EVERYWHERE
@ERAS
async def test_progress_is_reported(scheme: str, mode: str) -> None:
    seen: list[float] = []
    async with connected(scheme, Small(), mode=mode) as client:
        await client.plain.call_tool("count", {"to": 3}, on_progress=lambda *report: seen.append(report[0]))
    assert seen == [1, 2, 3]


@EVERYWHERE
@ERAS
async def test_a_call_given_up_is_cancelled(scheme: str, mode: str) -> None:
    small = Small()
    async with connected(scheme, small, mode=mode) as client:
        while not small.started.is_set():
            with pytest.raises(TimeoutError):
                await client.plain.call_tool("wait", timeout=0.05)
        await small.cancelled.wait()
        assert text_of(await client.plain.call_tool("add", {"a": 1, "b": 1})) == "2"


@EVERYWHERE
@ERAS
async def test_questions_are_answered(scheme: str, mode: str) -> None:
    async with connected(scheme, Small(), mode=mode, roots=[Root(uri="file:///a")]) as client:
        assert text_of(await client.plain.call_tool("roots")) == "file:///a"


@EVERYWHERE
@ERAS
async def test_changes_are_told_while_subscribed(scheme: str, mode: str) -> None:
    small = Small()
    async with connected(scheme, small, mode=mode) as client:
        async with client.changes(["memo://one"]) as changes:
            small.running.changes.resource("memo://one")
            assert await anext(changes) == Change("resource", "memo://one")
        await small.released.wait()


@pytest.mark.parametrize("scheme", ["http", "https", "ws", "wss"])
@pytest.mark.parametrize("token", ["s3cret\n", "s3cret\r\nx: y", " s3cret ", "s3crét", "s3cret\0"])
async def test_a_token_that_can_not_be_sent_is_not_told(scheme: str, token: str) -> None:
    with pytest.raises(ValueError, match="header authorization has") as caught:
        async with connect(f"{scheme}://127.0.0.1:9/", token=token):
            pass
    assert "s3cr" not in str(caught.value)


@EVERYWHERE
@pytest.mark.parametrize("name", ["", "a b", "a:", "a\n", "é", "Content-Length", "Transfer-Encoding"])
async def test_a_header_without_a_proper_name(scheme: str, name: str) -> None:
    with pytest.raises(ValueError, match="not the name of an HTTP header that can be set"):
        async with connect(f"{scheme}://127.0.0.1:9/", headers={name: "x"}):
            pass


async def test_each_header_is_sent_once() -> None:
    heads: list[str] = []

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.close()

    given = {"User-Agent": "me", "Accept": "x/y", "AUTHORIZATION": "no", "X-Mine": "1"}
    async with await asyncio.start_server(hang_up, "127.0.0.1") as server:
        host, port = server.sockets[0].getsockname()
        with pytest.raises(ConnectionError):
            async with connect(f"http://{host}:{port}/", token="s3cret", headers=given):
                pass
    lines = [line.partition(": ")[::2] for line in heads[0].lower().split("\r\n")[1:-2]]
    sent = dict(lines)
    assert len(sent) == len(lines)
    assert sent["authorization"] == "bearer s3cret"
    assert (sent["user-agent"], sent["x-mine"]) == ("me", "1")
    assert "text/event-stream" in sent["accept"]


# A server that was lost


@pytest.fixture
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.client.retry.BASE_SECONDS", 0.01)
    monkeypatch.setattr("shared.client.restart.FIRST_SECONDS", 0.01)


class Replaced:
    """A server that listens at the port of the one before it."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._port = 0
        self._stop = self._over = anyio.Event()

    async def start(self, small: Small) -> str:
        """Ends the server before it, and has `small` listen; the host and port."""
        if self._port:
            self._stop.set()
            await self._over.wait()
        address: str = await self._tasks.start(self._run, small)
        return address

    async def _run(self, small: Small, *, task_status: TaskStatus[str]) -> None:
        over = self._over = anyio.Event()
        async with listening(small, port=self._port) as (address, self._stop):
            self._port = int(address.rpartition(":")[2])
            task_status.started(address)
            await self._stop.wait()
        over.set()

    async def end(self) -> None:
        """Ends the last one."""
        self._stop.set()


@asynccontextmanager
async def replaceable(scheme: str, mode: str) -> AsyncIterator[tuple[Client, Replaced]]:
    async with anyio.create_task_group() as tasks:
        server = Replaced(tasks)
        address = await server.start(Small())
        url = f"http://{address}/sse" if scheme == "sse" else f"{scheme}://{address}/mcp"
        async with CONNECT[scheme](url, ClientOptions(mode=mode)) as client:
            yield client, server
        await server.end()


@LOSABLE
@pytest.mark.slow
@pytest.mark.usefixtures("_short_pauses")
async def test_a_server_that_was_replaced_is_connected_to_again(scheme: str, mode: str) -> None:
    async with replaceable(scheme, mode) as (client, server), client.changes(["memo://one"]) as changes:
        small = Small()
        await server.start(small)
        assert text_of(await client.plain.call_tool("add", {"a": 2, "b": 3})) == "5"
        assert await anext(changes) == Change("missed")
        small.running.changes.resource("memo://one")
        assert await anext(changes) == Change("resource", "memo://one")
