"""Subscriptions through the front door: what clients of both eras are told, over stdio and over HTTP."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest

from servers.filesystem.server import app as server
from tests.servers.filesystem.test_server import Peer, served, subscribe, updated, uri_of
from tests.shared.transports.http.http_wire import Json, Site, events
from tests.wire import Wire, start_http, with_envelope

pytestmark = pytest.mark.slow
both_eras = pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])


async def told_of(peer: Peer, uri: str) -> None:
    await updated(peer, uri)
    peer.wire.notifications.clear()


@asynccontextmanager
async def http(folder: Path, *options: str) -> AsyncIterator[Site]:
    """The server over HTTP."""
    async with (
        start_http([sys.executable, "-m", "servers.filesystem", *options, str(folder)]) as url,
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client,
    ):
        yield Site(server, 0, anyio.Event(), client)


@asynccontextmanager
async def listening(site: Site, *uris: str) -> AsyncIterator[AsyncIterator[Json]]:
    """A stream of the stateless era, which is acknowledged."""
    message, headers = site.stateless("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
    async with site.stream(message, headers) as answer:
        stream = events(answer)
        assert (await anext(stream))["params"]["notifications"] == {"resourceSubscriptions": list(uris)}
        yield stream


@asynccontextmanager
async def subscribed(site: Site, *uris: str) -> AsyncIterator[tuple[Json, AsyncIterator[Json]]]:
    """A session of the handshake era, and what comes on its stream."""
    session = await site.initialize()
    async with site.client.stream("GET", "/mcp", headers={**session, "Accept": "text/event-stream"}) as answer:
        for uri in uris:
            assert (await site.post(site.message("resources/subscribe", {"uri": uri}), session)).json()[
                "result"
            ] == {}
        yield session, events(answer)


async def told(stream: AsyncIterator[Json]) -> str:
    """The URI of the next notification."""
    uri: str = (await anext(stream))["params"]["uri"]
    return uri


async def test_w8_polling_by_option_is_shown_in_the_health(tmp_path: Path) -> None:
    async with http(tmp_path, "--poll") as site, listening(site, uri_of(tmp_path / "a.txt")):
        assert (await site.health())["watching"] == {"watched": 1, "polled": 1, "degraded": False}


async def test_w11_clients_of_both_eras_get_one_frame_each_and_go_one_by_one(tmp_path: Path) -> None:
    a, b = uri_of(tmp_path / "a.txt"), uri_of(tmp_path / "b.txt")
    async with http(tmp_path) as site, subscribed(site, a, b) as (session, old), listening(site, a, b) as new:
        for name, uri in (("a.txt", a), ("b.txt", b)):
            (tmp_path / name).touch()
            # A second frame for the first file would come before that for the second.
            assert (await told(old), await told(new)) == (uri, uri)
        await site.post(site.message("resources/unsubscribe", {"uri": a}), session)
        (tmp_path / "a.txt").write_text("x")
        assert await told(new) == a
        (tmp_path / "b.txt").write_text("x")
        assert (await told(old), await told(new)) == (b, b)


async def test_w12_a_client_that_reads_nothing_holds_up_no_other(tmp_path: Path) -> None:
    folder = [uri_of(tmp_path / f"{i}.txt") for i in range(100)]
    async with http(tmp_path) as site, listening(site, *folder), listening(site, *folder) as reader:
        for text in ("one", "two"):
            for i in range(100):
                (tmp_path / f"{i}.txt").write_text(text)
            missing = set(folder)
            while missing:
                missing.discard(await told(reader))


@pytest.mark.slow
async def test_w17_a_thousand_connections_that_came_and_went_leave_nothing(tmp_path: Path) -> None:
    async with http(tmp_path) as site:
        for i in range(1_000):
            async with listening(site, uri_of(tmp_path / f"{i % 10}.txt")):
                pass
        while (await site.health())["watching"]["watched"]:
            await anyio.lowlevel.checkpoint()
        assert (await site.health())["streams"] == 0


async def test_w19_what_happens_between_two_streams_is_in_the_journal(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"

    async def changes(site: Site, **arguments: str | int) -> tuple[list[str], str]:
        answer = await site.call("tools/call", {"name": "changes", "arguments": arguments})
        *lines, last = answer.json()["result"]["content"][0]["text"].splitlines()
        return lines, last.removeprefix("[cursor: ").removesuffix("]")

    async with http(tmp_path) as site:
        _, cursor = await changes(site)
        async with listening(site, uri_of(file)) as stream:
            file.touch()
            assert await told(stream) == uri_of(file)
        _, cursor = await changes(site, cursor=cursor, wait=9)
        file.write_text("missed")
        async with listening(site, uri_of(file)):
            (change,), _ = await changes(site, cursor=cursor, wait=9)
    assert change.endswith(f" modified {file}")


@both_eras
async def test_w8_polling_by_option_tells_of_changes(tmp_path: Path, era: str) -> None:
    file = tmp_path / "a.txt"
    async with served(tmp_path, era, "--poll") as peer:
        await subscribe(peer, uri_of(file))
        file.write_text("one")
        await told_of(peer, uri_of(file))


@both_eras
async def test_w2_three_edits_of_our_own_are_three_changes(tmp_path: Path, era: str) -> None:
    file = tmp_path / "a.txt"
    file.write_text("0")
    async with served(tmp_path, era, "--allow-write") as peer:
        await subscribe(peer, uri_of(file))
        for i in range(3):
            await peer.call("edit_file", path="a.txt", edits=[{"oldText": str(i), "newText": str(i + 1)}])
            await told_of(peer, uri_of(file))


@both_eras
async def test_w4_a_path_where_nothing_stands_yet(tmp_path: Path, era: str) -> None:
    file = tmp_path / "new" / "a.txt"
    async with served(tmp_path, era) as peer:
        await subscribe(peer, uri_of(file))
        file.parent.mkdir()
        file.write_text("one")
        await told_of(peer, uri_of(file))


async def test_w6_five_thousand_new_files_are_few_changes_of_the_list(tmp_path: Path) -> None:
    async with served(tmp_path) as peer:
        await peer.request("resources/list")
        await peer.request("resources/subscribe", uri=uri_of(tmp_path / "last"))
        began = anyio.current_time()
        for i in range(5_000):
            (tmp_path / f"{i}.txt").touch()
        told = [(await peer.wire.receive())["method"]]
        (tmp_path / "last").touch()
        await updated(peer, uri_of(tmp_path / "last"))
    told += [message["method"] for message in peer.wire.notifications[:-1]]
    assert set(told) == {"notifications/resources/list_changed"}
    # At most one in each second that it took, and a few at the end.
    assert len(told) <= 5 + anyio.current_time() - began


LIMITED = "echo 2 > /proc/sys/user/max_inotify_watches && exec "
"""A user namespace has a limit on watches of its own, so this one is nobody else's."""


def can_limit() -> bool:
    """Whether this system lets us make such a namespace."""
    try:
        return not subprocess.run(["unshare", "-Ur", "sh", "-c", LIMITED + "true"], check=False).returncode
    except OSError:
        return False


@pytest.mark.skipif(not can_limit(), reason="needs user namespaces")
async def test_w7_at_the_limit_on_watches_changes_are_looked_for_and_the_log_says_so(tmp_path: Path) -> None:
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
                await updated(peer, uri_of(file))
            wire.notifications.clear()
    assert "no notices of changes" in wire.stderr


async def test_w9_a_link_that_leads_outside_is_not_to_be_had(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.write_text("secret")
    (root / "link").symlink_to(outside)
    async with served(root) as peer:
        answer = await peer.request("resources/subscribe", uri=uri_of(root) + "/link")
    assert answer["error"]["code"] == -32002


@both_eras
async def test_w15_spellings_of_one_uri_are_told_as_they_were_written(tmp_path: Path, era: str) -> None:
    file = tmp_path / "a b.txt"
    odd = uri_of(tmp_path) + "/%61%20b.txt"
    async with served(tmp_path, era) as peer:
        await subscribe(peer, odd)
        file.write_text("one")
        await told_of(peer, odd)


@both_eras
async def test_w10_a_glob_is_told_under_its_own_uri(tmp_path: Path, era: str) -> None:
    glob = uri_of(tmp_path) + "/**/*.py"
    async with served(tmp_path, era) as peer:
        await subscribe(peer, glob)
        (tmp_path / "src").mkdir()
        (tmp_path / "src" / "a.py").touch()
        await told_of(peer, glob)


@both_eras
async def test_w10_a_directory_is_told_when_a_file_appears_in_it(tmp_path: Path, era: str) -> None:
    folder = uri_of(tmp_path) + "/"
    async with served(tmp_path, era) as peer:
        await subscribe(peer, folder)
        (tmp_path / "a.txt").touch()
        await told_of(peer, folder)


async def test_w15_two_spellings_of_one_uri_are_both_told(tmp_path: Path) -> None:
    odd = uri_of(tmp_path) + "/%61.txt"
    async with served(tmp_path) as peer:
        for uri in (uri_of(tmp_path / "a.txt"), odd):
            await peer.request("resources/subscribe", uri=uri)
        (tmp_path / "a.txt").write_text("one")
        told = [(await peer.wire.receive())["params"]["uri"] for _ in range(2)]
    assert told == [uri_of(tmp_path / "a.txt"), odd]


async def test_w13_an_unsubscription_that_follows_at_once_counts(tmp_path: Path) -> None:
    file, other = uri_of(tmp_path / "a.txt"), uri_of(tmp_path / "b.txt")
    async with served(tmp_path) as peer:
        for method in ("resources/subscribe", "resources/unsubscribe"):
            await peer.wire.send({"jsonrpc": "2.0", "id": method, "method": method, "params": {"uri": file}})
        for method in ("resources/subscribe", "resources/unsubscribe"):
            assert (await peer.wire.response(method))["result"] == {}
        await peer.request("resources/subscribe", uri=other)
        for name in ("a.txt", "b.txt"):
            (tmp_path / name).touch()
        assert (await peer.wire.receive())["params"]["uri"] == other


async def test_w16_of_several_uris_only_those_inside_are_acknowledged(tmp_path: Path) -> None:
    asked = ["file:///etc/passwd", "file:///nowhere", "http://x/", uri_of(tmp_path / "a"), uri_of(tmp_path) + "/../x"]
    async with served(tmp_path, "2026-07-28") as peer:
        params = with_envelope({"notifications": {"resourceSubscriptions": asked}})
        await peer.wire.send({"jsonrpc": "2.0", "id": "L", "method": "subscriptions/listen", "params": params})
        acknowledged = await peer.wire.receive()
    assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": [asked[3]]}


@both_eras
async def test_w18_after_the_notification_a_read_gives_the_new_content(tmp_path: Path, era: str) -> None:
    file = tmp_path / "a.txt"
    async with served(tmp_path, era) as peer:
        await subscribe(peer, uri_of(file))
        for text in ("one", "two", "three"):
            (tmp_path / "new").write_text(text)
            (tmp_path / "new").replace(file)
            await told_of(peer, uri_of(file))
            contents = (await peer.request("resources/read", uri=uri_of(file)))["result"]["contents"]
            assert contents[0]["text"] == text
