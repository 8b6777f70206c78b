"""Connections that are a session, cut at every byte of a message: the call is lost, and the next opens another."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from shared.client.connect import connect_sse, connect_websocket
from shared.client.options import ClientOptions
from tests.shared.client.faults.hostile import Exchange, Hostile, hostile
from tests.shared.client.faults.hostile_sockets import Framed, HostileSse, HostileWebSocket
from tests.shared.client.faults.leavings import nothing_left
from tests.shared.client.small import text_of

CONNECT = {HostileWebSocket: connect_websocket, HostileSse: connect_sse}
AT = pytest.mark.parametrize("step", [29, pytest.param(1, marks=[pytest.mark.slow])])
End = Callable[[Exchange], Awaitable[None]]


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("shared.client.restart.FIRST_SECONDS", 0.001)
    monkeypatch.setattr("shared.client.restart.LONGEST_SECONDS", 0.001)


async def closes(_exchange: Exchange) -> None:
    pass


async def resets(exchange: Exchange) -> None:
    exchange.reset()


@AT
@pytest.mark.parametrize("end", [closes, resets])
@pytest.mark.parametrize("kind", CONNECT)
async def test_a_message_cut_anywhere(kind: type[Hostile], end: End, step: int) -> None:
    async def cut(exchange: Exchange) -> None:
        assert isinstance(exchange, Framed)
        await exchange.send(exchange.text()[: exchange.message["params"]["arguments"]["size"]])
        await end(exchange)

    async with nothing_left(), hostile(kind) as server:
        server.on("tools/call", cut)
        with anyio.fail_after(60):
            async with CONNECT[kind](server.url, ClientOptions(mode="handshake")) as client:
                for size in range(0, 160, step):
                    try:
                        result = await client.plain.call_tool("work", {"size": size})
                    except ConnectionError:
                        continue
                    assert text_of(result) == "done"
                    break
                assert size > 100
                assert server.seen.count("initialize") == server.seen.count("tools/call") > 1
