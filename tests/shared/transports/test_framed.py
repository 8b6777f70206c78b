"""Custom byte streams as a transport."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.contracts import ByteStream
from shared.protocol.session.events import Outgoing
from shared.protocol.types.base import Implementation
from shared.protocol.wire.codec import Codec
from shared.protocol.wire.jsonrpc import Notification, Request
from shared.server.dispatch.connection import serve
from shared.server.server import Server
from shared.transports.framed import framed
from tests.wire import PATIENCE

PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'


class SocketStream:
    """The minimal custom stream."""

    def __init__(self, end: socket.socket, most: int = 65_536) -> None:
        end.setblocking(False)
        self._socket = end
        self._most = most

    async def receive(self) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self._socket, self._most)

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def aclose(self) -> None:
        self._socket.close()


def server() -> Server[None]:
    app = Server[None](Implementation(name="adder", version="1"))

    @app.tool()
    async def add(a: int, b: int) -> str:
        """Add."""
        return str(a + b)

    return app


@asynccontextmanager
async def served(stream: ByteStream) -> AsyncIterator[None]:
    """Serves on `stream`, which must end within the block."""
    with anyio.fail_after(PATIENCE):
        async with server().open() as running, anyio.create_task_group() as tasks:
            tasks.start_soon(serve, running, framed(stream, Codec()))
            yield
        await stream.aclose()


@pytest.mark.parametrize("most", [1, 65_536], ids=["byte by byte", "whole"])
@pytest.mark.parametrize("mode", ["handshake", "stateless"])
async def test_client_and_server_communicate_over_a_custom_stream(mode: str, most: int) -> None:
    ours, theirs = socket.socketpair()
    async with served(SocketStream(theirs, most)):
        transport = framed(SocketStream(ours, most), Codec(is_client=True))
        async with Client(transport, ClientOptions(mode=mode)) as client:
            result = await client.raw.call_tool("add", {"a": 1, "b": 2})
    assert result["content"][0]["text"] == "3"


async def test_an_anyio_byte_stream_is_a_valid_stream(tmp_path: Path) -> None:
    async with await anyio.create_unix_listener(tmp_path / "socket") as listener:
        ours = await anyio.connect_unix(tmp_path / "socket")
        async with served(await listener.accept()):
            await ours.send(PING % 1)
            await ours.send_eof()
            assert json.loads(await ours.receive()) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        await ours.aclose()


async def test_requests_sent_before_the_end_are_answered() -> None:
    ours, theirs = socket.socketpair()
    async with served(SocketStream(theirs)):
        ours.sendall(PING % 1 + b"\n" + PING % 2)
        ours.shutdown(socket.SHUT_WR)
    with ours:
        assert [json.loads(line)["id"] for line in ours.makefile()] == [1, 2]


class Pieces:
    """A stream that receives given pieces and then breaks, as a reset socket does. `sent` has the pieces sent."""

    def __init__(self, *received: bytes) -> None:
        self.sent: list[bytes] = []
        self._received = list(received)

    async def receive(self) -> bytes:
        if not self._received:
            raise ConnectionResetError
        return self._received.pop(0)

    async def send(self, data: bytes) -> None:
        if not self._received:
            raise BrokenPipeError
        self.sent.append(data)

    async def aclose(self) -> None:
        self._received.clear()


async def test_ready_messages_are_sent_in_one_piece() -> None:
    stream = Pieces(b"")
    await framed(stream, Codec()).send([Outgoing(Notification("x")), Outgoing(None, 1), Outgoing(Notification("y"))])
    (piece,) = stream.sent
    assert [json.loads(line)["method"] for line in piece.splitlines()] == ["x", "y"]


async def test_sending_no_message_writes_nothing() -> None:
    stream = Pieces(b"")
    await framed(stream, Codec()).send([Outgoing(None, 1)])
    assert stream.sent == []


async def test_a_broken_stream_raises_broken_resource_error() -> None:
    transport = framed(Pieces(PING % 1 + b"\n" + PING % 2), Codec())
    assert await transport.receive() == [Request(1, "ping")]
    with pytest.raises(anyio.BrokenResourceError):
        await transport.receive()
    with pytest.raises(anyio.BrokenResourceError):
        await transport.send([Outgoing(Notification("x"))])


async def test_receiving_after_the_end_raises_end_of_stream() -> None:
    transport = framed(Pieces(PING % 1, b"", PING % 2), Codec())
    assert await transport.receive() == [Request(1, "ping")]
    for _ in range(2):
        with pytest.raises(anyio.EndOfStream):
            await transport.receive()
