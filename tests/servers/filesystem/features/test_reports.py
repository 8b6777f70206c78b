"""Log messages of the server in both eras, and none without a requested level."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from servers.filesystem.features import search
from servers.filesystem.server import app
from tests.servers.reports import POLLED, STATELESS, both_eras, reading

ENDED = "a search ended early, and may have missed files: it ran out of time"


@pytest.fixture
def long_text(tmp_path: Path) -> Path:
    """A directory with a text of more than a thousand bytes."""
    (tmp_path / "long.txt").write_text("0123456789\n" * 200)
    return tmp_path


@both_eras
async def test_a_truncated_text_is_logged_and_a_missing_file_is_not(long_text: Path, era: str) -> None:
    async with reading(app, "--max-read", "1000", long_text, era=era) as client:
        messages = await client.messages_of_tool("read_text_file", path="long.txt")
        assert await client.messages_of_tool("read_text_file", path="no.txt") == []
    assert messages == [("info", "long.txt was truncated: 913 of 2,200 bytes shown")]


@both_eras
async def test_an_unreachable_directory_is_logged(tmp_path: Path, era: str) -> None:
    away = tmp_path / "away"
    away.mkdir()
    requests: list[tuple[str, dict[str, Any]]] = [
        ("tools/call", {"name": "list_directory", "arguments": {"path": str(away)}}),
        ("resources/read", {"uri": f"{away.as_uri()}/a.txt"}),
        ("resources/list", {}),
    ]
    for method, params in requests:
        away.mkdir(exist_ok=True)
        async with reading(app, away, era=era) as client:
            away.rmdir()
            messages = await client.messages_of(method, **params)
        assert messages == [("warning", f"the allowed directory {away} can't be reached")], method


@both_eras
async def test_a_client_without_a_log_level_gets_no_log_message(long_text: Path, era: str) -> None:
    async with reading(app, "--max-read", "1000", long_text, era=era, level=None) as client:
        assert await client.messages_of_tool("read_text_file", path="long.txt") == []
        shutil.rmtree(long_text)
        assert await client.messages_of("resources/list") == []


@both_eras
async def test_a_search_that_ended_early_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str) -> None:
    monkeypatch.setattr(search, "_TIME_SHARE", 0)  # or it would take as long as a call may
    (tmp_path / "a.txt").touch()
    async with reading(app, tmp_path, era=era) as client:
        for tool in ("search_files", "search_content"):
            assert await client.messages_of_tool(tool, path=".", pattern="x") == [("notice", ENDED)]


async def test_polling_is_logged_to_a_subscribed_session(tmp_path: Path) -> None:
    async with reading(app, "--poll", tmp_path) as client:
        await client.peer.request("resources/subscribe", {"uri": tmp_path.as_uri()})
        assert await client.next_message() == ("notice", POLLED)


async def test_polling_is_logged_with_discover_in_the_stateless_version(tmp_path: Path) -> None:
    async with reading(app, "--poll", tmp_path, era=STATELESS) as client:
        assert await client.messages_of("server/discover") == []
        await client.messages_of_tool("changes")
        assert await client.messages_of("server/discover") == [("notice", POLLED)]
