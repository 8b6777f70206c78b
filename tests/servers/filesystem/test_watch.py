"""Subscriptions of clients of both eras, over stdio and over HTTP."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.filesystem.server import app as filesystem
from shared.contracts import Stores
from tests.quiet import quiet
from tests.redis_server import RedisServer
from tests.redis_stores import InRedis
from tests.servers.filesystem.serving import http, inside, served, subscribe, uri_of, wait_for_update
from tests.servers.peers import ERAS, Peer
from tests.servers.replicas import LISTED, UPDATED, expect_updates, opened, subscribe_to, two
from tests.shared.server.peer import PATIENCE, talking
from tests.shared.transports.http.http_wire import Json, Site, events
from tests.wire import Wire

both_eras = pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])


async def expect_update(peer: Peer, uri: str) -> None:
    await wait_for_update(peer, uri)
    peer.wire.notifications.clear()


@asynccontextmanager
async def listening(site: Site, *uris: str) -> AsyncIterator[AsyncIterator[Json]]:
    """An acknowledged subscriptions/listen stream of the stateless era."""
    message, headers = site.stateless("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
    async with site.stream(message, headers) as answer:
        stream = events(answer)
        assert (await anext(stream))["params"]["notifications"] == {"resourceSubscriptions": list(uris)}
        yield stream


@asynccontextmanager
async def subscribed(site: Site, *uris: str) -> AsyncIterator[tuple[Json, AsyncIterator[Json]]]:
    """A session of the handshake era, and the messages of its stream."""
    session = await site.initialize()
    async with site.client.stream("GET", "/mcp", headers={**session, "Accept": "text/event-stream"}) as answer:
        for uri in uris:
            done = await site.post(site.message("resources/subscribe", {"uri": uri}), session)
            assert done.json()["result"] == {}
        yield session, events(answer)


async def next_update(stream: AsyncIterator[Json]) -> str:
    """The URI of the next notification."""
    uri: str = (await anext(stream))["params"]["uri"]
    return uri


# Over stdio


@pytest.mark.parametrize("era", ERAS)
async def test_a_subscriber_gets_updates_and_reads_the_new_content(tmp_path: Path, era: str) -> None:
    file = tmp_path / "a.txt"
    file.write_text("zero")
    async with served(tmp_path, era) as peer:
        await subscribe(peer, uri_of(file))
        for text in ("one", "two", "three"):
            (tmp_path / "new").write_text(text)
            (tmp_path / "new").replace(file)
            await expect_update(peer, uri_of(file))
            contents = (await peer.request("resources/read", uri=uri_of(file)))["result"]["contents"]
            assert contents[0]["text"] == text


KINDS = {
    "w4 nothing yet": ("/new/deep/a.txt", "new/deep/a.txt"),
    "w10 a glob": ("/**/*.py", "src/a.py"),
    "w10 a directory": ("/", "a.txt"),
    "w15 another spelling": ("/%61%20b.txt", "a b.txt"),
}
"""What is subscribed to, and the file that then appears."""


@pytest.mark.slow
@both_eras
@pytest.mark.parametrize("what", KINDS)
async def test_an_update_has_the_uri_of_the_subscription(tmp_path: Path, era: str, what: str) -> None:
    spelling, path = KINDS[what]
    uri = uri_of(tmp_path) + spelling
    async with served(tmp_path, era) as peer:
        await subscribe(peer, uri)
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
        await expect_update(peer, uri)


async def test_a_client_that_listed_resources_gets_list_changed(tmp_path: Path) -> None:
    async with inside(tmp_path) as peer:
        await peer.request("resources/list")
        (tmp_path / "new.txt").touch()
        await peer.client.other("notifications/resources/list_changed")


@pytest.mark.slow
async def test_five_thousand_new_files_cause_few_list_changed(tmp_path: Path) -> None:
    async with served(tmp_path) as peer:
        await peer.request("resources/list")
        await peer.request("resources/subscribe", uri=uri_of(tmp_path / "last"))
        began = anyio.current_time()
        for i in range(5_000):
            (tmp_path / f"{i}.txt").touch()
        methods = [(await peer.wire.receive())["method"]]
        (tmp_path / "last").touch()
        await wait_for_update(peer, uri_of(tmp_path / "last"))
    methods += [message["method"] for message in peer.wire.notifications[:-1]]
    assert set(methods) == {"notifications/resources/list_changed"}
    # At most one per second, and a few at the end.
    assert len(methods) <= 5 + anyio.current_time() - began


LIMITED = "echo 2 > /proc/sys/user/max_inotify_watches && exec "
"""A user namespace has a limit on watches of its own, so this one is nobody else's."""


@pytest.mark.slow
async def test_files_are_polled_at_the_limit_on_watches_and_that_is_logged(tmp_path: Path) -> None:
    try:
        refused = subprocess.run(["unshare", "-Ur", "sh", "-c", LIMITED + "true"], check=False).returncode
    except OSError:
        refused = 1
    if refused:
        pytest.skip("needs user namespaces: sysctl -w kernel.unprivileged_userns_clone=1")
    files = [tmp_path / str(i) / "a.txt" for i in range(5)]
    command = f"{LIMITED} {sys.executable} -m servers.filesystem {tmp_path}"
    async with Wire(["unshare", "-Ur", "sh", "-c", command]) as wire:
        await wire.initialize()
        peer = Peer(wire, "2025-11-25")
        for file in files:
            file.parent.mkdir()
            await subscribe(peer, uri_of(file))
        for text in ("one", "two"):
            for file in files:
                file.write_text(text)
            for file in files:
                await wait_for_update(peer, uri_of(file))
            wire.notifications.clear()
    assert "no change notifications" in wire.stderr


async def test_subscriptions_outside_the_roots_are_refused(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").write_text("secret")
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    beneath = uri_of(tmp_path / "root")
    uris = [
        "file:///etc/passwd",
        "file:///nowhere",
        "http://x/",
        f"{beneath}/../x",
        f"{beneath}/link",
        f"{beneath}/a",
    ]
    async with inside(tmp_path / "root") as peer:
        answers = [await peer.request("resources/subscribe", uri=uri) for uri in uris]
    assert [answer.get("error", {}).get("code") for answer in answers] == [-32002] * 5 + [None]
    async with inside(tmp_path / "root", era="2026-07-28") as peer:
        await peer.client.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
        acknowledged = await peer.client.receive()
    assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": uris[-1:]}


async def test_two_spellings_of_a_uri_both_get_updates(tmp_path: Path) -> None:
    uris = [uri_of(tmp_path / "a.txt"), uri_of(tmp_path) + "/%61.txt"]
    async with inside(tmp_path) as peer:
        for uri in uris:
            await peer.request("resources/subscribe", uri=uri)
        (tmp_path / "a.txt").write_text("one")
        updates = [(await peer.client.other("notifications/resources/updated"))["params"]["uri"] for _ in range(2)]
    assert updates == uris


async def test_an_immediate_unsubscribe_takes_effect(tmp_path: Path) -> None:
    file, other = uri_of(tmp_path / "a.txt"), uri_of(tmp_path / "b.txt")
    async with inside(tmp_path) as peer:
        keys = [await peer.client.begin(f"resources/{act}", {"uri": file}) for act in ("subscribe", "unsubscribe")]
        assert [(await peer.client.answer(key))["result"] for key in keys] == [{}, {}]
        await peer.request("resources/subscribe", uri=other)
        for name in ("a.txt", "b.txt"):
            (tmp_path / name).touch()
        assert (await peer.client.other("notifications/resources/updated"))["params"]["uri"] == other


# Over HTTP


@pytest.mark.slow
async def test_the_poll_option_sends_updates_and_is_shown_in_the_health(tmp_path: Path) -> None:
    uri = uri_of(tmp_path / "a.txt")
    async with http(tmp_path, "--poll") as site, listening(site, uri) as stream:
        assert (await site.health())["watching"] == {"watched": 1, "polled": 1, "degraded": False}
        (tmp_path / "a.txt").write_text("one")
        assert await next_update(stream) == uri


@pytest.mark.slow
async def test_clients_of_both_eras_get_one_frame_each_until_they_leave(tmp_path: Path) -> None:
    a, b = uri_of(tmp_path / "a.txt"), uri_of(tmp_path / "b.txt")
    async with http(tmp_path) as site, subscribed(site, a, b) as (session, old), listening(site, a, b) as new:
        for name, uri in (("a.txt", a), ("b.txt", b)):
            (tmp_path / name).touch()
            # A second frame for the first file would come before that for the second.
            assert (await next_update(old), await next_update(new)) == (uri, uri)
        await site.post(site.message("resources/unsubscribe", {"uri": a}), session)
        (tmp_path / "a.txt").write_text("x")
        assert await next_update(new) == a
        (tmp_path / "b.txt").write_text("x")
        assert (await next_update(old), await next_update(new)) == (b, b)


@pytest.mark.slow
async def test_a_client_that_reads_nothing_delays_no_other(tmp_path: Path) -> None:
    folder = [uri_of(tmp_path / f"{i}.txt") for i in range(100)]
    async with http(tmp_path) as site, listening(site, *folder), listening(site, *folder) as reader:
        for text in ("one", "two"):
            for i in range(100):
                (tmp_path / f"{i}.txt").write_text(text)
            missing = set(folder)
            while missing:
                missing.discard(await next_update(reader))


@pytest.mark.slow
async def test_a_thousand_closed_streams_leave_no_watch(tmp_path: Path) -> None:
    async with http(tmp_path) as site:
        for i in range(1_000):
            async with listening(site, uri_of(tmp_path / f"{i % 10}.txt")):
                pass
        while (await site.health())["watching"]["watched"]:
            await anyio.lowlevel.checkpoint()
        assert (await site.health())["streams"] == 0


@pytest.mark.slow
async def test_changes_between_two_streams_are_in_the_journal(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"

    async def changes(site: Site, **arguments: str | int) -> tuple[list[str], str]:
        answer = await site.call("tools/call", {"name": "changes", "arguments": arguments})
        *lines, last = answer.json()["result"]["content"][0]["text"].splitlines()
        return lines, last.removeprefix("[cursor: ").removesuffix("]")

    async with http(tmp_path) as site:
        _, cursor = await changes(site)
        async with listening(site, uri_of(file)) as stream:
            file.touch()
            assert await next_update(stream) == uri_of(file)
        _, cursor = await changes(site, cursor=cursor, wait=9)
        file.write_text("missed")
        async with listening(site, uri_of(file)):
            (change,), _ = await changes(site, cursor=cursor, wait=9)
    assert change.endswith(f" modified {file}")


# Two replicas


async def test_writes_of_another_replica_send_updates(stores: Stores, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "deep.txt").write_text("old")
    file, sub, glob, deep = (f"{root.as_uri()}/{name}" for name in ("file.txt", "sub", "*.txt", "sub/deep.txt"))
    async with two(filesystem, stores, "--allow-write", root) as (here, there):
        await subscribe_to(here, file, sub, glob, deep)
        await there.text("write_file", path=str(root / "file.txt"), content="new")
        await here.other(LISTED)
        await expect_updates(here, file, glob)
        edits = [{"oldText": "old", "newText": "new"}]
        await there.text("edit_file", path=str(root / "sub" / "deep.txt"), edits=edits)
        await expect_updates(here, sub, deep)
        await there.text("move_file", source=str(root / "sub"), destination=str(root / "other"))
        await here.other(LISTED)
        await expect_updates(here, sub, deep)
        await there.text("delete_file", path=str(root / "file.txt"))
        await here.other(LISTED)
        await expect_updates(here, file, glob)


@pytest.mark.slow
@pytest.mark.usefixtures("blind")
async def test_a_returning_replica_sends_updates_it_may_have_missed(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    file = tmp_path / "file.txt"
    file.touch()
    async with (
        opened(filesystem, InRedis(redis_server), "--allow-write", tmp_path) as (answer, other),
        talking(answer) as here,
        talking(other) as there,
    ):
        await subscribe_to(here, file.as_uri())
        replica: Any = answer.replication.replica
        replica.link.give_up_lease("as the test wants")
        await there.text("write_file", path=str(file), content="missed")
        with anyio.fail_after(PATIENCE):
            while replica.disconnect_reason is not None:
                await anyio.lowlevel.checkpoint()
        await here.other(LISTED)
        # The return reports everything as changed, and the replica's own watch may report the file as well.
        assert (await here.other(UPDATED))["params"] == {"uri": file.as_uri()}
        await quiet()
        await here.request("ping")
        here.others.clear()
        await there.text("write_file", path=str(file), content="heard")
        await expect_updates(here, file.as_uri())
