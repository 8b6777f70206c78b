"""The change bus: recipients of updates, and the release of subscriptions."""

from contextlib import suppress

import anyio
import pytest

from shared import Context, InvalidParams, ResourceNotFound
from shared.protocol.session.events import Change
from shared.server.dispatch.changes import MAX_SUBSCRIPTIONS, Changes
from tests.quiet import quiet
from tests.shared.server.peer import STATELESS, server, talking


class Ear:
    """Records what it hears."""

    def __init__(self):
        self.heard = []

    def on_change(self, change):
        self.heard.append(change)


class Watch:
    """Records the calls of a server's hooks."""

    def __init__(self, changes=None):
        self.log = []
        if changes is not None:
            changes.on_subscribe = self.begin
            changes.on_unsubscribe = self.end

    async def begin(self, ctx, uri):
        if uri == "missing":
            raise ResourceNotFound(uri)
        self.log.append(f"+{uri}")
        return uri.lower()

    async def end(self, key):
        self.log.append(f"-{key}")


@pytest.fixture
def changes():
    return Changes()


@pytest.fixture
def watch(changes):
    return Watch(changes)


def test_list_changes_reach_all_current_listeners(changes):
    ears, gone = [Ear(), Ear()], Ear()
    for ear in (*ears, gone):
        changes.join(ear)
    changes.leave(gone)
    changes.leave(gone)
    changes.tools()
    changes.prompts()
    changes.resources()
    assert [ear.heard for ear in ears] == [[Change("tools"), Change("prompts"), Change("resources")]] * 2
    assert gone.heard == []


async def test_an_update_reaches_the_subscribers_of_its_key(changes, watch):
    ear = Ear()
    changes.join(ear)
    changes.resource("a")
    assert (ear.heard, changes.has_subscribers("a")) == ([], False)
    assert await changes.subscribe(None, "A") == "a"
    assert (changes.has_subscribers("a"), changes.has_subscribers("A")) == (True, False)
    changes.resource("a")
    changes.resource("A")
    assert ear.heard == [Change("resource", "a")]


async def test_the_last_release_of_a_key_calls_on_unsubscribe(changes, watch):
    await changes.subscribe(None, "A")
    await changes.subscribe(None, "a")
    await changes.unsubscribe(["a"])
    assert (watch.log, changes.subscribed_resources) == (["+A", "+a"], 1)
    await changes.unsubscribe(["a"])
    assert (watch.log, changes.subscribed_resources, changes.has_subscribers("a")) == (["+A", "+a", "-a"], 0, False)


async def test_all_keys_are_released_although_one_fails(changes, watch):
    async def fail(key):
        await watch.end(key)
        raise OSError(key)

    changes.on_unsubscribe = fail
    for uri in ("A", "B"):
        await changes.subscribe(None, uri)
    with pytest.raises(OSError, match=r"a|b"):
        await changes.unsubscribe(["a", "b"])
    assert (sorted(watch.log), changes.subscribed_resources) == (["+A", "+B", "-a", "-b"], 0)


async def test_no_further_subscription_begins_for_a_client_that_left(changes, watch):
    """Which asked for many at once: that each is begun or not, and nothing between, keeps none from the next."""
    with anyio.CancelScope() as gone:
        for uri in ("A", "B", "C"):
            await changes.subscribe(None, uri)
            gone.cancel()
    assert watch.log == ["+A"]


async def test_an_unknown_resource_can_not_be_subscribed_to(changes):
    with pytest.raises(ResourceNotFound):
        await changes.subscribe(None, "a")  # there is no hook
    watch = Watch(changes)
    with pytest.raises(ResourceNotFound):
        await changes.subscribe(None, "missing")
    assert (watch.log, changes.subscribed_resources) == ([], 0)


# Over a connection


def changing():
    """A server with resources, without hooks."""
    app = server()

    @app.resource("a:{name}")
    async def page(name: str) -> str:
        return name

    @app.tool()
    async def tick() -> None:
        """Changes everything."""

    return app


def watched():
    """A server whose resources can be subscribed to, and the record of its hooks."""
    app, watch = changing(), Watch()
    app.on_subscribe(watch.begin)

    @app.on_unsubscribe
    async def end(_running, key):
        await watch.end(key)

    return app, watch


async def test_simultaneous_changes_are_announced_once():
    app, _ = watched()
    async with app.open() as running, talking(running) as peer:
        for _ in range(1_000):
            running.changes.tools()
            running.changes.resources()
        await quiet()
        assert (await peer.receive())["method"] == "notifications/tools/list_changed"
        assert (await peer.receive())["method"] == "notifications/resources/list_changed"
        await peer.request("ping")
        assert peer.others == []


async def test_a_subscription_lasts_until_it_is_cancelled():
    app, watch = watched()
    async with talking(app) as peer:
        await peer.request("resources/subscribe", {"uri": "A"})
        assert watch.log == ["+A"]
        await peer.request("resources/unsubscribe", {"uri": "A"})
        assert watch.log == ["+A", "-a"]


async def test_a_client_that_leaves_releases_its_subscriptions():
    app, watch = watched()
    async with app.open() as running:
        async with talking(running) as peer:
            for uri in ("A", "a", "b"):
                await peer.request("resources/subscribe", {"uri": uri})
        assert sorted(watch.log) == ["+A", "+a", "+b", "-a", "-b"]
        # Nobody but the bus itself knows whom it still tells.
        assert (running.changes.subscribed_resources, running.changes._listeners) == (0, {})


async def test_two_clients_share_one_key():
    app, watch = watched()
    async with app.open() as running, talking(running) as other:
        await other.request("resources/subscribe", {"uri": "A"})
        async with talking(running) as peer:
            await peer.request("resources/subscribe", {"uri": "a"})
        assert watch.log == ["+A", "+a"]
    assert watch.log == ["+A", "+a", "-a"]


async def listen(peer, *uris, id=None):
    params = {"notifications": {"resourceSubscriptions": list(uris)}}
    id_ = await peer.begin("subscriptions/listen", params, id=id)
    await peer.other("notifications/subscriptions/acknowledged")
    return id_


async def test_a_stream_subscribes_to_its_resources_until_it_is_cancelled():
    app, watch = watched()
    async with app.open() as running, talking(running, STATELESS) as peer:
        id_ = await listen(peer, "A", "missing", "b")
        assert running.changes.subscribed_resources == 2
        await peer.cancel(id_)
        await quiet()
        assert running.changes.subscribed_resources == 0
        assert watch.log == ["+A", "+b", "-a", "-b"]


async def test_a_client_that_leaves_releases_its_streams():
    app, watch = watched()
    async with app.open() as running:
        async with talking(running, STATELESS) as peer:
            await listen(peer, "A")
            await listen(peer, "A", "b")
        assert running.changes.subscribed_resources == 0
    assert (running.changes.subscribed_resources, watch.log[-2:]) == (0, ["-a", "-b"])


async def test_on_subscribe_gets_the_context_of_the_subscriber():
    app, asked = changing(), []

    @app.on_subscribe
    async def begin(ctx: Context[None], uri: str) -> str:
        asked.append((ctx.peer.info["name"], uri))
        return uri

    async with talking(app) as peer:
        await peer.request("resources/subscribe", {"uri": "a"})
    assert asked == [("wire", "a")]


class Slow:
    """Hooks that wait until `go` is set."""

    def __init__(self, changes=None):
        self.log, self.begun, self.go = [], 0, anyio.Event()
        if changes is not None:
            changes.on_subscribe = self.begin
            changes.on_unsubscribe = self.end

    async def begin(self, _ctx, uri):
        await self._take(f"+{uri}")
        return uri

    async def end(self, key):
        await self._take(f"-{key}")

    async def _take(self, line):
        self.begun += 1
        await self.go.wait()
        self.log.append(line)


async def test_a_running_hook_is_not_cancelled(changes):
    slow = Slow(changes)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(changes.subscribe, None, "a")
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
        slow.go.set()
    slow.go = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(changes.unsubscribe, ["a"])
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
        slow.go.set()
    assert slow.log == ["+a", "-a"]


def slowly_watched():
    """A server with slow hooks, and the hooks."""
    app, slow = changing(), Slow()
    app.on_subscribe(slow.begin)

    @app.on_unsubscribe
    async def end(_running, key):
        await slow.end(key)

    return app, slow


async def test_an_unsubscription_during_the_subscription_releases_the_resource():
    app, slow = slowly_watched()
    async with app.open() as running, talking(running) as peer:
        id_ = await peer.begin("resources/subscribe", {"uri": "a:1"})
        while not slow.begun:
            await anyio.lowlevel.checkpoint()
        await peer.request("resources/unsubscribe", {"uri": "a:1"})
        slow.go.set()
        assert (await peer.answer(id_))["result"] == {}
        assert (slow.log, running.changes.subscribed_resources) == (["+a:1", "-a:1"], 0)


async def test_two_concurrent_subscriptions_to_a_resource_become_one():
    app, slow = slowly_watched()
    async with app.open() as running, talking(running) as peer:
        ids = [await peer.begin("resources/subscribe", {"uri": "a:1"}) for _ in range(2)]
        while slow.begun < 2:
            await anyio.lowlevel.checkpoint()
        slow.go.set()
        for id_ in ids:
            assert (await peer.answer(id_))["result"] == {}
        running.changes.resource("a:1")
        assert (await peer.other("notifications/resources/updated"))["params"]["uri"] == "a:1"
        await peer.request("resources/unsubscribe", {"uri": "a:1"})
        assert running.changes.subscribed_resources == 0


async def test_a_failed_hook_leaves_no_subscription():
    app = changing()

    @app.on_subscribe
    async def begin(_ctx: object, uri: str) -> str:
        raise RuntimeError("no more watches")

    async with app.open() as running, talking(running) as peer:
        answer = await peer.request("resources/subscribe", {"uri": "a"})
        assert answer["error"]["code"] == -32603
        assert running.changes.subscribed_resources == 0


async def held(changes, name, client=""):
    """The number of subscriptions that a client gets."""
    number = 0
    with suppress(InvalidParams):
        while True:
            await changes.subscribe(None, f"{name}{number}", client)
            number += 1
    return number


async def test_one_client_can_not_take_all_subscriptions(changes, watch):
    """One client may have half of them, two a third each."""
    half = MAX_SUBSCRIPTIONS // 2
    for number in range(half - 1):
        await changes.subscribe(None, f"a{number}", "one")
    for _ in range(3):  # what is not served takes no share
        with pytest.raises(ResourceNotFound):
            await changes.subscribe(None, "missing", "one")
    assert await held(changes, "b", "one") == 1
    assert await held(changes, "c", "two") == half // 2
    await changes.unsubscribe([f"a{number}" for number in range(half - 1)], "one")
    await changes.subscribe(None, "d", "two")


async def test_a_single_client_may_have_all_subscriptions(changes, watch):
    assert await held(changes, "a") == MAX_SUBSCRIPTIONS


async def test_own_writes_are_announced_to_other_replicas(changes):
    ear, shared = Ear(), []
    changes.join(ear)
    changes.on_subscribe = Watch().begin
    await changes.subscribe(None, "a")
    changes.wrote("a")
    changes.share = shared.append
    changes.wrote("a")
    assert (ear.heard, shared) == ([], [Change("written", "a")])


async def test_updates_of_another_replica_reach_subscribed_keys_only(changes):
    ear = Ear()
    changes.join(ear)
    changes.on_subscribe = Watch().begin
    for key in ("a", "b"):
        await changes.subscribe(None, key)
    changes.receive(Change("written", "a"))
    changes.receive(Change("resource", "b", "b#part"))
    changes.receive(Change("resource", "c"))
    changes.on_remote_change = lambda change: ("b", "c") if change.uri == "a" else ()
    changes.receive(Change("written", "a"))
    changes.receive(Change("resource", "b"))
    changes.receive(Change("resource", "a", "a#part"))  # which is no part of another resource
    by_key = [Change("resource", "b")] * 2
    assert ear.heard == [Change("resource", "a"), Change("resource", "b", "b#part"), *by_key]


async def test_a_lost_message_counts_as_a_change_of_everything(changes):
    ear = Ear()
    changes.join(ear)
    changes.on_subscribe = Watch().begin
    await changes.subscribe(None, "a")
    changes.notify_all()
    lists = [Change(name) for name in ("tools", "prompts", "resources")]
    assert sorted(ear.heard, key=str) == sorted([*lists, Change("resource", "a")], key=str)
