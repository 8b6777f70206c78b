"""Moving and copying."""

import os

import pytest

from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.filesystem.edit import delete as deleting
from servers.filesystem.edit import move as moving
from servers.filesystem.edit.move import copy, move
from servers.filesystem.errors import FilesError
from tests.servers.filesystem.editing_files import code


def moving_by(act, files):
    """Returns a form of the operation that takes paths instead of places."""
    return lambda source, target: act(files, files.roots.place(source), files.roots.place(target))


@pytest.fixture
def rename(files):
    return moving_by(move, files)


@pytest.fixture
def duplicate(files):
    return moving_by(copy, files)


def names(folder):
    return sorted(os.listdir(folder))


MAKING = [lambda path: path.write_text("x"), lambda path: path.mkdir(), lambda path: path.symlink_to("none")]


def test_files_directories_and_links_themselves_are_moved(root, either):
    (root / "file").write_text("x")
    for number, make in enumerate(MAKING):
        make(root / "one")
        moving_by(move, either)("one", "two")
        assert names(root) == ["file", "two"]
        (root / "two").rename(root.parent / str(number))
    (root / "link").symlink_to("file")
    moving_by(move, either)("link", "other")
    assert (names(root), os.readlink(root / "other")) == (["file", "other"], "file")


@pytest.mark.parametrize("act", [move, copy])
def test_moving_and_copying_replace_no_existing_entry(root, files, act):
    (root / "one").touch()
    for number, make in enumerate(MAKING):
        make(root / f"there {number}")
        assert code(moving_by(act, files), "one", f"there {number}") == "already_exists"
    assert names(root) == ["one", "there 0", "there 1", "there 2"]
    assert (root / "there 0").read_text() == "x"


@pytest.mark.parametrize("act", [move, copy])
def test_moving_and_copying_do_not_cross_the_roots(root, outside, files, act):
    (root / "file").touch()
    (root / "out").symlink_to(outside)
    for source, target in (("file", "out/file"), ("out/secret", "mine")):
        assert code(moving_by(act, files), source, target) == "outside_roots"
    assert (names(outside), names(root)) == (["secret"], ["file", "out"])


def test_moves_of_missing_entries_roots_and_into_themselves_are_refused(root, rename):
    (root / "dir").mkdir()
    assert code(rename, "none", "two") == "not_found"
    assert code(rename, "dir", "dir/below") == "bad_path"
    assert code(rename, ".", "two") == code(rename, "dir", ".") == "bad_path"


def test_a_move_that_can_not_remove_the_old_name_leaves_no_new_one(files, root, at, monkeypatch):
    (root / "one").touch()
    (root / "sub").mkdir()
    plain = os.unlink

    def unlink(name, **where):
        if name == "one":
            raise PermissionError(1, "")
        plain(name, **where)

    monkeypatch.setattr(os, "unlink", unlink)
    assert code(move, files, at("one"), at("sub/two")) == "permission_denied"
    assert (names(root), names(root / "sub")) == (["one", "sub"], [])


def test_a_root_is_not_moved_by_another_name(tmp_path):
    (tmp_path / "root" / "inner").mkdir(parents=True)
    (tmp_path / "root" / "link").symlink_to(".")
    files = RootedFiles(Roots([tmp_path / "root", tmp_path / "root" / "inner"], writable=True))
    place = files.roots.place
    assert code(move, files, place(f"{tmp_path}/root/link/inner"), place(f"{tmp_path}/root/other")) == "bad_path"
    files.close()


def test_a_directory_that_contains_a_root_is_not_moved(root, tmp_path):
    (root / "inner").mkdir()
    outer = RootedFiles(Roots([tmp_path, root / "inner"], [True, False]))
    with pytest.raises(FilesError, match="contains an allowed directory"):
        move(outer, outer.roots.place(str(root)), outer.roots.place(f"{tmp_path}/new"))
    assert root.is_dir()
    outer.close()


def test_a_copy_of_a_file_has_its_contents_and_permissions(root, duplicate):
    (root / "one").write_bytes(b"x" * 3_000_000)
    (root / "one").chmod(0o4540)
    assert duplicate("one", "two") == (1, 3_000_000, [])
    assert (root / "two").read_bytes() == (root / "one").read_bytes()
    # The set-user-ID bit is not copied.
    assert (root / "two").stat().st_mode & 0o7777 == 0o540
    assert (names(root), (root / "two").stat().st_nlink) == (["one", "two"], 1)


def test_a_copy_keeps_the_holes_of_a_file(root, duplicate):
    with (root / "disk").open("wb") as disk:
        disk.seek(50_000_000)
        disk.write(b"x")
        disk.truncate(80_000_000)
    duplicate("disk", "copy")
    assert (root / "copy").read_bytes() == (root / "disk").read_bytes()
    assert (root / "copy").stat().st_blocks * 512 < 8_000_000


def test_a_copied_directory_keeps_its_permissions(root, duplicate):
    (root / "dir").mkdir()
    (root / "dir").chmod(0o2550)
    duplicate("dir", "copy")
    # New entries in it inherit its group (set-group-ID bit).
    assert (root / "copy").stat().st_mode & 0o7777 == 0o2550


def test_a_directory_is_copied_with_its_contents_and_links_as_links(root, either):
    (root / "a/b/c").mkdir(parents=True)
    (root / "a/b/file").write_text("12345")
    (root / "a/link").symlink_to("b/file")
    (root / "a/none").symlink_to("/no/such/place")
    assert moving_by(copy, either)("a", "z") == (6, 5, [])
    assert names(root) == ["a", "z"]
    assert names(root / "z") == ["b", "link", "none"]
    assert (root / "z/b/file").read_text() == "12345"
    assert (os.readlink(root / "z/link"), os.readlink(root / "z/none")) == ("b/file", "/no/such/place")


def test_a_directory_with_a_denied_entry_is_not_copied(root, duplicate):
    (root / "dir/below").mkdir(parents=True)
    (root / "dir/below/.env").write_text("secret")
    assert code(duplicate, "dir", "copy") == "denied"
    assert names(root) == ["dir"]


def test_copies_of_missing_entries_onto_roots_and_into_themselves_are_refused(root, duplicate):
    (root / "dir/below").mkdir(parents=True)
    assert code(duplicate, "none", "two") == "not_found"
    assert code(duplicate, "dir", ".") == "already_exists"
    for source in ("dir", "."):
        assert code(duplicate, source, "dir/below/copy") == "bad_path"
    assert (names(root), names(root / "dir/below")) == (["dir"], [])


def test_a_directory_with_a_pipe_leaves_no_partial_copy(root, duplicate):
    (root / "dir").mkdir()
    (root / "dir/a").write_text("x")
    os.mkfifo(root / "dir/pipe\n")
    with pytest.raises(FilesError, match=r"pipe\\n is neither") as caught:
        duplicate("dir", "copy")
    assert (caught.value.code, names(root)) == ("special_file", ["dir"])


def test_a_copy_over_the_limits_is_removed(root, duplicate, monkeypatch):
    monkeypatch.setattr(moving, "MAX_COPIED", 10)
    monkeypatch.setattr(deleting, "MAX_ENTRIES", 3)
    monkeypatch.setattr(deleting, "MAX_DEPTH", 2)
    for name in ("bytes", "many", "deep/a/b"):
        (root / name).mkdir(parents=True)
    for i in range(3):
        (root / "many" / str(i)).touch()
        (root / "bytes" / str(i)).write_text("12345")
    for name in ("many", "bytes", "deep"):
        assert code(duplicate, name, "copy") == "too_large"
    assert names(root) == ["bytes", "deep", "many"]


@pytest.mark.parametrize(("name", "steps"), [("dir", 2), ("large", 1)])
def test_a_cancelled_copy_is_removed(files, root, at, no_leak, name, steps):
    (root / "dir/a").mkdir(parents=True)
    (root / "dir/b").write_text("x")
    (root / "large").write_bytes(b"x" * 3_000_000)
    left = iter([True] * steps)

    def checkpoint():
        if not next(left, False):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy(files, at(name), at("copy"), checkpoint)
    assert names(root) == ["dir", "large"]


def test_a_copy_does_not_replace_an_entry_created_meanwhile(files, root, at):
    (root / "file").write_text("mine")

    def checkpoint():
        (root / "copy").write_text("theirs")

    assert code(copy, files, at("file"), at("copy"), checkpoint) == "already_exists"
    assert ((root / "copy").read_text(), names(root)) == ("theirs", ["copy", "file"])


def test_a_directory_swapped_for_a_link_during_the_copy_is_not_followed(files, root, outside, at, monkeypatch):
    (root / "dir/a").mkdir(parents=True)
    plain = moving.enter_directory

    def swapped(entry):
        if entry.name == "a":
            (root / "dir/a").rename(root / "kept")
            (root / "dir/a").symlink_to(outside)
        return plain(entry)

    # Another program could not be timed this exactly.
    monkeypatch.setattr(moving, "enter_directory", swapped)
    assert code(copy, files, at("dir"), at("copy")) == "not_a_directory"
    assert names(root) == ["dir", "kept"]
