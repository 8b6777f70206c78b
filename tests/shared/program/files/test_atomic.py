import errno
import fcntl
import os
import resource
import stat

import pytest

from shared.program.files import atomic
from shared.program.files.atomic import (
    prepare_replacement,
    put_in_place,
    rename_to_unused,
    replace,
    sync,
    temporary_entry,
)
from shared.program.files.entries import Entry, Place, entry_at, stat_entry
from tests import disk


@pytest.fixture(params=["descriptor", "path"])
def entry(root, request):
    """The entry "file" of the root, by an open directory descriptor or by its path."""
    if request.param == "path":
        yield entry_at(root / "file")
        return
    descriptor = os.open(root, os.O_RDONLY)
    yield Entry(descriptor, "file", None, False, Place(0, ("file",), "file"))
    os.close(descriptor)


def test_a_replacement_keeps_the_mode_but_not_set_user_id(entry, root):
    (root / "file").touch()
    for before, after in ((0o751, 0o751), (0o4755, 0o755)):
        (root / "file").chmod(before)
        replace(entry, b"new", stat_entry(entry))
        assert (root / "file").stat().st_mode & 0o7777 == after


def test_a_new_file_gets_the_umask_mode_or_the_given_one(entry, root):
    mask = os.umask(0o020)
    replace(entry, b"new", None)
    os.umask(mask)
    assert (root / "file").stat().st_mode & 0o777 == 0o646
    (root / "file").unlink()
    put_in_place(prepare_replacement(entry, b"new", None, mode=0o700), entry, None)
    assert (root / "file").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_temporary_file_is_private_until_it_has_its_final_mode(entry, root, monkeypatch, mode):
    (root / "file").touch()
    (root / "file").chmod(mode)
    made = disk.made(monkeypatch)
    replace(entry, b"new", stat_entry(entry))
    assert (made, stat.S_IMODE((root / "file").stat().st_mode)) == ([0o600], mode)


def test_a_file_is_synced_before_its_directory(entry, monkeypatch):
    synced = disk.synced(monkeypatch)
    replace(entry, b"new", None)
    assert synced == [3, ["file"]]


def test_a_failure_leaves_the_old_file_and_nothing_else(entry, root, no_leak):
    (root / "file").write_text("old")

    def fail():
        assert len(list(root.iterdir())) == 2
        raise KeyError

    with pytest.raises(KeyError):
        replace(entry, b"new", stat_entry(entry), fail)
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [("file", "old")]


@pytest.mark.parametrize("has_links", [True, False], ids=["hard links", "none"])
def test_an_entry_that_appears_meanwhile_is_not_replaced(entry, root, tmp_path, monkeypatch, has_links):
    def refused(*_, **__):
        raise PermissionError(errno.EPERM, "")

    (tmp_path / "secret").write_text("secret")
    if not has_links:
        monkeypatch.setattr(os, "link", refused)
    file = root / "file"
    for number, make in enumerate((file.touch, file.mkdir, lambda: file.symlink_to(tmp_path / "secret"))):
        with pytest.raises(FileExistsError):
            replace(entry, b"new", None, make)
        assert os.listdir(root) == ["file"]
        file.rename(tmp_path / str(number))
    assert (tmp_path / "secret").read_text() == "secret"
    replace(entry, b"new", None)
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [("file", "new")]


def test_a_new_name_is_withdrawn_when_the_temporary_one_cannot_be_removed(entry, root, monkeypatch):
    def refused(one):
        if one == old:
            raise PermissionError(errno.EPERM, "")
        unlink(one)

    old, unlink = temporary_entry(entry), atomic.unlink
    os.close(atomic.create(old, 0o666))
    monkeypatch.setattr(atomic, "unlink", refused)
    with pytest.raises(PermissionError):
        rename_to_unused(old, entry)
    assert [path.suffix for path in root.iterdir()] == [".tmp"]


def test_a_symlink_that_appears_meanwhile_is_replaced_not_followed(entry, root, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (root / "file").write_text("old")

    def swap():
        (root / "file").unlink()
        (root / "file").symlink_to(tmp_path / "secret")

    replace(entry, b"new", stat_entry(entry), swap)
    assert (root / "file").read_text() == "new"
    assert (tmp_path / "secret").read_text() == "secret"


def test_a_failed_write_leaves_no_file(entry, root, no_leak):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            replace(entry, b"x" * 100, None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(root.iterdir()) == []


def refuse(*_, **__):
    raise PermissionError


def test_a_new_file_is_hard_linked_instead_of_renamed(entry, root, monkeypatch):
    monkeypatch.setattr(os, "rename", refuse)
    replace(entry, b"new", None)
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [("file", "new")]


def of_others(file):
    """Returns the stat of the file, with another owner and group."""
    found = list(file.stat())
    found[stat.ST_UID] += 1
    found[stat.ST_GID] += 1
    return os.stat_result(found)


def test_group_permissions_are_dropped_when_the_group_cannot_be_kept(entry, root, monkeypatch):
    (root / "file").touch()
    (root / "file").chmod(0o664)
    monkeypatch.setattr(os, "fchown", refuse)
    replace(entry, b"new", of_others(root / "file"))
    assert (root / "file").stat().st_mode & 0o777 == 0o604


def test_owner_and_group_are_set_separately(entry, root, monkeypatch):
    (root / "file").touch()
    found, calls = of_others(root / "file"), []
    monkeypatch.setattr(os, "fchown", lambda _, *ids: calls.append(ids))
    replace(entry, b"new", found)
    assert calls == [(found.st_uid, -1), (-1, found.st_gid)]


@pytest.mark.skipif(os.getuid() != 0, reason="only root has groups to choose from")
def test_a_replacement_keeps_owner_and_group(entry, root):
    (root / "file").touch()
    os.chown(root / "file", 1234, 4321)
    replace(entry, b"new", stat_entry(entry))
    found = (root / "file").stat()
    assert (found.st_uid, found.st_gid) == (1234, 4321)


@pytest.mark.parametrize(("full", "works"), [(fcntl.F_GETFD, True), (99_999, False), (None, False)])
def test_sync_prefers_full_fsync_and_falls_back_to_fsync(full, works):
    """A pipe shows which call was made: it refuses `fsync`."""
    read, write = os.pipe()
    try:
        if works:
            sync(write, full)
        else:
            with pytest.raises(OSError, match="Invalid"):
                sync(write, full)
    finally:
        os.close(read)
        os.close(write)
