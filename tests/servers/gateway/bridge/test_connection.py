"""The bridge's own connection: it is reopened when lost, and reports its state."""

import errno
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from socket import gaierror
from typing import Any

import anyio
import pytest

from servers.gateway.bridge.connection import BridgeConnection, reason_of
from servers.gateway.bridge.upstream import Upstream
from shared.client.client import Client
from shared.client.connection.restart import Pauses
from shared.client.options import ClientOptions
from shared.concurrency import background
from shared.errors import MethodNotFound, RpcError
from shared.protocol.methods import Method
from shared.protocol.session.client_events import ServerRequest
from shared.protocol.types.base import Params
from shared.protocol.versions import NEWEST_HANDSHAKE
from shared.server.extension import Extension
from tests.servers.gateway.bridge.upstreams import NEW, OLD, Behind
from tests.shared.client.small import Small
from tests.shared.server.peer import PATIENCE, server


class Turns:
    """Records the changes of state of a connection."""

    def __init__(self, connection: BridgeConnection) -> None:
        self.seen: list[tuple[bool, str]] = []
        self._turned = anyio.Event()
        self._connection = connection
        self.leave = connection.watch(self._take)

    def _take(self) -> None:
        self.seen.append((self._connection.up, self._connection.reason))
        self._turned.set()
        self._turned = anyio.Event()

    async def until(self, count: int) -> None:
        while len(self.seen) < count:
            await self._turned.wait()


@asynccontextmanager
async def living(upstream: Upstream) -> AsyncIterator[BridgeConnection]:
    connection = BridgeConnection(upstream, ClientOptions())
    with anyio.fail_after(PATIENCE):
        async with background() as tasks:
            tasks.start_soon(connection.keep_connected)
            yield connection


@pytest.mark.parametrize("mode", [OLD, NEW])
async def test_opening_learns_the_era_and_the_description_of_the_server(mode: str) -> None:
    async with Behind(Small().app, mode).serving() as upstream, living(upstream) as connection:
        assert not connection.up
        await connection.first_attempt_ended.wait()
        assert connection.up
        assert connection.stateless is (mode == NEW)
        assert connection.description is not None
        assert connection.description.info["name"] == "small"


async def test_the_base_connection_declares_nothing_and_answers_no_question() -> None:
    behind = Behind(Small().app)
    async with behind.serving() as upstream, living(upstream) as connection:
        await connection.first_attempt_ended.wait()
        assert behind.options[0].identity().capabilities == {}
        with pytest.raises(RpcError, match="method not found"):
            await connection.answer(ServerRequest(1, "roots/list", {}))


async def test_a_lost_connection_is_reopened() -> None:
    behind = Behind(Small().app)
    async with behind.serving() as upstream, living(upstream) as connection:
        turns = Turns(connection)
        await turns.until(1)
        await behind.lose()
        await turns.until(3)
        assert [up for up, _ in turns.seen] == [True, False, True]
        assert turns.seen[1][1] == "it ended the connection"
        turns.leave()
        await behind.lose()
        while connection.up:
            await anyio.lowlevel.checkpoint()
        assert len(turns.seen) == 3


async def test_the_error_of_a_lost_connection_names_the_reason_without_secrets() -> None:
    behind = Behind(Small().app)
    behind.is_away = True
    async with behind.serving() as upstream, living(upstream) as connection:
        await connection.first_attempt_ended.wait()
        with pytest.raises(RpcError) as refused:
            connection.client  # noqa: B018
        assert str(refused.value) == "the server behind is not available: nobody answers at http://…"
        behind.is_away = False
        turns = Turns(connection)
        await turns.until(1)
        assert connection.client.connected


async def test_a_request_reconnects_at_once_despite_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pauses, "remaining", lambda _pauses, _now: 10 * PATIENCE)
    behind = Behind(Small().app)
    behind.is_away = True
    async with behind.serving() as upstream, living(upstream) as connection:
        await connection.first_attempt_ended.wait()
        await anyio.wait_all_tasks_blocked()
        behind.is_away = False
        await connection.wait_until_up()
        assert connection.up


async def test_a_crashing_process_is_not_restarted_by_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pauses, "remaining", lambda _pauses, _now: 10 * PATIENCE)
    monkeypatch.setattr("shared.client.connection.restart.MAX_COSTLY_PAUSE_SECONDS", 10 * PATIENCE)
    monkeypatch.setattr("servers.gateway.bridge.connection.CALL_WAIT_SECONDS", 0.0)
    attempts = 0

    @asynccontextmanager
    async def connect(_options: ClientOptions) -> AsyncIterator[Client]:
        nonlocal attempts
        attempts += 1
        raise ConnectionError("it ended at once")
        yield

    for processes, expected in ((None, 2), (1, 1)):
        attempts = 0
        async with living(Upstream("ending", connect, max_processes=processes)) as connection:
            await connection.first_attempt_ended.wait()
            connection._pauses._pause = PATIENCE  # as after several starts
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(RpcError, match="it ended at once"):
                await connection.wait_until_up()
            while attempts < expected:
                await anyio.lowlevel.checkpoint()
            await anyio.wait_all_tasks_blocked()
        assert attempts == expected


async def test_concurrent_requests_share_one_failed_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pauses, "remaining", lambda _pauses, _now: 10 * PATIENCE)
    attempts = 0

    @asynccontextmanager
    async def connect(_options: ClientOptions) -> AsyncIterator[Client]:
        nonlocal attempts
        attempts += 1
        raise ConnectionError(f"nobody is there, time {attempts}")
        yield

    async def ask(connection: BridgeConnection) -> None:
        with pytest.raises(RpcError, match="time 2"):
            await connection.wait_until_up()

    async with living(Upstream("away", connect)) as connection:
        await connection.first_attempt_ended.wait()
        await anyio.wait_all_tasks_blocked()
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask, connection)


async def test_watchers_hear_of_state_changes_and_not_of_attempts() -> None:
    attempts = anyio.Semaphore(0)

    @asynccontextmanager
    async def connect(_options: ClientOptions) -> AsyncIterator[Client]:
        attempts.release()
        raise ConnectionError("nobody is there")
        yield

    async with living(Upstream("away", connect)) as connection:
        await attempts.acquire()
        await connection.first_attempt_ended.wait()
        turns = Turns(connection)
        await attempts.acquire()
        await anyio.wait_all_tasks_blocked()
        assert turns.seen == []


async def test_a_server_without_ping_stays_up() -> None:
    async def refuse(_running: Any, _context: Any, _params: Any) -> dict[str, Any]:
        raise MethodNotFound("method not found: ping")

    row = Method("ping", Params, last=NEWEST_HANDSHAKE)
    app = server(extensions=[Extension("no ping", methods=[row], handlers={"ping": refuse})])
    async with Behind(app).serving() as upstream, living(upstream) as connection:
        await connection.first_attempt_ended.wait()
        turns = Turns(connection)
        connection.check_liveness()
        for _ in range(2):
            with pytest.raises(RpcError):
                await connection.client.ping()
        await anyio.wait_all_tasks_blocked()
        assert turns.seen == []


async def test_a_reason_is_one_line_of_limited_length() -> None:
    assert reason_of(ValueError()) == "ValueError"
    assert reason_of(ValueError("one\n two")) == "one two"
    assert reason_of(FileNotFoundError(errno.ENOENT, "gone", "/home/me/program")) == os.strerror(errno.ENOENT)
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 9)")
    assert reason_of(refused) == os.strerror(errno.ECONNREFUSED)
    assert reason_of(gaierror(-2, "Name or service not known")) == "Name or service not known"
    assert len(reason_of(ValueError("a" * 1_000))) == 200
    assert reason_of(ExceptionGroup("both", [ValueError("first"), ValueError("second")])) == "first"


async def test_a_server_that_answers_the_liveness_check_stays_up() -> None:
    async with Behind(Small().app, NEW).serving() as upstream, living(upstream) as connection:
        await connection.first_attempt_ended.wait()
        turns = Turns(connection)
        for _ in range(2):
            connection.check_liveness()
            await connection.client.request("server/discover")
        await anyio.wait_all_tasks_blocked()
        assert turns.seen == []


async def test_an_unexpected_error_while_connecting_is_logged_and_retried(caplog: pytest.LogCaptureFixture) -> None:
    behind = Behind(Small().app)

    @asynccontextmanager
    async def connect(options: ClientOptions) -> AsyncIterator[Client]:
        if not caplog.records:
            raise KeyError("a bug")
        async with behind.connect(options) as client:
            yield client

    async with behind.serving(), living(Upstream("odd", connect)) as connection:
        await connection.first_attempt_ended.wait()
        assert connection.reason == "the connection failed"
        turns = Turns(connection)
        await turns.until(1)
        assert connection.up
    assert "the connection with the server odd failed" in caplog.text
