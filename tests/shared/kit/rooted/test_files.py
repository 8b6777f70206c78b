import os
import socket
import stat
from pathlib import Path

import pytest

from shared.kit.errors import PathError, os_errors
from shared.kit.rooted.entries import RACE_FREE
from shared.kit.rooted.files import RootedFiles
from shared.kit.rooted.roots import Roots


def opened(files, written):
    with files.open_file(files.roots.place(written)) as handle:
        return handle.stat


def code(files, written):
    with pytest.raises(PathError) as caught:
        opened(files, written)
    return caught.value.code


def test_linux_is_race_free():
    assert RACE_FREE


def test_a_regular_file_opens(either, root):
    (root / "file").write_text("four")
    assert opened(either, "file").st_size == 4


def test_a_directory_is_no_file(either, root):
    (root / "dir").mkdir()
    assert code(either, "dir") == "not_a_file"
    assert code(either, ".") == "not_a_file"


@pytest.mark.timeout(30)
def test_a_pipe_is_refused_without_waiting(either, root):
    os.mkfifo(root / "pipe")
    assert code(either, "pipe") == "special_file"


def test_a_socket_is_refused(either, root, monkeypatch):
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket")
        assert code(either, "socket") == "special_file"


def test_a_device_is_refused():
    files = RootedFiles(Roots([Path("/dev")]))
    assert code(files, "null") == "special_file"
    files.close()


def test_a_missing_file(either):
    assert code(either, "none") == "not_found"
    assert code(either, "none/none") == "not_found"


def test_a_directory_opens_for_scanning(either, root):
    (root / "dir" / "x").mkdir(parents=True)
    with either.open_directory(either.roots.place("dir")) as directory:
        assert os.listdir(directory) == ["x"]


def test_the_root_opens_for_scanning(either, root):
    (root / "x").touch()
    with either.open_directory(either.roots.place(".")) as directory:
        assert os.listdir(directory) == ["x"]


@pytest.mark.parametrize(("name", "expected"), [("file", "not_a_directory"), ("none", "not_found")])
def test_what_is_no_directory(either, root, name, expected):
    (root / "file").touch()
    with pytest.raises(PathError) as caught, either.open_directory(either.roots.place(name)):
        pass
    assert caught.value.code == expected


def test_a_link_can_be_kept_from_being_followed(either, root):
    (root / "dir").mkdir()
    (root / "link").symlink_to("dir")
    place = either.roots.place("link")
    assert stat.S_ISDIR(either.stat(place).st_mode)
    assert stat.S_ISLNK(either.stat(place, follow=False).st_mode)
    with pytest.raises(PathError), either.open_directory(place, follow=False):
        pass


def test_a_file_swapped_for_a_link_after_it_was_found_is_not_followed(either, root, outside, no_leak):
    (root / "file").touch()
    with either.locate(either.roots.place("file")) as entry:
        (root / "file").unlink()
        (root / "file").symlink_to(outside / "secret")
        with pytest.raises(PathError) as caught, os_errors("file"):
            either.open_entry(entry, "file")
    assert caught.value.code == "changed"


@pytest.mark.timeout(30)
def test_a_file_swapped_for_a_pipe_after_it_was_found_is_refused(either, root, no_leak):
    (root / "file").touch()
    with either.locate(either.roots.place("file")) as entry:
        (root / "file").unlink()
        os.mkfifo(root / "file")
        with pytest.raises(PathError) as caught:
            either.open_entry(entry, "file")
    assert caught.value.code == "special_file"


def test_os_errors_while_a_file_is_open_are_translated(files, root, no_leak):
    (root / "file").touch()
    with pytest.raises(PathError) as caught, files.open_file(files.roots.place("file")) as handle:
        os.lseek(handle.descriptor, -1, os.SEEK_SET)
    assert caught.value.path == "file"


def test_a_root_is_there_while_its_path_leads_to_the_one_that_is_open(either, root):
    assert either.is_there(0)
    root.rename(root.parent / "away")
    assert not either.is_there(0)
    root.touch()
    assert not either.is_there(0)


def test_a_root_that_is_another_one_by_now_is_not_there(files, root):
    root.rename(root.parent / "away")
    root.mkdir()
    assert not files.is_there(0)


def test_closing_gives_the_roots_back(root, no_leak):
    RootedFiles(Roots([root])).close()
