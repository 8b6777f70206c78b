"""The tool `changes` through the protocol."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.filesystem.features.watch import changes_text
from servers.filesystem.watch import watcher
from servers.filesystem.watch.journal import Change, Changes
from tests.servers.filesystem.serving import cursor_of, inside, served
from tests.servers.peers import ERAS
from tests.wire import STATELESS


@pytest.mark.parametrize("era", ERAS)
async def test_changes_since_the_cursor_are_returned_in_every_version(tmp_path: Path, era: str) -> None:
    async with inside(tmp_path, era=era) as peer:
        cursor = await cursor_of(peer)
        (tmp_path / "a.txt").touch()
        text = await peer.text("changes", cursor=cursor, wait=30)
    line, last = text.splitlines()
    assert line.endswith(f" created {tmp_path.resolve()}/a.txt")
    assert last.startswith("[cursor: ")


async def test_writes_of_a_client_are_in_its_next_call_of_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No notice of the system and no later check may find the change first.
    for name in ("_POLL_SECONDS", "_RECHECK_SECONDS", "_SWEEP_SECONDS"):
        monkeypatch.setattr(watcher, name, 1_000.0)
    async with inside(tmp_path, "--allow-write", "--poll", era=STATELESS) as peer:
        cursor = await cursor_of(peer)
        acts: list[tuple[str, dict[str, Any], list[str]]] = [
            ("write_file", {"path": "a.txt", "content": "one"}, ["created a.txt"]),
            ("edit_file", {"path": "a.txt", "edits": [{"oldText": "one", "newText": "two!"}]}, ["modified a.txt"]),
            ("create_directory", {"path": "x/y"}, ["created x", "created x/y"]),
            ("copy_file", {"source": "a.txt", "destination": "x/b.txt"}, ["created x/b.txt"]),
            ("move_file", {"source": "x", "destination": "z"}, ["deleted x", "created z", "created z/b.txt"]),
            ("delete_file", {"path": "a.txt"}, ["deleted a.txt"]),
            ("undo", {}, ["created a.txt"]),
        ]
        for tool, arguments, expected in acts:
            assert "isError" not in await peer.call(tool, **arguments)
            *lines, last = (await peer.text("changes", cursor=cursor)).splitlines()
            changes = [line.split(" ", 1)[1].replace(f"{tmp_path.resolve()}/", "") for line in lines]
            assert sorted(set(expected) - set(changes)) == []
            cursor = last.removeprefix("[cursor: ").removesuffix("]")


async def test_changes_are_filtered_by_path_and_pattern(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    async with inside(tmp_path) as peer:
        cursor = await cursor_of(peer)
        for name in ("a.py", "src/a.txt", "src/b.py"):
            (tmp_path / name).touch()
        text = await peer.text("changes", cursor=cursor, path="src", pattern="*.py", wait=30)
        change, _ = text.splitlines()
        assert change.endswith(f" created {tmp_path.resolve()}/src/b.py")
        for path in ("/etc", "../x"):
            assert (await peer.error("changes", path=path)).startswith(f"outside_roots: {path}")


@pytest.mark.slow
async def test_changes_lists_five_thousand_new_files_without_overflow(tmp_path: Path) -> None:
    async with served(tmp_path) as peer:
        cursor = await cursor_of(peer)
        for i in range(5_000):
            (tmp_path / f"{i}.txt").touch()
        seen = set()
        with anyio.fail_after(60):
            while len(seen) < 5_000:
                *changes, last = (await peer.text("changes", cursor=cursor, wait=30)).splitlines()
                assert not any("overflow" in line for line in changes)
                seen.update(line.split(" ", 2)[2] for line in changes if not line.startswith("["))
                cursor = last.removeprefix("[cursor: ").removesuffix("]")


async def test_a_waiting_call_of_changes_can_be_cancelled(tmp_path: Path) -> None:
    async with inside(tmp_path, era=STATELESS) as peer:
        waiting = await peer.client.start("changes", cursor=await cursor_of(peer), wait=30)
        await peer.client.cancel(waiting)
        assert "[cursor: " in await peer.text("changes")


def test_overflow_more_and_partial_are_notes_after_the_changes() -> None:
    change = Change("created", "/a", 0.5)
    text = changes_text(Changes((change,), "x-1", more=True, overflow=True, partial=True))
    first, *notes = text.splitlines()
    assert first == "1970-01-01T00:00:00.500+00:00 created /a"
    assert [note.split(":")[0] for note in notes] == ["[overflow", "[there are more", "[partial", "[cursor"]
