"""Subscriptions to resources of several servers: one at the owner, and the recipients of updates."""

from typing import Any

import anyio
import pytest

from shared import ResourceNotFound
from tests.quiet import quiet
from tests.servers.gateway.changes import subscribed, updated
from tests.servers.gateway.joined.members import Door, both_eras, joined, opened, serving, with_resources, with_tools
from tests.shared.server.peer import ERAS, talking


class Watching:
    """A member with one resource that records its subscriptions."""

    def __init__(self) -> None:
        self.server = serving("a", "a://1", "a://{id}")
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.refuses = False
        self.may_begin = anyio.Event()
        self.may_begin.set()
        self.server.on_subscribe(self._begin)
        self.server.on_unsubscribe(self._end)

    async def _begin(self, _ctx: Any, uri: str) -> str:
        self.begun.append(uri)
        await self.may_begin.wait()
        if self.refuses:
            raise ResourceNotFound(uri)
        return uri.casefold()

    async def _end(self, _running: Any, key: str) -> None:
        self.ended.append(key)


@both_eras
async def test_updates_have_the_uri_that_the_subscriber_used(version: str) -> None:
    watching = Watching()
    door = Door("a", watching.server)
    async with joined(door) as running, talking(running, version) as peer:
        await subscribed(peer, "A://1")
        opened(door).changes.resource("a://1")
        assert await updated(peer) == "A://1"


async def test_many_clients_share_one_subscription_at_the_owner() -> None:
    watching = Watching()
    door = Door("a", watching.server)
    async with joined(door) as running:
        async with talking(running) as first:
            await subscribed(first, "a://1")
            for _ in range(5):
                async with talking(running) as peer:
                    await subscribed(peer, "a://1")
                    assert opened(door).changes.subscribed_resources == 1
            assert watching.ended == []
        assert watching.ended == ["a://1"]
        assert opened(door).changes.subscribed_resources == 0


@both_eras
async def test_an_unknown_resource_can_not_be_subscribed_to(version: str) -> None:
    async with joined(with_resources("a", "a://1")) as running, talking(running, version) as peer:
        if version == ERAS[0]:
            assert "error" in await peer.request("resources/subscribe", {"uri": "a://1"})
        else:
            await peer.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["a://1"]}})
            told = await peer.other("notifications/subscriptions/acknowledged")
            assert told["params"]["notifications"] == {}


@both_eras
async def test_subscriptions_outlive_their_owner(version: str) -> None:
    watching = Watching()
    door = Door("a", watching.server)
    async with joined(door) as running, talking(running, version) as peer:
        await subscribed(peer, "a://1")
        await door.close()
        opened = await door.open()
        # It may have changed while nobody looked.
        assert await updated(peer) == "a://1"
        assert watching.begun == ["a://1", "a://1"]
        opened.changes.resource("a://1")
        assert await updated(peer) == "a://1"


async def test_subscriptions_of_clients_that_leave_immediately_are_released() -> None:
    watching = Watching()
    door = Door("a", watching.server)

    async def come_and_go() -> None:
        async with talking(running, ERAS[0]) as peer:
            await subscribed(peer, "a://1")

    async with joined(door) as running:
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(come_and_go)
        assert opened(door).changes.subscribed_resources == 0
        assert watching.ended.count("a://1") == len(watching.ended)


async def test_a_new_subscriber_restores_the_subscription_of_the_others() -> None:
    watching = Watching()
    door = Door("a", watching.server)
    async with joined(door) as running, talking(running) as first:
        await subscribed(first, "a://1")
        await door.close()
        watching.refuses = True
        opened = await door.open()
        await first.other("notifications/resources/updated")
        assert opened.changes.subscribed_resources == 0
        watching.refuses = False
        async with talking(running) as second:
            await subscribed(second, "a://1")
            opened.changes.resource("a://1")
            for peer in (first, second):
                assert await updated(peer) == "a://1"
        assert opened.changes.subscribed_resources == 1


async def test_a_subscription_that_ends_while_its_owner_returns_is_released() -> None:
    watching = Watching()
    door = Door("a", watching.server)
    async with joined(door) as running, talking(running) as peer:
        await subscribed(peer, "a://1")
        await door.close()
        watching.may_begin = anyio.Event()
        returned = await door.open()
        while len(watching.begun) < 2:
            await anyio.lowlevel.checkpoint()
        await peer.request("resources/unsubscribe", {"uri": "a://1"})
        watching.may_begin.set()
        await quiet()
        assert watching.ended == ["a://1"]
        assert returned.changes.subscribed_resources == 0


@pytest.mark.parametrize("is_renewed", [True, False])
async def test_a_key_that_its_owner_reuses_for_another_resource_is_another_subscription(is_renewed: bool) -> None:
    server, keys, may_renew = serving("a", "a://{id}"), {"a://1": "x"}, anyio.Event()

    async def begin(_ctx: Any, uri: str) -> str:
        if uri == "a://1" and keys[uri] != "x":
            await may_renew.wait()
        return keys[uri]

    server.on_subscribe(begin)
    door = Door("a", server)
    async with joined(door) as running, talking(running) as first, talking(running) as second:
        await subscribed(first, "a://1")
        await door.close()
        keys |= {"a://1": "y", "a://2": "x"}
        returned = await door.open()
        if is_renewed:
            may_renew.set()
            assert await updated(first) == "a://1"
        await subscribed(second, "a://2")
        if not is_renewed:
            may_renew.set()
            assert await updated(first) == "a://1"
        for key, peer, uri in (("y", first, "a://1"), ("x", second, "a://2")):
            returned.changes.resource(key)
            assert await updated(peer) == uri


async def test_unsubscribing_from_a_closed_owner_sends_nothing() -> None:
    watching = Watching()
    door = Door("a", watching.server)
    async with joined(door) as running, talking(running) as peer:
        await subscribed(peer, "a://1")
        await door.close()
        await peer.request("resources/unsubscribe", {"uri": "a://1"})
        assert watching.ended == []


async def test_endless_updates_of_a_member_are_coalesced() -> None:
    watching, other = Watching(), with_tools("b", "say")
    door = Door("a", watching.server)
    async with joined(door, other) as running, talking(running) as peer:
        await subscribed(peer, "a://1")
        for _ in range(300):
            opened(door).changes.resource("a://1")
            opened(door).changes.tools()
        assert await peer.text("say") == "b say"
        await peer.request("ping")
        assert [one["method"] for one in peer.others].count("notifications/resources/updated") == 1
