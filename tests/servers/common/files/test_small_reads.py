"""Reads in the event loop, and the files left to a walk in a thread."""

import os
import stat
from itertools import count, repeat
from pathlib import Path

import pytest

from servers.common.files import small_reads
from servers.common.files.checked import PathWalker
from servers.common.files.mounts import Mounts
from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.common.files.small_reads import MAX_DEPTH, MAX_ENTRIES, MAX_SIZE, PAUSE_FACTOR, SLOW_SECONDS, SmallFiles
from shared.program.files.entries import Place
from tests.servers.common.files.conftest import SECRET, swapping


class Local:
    """Mounts that report every place as local, or none."""

    def __init__(self, is_local: bool = True) -> None:
        self.answer = is_local

    def is_local(self, place: Place) -> bool:
        return self.answer


@pytest.fixture
def read(files):
    """Read a path as the event loop does."""
    small = SmallFiles(files, Local())

    def call(written):
        contents = small.read(files.roots.place(written))
        return None if contents is None else contents.data

    return call


def test_a_small_file_is_read(read, root, no_leak):
    (root / "a").write_bytes(b"\0\xff")
    (root / "b" / "c").mkdir(parents=True)
    (root / "b" / "c" / "empty").touch()
    assert read("a") == b"\0\xff"
    assert read("b/c/empty") == b""


def test_size_and_depth_of_small_reads_are_limited(read, root, no_leak):
    for size, is_read in ((MAX_SIZE, True), (MAX_SIZE + 1, False)):
        (root / "a").write_bytes(b"x" * size)
        assert (read("a") is not None) == is_read
    for depth, is_read in ((MAX_DEPTH, True), (MAX_DEPTH + 1, False)):
        way = Path(*"d" * (depth - 1), "file")
        (root / way).parent.mkdir(parents=True, exist_ok=True)
        (root / way).write_text("x")
        assert (read(str(way)) == b"x") == is_read


def test_small_reads_do_not_follow_links(read, root, outside, no_leak):
    (root / "dir").mkdir()
    (root / "dir" / "file").write_text("mine")
    for name, target in {"one": "dir/file", "two": "dir", "three": outside / "secret", "four": outside}.items():
        (root / name).symlink_to(target)
    assert [read(way) for way in ("one", "two/file", "three", "four/secret")] == [None] * 4


@pytest.mark.timeout(30)
def test_small_reads_skip_directories_pipes_and_missing_files(read, root, no_leak):
    (root / "dir").mkdir()
    (root / "file").touch()
    os.mkfifo(root / "pipe")
    assert [read(way) for way in (".", "dir", "none", "none/x", "file/x", "x" * 300, "pipe")] == [None] * 7


def test_small_reads_skip_files_without_a_reported_size():
    files = RootedFiles(Roots([Path("/proc/self")]))
    assert SmallFiles(files, Local()).read(files.roots.place("status")) is None
    files.close()


def test_small_reads_do_not_resolve_dots(files, root, outside):
    assert SmallFiles(files, Local()).read(Place(0, ("..", outside.name, "secret"), "")) is None


def test_small_reads_skip_remote_files(files, root):
    (root / "a").touch()
    assert SmallFiles(files, Local(False)).read(files.roots.place("a")) is None


def test_small_reads_need_descriptors_of_directories(root):
    (root / "a").touch()
    roots = Roots([root])
    files = RootedFiles(roots, PathWalker(roots))
    assert SmallFiles(files, Local()).read(files.roots.place("a")) is None


def test_small_reads_of_a_recreated_root_wait_for_a_walk(files, read, root):
    root.rmdir()
    root.mkdir()
    (root / "a").write_text("new")
    assert read("a") is None
    assert SmallFiles(files, Local()).status(files.roots.place(".")) is None
    files.stat(files.roots.place("a"))
    assert read("a") == b"new"
    assert SmallFiles(files, Local()).status(files.roots.place(".")).st_ino == root.stat().st_ino


def test_small_reads_work_on_local_files_of_this_machine(files, root):
    (root / "a").write_text("yes")
    mounts = Mounts(files.roots.paths)
    place = files.roots.place("a")
    contents = SmallFiles(files, mounts).read(place)
    assert (contents is not None) == mounts.is_local(place)
    mounts.close()


@pytest.mark.slow
def test_a_directory_swapped_for_a_link_opens_nothing_outside(read, root, outside, no_leak):
    (root / "dir").mkdir()
    (root / "dir" / "secret").write_text("mine")
    (root / "link").symlink_to(outside)
    seen = set()
    with swapping(root):
        # Until both states were seen, however busy the machine.
        for i in count():
            seen.add(read("dir/secret"))
            if i > 20_000 and seen >= {b"mine", None}:
                break
    assert SECRET.encode() not in seen


def test_the_status_of_a_link_is_its_own(files, root, outside, no_leak):
    (root / "file").write_text("four")
    (root / "dir").mkdir()
    (root / "link").symlink_to(outside / "secret")
    (root / "way").symlink_to(outside)
    small = SmallFiles(files, Local())
    kinds = {}
    for written in ("file", "dir", "link", "missing", "way/secret", "."):
        status = small.status(files.roots.place(written))
        kinds[written] = status and stat.S_IFMT(status.st_mode)
    assert kinds == {
        "file": stat.S_IFREG,
        "dir": stat.S_IFDIR,
        "link": stat.S_IFLNK,
        **dict.fromkeys(("missing", "way/secret")),
        ".": stat.S_IFDIR,
    }


def test_only_small_directories_are_scanned(files, root, outside, no_leak):
    (root / "dir").mkdir()
    (root / "way").symlink_to(outside)
    small = SmallFiles(files, Local())

    def names(written: str) -> list[str] | None:
        return small.scan(files.roots.place(written), lambda entries: [entry.name for entry in entries])

    assert names("dir") == []
    assert names(".") == ["dir", "way"]
    expected = [f"{number:03}" for number in range(MAX_ENTRIES)]
    for name in reversed(expected):
        (root / "dir" / name).touch()
    assert names("dir") == expected
    (root / "dir" / "more").touch()
    assert [names(written) for written in ("dir", "dir/more", "way", "missing")] == [None] * 4


@pytest.mark.parametrize("is_disk", [True, False], ids=["the disk is slow", "the processor is busy"])
def test_a_slow_disk_pauses_its_path_and_a_busy_processor_pauses_all_paths(files, root, monkeypatch, is_disk):
    now, disk_reads = [100.0], count() if is_disk else repeat(7)
    monkeypatch.setattr(small_reads, "_count_disk_reads", disk_reads.__next__)
    small = SmallFiles(files, Local(), clock=lambda: now[0])
    seconds = {"a": 0.5}

    def seen(name):
        def act(_name, _directory):
            now[0] += seconds.get(name, 0.001)
            return name

        return small.run_at(files.roots.place(name), act)

    assert (seen("a"), seen("b")) == ("a", None if is_disk else "b")
    now[0] += PAUSE_FACTOR * 0.5
    assert (seen("a"), seen("b")) == (None if is_disk else "a", "b")
    now[0] += SLOW_SECONDS
    assert seen("a") == "a"
