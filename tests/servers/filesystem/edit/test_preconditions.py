"""Etags as preconditions of writes and edits."""

import os
import re
import stat

import pytest

from servers.filesystem.edit.write import WriteOptions, write_file
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
