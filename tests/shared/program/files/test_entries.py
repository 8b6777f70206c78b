"""Operations on an entry, by a descriptor of its directory or by its whole path."""

import os
import stat

import pytest

from servers.common.files.exchange import exchange
from shared.program.files import entries
from shared.program.files.atomic import check_and_rename, rename
from shared.program.files.entries import (
    child,
    enter_directory,
    etag_of,
    is_same,
    list_entries,
    read_bytes,
    stat_entry,
)


@pytest.fixture
def found(either):
    """Finds entries of the root; their directories stay open to the end of the test."""
    opened = []

    def find(path):
        opened.append(either.locate(either.roots.place(path), follow=False))
        return opened[-1].__enter__()

    yield find
    for one in reversed(opened):
        one.__exit__(None, None, None)


def test_create_refuses_existing_entries_and_symlinks(found, root, outside):
    os.close(entries.create(found("file"), 0o640))
    assert stat.S_IMODE((root / "file").stat().st_mode) == 0o640 & ~umask()
    (root / "link").symlink_to(outside / "new")
    for name in ("file", "link"):
        with pytest.raises(FileExistsError):
            entries.create(found(name), 0o640)
    assert not (outside / "new").exists()


def test_read_bytes_stops_at_the_count_or_the_end(tmp_path):
    (tmp_path / "file").write_bytes(bytes(range(256)) * 600)
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    first, rest, end = (read_bytes(descriptor, count) for count in (100_000, 1_000_000, 10))
    os.close(descriptor)
    assert (len(first), first + rest, end) == (100_000, bytes(range(256)) * 600, b"")


def test_entering_a_directory_through_a_symlink_fails(root, outside):
    (root / "link").symlink_to(outside)
    with pytest.raises(OSError, match="symbolic links"), enter_directory(entries.entry_at(root / "link")):
        pass


def test_opening_a_pipe_without_a_reader_fails_at_once(found, root):
    os.mkfifo(root / "pipe")
    with pytest.raises(OSError, match="No such device"):
        entries.open_to_append(found("pipe"))


class Unknown:
    """A directory entry that may not be examined."""

    def is_file(self, *, follow_symlinks):
        raise PermissionError


def test_an_inaccessible_entry_is_of_kind_other():
    assert entries.kind_of(Unknown()) == "other"


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_appended_bytes_are_written_at_the_end(found, root):
    (root / "file").write_text("one")
    descriptor = entries.open_to_append(found("file"))
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, b" two")
    os.close(descriptor)
    assert (root / "file").read_text() == "one two"


def test_a_directory_is_made_and_removed(found, root):
    entries.make_directory(found("dir"), 0o700)
    assert stat.S_IMODE((root / "dir").stat().st_mode) == 0o700
    entries.remove_directory(found("dir"))
    assert stat_entry(found("dir")) is None


def test_copy_link_and_unlink_act_on_the_link_itself(found, root, outside):
    (root / "old").symlink_to(outside / "secret")
    entries.copy_link(found("old"), found("new"))
    assert (root / "new").readlink() == outside / "secret"
    entries.unlink(found("new"))
    assert sorted(os.listdir(root)) == ["old"]
    assert (outside / "secret").exists()


def test_rename_replaces_but_check_and_rename_does_not(found, root):
    (root / "old").write_text("old")
    (root / "new").write_text("new")
    with pytest.raises(FileExistsError):
        check_and_rename(found("old"), found("new"))
    rename(found("old"), found("new"))
    assert (os.listdir(root), (root / "new").read_text()) == (["new"], "old")


def test_exchange_replaces_the_entry(found, root):
    (root / "old").write_text("old")
    (root / "new").write_text("new")
    entry = found("old")
    exchange(found("new"), entry, entry.stat, None)
    assert (root / "old").read_text() == "new"


def test_remove_tree_does_not_follow_links(found, root, outside, no_leak):
    (root / "dir" / "a" / "b").mkdir(parents=True)
    (root / "dir" / "a" / "file").touch()
    (root / "dir" / "a" / "link").symlink_to(outside)
    for _ in range(2):  # a missing tree is no error
        entries.remove_tree(found("dir"))
    assert (os.listdir(root), os.listdir(outside)) == ([], ["secret"])


def test_list_entries_names_children_and_their_kinds(found, root):
    (root / "dir" / "b").mkdir(parents=True)
    (root / "dir" / "a").touch()
    (root / "dir" / "c").symlink_to("a")
    entry = found("dir")
    with enter_directory(entry) as directory:
        seen = list_entries(entry.name if directory is None else directory)
        assert [(one.name, entries.kind_of(one)) for one in seen] == [
            ("a", "file"),
            ("b", "directory"),
            ("c", "symlink"),
        ]
        below = child(entry, directory, "a")
        assert (below.place.parts, stat.S_ISREG(stat_entry(below).st_mode)) == (("dir", "a"), True)


def test_a_changed_file_has_another_etag(found, root):
    (root / "file").write_text("one")
    before = etag_of(stat_entry(found("file")))
    assert etag_of(stat_entry(found("file"))) == before
    (root / "file").write_text("other")
    assert etag_of(stat_entry(found("file"))) != before


def test_is_same_refuses_paths_through_links(root, outside):
    (root / "dir").mkdir()
    (root / "dir" / "file").touch()
    (root / "link").symlink_to("dir")
    seen = (root / "dir" / "file").stat()
    assert is_same(str(root / "dir" / "file"), seen)
    assert not is_same(str(root / "link" / "file"), seen)
    assert not is_same(str(root / "dir" / "file"), (outside / "secret").stat())
