"""The WebSocket client: handshakes with our server, and with servers that refuse or break it."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketAttribute, SocketStream
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from shared.client.client import Client
from shared.client.connect import connect_websocket
from shared.concurrency import background
from shared.contracts import Credentials
from shared.errors import PeerError
from shared.transports.websocket import open_websocket
from tests.shared.client.small import Small, listening, text_of

PATIENCE = 30.0


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


async def test_the_token_is_sent_with_the_handshake() -> None:
    async with listening(Small(), "secret-secret-secret") as (address, _):
        async with connect_websocket(f"ws://{address}/mcp", token="secret-secret-secret") as client:
            assert text_of(await client.raw.call_tool("add", {"a": 1, "b": 1})) == "2"
        with pytest.raises(PeerError, match="HTTP 401: ") as caught:
            async with connect_websocket(f"ws://{address}/mcp"):
                pass
        assert caught.value.code == 401


async def test_logs_contain_neither_the_token_nor_messages(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    async with (
        listening(Small(), "secret-secret-secret") as (address, _),
        connect_websocket(f"ws://{address}/mcp", token="secret-secret-secret") as client,
    ):
        await client.raw.call_tool("add", {"a": 31_337, "b": 1})
    assert "secret" not in caplog.text
    assert "31337" not in caplog.text


async def ask_on(client: Client) -> None:
    while True:
        await client.raw.call_tool("add", {"a": 1, "b": 1})


async def test_calls_raise_connection_error_when_the_server_stops() -> None:
    async with listening(Small()) as (address, stop), connect_websocket(f"ws://{address}/mcp") as client:
        stop.set()
        with pytest.raises(ConnectionError):
            await ask_on(client)


async def test_a_refused_connection_raises_os_error() -> None:
    with pytest.raises(OSError):
        async with connect_websocket("ws://127.0.0.1:9/mcp"):
            pass


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:9/mcp", "starts with ws:// or wss://"),
        ("ws://h/#x", "fragment"),
        ("ws:///x", "hostname"),
        ("ws://user:s3cret@h/#x", "fragment"),
    ],
)
async def test_an_invalid_url_is_refused_without_its_credentials(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        async with connect_websocket(url):
            pass
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("proxy", ["ftp://user:s3cret@127.0.0.1:9", "socks5://user:s3cret@127.0.0.1:9"])
async def test_the_error_of_an_unusable_proxy_hides_its_credentials(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(ConnectionError, match="the proxy that is set in the environment") as caught:
        async with connect_websocket("ws://example.invalid/mcp"):
            pass
    assert "s3cret" not in str(caught.value)


async def refusal_of(head: bytes, auth: Credentials | None = None) -> type[Exception]:
    """Returns the exception type raised for this answer to the handshake."""

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
            async with connect_websocket(f"ws://127.0.0.1:{port}/mcp", auth=auth):
                raise AssertionError("it has connected")
        except (OSError, PeerError) as error:
            return type(error)
        finally:
            tasks.cancel_scope.cancel()


async def test_a_404_to_the_handshake_raises_peer_error() -> None:
    assert await refusal_of(b"HTTP/1.1 404 Not Found") is PeerError


class Listening:
    """Credentials that record the headers of answers."""

    def __init__(self) -> None:
        self.seen: list[dict[str, str]] = []

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        return {}

    async def answered(self, method: str, url: str, status: int, headers: Mapping[str, str]) -> bool:
        self.seen.append({name.lower(): value for name, value in headers.items()})
        return False


async def test_repeated_response_headers_are_joined() -> None:
    auth, head = (
        Listening(),
        b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=a\r\nwww-authenticate: Bearer scope=b",
    )
    assert await refusal_of(head, auth) is PeerError
    assert [one["www-authenticate"] for one in auth.seen] == ["Basic realm=a, Bearer scope=b"]


async def test_a_redirect_of_the_handshake_is_not_followed() -> None:
    assert await refusal_of(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: ws://127.0.0.1:9/") is PeerError


async def test_a_wrong_accept_header_raises_connection_error() -> None:
    head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade"
    assert await refusal_of(head + b"\r\nSec-WebSocket-Accept: wrong") is ConnectionError


async def connect_to(handler: Callable[[ServerConnection], Awaitable[None]]) -> None:
    """Connects a client to this handler, and raises its exception."""
    async with serve(handler, "127.0.0.1", 0, subprotocols=["mcp"]) as server:  # type: ignore[list-item]
        port = server.sockets[0].getsockname()[1]
        with anyio.fail_after(PATIENCE):
            async with connect_websocket(f"ws://127.0.0.1:{port}/mcp"):
                pass


async def test_a_cancelled_block_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server does not answer the close frame."""
    monkeypatch.setattr("shared.transports.websocket.CLOSE_SECONDS", 0.05)
    ended = anyio.Event()

    async def deaf(stream: SocketStream) -> None:
        handshake = ServerProtocol(subprotocols=[Subprotocol("mcp")])
        async with stream:
            handshake.receive_data(await stream.receive())
            (request,) = handshake.events_received()
            assert isinstance(request, Request)
            handshake.send_response(handshake.accept(request))
            await stream.send(b"".join(handshake.data_to_send()))
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    await stream.receive()
            ended.set()

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, background() as tasks:
        tasks.start_soon(listener.serve, deaf)
        port = listener.extra(SocketAttribute.local_port)
        with anyio.CancelScope() as scope:
            async with open_websocket(f"ws://127.0.0.1:{port}/mcp", {}):
                scope.cancel()
                await anyio.lowlevel.checkpoint()
        with anyio.fail_after(PATIENCE):
            await ended.wait()


async def test_a_close_during_the_opening_raises_connection_error() -> None:
    async def goodbye(socket: ServerConnection) -> None:
        await socket.close(1013, "full")

    with pytest.raises(ConnectionError):
        await connect_to(goodbye)
