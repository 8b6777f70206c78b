"""The limit on unread bytes, and which connections are cut off for it."""

import asyncio
import socket as sockets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from shared.auth.policy import ALL_OTHERS
from shared.server.dispatch.limits import CallLimits, Limits
from shared.server.dispatch.room import Room
from shared.transports.http import server as http_server
from shared.transports.http.engine import connections as http_connections
from shared.transports.http.engine.write_backlog import CHECK_SECONDS, Unread
from tests.clock import forward
from tests.quiet import quiet
from tests.shared.transports.http.http_wire import Site, make_server, served
from tests.shared.transports.http.sse_wire import initialized
from tests.shared.transports.http.web_socket import UPGRADE, WebSocket, web_socket

LARGE = 800_000


class Transport:
    """A transport of one address with a number of unread bytes."""

    def __init__(self, address: str, size: int) -> None:
        self._peer = address, 1
        self.size = size
        self.is_aborted = False

    def get_extra_info(self, name: str) -> Any:
        return self._peer if name == "peername" else None

    def get_write_buffer_size(self) -> int:
        return self.size

    def abort(self) -> None:
        self.is_aborted = True


def cut(*transports: Transport) -> list[bool]:
    return [transport.is_aborted for transport in transports]


async def pass_time(seconds: float = CHECK_SECONDS) -> None:
    forward(seconds)
    await quiet()


async def test_the_oldest_connection_of_the_address_with_most_bytes_is_cut_off() -> None:
    unread: Any = Unread(100)
    other, first, second, third = (
        Transport(f"192.0.2.{address}", size) for address, size in ((1, 30), (2, 20), (2, 20), (2, 40))
    )
    for transport in (other, first, second):
        unread.add(transport)
    await pass_time()
    assert cut(other, first, second) == [False, False, False]
    unread.add(third)
    await pass_time()
    assert cut(other, first, second, third) == [False, True, False, False]


async def test_a_connection_is_cut_off_only_after_a_pause() -> None:
    unread: Any = Unread(100)
    first, second = Transport("192.0.2.1", 90), Transport("192.0.2.1", 90)
    unread.add(first)
    forward(CHECK_SECONDS)
    unread.add(second)
    await quiet()
    assert cut(first, second) == [False, False]
    await pass_time()
    assert cut(first, second) == [True, False]


async def test_a_client_that_reads_is_not_cut_off() -> None:
    unread: Any = Unread(100)
    fast, slow = Transport("192.0.2.1", 10_000_000), Transport("192.0.2.2", 90)
    for transport in (fast, slow):
        unread.add(transport)
    for _ in range(3):
        fast.size -= 1_000_000
        await pass_time()
    assert cut(fast, slow) == [False, True]
    await pass_time()
    assert fast.is_aborted  # it has stopped reading


async def test_bytes_that_were_read_do_not_count() -> None:
    unread: Any = Unread(100)
    first, second, third = Transport("192.0.2.1", 90), Transport("192.0.2.1", 100), Transport("192.0.2.1", 90)
    unread.add(first)
    first.size = 60
    unread.add(first)
    unread.remove(first)
    unread.remove(first)
    unread.add(second)
    await pass_time()
    assert cut(first, second) == [False, False]
    unread.add(third)
    second.size = 5
    await pass_time()
    assert cut(second, third) == [False, False]


def large_answers() -> Any:
    app = make_server()

    @app.tool()
    async def large() -> str:
        """Return much."""
        return "x" * LARGE

    return app


def requested(site: Site, name: str = "large") -> bytes:
    message, headers = site.stateless("tools/call", {"name": name, "arguments": {}})
    headers = {**headers, "Accept-Encoding": "identity"}
    request = site.client.build_request("POST", "/mcp", json=message, headers=headers)
    lines = [f"{name}: {value}" for name, value in request.headers.items()]
    return "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + request.content


@pytest.mark.parametrize("reads", [False, True])
async def test_a_client_that_does_not_read_its_answers_is_cut_off(
    reads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "Unread", partial(Unread, 1))
    async with served(large_answers(), patience=1_000) as site:
        with sockets.socket() as client:
            client.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4_096)
            client.setblocking(False)
            loop, received = asyncio.get_running_loop(), 0
            await loop.sock_connect(client, ("127.0.0.1", site.port))
            await loop.sock_sendall(client, 10 * requested(site))  # more than the system buffers
            await quiet()
            for number in range(3):
                while reads and received < (number + 1) * 400_000:
                    received += len(await loop.sock_recv(client, 65_536))
                await pass_time()
            with suppress(ConnectionResetError):
                while received < 10 * LARGE and (data := await loop.sock_recv(client, 65_536)):
                    received += len(data)
        assert (received >= 10 * LARGE) is reads
        assert (await site.client.get("/healthz")).status_code == 200


@pytest.mark.parametrize("reads", [False, True])
async def test_a_client_that_reads_nothing_for_a_minute_is_cut_off(reads: bool) -> None:
    async with served(large_answers(), patience=1_000) as site:
        with sockets.socket() as client:
            client.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4_096)
            client.setblocking(False)
            loop, received = asyncio.get_running_loop(), 0
            await loop.sock_connect(client, ("127.0.0.1", site.port))
            await loop.sock_sendall(client, 10 * requested(site))  # more than the system buffers
            await quiet()
            for number in range(3):
                while reads and received < (number + 1) * 100_000:
                    received += len(await loop.sock_recv(client, 65_536))
                forward(http_connections._READ_SECONDS)
                await quiet()
            with suppress(ConnectionResetError):
                while received < 10 * LARGE and (data := await loop.sock_recv(client, 65_536)):
                    received += len(data)
        assert (received >= 10 * LARGE) is reads


@pytest.mark.parametrize("reads", [False, True])
async def test_a_websocket_that_does_not_read_is_cut_off(reads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "Unread", partial(Unread, 1))
    async with served(large_answers(), patience=1_000) as site, web_socket(site) as socket:
        await socket.initialize()
        for number in range(20):
            await socket.send(site.message("tools/call", {"name": "large", "arguments": {}}, id=number))
        await quiet()
        answers = 0
        with suppress(anyio.BrokenResourceError, anyio.IncompleteRead):
            for _ in range(20):
                if reads:
                    await socket.next()
                    answers += 1
                # Half of the time after each answer: it counts only once the one before has been read.
                await pass_time(CHECK_SECONDS / 2 if reads else CHECK_SECONDS)
            while answers < 20:
                await socket.next()
                answers += 1
        assert answers == 20 if reads else answers < 20


@asynccontextmanager
async def unread_answer(site: Site) -> AsyncIterator[SocketStream]:
    """Opens a connection with an unread answer that is larger than the buffers of the system."""
    async with await anyio.connect_tcp("127.0.0.1", site.port) as stream:
        await stream.send(requested(site, "huge"))
        while not site.running.calls.room.used:
            await asyncio.sleep(0)
        await quiet()
        yield stream


def upgrade(site: Site) -> bytes:
    lines = [f"{name}: {value}" for name, value in UPGRADE.items()]
    return "\r\n".join(["GET /mcp HTTP/1.1", f"Host: localhost:{site.port}", *lines, "", ""]).encode()


async def test_an_unread_answer_counts_after_an_upgrade_to_websocket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "Unread", partial(Unread, 1))
    app, _ = huge_answers()
    async with served(app) as site, unread_answer(site) as stream:
        await stream.send(upgrade(site))
        while site.running.calls.room.used:
            await asyncio.sleep(0)
        await pass_time()
        received = 0
        with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
            while True:
                received += len(await stream.receive())
    assert 0 < received < HUGE


async def test_an_answer_sent_before_an_upgrade_can_be_read() -> None:
    app, _ = huge_answers()
    async with served(app) as site, unread_answer(site) as stream:
        await stream.send(upgrade(site))
        while site.running.calls.room.used:
            await asyncio.sleep(0)
        received = BufferedByteReceiveStream(stream)
        assert (await received.receive_until(b"\r\n\r\n", 10_000)).startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 101 " in await received.receive_until(b"\r\n\r\n", 2 * HUGE)
        socket = WebSocket(site, stream, received, "")
        await socket.initialize()


# Calls of clients with unread answers

HUGE = 6_000_000  # more than the system buffers
HUGE_CALL = "tools/call", {"name": "huge", "arguments": {}}
Answer = Callable[[Site, anyio.Event], Awaitable[int]]


def huge_answers() -> tuple[Any, list[int]]:
    app, ran = make_server(), list[int]()
    app.limits, app.budget = Limits(call_bytes=40 * 1_048_576), CallLimits(result_bytes=2 * HUGE)

    @app.tool()
    async def huge() -> str:
        """Return much."""
        ran.append(1)
        return "x" * HUGE

    return app, ran


async def posted(site: Site, may_read: anyio.Event, message: Any, headers: Any) -> int:
    async with site.stream(message, {**headers, "Accept-Encoding": "identity"}) as response:
        await may_read.wait()
        return len(await response.aread())


async def stateless(site: Site, may_read: anyio.Event) -> int:
    return await posted(site, may_read, *site.stateless(*HUGE_CALL))


async def in_session(site: Site, may_read: anyio.Event) -> int:
    return await posted(site, may_read, site.message(*HUGE_CALL), await site.initialize())


async def on_web_socket(site: Site, may_read: anyio.Event) -> int:
    async with web_socket(site) as socket:
        await socket.initialize()
        await socket.send(site.message(*HUGE_CALL))
        await may_read.wait()
        return len((await socket.next()).data)


async def on_sse(site: Site, may_read: anyio.Event) -> int:
    async with initialized(site) as stream:
        await stream.send(site.message(*HUGE_CALL))
        await may_read.wait()
        return len((await stream.event()).data)


@pytest.mark.parametrize("is_narrowed", [False, True])
@pytest.mark.parametrize("answer", [stateless, in_session, on_web_socket, on_sse])
async def test_calls_wait_while_large_answers_are_unread(answer: Answer, is_narrowed: bool) -> None:
    app, ran = huge_answers()
    async with served(app) as site, app.open() as narrowed:
        if is_narrowed:
            site.running.parts.narrow(ALL_OTHERS, narrowed)
        may_read, sizes = anyio.Event(), list[int]()

        async def ask() -> None:
            sizes.append(await answer(site, may_read))

        async with anyio.create_task_group() as tasks:
            for number in range(6):
                tasks.start_soon(ask)
                while len(ran) <= number < 2:
                    await asyncio.sleep(0)
                await quiet()
            assert len(ran) < 4
            may_read.set()
        for running in site.running.parts.all:
            while running.calls.room.used:  # answers that were read take no room
                await asyncio.sleep(0)
    assert [size > HUGE for size in sizes] == 6 * [True]


async def test_a_large_list_takes_room_until_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    app, sizes = make_server(), list[int]()
    monkeypatch.setattr(Room, "add", lambda _room, _client, size: sizes.append(size))
    monkeypatch.setattr(Room, "remove", lambda _room, _client, size: sizes.append(-size))

    async def listed() -> None:
        pass

    for number in range(20):
        app.tool(name=f"tool_{number}", description="x" * 2_000)(listed)
    async with served(app) as site:
        answer = await site.post(site.message("tools/list"), await site.initialize())
    assert sizes == [len(answer.content), -len(answer.content)]
