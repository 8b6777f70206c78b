"""Deletion of files, links, and directories with their contents."""

import os

import pytest

from servers.common.files.roots import Roots
from servers.filesystem.edit import delete as deleting
from servers.filesystem.edit.delete import delete
from shared.program.files.entries import etag_of
from tests.servers.common.files.conftest import opened_by
from tests.servers.filesystem.conftest import by_path
from tests.servers.filesystem.editing_files import code
from tests.servers.filesystem.undo.conftest import folder, history, recorder

__all__ = ["folder", "history", "recorder"]


@pytest.fixture
def remove(files):
    return by_path(delete, files)


def test_files_pipes_and_empty_directories_are_deleted_and_full_ones_if_recursive(root, either):
    remove = by_path(delete, either)
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/file").write_text("x")
    os.mkfifo(root / "a/pipe")
    assert code(remove, "a") == "not_empty"
    assert [remove("a/pipe"), remove("a/b/file"), remove("a/b")] == [1, 1, 1]
    assert remove("a") == 1
    assert os.listdir(root) == []


def test_targets_of_deleted_links_stay(root, outside, either):
    remove = by_path(delete, either)
    (root / "kept").mkdir()
    (root / "a").mkdir()
    links = {"in": root / "kept", "out": outside, "secret": outside / "secret", "none": "nothing"}
    for directory in (root, root / "a"):
        for name, target in links.items():
            (directory / name).symlink_to(target)
    assert [remove(name, recursive=True) for name in links] == [1] * 4
    assert remove("a", recursive=True) == 5
    assert (os.listdir(root), os.listdir(outside)) == (["kept"], ["secret"])


def test_missing_and_outside_paths_and_roots_are_not_deleted(root, outside, remove):
    (root / "out").symlink_to(outside)
    assert code(remove, "none") == "not_found"
    assert code(remove, "out/secret") == code(remove, "out/none") == "outside_roots"
    assert code(remove, ".") == code(remove, ".", recursive=True) == "bad_path"


def test_a_root_within_a_root_is_not_deleted_by_any_of_its_names(tmp_path, way):
    (tmp_path / "outer/mid/inner").mkdir(parents=True)
    (tmp_path / "outer/mid/a").touch()
    (tmp_path / "outer/link").symlink_to(".")
    files = opened_by(way, Roots([tmp_path / "outer", tmp_path / "outer/mid/inner"], writable=True))
    for written in ("outer/mid", "outer/link/mid/inner", "outer/mid/inner"):
        assert code(by_path(delete, files), f"{tmp_path}/{written}", recursive=True) == "bad_path"
    assert sorted(os.listdir(tmp_path / "outer/mid")) == ["a", "inner"]
    files.close()


def test_a_directory_with_a_denied_entry_is_not_deleted(root, remove):
    (root / "dir").mkdir()
    (root / "dir/a").touch()
    (root / "dir/.env").write_text("secret")
    assert code(remove, "dir", recursive=True) == "denied"
    assert sorted(os.listdir(root / "dir")) == [".env", "a"]


def test_a_directory_over_the_limits_is_not_deleted(root, remove, monkeypatch):
    monkeypatch.setattr(deleting, "MAX_ENTRIES", 3)
    monkeypatch.setattr(deleting, "MAX_DEPTH", 2)
    (root / "deep/a/b").mkdir(parents=True)
    (root / "many").mkdir()
    for i in range(4):
        (root / "many" / str(i)).touch()
    assert code(remove, "many", recursive=True) == code(remove, "deep", recursive=True) == "too_large"
    assert (len(os.listdir(root / "many")), (root / "deep/a/b").is_dir()) == (4, True)


def test_a_tree_of_many_entries_and_levels_is_deleted(root, remove, no_leak):
    (root / "/".join(["d"] * deleting.MAX_DEPTH)).mkdir(parents=True)
    for i in range(100):
        (root / f"d/{i}").touch()
    assert remove("d", recursive=True) == deleting.MAX_DEPTH + 100
    assert os.listdir(root) == []


def test_a_deletion_cancelled_before_it_begins_deletes_nothing(files, root, at, no_leak):
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/file").write_text("x")

    def checkpoint():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        delete(files, at("a"), recursive=True, checkpoint=checkpoint)
    assert (root / "a/b/file").exists()


def test_a_deletion_can_not_be_cancelled_once_it_has_begun(files, root):
    (root / "a/b").mkdir(parents=True)
    for name in ("a/1", "a/b/2", "a/b/3"):
        (root / name).write_text("x")
    left = []
    delete(files, files.roots.place("a"), True, None, lambda: left.append(sum(1 for _ in root.rglob("*"))))
    assert set(left) == {5}


def test_a_file_with_another_etag_is_not_deleted(root, remove):
    (root / "file").write_text("one")
    etag = etag_of((root / "file").stat())
    (root / "file").write_text("another")
    assert code(remove, "file", etag=etag) == "changed"
    assert remove("file", etag=etag_of((root / "file").stat())) == 1


def test_a_directory_swapped_for_a_link_during_the_deletion_is_not_followed(files, root, outside, at, monkeypatch):
    (root / "dir/a").mkdir(parents=True)
    plain = deleting.enter_directory
    left = iter([False, True])

    def swapped(entry):
        # The second time: the first pass only counts.
        if entry.name == "a" and next(left):
            (root / "dir/a").rename(root / "kept")
            (root / "dir/a").symlink_to(outside)
        return plain(entry)

    # Another program could not be timed this exactly.
    monkeypatch.setattr(deleting, "enter_directory", swapped)
    assert code(delete, files, at("dir"), recursive=True) == "not_a_directory"
    assert (sorted(os.listdir(root)), os.listdir(outside)) == (["dir", "kept"], ["secret"])


def test_a_directory_changed_during_its_recorded_deletion_stays(files, root, recorder, monkeypatch):
    (root / "a").mkdir()
    (root / "a/file").write_text("x")
    plain = deleting.check_and_rename

    def renamed(old, new):
        plain(old, new)
        # Another program writes to the file through an open descriptor.
        for aside in root.glob(".mcp-*"):
            (aside / "file").write_text("other")

    monkeypatch.setattr(deleting, "check_and_rename", renamed)
    assert code(delete, files, files.roots.place("a"), recursive=True, recorder=recorder) == "changed"
    assert [str(path.relative_to(root)) for path in sorted(root.rglob("*"))] == ["a", "a/file"]
    assert (root / "a/file").read_text() == "other"


def test_a_file_changed_during_its_recorded_deletion_stays(files, root, recorder, monkeypatch):
    (root / "file").write_text("x")
    plain = deleting.rename

    def renamed(old, new):
        (root / "file").write_text("other")
        plain(old, new)

    monkeypatch.setattr(deleting, "rename", renamed)
    assert code(delete, files, files.roots.place("file"), recorder=recorder) == "changed"
    assert (os.listdir(root), (root / "file").read_text()) == (["file"], "other")
