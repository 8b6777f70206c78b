"""Reading places by descriptors and by checked paths."""

import os
from itertools import count

import pytest

from servers.common.files.posix import MAX_LINKS
from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from shared.program.files.entries import Place
from tests.servers.common.files.conftest import SECRET, code, outcome, read, swapping

INSIDE = {
    "link": "file",
    "dir": "a/./b/",
    "one": "two",
    "two": "{root}/file",
    "physical": "dir/../file",
    "up": "a/b/..",
    "back": "../root/file",
}
OUTSIDE = {
    **{str(number): "../" * number for number in (1, 2, 9)},
    "absolute": "/etc/passwd",
    "everything": "/",
    "sibling": "../root_evil",
    "file": "../root_evil/secret",
    "none": "../root_evil/none",
    "chain": "sibling/secret",
    "through": "a/up/../root_evil/secret",
}


def test_links_inside_are_followed(either, root):
    (root / "a" / "b").mkdir(parents=True)
    for directory in (root, root / "a", root / "a" / "b"):
        (directory / "file").write_text("yes")
    for name, target in INSIDE.items():
        (root / name).symlink_to(target.format(root=root))
    for way in ("link", "dir/file", "one", "physical", "up/file", "back"):
        assert read(either, way) == "yes", way


def test_links_that_lead_outside_are_refused(either, root, outside):
    (root / "a").mkdir()
    (root / "a" / "up").symlink_to("..")
    for name, target in OUTSIDE.items():
        (root / name).symlink_to(target)
    wrong = {way: code(either, way) for name in OUTSIDE for way in (name, f"{name}/secret")}
    assert {way: result for way, result in wrong.items() if result != "outside_roots"} == {}


def test_errors_of_missing_and_invalid_paths_have_a_code(either, root):
    (root / "link").symlink_to("none")
    (root / "file").write_text("no")
    codes = {way: code(either, way) for way in ("link", "file/x", "x" * 300)}
    assert codes == {"link": "not_found", "file/x": "not_a_directory", "x" * 300: "bad_path"}


def test_a_link_into_another_root_is_followed(tmp_path, root):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("yes")
    (root / "absolute").symlink_to(tmp_path / "other" / "file")
    (root / "relative").symlink_to("../other/file")
    files = RootedFiles(Roots([root, tmp_path / "other"]))
    assert read(files, "root/absolute") == read(files, "root/relative") == "yes"
    files.close()


def test_a_cycle_of_links_is_refused(files, root):
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    assert code(files, "one") == "bad_path"


def test_at_most_40_links_are_followed(files, root):
    (root / "0").write_text("yes")
    for i in range(MAX_LINKS + 1):
        (root / str(i + 1)).symlink_to(str(i))
    assert read(files, str(MAX_LINKS)) == "yes"
    assert code(files, str(MAX_LINKS + 1)) == "bad_path"


def test_a_file_deeper_than_path_max_is_read(files, root):
    names = ["d" * 200] * 30
    descriptor = os.open(root, os.O_RDONLY)
    for name in names:
        os.mkdir(name, dir_fd=descriptor)
        below = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(os.open("file", os.O_CREAT, dir_fd=descriptor))
    os.close(descriptor)
    assert read(files, "/".join([*names, "file"])) == ""


def test_undecodable_names_are_reached(either, root):
    (root / os.fsdecode(b"caf\xe9")).write_text("yes")
    assert read(either, os.fsdecode(b"caf\xe9")) == "yes"
    assert read(either, f"file://{root}/caf%E9") == "yes"


def test_a_recreated_root_is_read(files, root):
    root.rmdir()
    assert code(files, "file") == "not_found"
    root.mkdir()
    (root / "file").write_text("yes")
    assert read(files, "file") == "yes"


def test_the_trail_contains_links_and_their_targets(files, root):
    (root / "a").mkdir()
    (root / "link").symlink_to("a")
    trail = files.trail(Place(0, ("link", "none", "x"), ""))
    assert trail == (f"{root}/link", f"{root}/a", f"{root}/a/none")


@pytest.mark.slow
def test_a_directory_swapped_for_a_link_opens_nothing_outside(files, root, outside):
    (root / "dir").mkdir()
    (root / "dir" / "secret").write_text("mine")
    (root / "link").symlink_to(outside)
    seen = set()
    with swapping(root):
        # Until both states were seen, however busy the machine.
        for i in count():
            seen.add(outcome(files, "dir/secret"))
            if i > 20_000 and {"mine", "outside_roots"} <= seen:
                break
    assert SECRET not in seen


@pytest.mark.slow
def test_failing_calls_leave_no_descriptors(files, root, outside, no_leak):
    os.mkfifo(root / "pipe")
    (root / "out").symlink_to(outside)
    (root / "loop").symlink_to("loop")
    (root / "a" / "b").mkdir(parents=True)
    (root / "up").symlink_to("a/b/../../../x")
    for name in ["pipe", "out/secret", "loop", "a/b", "up", "a/b/none", "a/none/b", "a/b/" + "x" * 300] * 25:
        code(files, name)
