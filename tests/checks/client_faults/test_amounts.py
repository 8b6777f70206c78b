"""A gigabyte in place of an answer: the call ends with a typed error, in bounded memory, and the next is served."""

import gzip
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from shared.client.connect import connect_http, connect_sse, connect_stdio, connect_websocket
from shared.client.options import ClientOptions
from tests.shared.client import child
from tests.shared.client.hostile import CHUNKED, STREAM, Exchange, Fault, Hostile, chunk, hostile, response, says
from tests.shared.client.hostile_sockets import HostileSse, HostileWebSocket
from tests.shared.client.leavings import nothing_left
from tests.shared.client.small import text_of

MORE = b"x" * 2**20
PIECES = 1024
MOST = 512 * 2**20
"""Bytes of memory: half of what is sent, and eight times what one message may have."""
CHILD = Path(child.__file__)
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


Wrap = Callable[[bytes], bytes]
ALL = PIECES * len(MORE)
JSON = CHUNKED % b"application/json"
BEGUN = b'{"jsonrpc": "2.0", "id": 2, "result": {"a": "'
POURED: dict[str, tuple[type[Hostile], bytes, Wrap]] = {
    "JSON without a length": (Hostile, JSON + chunk(BEGUN), chunk),
    "JSON with a length": (Hostile, response(b"").replace(b"Length: 0", b"Length: %d" % ALL), bytes),
    "one chunk": (Hostile, JSON + b"%x\r\n" % ALL, bytes),
    "an event": (Hostile, STREAM + chunk(b"data: " + BEGUN), chunk),
    "an event of HTTP+SSE": (HostileSse, b"data: ", bytes),
    "a frame": (HostileWebSocket, b"\x81\x7f" + ALL.to_bytes(8, "big"), bytes),
    "fragments": (HostileWebSocket, b"\x01\x00", lambda data: b"\x00\x7f" + len(data).to_bytes(8, "big") + data),
}
"""What a body begins with, and what is around each piece of the gigabyte that follows."""
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n"
BOMBS: dict[str, Callable[[bytes], bytes]] = {
    "a bomb": lambda bomb: response(bomb, more="Content-Encoding: gzip\r\n"),
    "a bomb in a bomb": lambda bomb: response(gzip.compress(bomb), more="Content-Encoding: gzip, gzip\r\n"),
    "a bomb of events": lambda bomb: EVENTS + bomb,
}
CONNECT = {Hostile: connect_http, HostileSse: connect_sse, HostileWebSocket: connect_websocket}


async def lose_and_go_on(kind: type[Hostile], fault: Fault) -> None:
    """Makes a call whose answer is too much, and another one."""
    async with nothing_left(), hostile(kind) as server:
        server.on("tools/call", fault, times=1)
        with memory_bounded():
            async with CONNECT[kind](server.url, HANDSHAKE) as client:
                with pytest.raises(ConnectionError):
                    await client.raw.call_tool("work", timeout=30)
                assert text_of(await client.raw.call_tool("work")) == "done"
                assert server.seen.count("tools/call") == 2


@pytest.mark.parametrize("body", POURED)
async def test_a_body(body: str) -> None:
    kind, head, wrap = POURED[body]

    async def pour(exchange: Exchange) -> None:
        await exchange.send(head)
        for _ in range(PIECES):
            await exchange.send(wrap(MORE))

    await lose_and_go_on(kind, pour)


@pytest.mark.parametrize("body", BOMBS)
async def test_a_body_that_swells(body: str) -> None:
    """To a thousand times what it is."""
    await lose_and_go_on(Hostile, says(BOMBS[body](gzip.compress(MORE * 64, 1) * (PIECES // 64))))


async def test_a_line() -> None:
    command = [sys.executable, "-S", "-E", str(CHILD)]
    async with nothing_left():
        with memory_bounded(), anyio.fail_after(60):
            async with connect_stdio(command, HANDSHAKE) as client:
                with pytest.raises(ConnectionError):
                    await client.raw.call_tool("work", {"fault": "too_long", "size": PIECES * len(MORE)})
                assert text_of(await client.raw.call_tool("work")) == "done"
