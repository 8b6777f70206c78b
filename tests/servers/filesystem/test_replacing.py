import os
import resource
import stat

import pytest

from servers.filesystem.errors import FilesError
from servers.filesystem.writing.checks import current
from servers.filesystem.writing.replacing import replace


def test_the_mode_stays(files, root, at):
    (root / "file").touch()
    (root / "file").chmod(0o751)
    with files.locate(at("file")) as entry:
        replace(entry, b"new", current(entry))
    assert (root / "file").stat().st_mode & 0o7777 == 0o751


def test_a_new_file_gets_the_usual_mode(files, root, at):
    mask = os.umask(0o027)
    with files.locate(at("file")) as entry:
        replace(entry, b"new", None)
    os.umask(mask)
    assert (root / "file").stat().st_mode & 0o777 == 0o640


def test_set_user_id_goes_as_with_any_write(files, root, at):
    (root / "file").touch()
    (root / "file").chmod(0o4755)
    with files.locate(at("file")) as entry:
        replace(entry, b"new", current(entry))
    assert (root / "file").stat().st_mode & 0o7777 == 0o755


def test_a_failure_leaves_the_old_file_and_nothing_else(files, root, at, no_leak):
    (root / "file").write_text("old")

    def fail():
        assert len(list(root.iterdir())) == 2
        raise KeyError

    with pytest.raises(KeyError), files.locate(at("file")) as entry:
        replace(entry, b"new", current(entry), fail)
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [("file", "old")]


def test_a_failing_rename_leaves_nothing(files, root, at):
    with pytest.raises(FilesError), files.locate(at("file")) as entry:
        replace(entry, b"new", None, (root / "file").mkdir)
    assert [path.name for path in root.iterdir()] == ["file"]


def test_what_appears_where_nothing_was_is_kept(files, root, outside, at):
    for make in ((root / "file").touch, lambda: (root / "file").symlink_to(outside / "secret")):
        with pytest.raises(FilesError) as caught, files.locate(at("file")) as entry:
            replace(entry, b"new", None, make)
        assert (caught.value.code, os.listdir(root)) == ("already_exists", ["file"])
        (root / "file").unlink()
    assert (outside / "secret").read_text() != "new"


def test_a_link_that_appears_is_replaced_and_not_written_through(files, root, outside, at):
    (root / "file").write_text("old")

    def swap():
        (root / "file").unlink()
        (root / "file").symlink_to(outside / "secret")

    with files.locate(at("file")) as entry:
        replace(entry, b"new", current(entry), swap)
    assert (root / "file").read_text() == "new"
    assert (outside / "secret").read_text() != "new"


def test_a_full_disk_leaves_nothing(files, root, at, no_leak):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(FilesError) as caught, files.locate(at("file")) as entry:
            replace(entry, b"x" * 100, None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.code == "io_error"
    assert list(root.iterdir()) == []


def refuse(*_):
    raise PermissionError


def test_another_group_may_not_read_what_only_the_old_one_could(files, root, at, monkeypatch):
    (root / "file").touch()
    (root / "file").chmod(0o664)
    found = list((root / "file").stat())
    found[stat.ST_GID] += 1
    monkeypatch.setattr(os, "fchown", refuse)
    with files.locate(at("file")) as entry:
        replace(entry, b"new", os.stat_result(found))
    assert (root / "file").stat().st_mode & 0o777 == 0o604


@pytest.mark.skipif(os.getuid() != 0, reason="only root has groups to choose from")
def test_the_owner_and_the_group_stay(files, root, at):
    (root / "file").touch()
    os.chown(root / "file", 1234, 4321)
    with files.locate(at("file")) as entry:
        replace(entry, b"new", current(entry))
    found = (root / "file").stat()
    assert (found.st_uid, found.st_gid) == (1234, 4321)
