import os
import shutil
import socket
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from servers.common.files.denylist import Denylist
from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from shared.coded_errors import PathError, os_errors
from shared.program.files.entries import RACE_FREE
from tests.servers.common.files.conftest import code, opened_by


def test_linux_is_race_free():
    assert RACE_FREE


@pytest.mark.timeout(30)
def test_directories_pipes_and_sockets_are_refused_without_waiting(either, root, monkeypatch):
    (root / "dir").mkdir()
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        codes = {name: code(either, name) for name in ("dir", ".", "pipe", "socket", "none", "none/none")}
    assert codes == {
        **dict.fromkeys(["dir", "."], "not_a_file"),
        **dict.fromkeys(["pipe", "socket"], "special_file"),
        **dict.fromkeys(["none", "none/none"], "not_found"),
    }


def test_a_device_is_refused(no_leak):
    files = RootedFiles(Roots([Path("/dev")]))
    assert code(files, "null") == "special_file"
    files.close()


def test_a_directory_is_opened_for_scanning(either, root):
    (root / "dir" / "x").mkdir(parents=True)
    for written, names in (("dir", ["x"]), (".", ["dir"])):
        with either.open_directory(either.roots.place(written)) as directory:
            assert os.listdir(directory) == names


def test_opening_a_file_or_missing_directory_is_refused(either, root):
    (root / "file").touch()
    for name, expected in (("file", "not_a_directory"), ("none", "not_found")):
        with pytest.raises(PathError) as caught, either.open_directory(either.roots.place(name)):
            pass
        assert caught.value.code == expected


def test_a_link_is_not_followed_with_follow_false(either, root):
    (root / "dir").mkdir()
    (root / "link").symlink_to("dir")
    place = either.roots.place("link")
    assert stat.S_ISDIR(either.stat(place).st_mode)
    assert stat.S_ISLNK(either.stat(place, follow=False).st_mode)
    with pytest.raises(PathError), either.open_directory(place, follow=False):
        pass


def test_a_located_file_swapped_for_a_link_is_refused(either, root, outside, no_leak):
    (root / "file").touch()
    with either.locate(either.roots.place("file")) as entry:
        (root / "file").unlink()
        (root / "file").symlink_to(outside / "secret")
        with pytest.raises(PathError) as caught, os_errors("file"):
            either.open_entry(entry, "file")
    assert caught.value.code == "changed"


@pytest.mark.timeout(30)
def test_a_located_file_swapped_for_a_pipe_is_refused(either, root, no_leak):
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


def test_a_root_is_reachable_while_its_path_leads_to_the_open_directory(either, files, root):
    assert either.is_reachable(0)
    root.rename(root.parent / "away")
    assert not either.is_reachable(0)
    root.touch()
    assert not either.is_reachable(0)
    root.unlink()
    root.mkdir()
    assert not files.is_reachable(0)  # another directory has its name


def test_a_missing_root_is_opened_when_it_appears(way, tmp_path):
    files = opened_by(way, Roots([tmp_path / "there", tmp_path / "later"], True))
    place = files.roots.place(str(tmp_path / "later" / "file"))
    for _ in range(2):
        assert not files.is_reachable(1)
        with pytest.raises(PathError) as caught:
            files.stat(place)
        assert caught.value.code == "not_found"
        (tmp_path / "later").mkdir()
        (tmp_path / "later" / "file").touch()
        assert files.stat(place).st_size == 0
        assert files.is_reachable(1)
        shutil.rmtree(tmp_path / "later")
    files.close()


def test_a_recreated_root_is_reachable_immediately(either, root):
    root.rmdir()
    assert not either.is_reachable(0)
    root.mkdir()
    (root / "file").touch()
    assert either.is_reachable(0)
    assert either.stat(either.roots.place("file")).st_size == 0


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="mounts a file system: run it as root")
def test_a_mount_over_a_root_replaces_it(files, root):
    if subprocess.run(["mount", "-t", "tmpfs", "none", root], check=False, capture_output=True).returncode:
        pytest.skip("mounts a file system: run it where that is allowed")
    try:
        (root / "file").touch()
        assert files.is_reachable(0)
        assert files.stat(files.roots.place("file")).st_size == 0
    finally:
        subprocess.run(["umount", "-l", root], check=True)
    assert files.is_reachable(0)
    with pytest.raises(PathError):
        files.stat(files.roots.place("file"))


def test_a_nested_root_is_judged_by_the_names_above_it(root, way):
    (root / "a").mkdir()
    (root / "a" / "b").touch()
    files = opened_by(way, Roots([root, root / "a"], denylist=Denylist(["a/b"])))
    assert code(files, root / "a" / "b") == "denied"
    files.close()


@pytest.mark.parametrize("missing", [0, 1])
def test_simultaneous_threads_open_a_new_root_once(tmp_path, missing):
    names = ["a", "b"]
    (tmp_path / names[1 - missing]).mkdir()
    files = RootedFiles(Roots([tmp_path / name for name in names]))
    (tmp_path / names[missing]).mkdir()
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: files.is_reachable(missing), range(200)))
    after = len(os.listdir("/proc/self/fd")) if before else 0
    assert after - before <= 1
    files.close()
