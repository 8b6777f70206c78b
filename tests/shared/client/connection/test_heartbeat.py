"""Pings to a silent server."""

import anyio
import pytest

from shared.client.connection.changes import Change
from shared.protocol.wire.jsonrpc import Message, Request, Response
from tests.shared.client.connection.test_link import good, playing


def mute(request: Request) -> Message | None:
    return None


async def test_a_server_that_does_not_answer_a_ping_is_replaced() -> None:
    async with playing(mute, good, heartbeat_seconds=0.01) as (client, opened), client.changes() as changes:
        assert await anext(changes) == Change("missed")
        assert opened[0].asked == ["initialize", "ping"]


@pytest.mark.slow
async def test_a_server_that_answers_pings_is_kept() -> None:
    pinged = anyio.Event()

    def play(request: Request) -> Message:
        pinged.set()
        return Response(request.id, {})

    async with playing(play, heartbeat_seconds=0.25) as (client, opened), client.changes():
        await pinged.wait()
        await client.raw.call_tool("add")
    assert [one.asked for one in opened] == [["initialize", "ping", "tools/call"]]


async def test_a_client_without_subscriptions_sends_no_pings() -> None:
    async with playing(mute, heartbeat_seconds=0.001) as (client, opened):
        with pytest.raises(TimeoutError):
            await client.raw.call_tool("add", timeout=0.02)
        assert client.connected
        assert opened[0].asked == ["initialize", "tools/call"]


async def test_no_ping_is_sent_during_a_call() -> None:
    async with playing(mute, good, heartbeat_seconds=0.001) as (client, opened), anyio.create_task_group() as tasks:
        tasks.start_soon(client.raw.call_tool, "add")
        while "tools/call" not in opened[0].asked:
            await anyio.lowlevel.checkpoint()
        async with client.changes() as changes:
            with anyio.move_on_after(0.02):
                await anext(changes)
            opened[0].tell(Response(2, {"content": []}))
            assert await anext(changes) == Change("missed")
    assert opened[0].asked == ["initialize", "tools/call", "ping"]
