"""`connect_websocket` against our own server, in both eras, and against servers that are none."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from websockets.asyncio.server import ServerConnection, serve

from shared.client.client import Client
from shared.client.connect import connect_websocket
from shared.client.options import ClientOptions
from shared.errors import PeerError
from shared.transports.http.server import HttpOptions, run_http
from tests.client.small import Small, text_of

ERAS = pytest.mark.parametrize("mode", ["handshake", "stateless"])
PATIENCE = 30.0


@asynccontextmanager
async def served(small: Small, *tokens: str) -> AsyncIterator[tuple[str, anyio.Event]]:
    """The URL of `small`, and what stops it."""
    ready, stop, address = anyio.Event(), anyio.Event(), list[Any]()

    def started(*where: Any) -> None:
        address.extend(where)
        ready.set()

    async def run() -> None:
        await run_http(small.running, HttpOptions(port=0, tokens=tokens), started=started, stop=stop)

    with anyio.fail_after(PATIENCE):
        async with small.app.open() as small.running, anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await ready.wait()
            try:
                yield f"ws://127.0.0.1:{address[1]}/mcp", stop
            finally:
                stop.set()


@asynccontextmanager
async def connected(small: Small, **options: Any) -> AsyncIterator[Client]:
    async with served(small) as (url, _), connect_websocket(url, ClientOptions(**options)) as client:
        yield client


@pytest.mark.parametrize("mode", ["auto", "handshake", "stateless", "2025-03-26"])
async def test_a_tool_is_called(mode: str) -> None:
    async with connected(Small(), mode=mode) as client:
        assert client.stateless == (mode in ("auto", "stateless"))
        assert len(await client.list_tools()) == 7
        assert text_of(await client.call_tool("add", {"a": 2, "b": 3})) == "5"


@ERAS
async def test_progress_is_reported(mode: str) -> None:
    seen: list[float] = []
    async with connected(Small(), mode=mode) as client:
        await client.call_tool("count", {"to": 3}, on_progress=lambda *report: seen.append(report[0]))
    assert seen == [1, 2, 3]


@ERAS
async def test_a_call_given_up_is_cancelled(mode: str) -> None:
    small = Small()
    async with connected(small, mode=mode) as client:
        while not small.started.is_set():
            with pytest.raises(TimeoutError):
                await client.call_tool("wait", timeout=0.05)
        await small.cancelled.wait()
        assert text_of(await client.call_tool("add", {"a": 1, "b": 1})) == "2"


async def roots(_params: dict[str, Any]) -> dict[str, Any]:
    return {"roots": [{"uri": "file:///a"}]}


@ERAS
async def test_questions_are_answered(mode: str) -> None:
    async with connected(Small(), mode=mode, roots=roots) as client:
        assert text_of(await client.call_tool("roots")) == "file:///a"


@ERAS
async def test_changes_are_told_while_subscribed(mode: str) -> None:
    small, told = Small(), anyio.Event()
    async with connected(small, mode=mode) as client:
        async with client.subscribed(["memo://one"], lambda *_: told.set()):
            small.running.changes.resource("memo://one")
            await told.wait()
        await small.released.wait()


async def test_the_token_goes_with_the_handshake() -> None:
    async with served(Small(), "secret-secret-secret") as (url, _):
        async with connect_websocket(url, token="secret-secret-secret") as client:
            assert text_of(await client.call_tool("add", {"a": 1, "b": 1})) == "2"
        with pytest.raises(PeerError, match="HTTP 401: ") as caught:
            async with connect_websocket(url):
                pass
        assert caught.value.code == 401


async def test_no_log_tells_the_token_or_a_message(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    async with (
        served(Small(), "secret-secret-secret") as (url, _),
        connect_websocket(url, token="secret-secret-secret") as client,
    ):
        await client.call_tool("add", {"a": 31_337, "b": 1})
    assert "secret" not in caplog.text
    assert "31337" not in caplog.text


async def ask_on(client: Client) -> None:
    while True:
        await client.call_tool("add", {"a": 1, "b": 1})


async def test_a_server_that_stops_has_lost_the_client() -> None:
    async with served(Small()) as (url, stop), connect_websocket(url) as client:
        stop.set()
        with pytest.raises(ConnectionError):
            await ask_on(client)


async def test_a_server_that_is_not_there() -> None:
    with pytest.raises(OSError):
        async with connect_websocket("ws://127.0.0.1:9/mcp"):
            pass


async def test_another_kind_of_url() -> None:
    with pytest.raises(ValueError, match="begins with ws:// or wss://"):
        async with connect_websocket("http://127.0.0.1:9/mcp"):
            pass


async def answered(head: bytes) -> type[Exception]:
    """What it raises where a server answers the handshake so."""

    async def answer(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(head + b"\r\nContent-Length: 0\r\n\r\n")

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, answer)
        port = listener.extra(SocketAttribute.local_port)
        try:
            async with connect_websocket(f"ws://127.0.0.1:{port}/mcp"):
                raise AssertionError("it has connected")
        except (OSError, PeerError) as error:
            return type(error)
        finally:
            tasks.cancel_scope.cancel()


async def test_a_server_without_websockets() -> None:
    assert await answered(b"HTTP/1.1 404 Not Found") is PeerError


async def test_a_server_that_sends_elsewhere_is_not_followed() -> None:
    assert await answered(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: ws://127.0.0.1:9/") is PeerError


async def test_a_server_that_shakes_hands_wrongly() -> None:
    head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade"
    assert await answered(head + b"\r\nSec-WebSocket-Accept: wrong") is ConnectionError


async def ends(handler: Callable[[ServerConnection], Awaitable[None]]) -> None:
    """Raises what a client raises that is served so."""
    async with serve(handler, "127.0.0.1", 0, subprotocols=["mcp"]) as server:  # type: ignore[list-item]
        port = server.sockets[0].getsockname()[1]
        with anyio.fail_after(PATIENCE):
            async with connect_websocket(f"ws://127.0.0.1:{port}/mcp"):
                pass


async def test_a_server_that_goes_while_the_session_is_opened() -> None:
    async def goodbye(socket: ServerConnection) -> None:
        await socket.close(1013, "full")

    with pytest.raises(ConnectionError):
        await ends(goodbye)
