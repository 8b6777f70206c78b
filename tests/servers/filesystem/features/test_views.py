"""The data of the app pages of directories and edits: entries with sizes and times, and diffs."""

import os
from pathlib import Path

import pytest

from servers.filesystem.server import app
from shared.server.results import MAX_VIEW
from tests.servers.hosts import shown, size_of, view_of
from tests.shared.server.peer import ERAS

each_era = pytest.mark.parametrize("era", ERAS)


def filled(root: Path) -> Path:
    (root / "src").mkdir()
    (root / "src" / "a.py").write_text("pass\n")
    (root / "b.txt").write_text("one\n")
    (root / "link").symlink_to("b.txt")
    os.utime(root / "b.txt", (1_700_000_000, 1_700_000_000))
    return root


@each_era
async def test_the_view_of_a_directory_has_entries_with_sizes_and_times(tmp_path: Path, era: str) -> None:
    async with shown(app, filled(tmp_path), era=era) as (host, _):
        view = await view_of(host, "list_directory_with_sizes", path=".")
    entries = {entry["path"]: entry for entry in view["entries"]}
    assert (view["path"], view["more"]) == (str(tmp_path.resolve()), False)
    assert entries["b.txt"] == {"path": "b.txt", "kind": "file", "size": 4, "modified": 1_700_000_000}
    assert (entries["src"]["kind"], entries["link"]["kind"]) == ("directory", "link")
    assert "size" not in entries["src"]


async def test_the_view_of_a_tree_has_all_entries_by_path(tmp_path: Path) -> None:
    async with shown(app, filled(tmp_path)) as (host, _):
        view = await view_of(host, "directory_tree", path=str(tmp_path))
    assert view["entries"] == [
        {"path": "b.txt", "kind": "file"},
        {"path": "link", "kind": "link"},
        {"path": "src", "kind": "directory"},
        {"path": "src/a.py", "kind": "file"},
    ]


async def test_the_view_of_a_truncated_tree_sets_more(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "deep").mkdir(parents=True)
    async with shown(app, tmp_path) as (host, _):
        view = await view_of(host, "directory_tree", path=".", maxDepth=2)
    assert [entry["path"] for entry in view["entries"]] == ["a", "b", "a/deep", "b/deep"]
    assert view["more"] is True


async def test_a_directory_over_the_size_of_a_view_has_no_entries(tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "one").touch()
    (tmp_path / "many").mkdir()
    for number in range(1_500):
        (tmp_path / "many" / f"file number {number}").touch()
    async with shown(app, tmp_path) as (host, _):
        tree = await view_of(host, "directory_tree", path=".")
        listing = await view_of(host, "list_directory_with_sizes", path="many")
    assert [entry["path"] for entry in tree["entries"]] == ["few", "many", "few/one"]
    assert 500 < len(listing["entries"]) < 1_500
    for view in (tree, listing):
        assert view["more"] is True
        assert size_of(view) <= MAX_VIEW


@pytest.mark.skipif(os.name != "posix", reason="no such names elsewhere: run it on Linux or macOS")
async def test_an_entry_with_an_escaped_name_has_its_uri(tmp_path: Path) -> None:
    odd = tmp_path / "a\nb"
    odd.mkdir()
    (odd / "c d").touch()
    async with shown(app, tmp_path) as (host, _):
        tree = await view_of(host, "directory_tree", path=".")
        (listed,) = (await view_of(host, "list_directory_with_sizes", path="."))["entries"]
        inside = await view_of(host, "directory_tree", path=odd.as_uri())
    uri = odd.resolve().as_uri()
    assert (listed["path"], listed["uri"]) == ("a\\nb", uri)
    assert tree["entries"] == [
        {"path": "a\\nb", "kind": "directory", "uri": uri},
        {"path": "a\\nb/c d", "kind": "file", "uri": f"{uri}/c%20d"},
    ]
    assert inside["path"] == uri


async def test_the_view_of_a_watched_directory_has_a_cursor_for_changes(tmp_path: Path) -> None:
    async with shown(app, tmp_path) as (host, other):
        assert "cursor" not in await view_of(host, "list_directory_with_sizes", path=".")
        await other.call("changes")
        view = await view_of(host, "list_directory_with_sizes", path=".")
        (tmp_path / "new.txt").touch()
        text = await host.text("changes", cursor=view["cursor"], wait=30)
    assert " created " in text
    assert "new.txt" in text


EDITS = [{"oldText": "one", "newText": "<b>two</b>"}]


@pytest.mark.parametrize("dry", [True, False])
async def test_the_view_of_an_edit_has_its_diff(tmp_path: Path, dry: bool) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    async with shown(app, "--allow-write", tmp_path) as (host, _):
        view = await view_of(host, "edit_file", path="a.txt", edits=EDITS, dryRun=dry)
        etag = (await host.call("get_file_info", path="a.txt"))["result"]["structuredContent"]["etag"]
    assert view["diff"].splitlines()[-2:] == ["-one", "+<b>two</b>"]
    assert (view["path"], view["applied"], view["etag"], view["more"]) == ("a.txt", not dry, etag, False)


async def test_the_view_joins_diffs_of_several_files_and_truncates_long_ones(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("one\n")
    (tmp_path / "long.txt").write_text("one\n" * 10_000)
    edits = [{**EDITS[0], "path": name} for name in ("a.txt", "b.txt")]
    async with shown(app, "--allow-write", tmp_path) as (host, _):
        view = await view_of(host, "edit_file", edits=edits, dryRun=True)
        long = await view_of(host, "edit_file", path="long.txt", edits=[{**EDITS[0], "count": 0}], dryRun=True)
    assert (view["diff"].count("+<b>two</b>"), "path" in view) == (2, False)
    assert (long["more"], size_of(long) <= MAX_VIEW) == (True, True)
