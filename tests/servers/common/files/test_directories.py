import errno
import os

import pytest

from servers.common.files import directories
from servers.common.files.directories import entry_in, open_directory, open_to_read, read_file
from shared.program.files.entries import list_entries
from tests.servers.common.files.conftest import SECRET


@pytest.fixture
def opened(root, way):
    """Open the directory with these names below the root, with each kind of walker."""

    def open_below(*names, make=False):
        return open_directory(root, names, make, race_free=way == "race-free")

    return open_below


def read(opened, *names, most=100):
    with opened(*names[:-1]) as directory:
        return read_file(entry_in(directory, names[-1]), most)


def test_a_file_is_read_up_to_its_size_limit(opened, root, no_leak):
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").write_bytes(b"four")
    assert [read(opened, "a", "b", "file", most=most) for most in (100, 4, 3)] == [b"four", b"four", None]
    with opened("a", "b") as directory:
        assert [entry.name for entry in list_entries(directory)] == ["file"]


@pytest.mark.parametrize("target", ["outside", "inside"])
def test_links_inside_and_outside_are_not_followed(opened, root, outside, no_leak, target):
    (root / "dir").mkdir()
    (root / "dir" / "secret").write_text(SECRET)
    (root / "link").symlink_to(outside if target == "outside" else "dir")
    (root / "file").symlink_to(outside / "secret" if target == "outside" else "dir/secret")
    for names in (["link", "secret"], ["file"]):
        with pytest.raises(OSError) as caught:
            read(opened, *names)
        # The kernel reports either for a link where a directory is expected.
        assert caught.value.errno in (errno.ELOOP, errno.ENOTDIR)


def test_a_replaced_root_is_opened_again(tmp_path, root, opened):
    (root / "file").write_bytes(b"old")
    assert read(opened, "file") == b"old"
    os.rename(root, tmp_path / "elsewhere")
    root.mkdir()
    (root / "file").write_bytes(b"new")
    assert read(opened, "file") == b"new"
    # The root itself may be a link.
    os.rename(root, tmp_path / "new")
    root.symlink_to("new")
    assert read(opened, "file") == b"new"


def test_missing_directories_are_created_only_with_make(opened, root, no_leak):
    (root / "file").touch()
    with pytest.raises(NotADirectoryError), opened("file"):
        pass
    with pytest.raises(FileNotFoundError), opened("a", "b"):
        pass
    with opened("a", "b", make=True):
        pass
    assert (root / "a" / "b").is_dir()


@pytest.mark.timeout(30)
def test_a_pipe_is_refused_without_waiting(opened, root, no_leak):
    os.mkfifo(root / "pipe")
    with pytest.raises(OSError, match=r"^$|No such device"):
        read(opened, "pipe")


def test_a_directory_swapped_for_a_link_is_not_followed(opened, root, outside, no_leak):
    (root / "dir").mkdir()
    (root / "dir" / "secret").write_bytes(b"ours")
    with opened("dir") as directory:
        os.rename(root / "dir", root / "kept")
        (root / "dir").symlink_to(outside)
        if isinstance(directory, int):
            assert read_file(entry_in(directory, "secret"), 100) == b"ours"
            return
        with pytest.raises(OSError) as caught:
            read_file(entry_in(directory, "secret"), 100)
    assert caught.value.errno == errno.ELOOP


def test_a_directory_below_a_swapped_one_is_not_entered(root, outside):
    (root / "dir" / "below").mkdir(parents=True)
    (outside / "below").mkdir()
    with open_directory(root, ["dir"], race_free=False) as directory:
        os.rename(root / "dir", root / "kept")
        (root / "dir").symlink_to(outside)
        with pytest.raises(NotADirectoryError):
            directories.enter(directory, "below")


def test_an_open_handle_has_the_status_of_its_file(opened, root):
    (root / "file").write_bytes(b"four")
    with opened() as directory:
        handle = open_to_read(entry_in(directory, "file"))
    assert os.path.samestat(handle.stat, (root / "file").stat())
    os.close(handle.descriptor)
