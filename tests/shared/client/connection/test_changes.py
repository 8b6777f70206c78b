"""`Client.changes`: subscriptions, the order of changes, and the end of the connection."""

import gc
from typing import Any

import anyio
import pytest

from shared.client.connection import subscription
from shared.client.connection.changes import Change, PendingChanges
from shared.client.connection.subscription import MAX_URI_LENGTH, Subscription
from shared.errors import PeerError
from shared.protocol.session.client_events import Notified
from tests.shared.client.small import Small

ERAS = pytest.mark.parametrize("mode", ["handshake", "stateless"])


@ERAS
async def test_changes_arrive_in_their_order(mode: str) -> None:
    small = Small()
    async with small.connected(mode=mode) as client:
        async with client.changes(["memo://one"]) as changes:
            assert small.subscribed == ["memo://one"]
            small.running.changes.resource("memo://one")
            assert await anext(changes) == Change("resource", "memo://one")
            small.running.changes.tools()
            assert await anext(changes) == Change("tools")
        await client.raw.list_tools()
        assert small.subscribed == []


@ERAS
async def test_leaving_the_loop_unsubscribes(mode: str) -> None:
    small = Small()

    async def change() -> None:
        while not small.subscribed:
            await anyio.lowlevel.checkpoint()
        small.running.changes.resource("memo://one")

    async with small.connected(mode=mode) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(change)
        async for change_told in client.changes(["memo://one"], lists=False):
            assert change_told == Change("resource", "memo://one")
            break
        gc.collect()
        await small.released.wait()
        assert small.subscribed == []


async def test_each_reader_gets_only_the_changes_of_its_uris() -> None:
    small = Small()
    async with (
        small.connected(mode="handshake") as client,
        client.changes(["memo://two", "memo://both"], lists=False) as two,
    ):
        async with client.changes(["memo://one", "memo://both"], lists=False) as one:
            small.running.changes.resource("memo://one")
            small.running.changes.resource("memo://two")
            assert await anext(one) == Change("resource", "memo://one")
            assert await anext(two) == Change("resource", "memo://two")
        assert small.subscribed == ["memo://two", "memo://both"]


async def test_a_refused_subscription_is_an_error() -> None:
    async with Small().connected(mode="handshake") as client:
        with pytest.raises(PeerError, match="not found"):
            async with client.changes(["http://x"]):
                pass
        with pytest.raises(PeerError, match="not found"):
            await anext(client.changes(["http://x"]))


async def test_changes_accepts_a_single_uri() -> None:
    small = Small()
    async with small.connected() as client, client.changes("memo://one", lists=False):
        assert small.subscribed == ["memo://one"]


async def test_unsupported_uris_are_listed_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        Small().connected(mode="stateless") as client,
        client.changes(["http://x", "memo://one"], lists=False) as changes,
    ):
        assert changes.refused == ("http://x",)
    assert "the server does not report changes to http://x" in caplog.text


async def test_a_refused_stream_is_an_error() -> None:
    small = Small()
    small.app.limits = type(small.app.limits)(streams=0)
    async with small.connected(mode="stateless") as client:
        with pytest.raises(PeerError, match="streams"):
            async with client.changes():
                pass


@ERAS
async def test_changes_end_when_the_connection_is_lost_for_good(mode: str) -> None:
    small = Small()
    async with small.connected(mode=mode) as client, client.changes(["memo://one"]) as changes:
        await small.lines[0].aclose()
        with pytest.raises(ConnectionError, match="the server ended the connection"):
            await anext(changes)


@ERAS
async def test_changes_end_with_the_client(mode: str) -> None:
    seen: list[Any] = []

    async def read() -> None:
        seen.extend([one async for one in changes])
        seen.append("the end")

    async with anyio.create_task_group() as tasks, Small().connected(mode=mode) as client:
        changes = client.changes(["memo://one"])
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
    assert seen == ["the end"]


@ERAS
async def test_closing_a_client_does_not_wait_to_unsubscribe(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "UNSUBSCRIBE_SECONDS", 40)  # more than the test has
    async with Small().connected(mode=mode) as client:
        changes = await client.changes(["memo://one"]).__aenter__()
    with pytest.raises(StopAsyncIteration):
        await anext(changes)


# The queue of changes

ONE, TWO, THREE = (Change("resource", f"memo://{number}") for number in range(3))


async def test_a_repeated_change_is_queued_once() -> None:
    pending = PendingChanges(limit=2)
    for change in (ONE, TWO, ONE):
        pending.put(change)
    pending.end()
    assert [await pending.take(), await pending.take(), await pending.take()] == [ONE, TWO, None]


async def test_a_full_queue_of_changes_becomes_missed() -> None:
    pending = PendingChanges(limit=2)
    for change in (ONE, TWO, THREE, ONE):
        pending.put(change)
    pending.end()
    assert [await pending.take(), await pending.take()] == [Change("missed"), None]


async def test_queued_changes_are_taken_before_the_error() -> None:
    pending = PendingChanges()
    pending.put(ONE)
    pending.end(ConnectionError("lost"))
    assert await pending.take() == ONE
    with pytest.raises(ConnectionError, match="lost"):
        await pending.take()


@ERAS
async def test_changes_of_a_closed_client_raise_connection_error(mode: str) -> None:
    async with Small().connected(mode=mode) as client:
        entered, iterated = client.changes(["memo://one"]), client.changes(["memo://one"])
    with anyio.fail_after(30):
        with pytest.raises(ConnectionError, match="the client is closed"):
            await entered.__aenter__()
        with pytest.raises(ConnectionError, match="the client is closed"):
            await anext(iterated)
        await iterated.aclose()


def test_an_update_with_a_too_long_uri_becomes_missed() -> None:
    changes: list[Change] = []
    notice = Notified("notifications/resources/updated", {"uri": "memo://one/" + "a" * MAX_URI_LENGTH})
    assert Subscription(["memo://one"], changes.append, lists=False).on_notification(notice)
    assert changes == [Change("missed")]
