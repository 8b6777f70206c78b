"""A thousand clients, one after another, each with a fault: no task, descriptor or thread is left of them."""

import gc
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import pytest

from shared.client.connect import connect_http, connect_sse, connect_websocket
from shared.client.options import ClientOptions
from shared.errors import McpError
from tests.checks.client_faults.hostile import CHUNKED, STREAM, Exchange, Fault, Hostile, chunk, hostile, resets, says
from tests.checks.client_faults.hostile_sockets import HostileSse, HostileWebSocket, frame
from tests.checks.client_faults.leavings import nothing_left

ROUNDS = 1_000
KINDS = {Hostile: connect_http, HostileSse: connect_sse, HostileWebSocket: connect_websocket}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("shared.transports.websocket.FAREWELL_SECONDS", 0.01)
    monkeypatch.setattr("shared.client.connection.LAST_WORDS_SECONDS", 0.01)
    monkeypatch.setattr("shared.client.retry.BASE_SECONDS", 0.001)
    monkeypatch.setattr("shared.client.restart.FIRST_SECONDS", 0.001)
    monkeypatch.setattr("shared.client.restart.LONGEST_SECONDS", 0.001)
    monkeypatch.setattr("shared.client.opening.OPENING_SECONDS", 1)


HTTP: list[Fault] = [resets, Exchange.hang, Exchange.good, says(b""), says(b"rubbish\r\n\r\n"), says(STREAM)]
HTTP += [says(CHUNKED % b"application/json" + b"x"), says(STREAM + chunk(b"data: {")), says(STREAM + b"0\r\n\r\n")]
FAULTS: dict[type[Hostile], list[Fault]] = {
    Hostile: HTTP,
    HostileSse: [resets, Exchange.hang, Exchange.good, says(b""), says(b"data: {")],
    HostileWebSocket: [resets, Exchange.hang, Exchange.good, says(b""), says(b"\x81\x70{"), says(frame(b"", 8))],
}


async def many(one: Callable[[int], Awaitable[None]]) -> None:
    """Runs `one` so often; the first makes what stays as long as the loop."""
    with suppress(ConnectionError):
        await one(0)
    gc.collect()
    async with nothing_left():
        with anyio.fail_after(110):
            for number in range(ROUNDS):
                with suppress(McpError, ConnectionError, TimeoutError):
                    await one(number)


@pytest.mark.parametrize("kind", KINDS)
async def test_servers_at_a_url(kind: type[Hostile]) -> None:
    faults = itertools.product(("tools/call", "initialize", "tools/list"), FAULTS[kind])
    every = itertools.cycle([(None, Exchange.good), *faults])

    async with hostile(kind) as server:

        async def one(_number: int) -> None:
            method, fault = next(every)
            server.clear()
            if method is not None:
                server.on(method, fault)
            with anyio.move_on_after(0.02 if fault is Exchange.hang else None):
                async with KINDS[kind](server.url, ClientOptions(mode="handshake")) as client:
                    with suppress(ConnectionError, TimeoutError):
                        await client.plain.call_tool("work", timeout=0.01)
                    await client.request("tools/list", timeout=1)

        await many(one)
