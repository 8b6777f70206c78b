"""Log messages to the user in both eras, only at a requested level."""

from pathlib import Path

import pytest

from servers.prompts.library import watch
from servers.prompts.server import app
from tests.servers.prompts.folders import SIMPLE, put
from tests.servers.prompts.serving import folder
from tests.servers.reports import POLLED, STATELESS, RefusedNotices, both_eras, reading

BROKEN = "---\narguments: [{\n---\nText.\n"
WRONG = "problems in the library: lib: b.md:3: the front matter is not YAML: "


@pytest.fixture
def lib(tmp_path: Path) -> Path:
    """Returns a library of one prompt."""
    return folder(tmp_path / "lib", {"a.md": SIMPLE})


async def test_a_session_is_warned_once_of_a_broken_file(lib: Path) -> None:
    async with reading(app, lib) as client:
        put(lib, {"b.md": BROKEN})
        level, text = await client.next_message()
        assert (level, text[: len(WRONG)]) == ("warning", WRONG)
        put(lib, {"b.md": SIMPLE})
        await client.peer.other("notifications/prompts/list_changed")
        assert await client.messages_of("logging/setLevel", level="info") == []


@both_eras
async def test_existing_problems_are_logged_with_three_named_files(lib: Path, era: str) -> None:
    put(lib, {f"b{number}.md": BROKEN for number in range(5)})
    async with reading(app, lib, era=era) as client:
        messages = await client.messages_of("server/discover") if era == STATELESS else [await client.next_message()]
    ((level, text),) = messages
    assert (level, text.startswith(WRONG.replace("b.md", "b0.md"))) == ("warning", True)
    assert [f"b{number}.md:" in text for number in range(5)] == [True, True, True, False, False]
    assert text.endswith("; and 2 more, listed in prompt://")


@both_eras
async def test_polling_of_a_folder_is_logged(lib: Path, monkeypatch: pytest.MonkeyPatch, era: str) -> None:
    monkeypatch.setattr(watch, "Notices", RefusedNotices)
    async with reading(app, lib, era=era) as client:
        messages = await client.messages_of("server/discover") if era == STATELESS else [await client.next_message()]
    assert messages == [("notice", POLLED)]


async def test_a_session_without_a_log_level_gets_no_messages(lib: Path) -> None:
    async with reading(app, lib, level=None) as client:
        put(lib, {"b.md": BROKEN, "c.md": SIMPLE})
        await client.peer.other("notifications/prompts/list_changed")
        assert await client.messages_of("prompts/list") == []


async def test_a_stateless_request_without_a_log_level_gets_no_messages(lib: Path) -> None:
    put(lib, {"b.md": BROKEN})
    async with reading(app, lib, era=STATELESS, level=None) as client:
        assert await client.messages_of("server/discover") == []
