import os
from itertools import count

import pytest

from shared.kit.errors import PathError
from shared.kit.rooted.entries import Place
from shared.kit.rooted.files import RootedFiles
from shared.kit.rooted.posix import MAX_LINKS
from shared.kit.rooted.roots import Roots
from tests.shared.kit.rooted.conftest import SECRET, swapping


def read(files, written):
    with files.open_file(files.roots.place(written)) as handle:
        return os.read(handle.descriptor, 100).decode()


def code(files, written):
    with pytest.raises(PathError) as caught:
        read(files, written)
    return caught.value.code


def test_a_link_to_a_file(either, root):
    (root / "file").write_text("yes")
    (root / "link").symlink_to("file")
    assert read(either, "link") == "yes"


def test_a_link_to_a_directory(either, root):
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").write_text("yes")
    (root / "link").symlink_to("a/./b/")
    assert read(either, "link/file") == "yes"


def test_links_to_links(either, root):
    (root / "file").write_text("yes")
    (root / "one").symlink_to("two")
    (root / "two").symlink_to(root / "file")
    assert read(either, "one") == "yes"


def test_dots_in_a_target_are_physical(either, root):
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "file").write_text("yes")
    (root / "dir").symlink_to("a/b")
    (root / "link").symlink_to("dir/../file")
    assert read(either, "link") == "yes"


def test_a_target_that_ends_in_dots(either, root):
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "file").write_text("yes")
    (root / "link").symlink_to("a/b/..")
    assert read(either, "link/file") == "yes"


def test_a_target_above_the_root_and_back(either, root):
    (root / "file").write_text("yes")
    (root / "link").symlink_to("../root/file")
    assert read(either, "link") == "yes"


def test_a_link_into_another_root(tmp_path, root):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("yes")
    (root / "absolute").symlink_to(tmp_path / "other" / "file")
    (root / "relative").symlink_to("../other/file")
    files = RootedFiles(Roots([root, tmp_path / "other"]))
    assert read(files, "root/absolute") == read(files, "root/relative") == "yes"
    files.close()


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../root_evil/secret", "../../../../../etc/passwd", "..", "/", "../root_evil/none"]
)
def test_links_out_are_outside(either, root, outside, target):
    (root / "link").symlink_to(target)
    assert code(either, "link") == "outside_roots"
    assert code(either, "link/secret") == "outside_roots"


def test_a_link_chain_out_is_outside(either, root, outside):
    (root / "dir").symlink_to(outside)
    (root / "one").symlink_to("dir/secret")
    assert code(either, "one") == "outside_roots"


def test_a_link_out_through_a_directory_inside(either, root, outside):
    (root / "a").mkdir()
    (root / "a" / "up").symlink_to("..")
    (root / "link").symlink_to("a/up/../root_evil/secret")
    assert code(either, "link") == "outside_roots"


def test_a_circle_of_links_ends(files, root):
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    assert code(files, "one") == "bad_path"


def test_as_many_links_as_linux_follows(files, root):
    (root / "0").write_text("yes")
    for i in range(MAX_LINKS + 1):
        (root / str(i + 1)).symlink_to(str(i))
    assert read(files, str(MAX_LINKS)) == "yes"
    assert code(files, str(MAX_LINKS + 1)) == "bad_path"


def test_a_dangling_link(either, root):
    (root / "link").symlink_to("none")
    assert code(either, "link") == "not_found"


def test_a_file_as_a_directory(either, root):
    (root / "file").write_text("no")
    assert code(either, "file/x") == "not_a_directory"


def test_deeper_than_path_max(files, root):
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


def test_a_name_that_is_too_long(either):
    assert code(either, "x" * 300) == "bad_path"


def test_undecodable_names_are_reached(either, root):
    (root / os.fsdecode(b"caf\xe9")).write_text("yes")
    assert read(either, os.fsdecode(b"caf\xe9")) == "yes"
    assert read(either, f"file://{root}/caf%E9") == "yes"


def test_a_root_made_again(files, root):
    root.rmdir()
    assert code(files, "file") == "not_found"
    root.mkdir()
    (root / "file").write_text("yes")
    assert read(files, "file") == "yes"


def test_the_trail_names_links_and_targets(files, root):
    (root / "a").mkdir()
    (root / "link").symlink_to("a")
    trail = files.trail(Place(0, ("link", "none", "x"), ""))
    assert trail == (f"{root}/link", f"{root}/a", f"{root}/a/none")


@pytest.mark.slow
def test_swapping_a_directory_for_a_link_shows_nothing_outside(files, root, outside):
    (root / "dir").mkdir()
    (root / "dir" / "secret").write_text("mine")
    (root / "link").symlink_to(outside)
    seen = set()
    with swapping(root):
        # As long as it takes to meet both states, on a busy machine too.
        for i in count():
            seen.add(outcome(files))
            if i > 20_000 and {"mine", "outside_roots"} <= seen:
                break
    assert SECRET not in seen


def outcome(files):
    try:
        return read(files, "dir/secret")
    except PathError as error:
        return error.code


@pytest.mark.slow
def test_failing_calls_leave_no_descriptors(files, root, outside, no_leak):
    os.mkfifo(root / "pipe")
    (root / "out").symlink_to(outside)
    (root / "loop").symlink_to("loop")
    (root / "a" / "b").mkdir(parents=True)
    (root / "up").symlink_to("a/b/../../../x")
    for name in ["pipe", "out/secret", "loop", "a/b", "up", "a/b/none", "a/none/b", "a/b/" + "x" * 300] * 25:
        code(files, name)
