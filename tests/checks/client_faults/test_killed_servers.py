"""Servers at a URL that are killed, and started again at the same port: what was under way ends with an error, and
what comes next has the new one.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import pytest

from shared.client.changes import Change
from shared.client.client import Client
from shared.client.connect import connect_http, connect_sse, connect_websocket
from shared.client.options import ClientOptions
from tests.checks.client_faults.leavings import nothing_left
from tests.checks.client_faults.nursery import Victim, nursery
from tests.shared.client.small import text_of

Connect = Callable[..., AbstractAsyncContextManager[Client]]
REACHED: dict[str, tuple[Connect, str, str]] = {
    "http handshake": (connect_http, "http://127.0.0.1:{}/mcp", "handshake"),
    "http stateless": (connect_http, "http://127.0.0.1:{}/mcp", "stateless"),
    "http+sse": (connect_sse, "http://127.0.0.1:{}/sse", "handshake"),
    "websocket handshake": (connect_websocket, "ws://127.0.0.1:{}/mcp", "handshake"),
    "websocket stateless": (connect_websocket, "ws://127.0.0.1:{}/mcp", "stateless"),
}
EVERYWHERE = pytest.mark.parametrize("reached", REACHED)
Start = Callable[..., Victim]


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("shared.client.restart.FIRST_SECONDS", 0.001)
    monkeypatch.setattr("shared.client.restart.LONGEST_SECONDS", 0.001)
    monkeypatch.setattr("shared.client.retry.BASE_SECONDS", 0.001)
    monkeypatch.setattr("shared.transports.http.client_streams.RETRY_SECONDS", 0.001)


@pytest.fixture(scope="module")
def start() -> Iterator[Start]:
    with nursery() as started:
        yield started


@asynccontextmanager
async def connected(reached: str, start: Start, **options: Any) -> AsyncIterator[tuple[Client, Victim]]:
    connect, url, mode = REACHED[reached]
    victim = start()
    async with nothing_left():
        with anyio.fail_after(30):
            async with connect(url.format(victim.port), ClientOptions(mode=mode, **options)) as client:
                yield client, victim


async def pid(client: Client) -> int:
    return int(text_of(await client.plain.call_tool("pid")))


@EVERYWHERE
async def test_a_server_killed_in_a_call(reached: str, start: Start) -> None:
    async with connected(reached, start) as (client, victim):
        again: list[Victim] = []

        def replace(*_: object) -> None:
            victim.kill()
            again.append(start(victim.port))

        with pytest.raises(ConnectionError):
            await client.plain.call_tool("hold", on_progress=replace)
        assert [await pid(client)] == [one.pid for one in again]


@EVERYWHERE
async def test_a_server_killed_between_two_calls(reached: str, start: Start) -> None:
    async with connected(reached, start) as (client, victim):
        assert await pid(client) == victim.pid
        victim.kill()
        again = start(victim.port)
        assert (await client.plain.read_resource("memo://one"))["contents"][0]["text"] == str(again.pid)


@EVERYWHERE
async def test_a_server_killed_while_changes_are_heard(reached: str, start: Start) -> None:
    async with connected(reached, start) as (client, victim), client.changes(["memo://one"]) as changes:
        await client.plain.call_tool("touch")
        assert await anext(changes) == Change("resource", "memo://one")
        victim.kill()
        start(victim.port)
        assert await anext(changes) == Change("missed")
        await client.plain.call_tool("touch")
        assert await anext(changes) == Change("resource", "memo://one")


@EVERYWHERE
async def test_a_server_killed_between_two_pages(reached: str, start: Start) -> None:
    async with connected(reached, start) as (client, victim):
        tools = client.iter_tools()
        await anext(tools)
        victim.kill()
        with pytest.raises(ConnectionError):
            [tool async for tool in tools]
        start(victim.port)
        assert len(await client.list_tools()) == 7
