"""Broken and hostile WebSocket peers: close codes and limits."""

import asyncio
import random
import socket as sockets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from operator import methodcaller

import anyio
import pytest
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from shared.concurrency import ExpiryQueue
from shared.server.dispatch.limits import Limits
from shared.transports.http.limits.endpoint_limits import EndpointLimits
from shared.transports.http.websocket import connection as http_websocket
from tests.descriptors import left_open, settled_descriptors
from tests.quiet import quiet
from tests.shared.transports.http.http_wire import (
    PATIENCE,
    Site,
    endless_server,
    listening,
    make_server,
    served,
    served_meanwhile,
    visited,
)
from tests.shared.transports.http.web_socket import (
    BINARY,
    CLOSE,
    CONTINUED,
    PING,
    PONG,
    TEXT,
    WebSocket,
    frame,
    upgrading,
    web_socket,
)

LIMIT = 10_000


@asynccontextmanager
async def small(pause: float = 15.0, seconds: float = 30.0) -> AsyncIterator[Site]:
    """Serves with a small message limit."""
    limits = EndpointLimits(body_bytes=LIMIT, keep_alive_seconds=pause, body_seconds=seconds)
    async with served(limits=limits) as site:
        yield site


@pytest.fixture(scope="module")
def standing() -> Iterator[Site]:
    """A server with a small message limit, for several tests."""
    with served_meanwhile(limits=EndpointLimits(body_bytes=LIMIT)) as site:
        yield site


async def nothing_left(site: Site, previous: list[str]) -> None:
    """Waits until only the `previous` descriptors are open."""
    await site.idle()
    await site.client.aclose()
    with anyio.fail_after(PATIENCE):
        while left_open(previous):
            await anyio.lowlevel.checkpoint()


async def serves(site: Site) -> None:
    """Checks that another peer is served."""
    async with web_socket(site) as other:
        assert "result" in await other.request("ping")


BROKEN = {
    "no mask": (b"\x81\x02{}", 1002),
    "an opcode that is none": (frame(3, b"{}"), 1002),
    "a reserved bit": (frame(0x40 | TEXT, b"{}"), 1002),
    "a fragment of nothing": (frame(CONTINUED, b"{}"), 1002),
    "a message within a message": (frame(TEXT, b"{", last=False) + frame(TEXT, b"}"), 1002),
    "a ping in fragments": (frame(PING, b"", last=False), 1002),
    "a long ping": (frame(PING, b"x" * 126), 1002),
    "a close code of one byte": (frame(CLOSE, b"\x03"), 1002),
    "a close code that nobody may send": (frame(CLOSE, (1006).to_bytes(2)), 1002),
    "bytes": (frame(BINARY, b"{}"), 1003),
    "bytes that are no text": (frame(TEXT, b'"\xff"'), 1007),
    "a reason that is no text": (frame(CLOSE, (1000).to_bytes(2) + b"\xff"), 1007),
    "a message too long": (frame(TEXT, b"x" * (LIMIT + 1)), 1009),
    "a length without the bytes": (b"\x81\xff" + (2**62).to_bytes(8), 1009),
    "fragments too long together": (frame(TEXT, b"x" * LIMIT, last=False) + frame(CONTINUED, b"x", last=False), 1009),
}


async def test_invalid_frames_close_only_their_connection_with_the_right_code(standing: Site) -> None:
    async with visited(standing) as site:
        for fault, (data, code) in BROKEN.items():
            async with web_socket(site) as socket:
                await socket.stream.send(data)
                close_code, reason = await socket.closed()
                assert close_code == code, fault
                assert reason
                await serves(site)


async def test_an_unwritable_message_ends_its_session(caplog: pytest.LogCaptureFixture) -> None:
    async with served(endless_server()) as site, web_socket(site) as socket:
        await socket.initialize()
        await socket.send(site.message("tools/call", {"name": "endless", "arguments": {}}))
        assert await socket.closed() == (1011, "the server has failed")
        await serves(site)
    assert "a session failed" in caplog.text


async def test_frames_after_a_sent_close_frame_are_dropped() -> None:
    async with small() as site, web_socket(site) as socket:
        await socket.stream.send(frame(BINARY, b"{}") + frame(TEXT, b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'))
        for _ in range(100):
            await socket.frame(TEXT, b"x" * 10_000)
        assert await socket.closed() == (1003, "a message must be a text frame")


async def test_a_peer_that_does_not_answer_a_close_frame_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_websocket, "CLOSE_SECONDS", 0.05)
    async with small() as site, web_socket(site) as socket:
        await socket.request("ping")
        site.stop.set()
        assert await socket.closed(answers=False) == (1001, "the server is stopping")


@pytest.mark.slow
async def test_a_peer_that_does_not_answer_does_not_delay_shutdown(caplog: pytest.LogCaptureFixture) -> None:
    limits = Limits(drain_seconds=0.9)
    async with make_server().open(limits=limits) as running, listening(running) as site, web_socket(site) as socket:
        await socket.initialize()
        await socket.send(site.message("tools/call", {"name": "wait", "arguments": {}}))
        await site.probe.started.wait()
        site.stop.set()
        assert (await socket.next()).closing == (1001, "the server is stopping")
        await read_to_end(socket)
    assert "Cancel" not in caplog.text


@pytest.mark.slow
async def test_a_peer_that_reads_nothing_does_not_delay_shutdown(caplog: pytest.LogCaptureFixture) -> None:
    limits = Limits(drain_seconds=0.9, waiting_messages=5)
    ping = b'{"jsonrpc": "2.0", "id": "%b", "method": "ping"}'
    pings = frame(TEXT, ping % (b"x" * 9_000)) + frame(TEXT, ping % b"") * 20
    async with AsyncExitStack() as stack, make_server().open(limits=limits) as running, listening(running) as site:
        socket = await stack.enter_async_context(web_socket(site))
        with suppress(TimeoutError):
            while True:
                with anyio.fail_after(0.3):
                    await socket.stream.send(pings)
        site.stop.set()
    assert "Cancel" not in caplog.text


async def test_a_silent_peer_is_pinged_and_then_cut_off() -> None:
    async with small(pause=0.05) as site, web_socket(site) as socket:
        assert (await socket.next()).opcode == PING
        await read_to_end(socket)
        await site.idle()


@pytest.mark.slow
async def test_a_peer_that_answers_pings_stays_connected() -> None:
    async with small(pause=0.05) as site, web_socket(site) as socket:
        for _ in range(6):
            ping = await socket.next()
            assert ping.opcode == PING
            await socket.frame(PONG, ping.data)
        assert (await site.health())["sessions"] == 1


@pytest.mark.slow
async def test_an_endless_message_closes_the_connection() -> None:
    async with small(pause=0.05, seconds=0.2) as site, web_socket(site) as socket:
        await socket.frame(TEXT, b"{", last=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(repeat, socket, frame(CONTINUED, b"", last=False))
            answer = await socket.next()
            while answer.opcode == PING:
                answer = await socket.next()
            assert answer.closing == (1008, "a message did not arrive in time")
            tasks.cancel_scope.cancel()


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(frame(PING, b"x" * 125), id="ping"),
        pytest.param(frame(TEXT, b""), id="", marks=pytest.mark.slow),
        pytest.param(frame(TEXT, b"{}"), id="{}", marks=pytest.mark.slow),
    ],
)
async def test_a_peer_that_sends_but_never_reads_is_cut_off(data: bytes) -> None:
    async with small(pause=0.2) as site, web_socket(site) as socket:
        sent = 0
        with anyio.move_on_after(PATIENCE), suppress(anyio.BrokenResourceError):
            while True:
                await socket.stream.send(data * 500)
                sent += len(data) * 500
        # The buffers of both systems, and some of ours.
        assert sent < 40_000_000
        await site.idle()


async def test_an_unread_flood_does_not_block_others() -> None:
    async with small(pause=0.3) as site, web_socket(site) as socket:
        await socket.initialize()
        await socket.send(site.message("tools/call", {"name": "flood", "arguments": {}}))
        await site.probe.started.wait()
        await serves(site)
        assert not site.probe.finished.is_set()


@asynccontextmanager
async def on_a_socket(
    message_seconds: float = 30.0,
) -> AsyncIterator[tuple[http_websocket.WebSocket, sockets.socket]]:
    """Yields our side of a WebSocket, and the peer's socket."""
    pauses = ExpiryQueue(600.0, methodcaller("look"))
    ours = http_websocket.WebSocket(
        ServerProtocol(state=OPEN, logger=http_websocket.frames_log), pauses, message_seconds
    )
    with sockets.create_server(("127.0.0.1", 0)) as listener, sockets.socket() as peer:
        peer.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 65_536)
        peer.connect(listener.getsockname())
        accepted, _ = listener.accept()
        transport, _ = await asyncio.get_running_loop().connect_accepted_socket(lambda: ours, accepted)
        yield ours, peer
        transport.abort()
        await ours.wait_until_lost()
        pauses.close()


@pytest.mark.parametrize("one", [frame(PONG), frame(CONTINUED, last=False)], ids=["pongs", "fragments"])
async def test_many_frames_at_once_yield_to_other_tasks(one: bytes) -> None:
    async with on_a_socket() as (ours, _):
        received, turns = asyncio.ensure_future(ours.receive()), 0
        ours.data_received(frame(TEXT, b"{", last=False) + one * 40_000 + frame(CONTINUED, b"}"))
        while not received.done():
            turns += 1
            await anyio.lowlevel.checkpoint()
        assert received.result() == [b"{}"]
        assert turns > 40


async def test_no_message_is_received_while_answers_are_unread() -> None:
    async with on_a_socket() as (ours, peer):
        sending = asyncio.ensure_future(ours.send([bytes(32_000_000)]))
        await anyio.lowlevel.checkpoint()
        ours.data_received(frame(TEXT, b"{}"))
        taking = asyncio.ensure_future(ours.receive())
        for _ in range(100):
            await anyio.lowlevel.checkpoint()
        assert not taking.done()
        peer.setblocking(False)
        with anyio.fail_after(PATIENCE):
            while not taking.done():
                await asyncio.get_running_loop().sock_recv(peer, 1_048_576)
        assert taking.result() == [b"{}"]
        await sending


async def test_reading_pauses_while_large_messages_wait() -> None:
    large = b"x" * 70_000
    async with on_a_socket() as (ours, peer):
        ours.data_received(frame(TEXT, large))
        await asyncio.get_running_loop().sock_sendall(peer, frame(TEXT, b"{}"))
        await quiet()
        assert await ours.receive() == [large]
        with anyio.fail_after(PATIENCE):
            assert await ours.receive() == [b"{}"]


async def test_received_messages_release_their_room() -> None:
    message = b"x" * 50_000
    async with on_a_socket() as (ours, peer):
        peer.setblocking(False)
        with anyio.fail_after(PATIENCE):
            for _ in range(4):
                await asyncio.get_running_loop().sock_sendall(peer, frame(TEXT, message))
                assert await ours.receive() == [message]


async def test_a_message_is_not_late_while_reading_is_paused() -> None:
    async with on_a_socket(message_seconds=-1.0) as (ours, _):
        ours.data_received(frame(TEXT, b"{", last=False))
        ours.pause_writing()
        ours.check_alive()
        assert not ours.is_closed


async def test_a_peer_that_reads_slowly_is_not_cut_off() -> None:
    async with on_a_socket() as (ours, peer):
        with anyio.fail_after(PATIENCE):
            await ours.send([b"x" * 1_000_000])
        for _ in range(6):
            ours.check_alive()
            await anyio.lowlevel.checkpoint()
            assert not ours.is_closed
            assert len(peer.recv(100_000, sockets.MSG_WAITALL)) == 100_000


async def test_unfinished_handshakes_leave_no_descriptors() -> None:
    async with small() as site:
        previous = settled_descriptors()
        for _ in range(20):
            async with await anyio.connect_tcp("127.0.0.1", site.port) as stream:
                await stream.send(b"GET /mcp HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n")
            async with upgrading(site, {"Sec-WebSocket-Key": None}):
                pass
        await serves(site)
        await nothing_left(site, previous)


# Random bytes


def mutated(chance: random.Random) -> bytes:
    """Makes mostly valid frames, of which a few bytes may be changed, dropped or repeated."""
    texts = (
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}',
        b"{}",
        b"",
        b"\xff",
        b"x" * chance.randrange(LIMIT * 2),
    )
    opcodes = (TEXT, TEXT, TEXT, CONTINUED, BINARY, CLOSE, PING, PONG, 3, 0x40 | TEXT)
    data = bytearray()
    for _ in range(chance.randrange(1, 6)):
        data += frame(chance.choice(opcodes), chance.choice(texts), last=chance.random() < 0.8)
    for _ in range(chance.choice((0, 0, 1, 4))):
        at = chance.randrange(len(data))
        data[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
        data = data or bytearray(b"\x81")
    return bytes(data)


@pytest.mark.slow
async def test_random_frames_cause_no_crash_hang_or_leak() -> None:
    """The frames of each seed are sent on a connection of their own."""
    async with small() as site:
        previous = settled_descriptors()
        for seed in range(1_000):
            chance = random.Random(seed)
            data = mutated(chance)
            cut = chance.randrange(len(data) + 1)
            async with web_socket(site, early_data=data[:cut]) as socket:
                with suppress(anyio.BrokenResourceError):
                    await socket.stream.send(data[cut:])
                    await socket.stream.send_eof()
                await read_to_end(socket)
        await serves(site)
        await nothing_left(site, previous)


async def read_to_end(socket: WebSocket) -> None:
    """Reads until the server has ended the connection."""
    with anyio.fail_after(PATIENCE), suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
        while True:
            await socket.next()


async def repeat(socket: WebSocket, data: bytes) -> None:
    """Sends the same data for ever, as fast as the server reads it."""
    with suppress(anyio.BrokenResourceError):
        while True:
            await socket.stream.send(data)
