"""Etags as preconditions of writes and edits."""

import os
import re
import stat
import sys

import pytest

from servers.filesystem.edit.move import copy, move
from servers.filesystem.edit.write import WriteOptions, create_directory, write_file
from servers.filesystem.errors import FilesError
from shared.program.files.entries import etag_of
from tests.servers.filesystem.editing_files import code, edit_file, replace_as_another


def etag(inode=1, device=2, size=3, modified=4, changed=5):
    times = {"st_mtime_ns": modified, "st_ctime_ns": changed}
    return etag_of(os.stat_result((0o644, inode, device, 1, 0, 0, size, 0, 0, 0), times))


def test_each_field_of_the_file_status_changes_the_etag():
    assert re.fullmatch("[0-9a-f]{16}", etag())
    assert len({etag(), *(etag(**{what: 9}) for what in ("inode", "device", "size", "modified", "changed"))}) == 6
    assert etag() == etag()


def test_a_write_or_edit_with_an_outdated_etag_is_refused(root, write, edit):
    (root / "file").write_text("one")
    etag = etag_of((root / "file").stat())
    etag = write("file", "two", options=WriteOptions(etag)).etag
    etag = edit("file", ("two", "three"), etag=etag).etag
    (root / "file").write_text("theirs")
    for mode in ("overwrite", "append"):
        assert code(write, "file", "four", mode, WriteOptions(etag)) == "changed"
    assert code(edit, "file", ("theirs", "four"), etag=etag) == "changed"
    (root / "file").unlink()
    assert code(write, "file", "four", options=WriteOptions(etag)) == "changed"
    assert os.listdir(root) == []


@pytest.mark.parametrize("comes_after", [replace_as_another, lambda file: file.unlink()], ids=["replaced", "deleted"])
@pytest.mark.parametrize(
    "act",
    [lambda files, place: write_file(files, place, "new"), lambda *file: edit_file(*file, [("old", "new")])],
    ids=["write", "edit"],
)
def test_the_etag_of_a_write_is_not_that_of_a_later_version(files, root, at, monkeypatch, act, comes_after):
    (root / "file").write_text("old")
    plain = os.fsync

    def fsync(descriptor):
        plain(descriptor)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            comes_after(root / "file")

    monkeypatch.setattr(os, "fsync", fsync)
    written = act(files, at("file"))
    monkeypatch.undo()
    assert code(write_file, files, at("file"), "newer", options=WriteOptions(etag=written.etag)) == "changed"


def test_quick_writes_have_different_etags(write):
    assert len({write("file", str(i % 10)).etag for i in range(30)}) == 30


@pytest.mark.skipif(sys.platform == "darwin", reason="there both forms of an accent are one name")
def test_no_second_name_is_created_whose_accents_are_only_composed_otherwise(files, root, at):
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    (root / decomposed).write_text("old")
    (root / "other").write_text("other")
    for act in (
        lambda: write_file(files, at(composed), "new"),
        lambda: write_file(files, at(composed), "new", "create"),
        lambda: create_directory(files, at(f"{composed}/inner")),
        lambda: move(files, at("other"), at(composed)),
        lambda: copy(files, at(decomposed), at(composed)),
    ):
        with pytest.raises(FilesError, match="accents are composed differently") as caught:
            act()
        assert caught.value.code == "already_exists"
        assert caught.value.suggestion == f"Use {(root / decomposed).as_uri()}."
    assert sorted(os.listdir(root)) == sorted([decomposed, "other"])
    move(files, at(decomposed), at(composed))
    assert write_file(files, at(composed), "new").created is False
    assert write_file(files, at("caf\u00ea"), "new").created


@pytest.mark.parametrize("name", ["new\n", " new", "new ", "a\tb", "\u00a0new", "new\x7f", '"a b"', "`new`", "a\\b"])
def test_no_name_is_created_that_comes_from_a_path_in_another_notation(files, root, at, name):
    (root / "other").write_text("other")
    for act in (
        lambda: write_file(files, at(name), "new"),
        lambda: create_directory(files, at(f"{name}/inner")),
        lambda: move(files, at("other"), at(name)),
        lambda: copy(files, at("other"), at(name)),
    ):
        with pytest.raises(FilesError, match="the new name has a backslash") as caught:
            act()
        assert caught.value.code == "bad_path"
    assert os.listdir(root) == ["other"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_an_existing_name_with_white_space_at_its_end_can_be_written_and_moved(files, root, at):
    (root / "Icon\r").write_text("old")
    (root / "folder").mkdir()
    assert not write_file(files, at("Icon\r"), "new").created
    move(files, at("Icon\r"), at("folder/Icon\r"))
    move(files, at("folder/Icon\r"), at("Icon"))
    assert (root / "Icon").read_text() == "new"
