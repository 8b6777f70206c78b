"""Changes of libraries through the front door: what clients of both eras are told, and what they get then."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.servers.peers import Peer
from tests.servers.prompts.folders import SIMPLE, front, put
from tests.servers.prompts.serving import folder, got, names, served
from tests.wire import STATELESS, with_envelope

pytestmark = pytest.mark.slow
both_eras = pytest.mark.parametrize("era", ["2025-11-25", STATELESS])

PROMPTS, RESOURCES = "notifications/prompts/list_changed", "notifications/resources/list_changed"


class Follower:
    """A client that wants to know of changes."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    async def told(self) -> str:
        """What it is told next: the URI of what was updated, or the method that tells of a list."""
        waiting = self.peer.wire.notifications
        message = waiting.pop(0) if waiting else await self.peer.wire.receive()
        uri: str = message.get("params", {}).get("uri", message["method"])
        return uri


@asynccontextmanager
async def following(era: str, lib: Path, *uris: str, lists: bool = False) -> AsyncIterator[Follower]:
    """A client that follows these URIs, or the list of prompts."""
    async with served(lib, era=era) as peer:
        if peer.stateless:
            wanted: dict[str, Any] = {"resourceSubscriptions": list(uris)} if uris else {}
            wanted |= {"promptsListChanged": True} if lists else {}
            params = with_envelope({"notifications": wanted})
            await peer.wire.send({"jsonrpc": "2.0", "id": "L", "method": "subscriptions/listen", "params": params})
            assert (await peer.wire.receive())["params"]["notifications"] == wanted
        for uri in () if peer.stateless else uris:
            assert (await peer.request("resources/subscribe", uri=uri))["result"] == {}
        yield Follower(peer)


async def changed(follower: Follower) -> None:
    """Waits until it is told that there are other prompts."""
    told = await follower.told()
    while told == RESOURCES:
        told = await follower.told()
    assert told == PROMPTS


@asynccontextmanager
async def settled(era: str, lib: Path) -> AsyncIterator[Follower]:
    """A client of a server that watches the library, which has a prompt more, by then."""
    async with following(era, lib, lists=True) as follower:
        put(lib, {"settled.md": SIMPLE})
        await changed(follower)
        yield follower


@both_eras
async def test_p4_a_file_that_an_editor_replaces_is_told_once(tmp_path: Path, era: str) -> None:
    lib = folder(tmp_path / "lib", {"a.md": front(body="Old.")})
    async with settled(era, lib) as follower:
        (lib / ".a.md.swp").write_text(front(body="New."))
        (lib / ".a.md.swp").replace(lib / "a.md")
        await changed(follower)
        assert (await got(follower.peer, "a"))[0]["content"]["text"] == "New."
        # What it is told next is of what happens next.
        (lib / "a.md").unlink()
        await changed(follower)
        assert await names(follower.peer) == ["settled"]


@both_eras
async def test_p4_a_file_that_is_half_written_is_told_when_it_is_whole(tmp_path: Path, era: str) -> None:
    lib = folder(tmp_path / "lib", {})
    async with settled(era, lib) as follower:
        with (lib / "a.md").open("w") as file:
            file.write("---\ndescription: Some")
            file.flush()
            await said(follower, "a.md:1: its front matter has no end")
            assert await names(follower.peer) == ["settled"]
            file.write("thing.\n---\nSay it.")
        await changed(follower)
        assert await names(follower.peer) == ["a", "settled"]
        assert PROMPTS not in [one["method"] for one in follower.peer.wire.notifications]


@both_eras
async def test_p4_a_file_that_is_deleted_is_told_once(tmp_path: Path, era: str) -> None:
    lib = folder(tmp_path / "lib", {"a.md": SIMPLE, "b.md": SIMPLE})
    async with settled(era, lib) as follower:
        for name, left in (("a", ["b", "settled"]), ("b", ["settled"])):
            (lib / f"{name}.md").unlink()
            await changed(follower)
            assert await names(follower.peer) == left
        answer = await follower.peer.request("prompts/get", name="a")
        assert answer["error"]["code"] == -32602


@both_eras
async def test_p4_a_directory_that_gets_another_name_is_told_once(tmp_path: Path, era: str) -> None:
    lib = folder(tmp_path / "lib", {f"old/{number}.md": SIMPLE for number in range(9)})
    async with settled(era, lib) as follower:
        (lib / "old").rename(lib / "new")
        await changed(follower)
        assert await names(follower.peer) == [*(f"new-{number}" for number in range(9)), "settled"]
        put(lib, {"new/0.md": front(body="New.")})
        await changed(follower)
        assert (await got(follower.peer, "new-0"))[0]["content"]["text"] == "New."


@both_eras
async def test_a_broken_file_keeps_what_it_had_and_is_in_the_log(tmp_path: Path, era: str) -> None:
    lib = folder(tmp_path / "lib", {"a.md": front(body="Good.")})
    async with settled(era, lib) as follower:
        put(lib, {"a.md": "---\ndescription: ["})
        await said(follower, "lib: a.md:1: its front matter has no end")
        assert str(tmp_path) not in follower.peer.wire.stderr
        assert (await got(follower.peer, "a"))[0]["content"]["text"] == "Good."
        put(lib, {"a.md": front(body="Better.")})
        await changed(follower)
        assert (await got(follower.peer, "a"))[0]["content"]["text"] == "Better."


@both_eras
async def test_subscribers_are_told_of_what_concerns_them(tmp_path: Path, era: str) -> None:
    lib = folder(tmp_path / "lib", {"a.md": front(body="{% include '_part.md' %}"), "_part.md": "x", "b.md": SIMPLE})
    uris = ("prompt://a", "prompt://a/rendered", "prompt://a/files/c.csv", "skill://a/SKILL.md", "prompt://")
    async with following(era, lib, *uris) as follower:
        told = updates(follower)
        put(lib, {"_part.md": "y"})
        assert {await anext(told) for _ in range(4)} == set(uris) - {"prompt://a"}
        put(lib, {"a.md": SIMPLE})
        assert {await anext(told) for _ in range(5)} == set(uris)
        put(lib, {"b.md": front(body="New.")})
        assert "prompt://a" not in {await anext(told) for _ in range(4)}
        put(lib, {"b.md": "broken"})
        assert await anext(told) == "prompt://"


@both_eras
async def test_a_rendered_prompt_is_told_as_the_client_wrote_it(tmp_path: Path, era: str) -> None:
    lib = folder(tmp_path / "lib", {"a b.md": SIMPLE})
    uri = "prompt://a%20b/rendered?x=%201&y=2"
    async with following(era, lib, uri) as follower:
        put(lib, {"a b.md": front(body="New.")})
        assert await anext(updates(follower)) == uri


async def test_what_is_nothing_of_a_library_is_not_subscribed_to(tmp_path: Path) -> None:
    lib = folder(tmp_path / "lib", {"a.md": SIMPLE})
    uris = ["prompt://b", "prompt://a/b", "skill://b/SKILL.md", "file:///etc/passwd"]
    async with served(lib) as peer:
        codes = [(await peer.request("resources/subscribe", uri=uri))["error"]["code"] for uri in uris]
    assert codes == [-32002] * 4


@both_eras
async def test_a_prompt_that_comes_back_is_told_to_its_subscribers(tmp_path: Path, era: str) -> None:
    lib = folder(tmp_path / "lib", {"a.md": SIMPLE})
    async with following(era, lib, "prompt://a") as follower:
        told = updates(follower)
        (lib / "a.md").unlink()
        assert await anext(told) == "prompt://a"
        put(lib, {"a.md": SIMPLE})
        assert await anext(told) == "prompt://a"


async def updates(follower: Follower) -> AsyncIterator[str]:
    """The URIs of what is updated."""
    while True:
        told = await follower.told()
        if told not in (PROMPTS, RESOURCES):
            yield told


async def said(follower: Follower, text: str) -> None:
    """Waits until the server has written that for people."""
    with anyio.fail_after(30):
        while text not in follower.peer.wire.stderr:
            await anyio.lowlevel.checkpoint()


@both_eras
async def test_what_was_written_before_the_question_is_there(era: str, tmp_path: Path) -> None:
    """Behind a balancer another replica may have told of it, and this one has not looked yet."""
    lib = folder(tmp_path / "lib", {"a.md": SIMPLE})
    async with served(lib, era=era) as peer:
        assert await names(peer) == ["a"]
        for name in ("b", "c"):
            put(lib, {f"{name}.md": SIMPLE})
            assert await got(peer, name)
        (lib / "d.md").touch()
        assert await names(peer) == ["a", "b", "c"]
        (lib / "d.md").write_text(SIMPLE)  # who writes it has not been done
        assert await names(peer) == ["a", "b", "c", "d"]
