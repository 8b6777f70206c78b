"""Subscriptions at the server, and the subscribed URIs that contain a URI."""

from types import SimpleNamespace
from typing import Any, cast

import anyio

from servers.gateway.bridge.watching.resources import MAX_LEVELS, ResourceWatcher, find_covering
from tests.quiet import quiet

HELD = {"file:///a", "file:///a/b/", "memo://all", "file:///a/b/c.txt"}


COVERING = {
    "file:///a": ["file:///a"],
    "file:///a/b/c.txt": ["file:///a/b/c.txt", "file:///a", "file:///a/b/"],
    "file:///a/b/": ["file:///a/b/", "file:///a"],
    "file:///a/b": ["file:///a"],
    "file:///ab": [],
    "memo://all/1": ["memo://all"],
    "memo://": [],
    "": [],
}


def test_a_uri_is_covered_by_all_its_parents() -> None:
    assert {uri: [*find_covering(uri, HELD.__contains__)] for uri in COVERING} == COVERING


def test_only_the_first_levels_of_a_deep_uri_are_checked() -> None:
    seen: list[str] = []
    assert not [*find_covering("/" * 8_000, lambda uri: bool(seen.append(uri)))]
    assert len(seen) <= 2 * MAX_LEVELS + 1


async def test_a_client_that_subscribes_during_an_unsubscription_stays_subscribed() -> None:
    began, go_on, removed = anyio.Event(), anyio.Event(), list[str]()
    is_wanted = False

    class Slow:
        client = None

        async def add(self, uri: str) -> bool:
            began.set()
            await go_on.wait()
            return True

        async def remove(self, uri: str) -> None:
            removed.append(uri)

    unused: Any = None
    changes: Any = SimpleNamespace(has_subscribers=lambda _: is_wanted)
    connection: Any = SimpleNamespace(up=True, client=None)
    watcher = ResourceWatcher(connection, changes, unused, 60)
    watcher.subscriber = cast("Any", Slow())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watcher.subscribe, "memo://a")
        await began.wait()
        tasks.start_soon(watcher.unsubscribe_if_unused, "memo://a")
        await quiet()
        is_wanted = True
        go_on.set()
    assert removed == []
    is_wanted = False
    await watcher.unsubscribe_if_unused("memo://a")
    assert removed == ["memo://a"]
