"""A gigabyte in place of an answer: the call ends with a typed error, in bounded memory, and the next is served."""

import gzip
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from shared.client.client import Client
from shared.client.connect import connect_http, connect_sse, connect_stdio, connect_websocket
from shared.client.options import ClientOptions
from tests.checks.client_faults.hostile import CHUNKED, STREAM, Exchange, Hostile, chunk, hostile, response
from tests.checks.client_faults.hostile_sockets import HostileSse, HostileWebSocket
from tests.checks.client_faults.leavings import nothing_left
from tests.shared.client.small import text_of

MORE = b"x" * 2**20
PIECES = 1024
MOST = 512 * 2**20
"""Bytes of memory: half of what is sent, and eight times what one message may have."""
CHILD = Path(__file__).with_name("child.py")
HANDSHAKE = ClientOptions(mode="handshake")


@contextmanager
def memory_bounded() -> Iterator[None]:
    """Fails where the process has taken more than that at any time in the block, where the system can tell."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not reset.exists():
        yield
        return
    reset.write_text("5")

    def kilobytes(name: str) -> int:
        return int(re.findall(rf"{name}:\s+([0-9]+) kB", status.read_text())[0])

    before = kilobytes("VmRSS")
    yield
    assert (kilobytes("VmHWM") - before) * 1024 < MOST


async def pour(exchange: Exchange, head: bytes, wrap: Callable[[bytes], bytes] = bytes) -> None:
    await exchange.send(head)
    for _ in range(PIECES):
        await exchange.send(wrap(MORE))


async def json_without_a_length(exchange: Exchange) -> None:
    await pour(
        exchange, CHUNKED % b"application/json" + chunk(b'{"jsonrpc": "2.0", "id": 2, "result": {"a": "'), chunk
    )


async def json_with_a_length(exchange: Exchange) -> None:
    await pour(exchange, response(b"", more="").replace(b"Length: 0", b"Length: %d" % (PIECES * len(MORE))))


async def an_event(exchange: Exchange) -> None:
    await pour(exchange, STREAM + chunk(b'data: {"jsonrpc": "2.0", "id": 2, "result": {"a": "'), chunk)


async def one_chunk(exchange: Exchange) -> None:
    await pour(exchange, CHUNKED % b"application/json" + b"%x\r\n" % (PIECES * len(MORE)))


def bomb() -> bytes:
    """A thousandth of what becomes of it."""
    return gzip.compress(MORE * 64, 1) * (PIECES // 64)


async def a_bomb(exchange: Exchange) -> None:
    await exchange.send(response(bomb(), more="Content-Encoding: gzip\r\n"))


async def a_bomb_in_a_bomb(exchange: Exchange) -> None:
    await exchange.send(response(gzip.compress(bomb()), more="Content-Encoding: gzip, gzip\r\n"))


async def a_bomb_of_events(exchange: Exchange) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n"
    await exchange.send(head + bomb())


BODIES = (
    *(json_without_a_length, json_with_a_length, one_chunk, an_event),
    *(a_bomb, a_bomb_in_a_bomb, a_bomb_of_events),
)


async def lost_and_found(client: Client, server: Hostile) -> None:
    with pytest.raises(ConnectionError):
        await client.plain.call_tool("work", timeout=30)
    assert text_of(await client.plain.call_tool("work")) == "done"
    assert server.seen.count("tools/call") == 2


@pytest.mark.parametrize("body", BODIES)
async def test_a_body(body: Any) -> None:
    async with nothing_left(), hostile() as server:
        server.on("tools/call", body, times=1)
        with memory_bounded():
            async with connect_http(server.url, HANDSHAKE) as client:
                await lost_and_found(client, server)


async def a_frame(exchange: Exchange) -> None:
    await pour(exchange, b"\x81\x7f" + (PIECES * len(MORE)).to_bytes(8, "big"))


async def fragments(exchange: Exchange) -> None:
    part = b"\x7f" + len(MORE).to_bytes(8, "big")
    await pour(exchange, b"\x01\x00", lambda data: b"\x00" + part + data)


@pytest.mark.parametrize("message", [a_frame, fragments])
async def test_a_message_of_a_web_socket(message: Any) -> None:
    async with nothing_left(), hostile(HostileWebSocket) as server:
        server.on("tools/call", message, times=1)
        with memory_bounded():
            async with connect_websocket(server.url, HANDSHAKE) as client:
                await lost_and_found(client, server)


async def test_an_event_of_http_with_sse() -> None:
    async def event(exchange: Exchange) -> None:
        await pour(exchange, b"data: ")

    async with nothing_left(), hostile(HostileSse) as server:
        server.on("tools/call", event, times=1)
        with memory_bounded():
            async with connect_sse(server.url, HANDSHAKE) as client:
                await lost_and_found(client, server)


async def test_a_line() -> None:
    command = [sys.executable, "-S", "-E", str(CHILD)]
    async with nothing_left():
        with memory_bounded(), anyio.fail_after(60):
            async with connect_stdio(command, HANDSHAKE) as client:
                with pytest.raises(ConnectionError):
                    await client.plain.call_tool("work", {"fault": "too_long", "size": PIECES * len(MORE)})
                assert text_of(await client.plain.call_tool("work")) == "done"
