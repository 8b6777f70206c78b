"""The servers of the bundle behind one gateway."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from servers.everything.server import app as everything
from servers.filesystem.server import app as filesystem
from servers.filesystem.settings import Settings as FilesystemSettings
from servers.prompts.server import app as prompts
from servers.prompts.settings import Settings as PromptsSettings
from servers.sqlite.server import app as sqlite
from servers.sqlite.settings import Settings as SqliteSettings
from shared import Run
from shared.protocol.types.skills import SKILLS
from tests.servers.gateway.changes import subscribed, updated
from tests.servers.gateway.joined.members import Door, joined
from tests.shared.server.peer import ERAS, STATELESS, Json, Peer, talking
from tests.wire import CLIENT_INFO


@asynccontextmanager
async def bundle(folder: Path) -> AsyncIterator[Run[Any]]:
    """All four, behind one gateway."""
    library = folder / "library"
    library.mkdir()
    (library / "greet.md").write_text("---\ndescription: Greets.\n---\nHello.\n")
    skill = library / "skills" / "knit"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: knit\ndescription: Knits.\n---\nKnit.\n")
    (folder / "note.txt").write_text("a note")
    async with joined(
        Door("filesystem", filesystem, FilesystemSettings(roots=[folder])),
        Door("sqlite", sqlite, SqliteSettings(demo=True)),
        Door("prompts", prompts, PromptsSettings(libraries=[library])),
        Door("everything", everything),
    ) as running:
        yield running


async def whole(peer: Peer, method: str, what: str) -> list[Json]:
    """All pages of a list."""
    found: list[Json] = []
    params: Json = {}
    while True:
        result = (await peer.request(method, params))["result"]
        found += result[what]
        if "nextCursor" not in result:
            return found
        params = {"cursor": result["nextCursor"]}


@pytest.mark.parametrize("version", ERAS)
async def test_each_server_answers_through_the_gateway(version: str, tmp_path: Path) -> None:
    async with bundle(tmp_path) as running, talking(running, version) as peer:
        tools = [one["name"] for one in await whole(peer, "tools/list", "tools")]
        assert len(set(tools)) == len(tools)
        assert {"read_text_file", "describe_database", "search_prompts", "echo"} <= set(tools)
        assert "a note" in await peer.text("read_text_file", path=str(tmp_path / "note.txt"))
        assert "result" in await peer.call("describe_database")
        assert await peer.text("echo", text="hello") == "hello"
        assert "greet" in [one["name"] for one in await whole(peer, "prompts/list", "prompts")]
        assert "result" in await peer.request("prompts/get", {"name": "greet"})
        # Each resource of the lists is read at its owner.
        resources = await whole(peer, "resources/list", "resources")
        assert {"file", "test", "skill"} <= {one["uri"].partition(":")[0] for one in resources}
        for one in resources:
            assert "result" in await peer.request("resources/read", {"uri": one["uri"]}), one["uri"]
        note = tmp_path / "note.txt"
        await subscribed(peer, note.as_uri())
        note.write_text("another note")
        assert await updated(peer) == note.as_uri()


async def test_skills_of_two_servers_are_merged_into_one_list(tmp_path: Path) -> None:
    async with bundle(tmp_path) as running, talking(running, STATELESS) as peer:
        assert SKILLS in (await peer.request("server/discover"))["result"]["capabilities"]["extensions"]
        listed = [one["uri"] for one in await whole(peer, "skills/list", "skills")]
        assert "skill://try-a-client/SKILL.md" in listed
        assert len(listed) > 1
        for uri in listed:
            assert (await peer.request("skills/get", {"uri": uri}))["result"]["skill"]["uri"] == uri
        older = Peer(peer.end, ERAS[0], {})
        params = {"protocolVersion": ERAS[0], "capabilities": {}, "clientInfo": CLIENT_INFO}
        told = (await older.request("initialize", params))["result"]["capabilities"]
        assert SKILLS not in told.get("extensions", {})


async def test_a_client_with_roots_gets_nothing_outside_them(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    outside = tmp_path / "secret.txt"
    outside.write_text("secret")
    door = Door("filesystem", filesystem, FilesystemSettings(roots=[tmp_path], client_roots=True))
    async with joined(door) as running, talking(running, capabilities={"roots": {}}) as peer:
        id_ = await peer.begin("resources/subscribe", {"uri": outside.as_uri()})
        asked = await peer.other("roots/list")
        await peer.reply(asked["id"], {"roots": [{"uri": inside.as_uri()}]})
        assert "error" in await peer.answer(id_)
        assert door.running is not None
        assert door.running.changes.subscribed_resources == 0
