"""The parts of the operator's roots inside the client's roots, which no path leaves."""

import time
from pathlib import Path

import pytest

from servers.common.files.denylist import Denylist
from servers.common.files.mounts import Mounts
from servers.common.files.names import uri
from servers.common.files.narrowing import MAX_ROOTS, narrow
from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.common.files.small_reads import NarrowedSmallFiles, SmallFiles
from shared.coded_errors import PathError
from tests.servers.common.files.conftest import SECRET, code, opened_by, outcome, read, swapping


@pytest.fixture
def part(root: Path) -> Path:
    """A directory in the root with a file, beside another directory with a secret."""
    path = root / "part"
    (path / "sub").mkdir(parents=True)
    (path / "sub" / "file").write_text("mine")
    (root / "beside").mkdir()
    (root / "beside" / "secret").write_text(SECRET)
    return path


def within(rooted: RootedFiles, *paths: Path) -> RootedFiles:
    return narrow(rooted, [uri(str(path)) for path in paths])


def paths(rooted: RootedFiles) -> list[Path]:
    return list(rooted.roots.paths)


# The parts


def test_a_client_root_inside_a_root_gives_that_part(either, root, part):
    parts = within(either, part)
    assert paths(parts) == [part]
    assert read(parts, part / "sub" / "file") == read(parts, "sub/file") == "mine"
    assert code(parts, root / "beside" / "secret") == "outside_roots"
    assert code(parts, root) == "outside_roots"


def test_a_client_root_above_a_root_gives_the_root(either, root):
    for above in (root, root.parent, root.parent.parent, Path("/")):
        assert paths(within(either, above)) == [root]


def test_a_client_root_elsewhere_gives_nothing(either, outside, part):
    parts = within(either, outside)
    assert paths(parts) == []
    for path in ("part/sub/file", ".", "..", str(part), str(outside)):
        with pytest.raises(PathError) as caught:
            parts.roots.place(path)
        assert caught.value.code == "outside_roots"
        assert "None of the client's roots" in caught.value.suggestion


BAD = [
    *("", "file:", "file:part", "https://example.org/", "file://elsewhere{root}/part", "{root}/part", "part", "~"),
    *("file://{root}/part?x", "file://{root}/pa%zzrt", "file://{root}%2Fpart", "file://{root}/part%00"),
    "file://" + "/x" * 20_000,
]
GOOD = ["file://{root}/part", "file://localhost{root}/part/", "FILE://{root}/%70art/x/.."]


def test_invalid_uris_of_client_roots_give_nothing(files, root, part):
    assert paths(narrow(files, [])) == []
    assert [bad for bad in BAD if paths(narrow(files, [bad.format(root=root)]))] == []
    assert [good for good in GOOD if paths(narrow(files, [good.format(root=root)])) != [part]] == []


def test_files_outside_links_and_denied_directories_give_nothing(either, root, part, outside):
    (root / ".ssh" / "x").mkdir(parents=True)
    (root / "link").symlink_to(outside)
    nothing = ["link", "part/sub/file", ".ssh", ".ssh/x", ".aws/x", "none/.ssh", "none/.ssh/x"]
    assert paths(within(either, *(root / path for path in nothing))) == []


def test_a_client_root_may_be_created_later(either, root):
    parts = within(either, root / "new" / "er")
    assert code(parts, "file") == "not_found"
    (root / "new" / "er").mkdir(parents=True)
    (root / "new" / "er" / "file").write_text("here")
    assert read(parts, "file") == "here"


def test_several_client_roots_each_give_a_part(either, root, part):
    (root / "third").mkdir()
    (part / "link").symlink_to("../third")
    (root / "third" / "file").write_text("third")
    parts = within(either, part, root / "third", root / "third")
    assert paths(parts) == [part, root / "third"]
    assert (read(parts, "part/sub/file"), read(parts, part / "link" / "file")) == ("mine", "third")
    assert code(parts, root / "beside" / "secret") == "outside_roots"
    assert len(paths(within(either, *(root / str(i) for i in range(MAX_ROOTS)), part))) == MAX_ROOTS


def test_parts_keep_the_permission_of_their_root(tmp_path, way):
    for name in ("a/x", "b/y", "c"):
        (tmp_path / name).mkdir(parents=True)
    rooted = opened_by(way, Roots([tmp_path / "a", tmp_path / "b"], [False, True]))
    parts = within(rooted, tmp_path / "a" / "x", tmp_path / "b" / "y", tmp_path / "c")
    assert dict(zip(paths(parts), parts.roots.may_change, strict=True)) == {
        tmp_path / "a" / "x": False,
        tmp_path / "b" / "y": True,
    }
    assert paths(within(rooted, tmp_path)) == [tmp_path / "a", tmp_path / "b"]
    rooted.close()


def test_a_root_inside_a_part_keeps_its_permission(root, part, way):
    rooted = opened_by(way, Roots([root, part / "sub"], [True, False]))
    parts = within(rooted, part)
    assert dict(zip(paths(parts), parts.roots.may_change, strict=True)) == {part: True, part / "sub": False}
    parts.roots.require_writable(parts.roots.place(str(part / "new")))
    with pytest.raises(PathError, match="read-only"):
        parts.roots.require_writable(parts.roots.place(str(part / "sub" / "file")))
    inner = within(rooted, part / "sub")
    assert inner.roots.may_change == (False,)
    rooted.close()


def test_a_root_inside_a_part_of_a_linked_root_keeps_its_permission(tmp_path, root, part, way):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "link").symlink_to("../root")
    rooted = opened_by(way, Roots([tmp_path / "home" / "link", part / "sub"], [True, False]))
    parts = within(rooted, tmp_path / "home")
    assert dict(zip(paths(parts), parts.roots.may_change, strict=True)) == {root: True, part / "sub": False}
    rooted.close()


def test_a_root_inside_a_linked_part_keeps_its_permission(root, part, way):
    (root / "link").symlink_to("part")
    rooted = opened_by(way, Roots([root, part / "sub"], [True, False]))
    parts = within(rooted, root / "link")
    for path in (part / "sub" / "file", root / "link" / "sub" / "file"):
        with parts.locate(parts.roots.place(str(path))) as entry, pytest.raises(PathError, match="read-only"):
            parts.roots.require_writable(entry.place)
    rooted.close()


def test_a_part_itself_can_not_be_moved(either, part):
    parts = within(either, part)
    with pytest.raises(PathError, match="is an allowed directory itself"):
        parts.roots.require_movable(parts.roots.place(str(part)))


# Spellings through links


def test_a_part_of_a_linked_root_has_both_spellings(tmp_path, root, part, way):
    (tmp_path / "link").symlink_to("root")
    rooted = opened_by(way, Roots([tmp_path / "link"]))
    for given in (tmp_path / "link" / "part", part):
        parts = within(rooted, given)
        assert paths(parts) == [part]
        assert read(parts, part / "sub" / "file") == read(parts, tmp_path / "link/part/sub/file") == "mine"
    rooted.close()


def test_a_linked_part_has_both_spellings(either, root, part):
    (root / "link").symlink_to("part/sub")
    parts = within(either, root / "link")
    assert paths(parts) == [part / "sub"]
    assert read(parts, root / "link" / "file") == read(parts, part / "sub" / "file") == "mine"
    assert code(parts, root / "beside" / "secret") == "outside_roots"


# Paths that lead outside


LINKS = [
    *("../beside/secret", "{root}/beside/secret", "sub/../../beside/secret"),
    *("../beside", "..", "{root}", "../none"),
]


def test_links_out_of_the_part_are_refused(either, root, part):
    parts = within(either, part)
    for number, target in enumerate(LINKS):
        (part / f"link{number}").symlink_to(target.format(root=root))
        for path in (f"link{number}", f"link{number}/secret"):
            with pytest.raises(PathError) as caught:
                parts.stat(parts.roots.place(path))
            assert caught.value.code == "outside_roots", target


def test_links_inside_the_part_are_followed(either, root, part):
    for name, target in {"a": "sub", "b": "../part/sub", "c": f"{root}/part/sub", "d": "sub/../sub/."}.items():
        (part / name).symlink_to(target)
        assert read(within(either, part), f"{name}/file") == "mine"


def test_deny_patterns_are_relative_to_the_operators_root(root, part, way):
    rooted = opened_by(way, Roots([root], denylist=Denylist(["part/sub"])))
    assert code(within(rooted, part), "sub/file") == "denied"
    assert paths(within(rooted, part / "sub")) == []
    rooted.close()
    rooted = opened_by(way, Roots([root], denylist=Denylist(["sub/file"])))
    assert read(within(rooted, part), "sub/file") == "mine"
    rooted.close()


def test_a_part_replaced_by_a_link_is_refused(files, root, part, outside):
    parts = within(files, part / "sub")
    for target in (outside, root / "beside"):
        (part / "sub").rename(root / f"was {target.name}")
        (part / "sub").symlink_to(target)
        assert code(parts, "secret") == "not_a_directory"
        (part / "sub").unlink()
        (part / "sub").mkdir()
    (part / "sub").rename(outside / "sub")
    assert code(parts, "secret") == "not_found"


@pytest.mark.slow
def test_a_part_swapped_for_a_link_opens_nothing_outside(files, root, outside, no_leak):
    (root / "dir" / "sub").mkdir(parents=True)
    (root / "dir" / "sub" / "secret").write_text("mine")
    (outside / "sub").mkdir()
    (outside / "sub" / "secret").write_text(SECRET)
    (root / "link").symlink_to(outside)
    part = within(files, root / "dir" / "sub")
    seen: set[str] = set()
    end = time.monotonic() + 20
    with swapping(root):
        while time.monotonic() < end or not {"mine", "not_found"} <= seen:
            for parts in (part, within(files, root / "dir" / "sub"), within(files, root / "dir")):
                assert set(paths(parts)) <= {root / "dir" / "sub", root / "dir"}
                seen.add(outcome(parts, root / "dir" / "sub" / "secret"))
    assert SECRET not in seen


# Descriptors, small reads, trails and marks


def test_closed_parts_leave_no_descriptor_open(files, part, no_leak):
    for _ in range(10):
        parts = within(files, part / "sub")
        read(parts, "file")
        code(parts, "none")
        parts.close()


def test_small_reads_work_inside_the_part_only(files, root, part):
    mounts = Mounts(files.roots.paths)
    parts = within(files, part)
    small = NarrowedSmallFiles(SmallFiles(files, mounts), parts.roots)
    (part / "link").symlink_to("../beside")
    contents = small.read(parts.roots.place("sub/file"))
    assert (contents is None) != mounts.is_known
    assert contents is None or contents.data == b"mine"
    assert small.read(parts.roots.place("link/secret")) is None
    assert small.read(parts.roots.place(".")) is None
    mounts.close()


def test_the_trail_contains_the_parents_of_a_part(files, root, part):
    (part / "sub" / "link").symlink_to("file")
    parts = within(files, part / "sub")
    way = (str(part), str(part / "sub"))
    assert parts.trail(parts.roots.place("link")) == (*way, str(part / "sub/link"), str(part / "sub/file"))
    (part / "sub").rename(root / "was")
    assert parts.trail(parts.roots.place("link")) == way


def test_equal_parts_have_the_same_mark(files, root, part):
    marks = [within(files, *given).roots.mark for given in ([part], [part], [root / "beside"], [], [root])]
    assert marks[0] == marks[1]
    assert len({*marks, files.roots.mark}) == 5
