"""What the user is told by log messages, in both eras, and what nobody is told who did not ask."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from servers.filesystem.features import search
from servers.filesystem.server import app
from tests.server.peer import NEWEST_HANDSHAKE, STATELESS, Peer
from tests.servers.peers import inside

LEVEL = "io.modelcontextprotocol/logLevel"
LOGGED = "notifications/message"
both_eras = pytest.mark.parametrize("era", [NEWEST_HANDSHAKE, STATELESS])


class Reader:
    """A client that asks for a level, or for none."""

    def __init__(self, peer: Peer, level: str | None) -> None:
        self.peer = peer
        self._meta = {} if level is None or peer.version != STATELESS else {LEVEL: level}

    async def told(self, method: str, **params: Any) -> list[Any]:
        """What it is told during a request."""
        await self.peer.request(method, params, **self._meta)
        told = [one["params"] for one in self.peer.others if one["method"] == LOGGED]
        self.peer.others.clear()
        return told


@asynccontextmanager
async def reading(*options: str | Path, era: str, level: str | None = "info") -> AsyncIterator[Reader]:
    async with inside(app, *options, era=era) as peer:
        if era != STATELESS and level is not None:
            await peer.client.request("logging/setLevel", {"level": level})
        yield Reader(peer.client, level)


def message(level: str, text: str) -> dict[str, str]:
    return {"level": level, "logger": "filesystem", "data": text}


@both_eras
async def test_a_text_that_is_cut_is_told(tmp_path: Path, era: str) -> None:
    (tmp_path / "long.txt").write_text("0123456789\n" * 200)
    async with reading("--max-read", "1000", tmp_path, era=era) as client:
        (told,) = await client.told("tools/call", name="read_text_file", arguments={"path": "long.txt"})
    assert told == message("info", "long.txt was cut: 913 of 2,200 bytes shown")


@both_eras
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "list_directory", "arguments": {"path": "away"}}),
        ("resources/read", {"uri": "file:///{away}/a.txt"}),
        ("resources/list", {}),
    ],
)
async def test_a_directory_that_is_away_is_told(
    tmp_path: Path, era: str, method: str, params: dict[str, Any]
) -> None:
    away = tmp_path / "away"
    away.mkdir()
    if "uri" in params:
        params = {"uri": f"{away.as_uri()}/a.txt"}
    elif "arguments" in params:
        params = {**params, "arguments": {"path": str(away)}}
    async with reading(tmp_path / "away", era=era) as client:
        shutil.rmtree(away)
        told = await client.told(method, **params)
    assert told == [message("warning", f"the allowed directory {away} can't be reached")]


@both_eras
async def test_a_file_that_is_not_there_is_no_news(tmp_path: Path, era: str) -> None:
    async with reading(tmp_path, era=era) as client:
        assert await client.told("tools/call", name="read_text_file", arguments={"path": "no.txt"}) == []


@both_eras
async def test_who_asks_for_no_level_is_told_nothing(tmp_path: Path, era: str) -> None:
    (tmp_path / "long.txt").write_text("0123456789\n" * 200)
    async with reading("--max-read", "1000", tmp_path, era=era, level=None) as client:
        assert await client.told("tools/call", name="read_text_file", arguments={"path": "long.txt"}) == []
        shutil.rmtree(tmp_path)
        assert await client.told("resources/list") == []


POLLED = message("notice", "what is watched is looked at every second: no notices of its changes come")


async def test_a_session_is_told_that_what_it_watches_is_polled(tmp_path: Path) -> None:
    async with reading("--poll", tmp_path, era=NEWEST_HANDSHAKE) as client:
        await client.peer.request("resources/subscribe", {"uri": tmp_path.as_uri()})
        assert (await client.peer.other(LOGGED))["params"] == POLLED


async def test_without_a_handshake_polling_is_told_with_discover(tmp_path: Path) -> None:
    async with reading("--poll", tmp_path, era=STATELESS) as client:
        assert await client.told("server/discover") == []
        await client.told("tools/call", name="changes", arguments={})
        assert await client.told("server/discover") == [POLLED]


@both_eras
@pytest.mark.parametrize("tool", ["search_files", "search_content"])
async def test_a_search_that_ended_early_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str, tool: str
) -> None:
    monkeypatch.setattr(search, "_TIME_SHARE", 0)
    (tmp_path / "a.txt").touch()
    async with reading(tmp_path, era=era) as client:
        told = await client.told("tools/call", name=tool, arguments={"path": ".", "pattern": "x"})
    assert told == [
        message("notice", "a search ended early, and may have missed files: it took all the time of a call")
    ]
