"""The tools `undo` and `recent_changes` through the protocol."""

import os
import re
from pathlib import Path

import pytest

from tests.servers.filesystem.serving import confirming, inside
from tests.servers.peers import InnerPeer, Json, text_of
from tests.shared.program.files.test_metadata import ACL, DENIED, needs_root


def edits(old: str, new: str) -> list[Json]:
    return [{"oldText": old, "newText": new}]


async def change_numbers(peer: InnerPeer) -> list[int]:
    """The numbers of the last changes, the latest first."""
    return [int(number) for number in re.findall(r"^change (\d+)", await peer.text("recent_changes"), re.MULTILINE)]


async def test_undo_reverts_the_last_change_and_redoes_it_by_number(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("one\ntwo\n")
    async with inside(tmp_path, "--allow-write") as peer:
        await peer.text("edit_file", path="a", edits=edits("one", "three"))
        shown = await peer.text("recent_changes")
        assert f"(edit: {file})" in shown
        assert "-one\n+three\n two" in shown
        assert re.fullmatch(rf"Change \d+ undone by change \d+ \(edit: {file}\)", await peer.text("undo"))
        assert file.read_text() == "one\ntwo\n"
        undo, edit = await change_numbers(peer)
        assert f"undone by {undo}]" in await peer.text("recent_changes")
        assert (await peer.error("undo", change=edit)) == f"already_undone: change {edit} was undone by change {undo}"
        await peer.text("undo", change=undo)
        assert file.read_text() == "three\ntwo\n"


async def test_repeated_undo_goes_further_back(tmp_path: Path) -> None:
    async with inside(tmp_path, "--allow-write") as peer:
        for text in "123":
            await peer.text("write_file", path="a", content=text)
        await peer.text("undo")
        await peer.text("undo")
        assert (tmp_path / "a").read_text() == "1"
        await peer.text("undo")
        assert not (tmp_path / "a").exists()
        redo, *_ = await change_numbers(peer)
        error = await peer.error("undo")
        assert error == f"not_found: there is no change to undo. To redo what was undone last, undo change {redo}."
        await peer.text("undo", change=redo)
        assert (tmp_path / "a").read_text() == "1"


async def test_undo_since_a_time_reverts_all_later_changes(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_text("a")
    async with inside(tmp_path, "--allow-write") as peer:
        await peer.text("move_file", source="d", destination="e")
        await peer.text("copy_file", source="e", destination="f")
        await peer.text("delete_file", path="e", recursive=True)
        lines = (await peer.text("undo", since="2020-01-01")).splitlines()
        assert len(lines) == 3
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "d"]
        assert await peer.text("undo", since="2999-01-01T00:00:00Z") == "There are no changes since then."
        assert (await peer.error("undo", since="yesterday")).startswith("bad_undo: yesterday is not a time. ")
        assert (await peer.error("undo", since="2020-01-01", change=1)).startswith("bad_undo: pass change or since")


async def test_recent_changes_notes_omitted_diffs_and_changes(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\0\xff")
    async with inside(tmp_path, "--allow-write") as peer:
        await peer.text("delete_file", path="binary")
        await peer.text("write_file", path="large", content="x" * 262_145)
        await peer.text("write_file", path="theirs", content="held nowhere else")
        (tmp_path / "theirs").write_text("2")
        notes = re.findall(r"^\[.*\]$", await peer.text("recent_changes"), re.MULTILINE)
        assert notes == [
            "[no diff: theirs has changed since]",
            "[no diff: large has more than 262,144 bytes]",
            "[no diff: binary is not text (byte 0)]",
        ]
        assert (await peer.text("recent_changes", limit=1)).endswith("\n[2 earlier changes]")
        await peer.text("move_file", source="large", destination="moved")
        await peer.text("undo")
        assert (tmp_path / "large").stat().st_size == 262_145


async def test_a_journal_in_an_allowed_directory_is_denied(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old" * 40_000)
    folder = tmp_path / "[state]" / "undo"
    async with inside(tmp_path, "--allow-write", "--allow", "*", "--undo-dir", folder) as peer:
        await peer.text("write_file", path="a", content="new")
        (image,) = (folder / "images").iterdir()
        assert (await peer.error("read_text_file", path=str(image))).startswith("denied: ")
        assert (await peer.error("delete_file", path="[state]", recursive=True)).startswith("denied: ")
        await peer.text("undo")
    assert (tmp_path / "a").read_text() == "old" * 40_000


async def test_a_read_only_server_denies_the_journal_of_other_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "root").mkdir()
    async with inside(tmp_path / "root", "--allow-write") as peer:
        await peer.text("write_file", path="a", content="1")
    async with inside(tmp_path) as peer:
        path = tmp_path / "state" / "mcp-server-bundle" / "undo" / "journal.db"
        assert path.exists()
        assert (await peer.error("read_media_file", path=str(path))).startswith("denied: ")


async def test_undo_stops_at_a_file_changed_by_another_program(tmp_path: Path) -> None:
    async with inside(tmp_path, "--allow-write") as peer:
        await peer.text("write_file", path="a", content="1")
        await peer.text("write_file", path="b", content="1")
        (tmp_path / "a").write_text("theirs")
        text = await peer.text("undo", since="2020-01-01")
        assert re.search(
            r"^\[stopped at change \d+: changed: \S+/a: has been modified since that change", text, re.MULTILINE
        )
        assert (tmp_path / "a").read_text() == "theirs"
        assert (await peer.error("undo")).startswith("changed: ")
        assert (tmp_path / "a").read_text() == "theirs"
        assert not (tmp_path / "b").exists()


async def test_undo_keeps_a_created_directory_with_new_entries(tmp_path: Path) -> None:
    async with inside(tmp_path, "--allow-write") as peer:
        await peer.text("create_directory", path="d/e")
        (tmp_path / "d" / "theirs").touch()
        assert (await peer.error("undo")).startswith(
            f"changed: {tmp_path}/d: contains entries that were added after that change. "
        )
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["d", "e", "theirs"]


async def test_undo_restores_mode_and_attributes_of_a_deleted_file(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"\0\xff")
    file.chmod(0o640)
    os.setxattr(file, "user.note", b"x")
    async with inside(tmp_path, "--allow-write") as peer:
        await peer.text("delete_file", path="a")
        await peer.text("undo")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"\0\xff", 0o640)
    assert os.getxattr(file, "user.note") == b"x"


async def test_undo_keeps_a_mode_set_after_the_change(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("1")
    async with inside(tmp_path, "--allow-write") as peer:
        await peer.text("write_file", path="a", content="2")
        file.chmod(0o700)
        await peer.text("undo")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("1", 0o700)


async def test_a_change_too_large_for_the_journal_is_made_with_a_note(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 1_100_000)
    async with inside(tmp_path, "--allow-write", "--undo-size", "1") as peer:
        text = await peer.text("write_file", path="a", content="new")
        assert text.endswith(" [no undo: the change exceeds the journal's limit of 1,048,576 bytes]")
        assert (await peer.error("undo")) == "not_found: there is no change to undo"


async def test_changes_are_made_with_a_note_if_the_journal_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    root = tmp_path / "root"
    root.mkdir()
    async with inside(root, "--allow-write", "--undo-dir", tmp_path / "file" / "undo") as peer:
        note = "the journal can't be written (Not a directory)"
        assert (await peer.text("write_file", path="a", content="1")).endswith(f" [no undo: {note}]")
        assert (await peer.error("undo")) == f"no_undo: {note}. Ask the operator to check --undo-dir."
        assert (root / "a").read_text() == "1"


async def test_changes_in_other_directories_are_not_shown_or_undone(tmp_path: Path) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    for root in roots:
        root.mkdir()
    async with inside(roots[0], "--allow-write") as peer:
        await peer.text("write_file", path="a", content="1")
        (number,) = await change_numbers(peer)
    async with inside(roots[1], "--allow-write") as peer:
        assert await peer.text("recent_changes") == "No changes."
        assert (await peer.error("undo")) == "not_found: there is no change to undo"
        error = await peer.error("undo", change=number)
        assert error == f"not_found: there is no change {number} here. See recent_changes."
    async with inside(roots[0]) as peer:
        assert "undo" not in {tool["name"] for tool in (await peer.request("tools/list"))["result"]["tools"]}


@pytest.mark.parametrize("options", [["--allow-write", "--no-undo"], []])
async def test_undo_tools_are_not_offered_without_a_journal(options: list[str], tmp_path: Path) -> None:
    async with inside(tmp_path, *options) as peer:
        tools = {tool["name"] for tool in (await peer.request("tools/list"))["result"]["tools"]}
        assert not tools & {"undo", "recent_changes"}


async def test_the_user_is_asked_before_an_undo(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    async with confirming(tmp_path, actions="accept decline accept") as peer:
        await peer.call("write_file", path="a", content="2")
        assert text_of(await peer.call("undo")).startswith("declined: ")
        assert (tmp_path / "a").read_text() == "2"
        await peer.call("undo")
        assert (tmp_path / "a").read_text() == "1"
    assert re.fullmatch(rf"Undo change \d+ \(write: {tmp_path}/a\)\?", peer.questions[-1])


@needs_root
async def test_undo_restores_owner_and_access_control_list_of_deleted_entries(tmp_path: Path) -> None:
    folder, file = tmp_path / "d", tmp_path / "d" / "a"
    folder.mkdir()
    file.touch()
    for path in (file, folder):
        os.chown(path, 12_345, 12_346)
        os.setxattr(path, ACL, DENIED)
    before = [(path.stat().st_uid, path.stat().st_gid, path.stat().st_mode) for path in (folder, file)]
    async with inside(tmp_path, "--allow-write") as peer:
        await peer.text("delete_file", path="d", recursive=True)
        await peer.text("undo")
    assert [(path.stat().st_uid, path.stat().st_gid, path.stat().st_mode) for path in (folder, file)] == before
    assert {os.getxattr(path, ACL) for path in (folder, file)} == {DENIED}


async def test_undo_in_a_read_only_directory_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    async with inside(tmp_path / "one", "--allow-write") as peer:
        await peer.text("write_file", path="a", content="1")
        (number,) = await change_numbers(peer)
    async with inside("--root", f"{tmp_path}/one:ro", "--root", f"{tmp_path}/two:rw") as peer:
        assert (await peer.error("undo", change=number)).startswith("read_only: ")
    assert (tmp_path / "one" / "a").read_text() == "1"


async def test_changes_of_denied_files_are_not_shown_or_undone(tmp_path: Path) -> None:
    async with inside(tmp_path, "--allow-write") as peer:
        await peer.text("write_file", path="a", content="1")
        (number,) = await change_numbers(peer)
    async with inside(tmp_path, "--allow-write", "--deny", "a") as peer:
        assert await peer.text("recent_changes") == "No changes."
        assert (await peer.error("undo", change=number)).startswith("not_found: ")


async def test_undo_does_not_move_back_a_file_changed_since_the_move(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    async with inside(tmp_path, "--allow-write") as peer:
        await peer.text("move_file", source="a", destination="b")
        (tmp_path / "b").write_text("theirs")
        assert (await peer.error("undo")).startswith("changed: ")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["theirs"]


async def test_changes_are_made_with_a_note_if_there_is_no_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", no_home)
    async with inside(tmp_path, "--allow-write") as peer:
        text = await peer.text("write_file", path="a", content="1")
        assert text.endswith(" [no undo: there is no home directory for the journal]")


def no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")
