"""Properties of all operations that change files: agreement with a model, syncs before the answer, permissions."""

import os
import stat
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.filesystem.edit.delete import delete
from servers.filesystem.edit.move import copy, move
from servers.filesystem.edit.write import create_directory, write_file
from servers.filesystem.errors import FilesError
from tests import disk
from tests.servers.common.files.conftest import opened_by
from tests.servers.filesystem.editing_files import code, edit_file

PATHS = st.sampled_from(["a", "b", "d", "d/a", "d/e", "d/e/a", "a/x"])
TEXTS = st.sampled_from(["", "one", "two", "one two", "one one"])
ACTS = st.one_of(
    st.tuples(st.just("write"), PATHS, TEXTS, st.sampled_from(["overwrite", "create", "append"])),
    st.tuples(st.just("edit"), PATHS, st.sampled_from(["one", "two"]), TEXTS),
    st.tuples(st.just("make"), PATHS),
    st.tuples(st.just("move"), PATHS, PATHS),
    st.tuples(st.just("copy"), PATHS, PATHS),
    st.tuples(st.just("delete"), PATHS, st.booleans()),
)


class Refused(Exception):
    """The model refuses an operation."""


def require(condition):
    if not condition:
        raise Refused


class Model:
    """A tree of files as a dict, with the same operations."""

    def __init__(self):
        self.tree = {}

    def above(self, path):
        return path.rpartition("/")[0]

    def has_room(self, path):
        above = self.above(path)
        return path not in self.tree and (not above or self.tree.get(above, "") is None)

    def below(self, path):
        return [one for one in self.tree if one == path or one.startswith(path + "/")]

    def write(self, path, text, mode):
        require(self.has_room(path) or (mode != "create" and self.tree.get(path) is not None))
        self.tree[path] = (self.tree.get(path, "") if mode == "append" else "") + text

    def edit(self, path, old, new):
        text = self.tree.get(path)
        require(text is not None and text.count(old) == 1)
        self.tree[path] = text.replace(old, new)

    def make(self, path):
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            require(self.tree.setdefault("/".join(parts[:depth]), None) is None)

    def copy(self, old, new):
        require(old in self.tree and self.has_room(new) and not new.startswith(old + "/"))
        self.tree |= {new + one.removeprefix(old): self.tree[one] for one in self.below(old)}

    def move(self, old, new):
        self.copy(old, new)
        self.delete(old, True)

    def delete(self, path, recursive):
        below = self.below(path)
        require(path in self.tree and (recursive or len(below) == 1))
        for one in below:
            del self.tree[one]


class Real:
    """The same operations on real files."""

    def __init__(self, folder, way):
        self.folder = Path(folder)
        self.files = opened_by(way, Roots([self.folder], writable=True))
        acts = {"write": write_file, "make": create_directory, "copy": copy, "move": move, "delete": delete}
        for name, act in acts.items():
            setattr(self, name, partial(self.do, act, 2 if name in ("copy", "move") else 1))

    @property
    def tree(self):
        found = sorted(self.folder.rglob("*"))
        return {str(path.relative_to(self.folder)): None if path.is_dir() else path.read_text() for path in found}

    def do(self, act, count, *arguments):
        places = [self.files.roots.place(path) for path in arguments[:count]]
        act(self.files, *places, *arguments[count:])

    def edit(self, path, old, new):
        edit_file(self.files, self.files.roots.place(path), [(old, new)])


def is_accepted(on, refusal, act, *arguments):
    try:
        getattr(on, act)(*arguments)
    except refusal:
        return False
    return True


def check_by_model(acts, folder, way):
    model, real = Model(), Real(tempfile.mkdtemp(dir=folder), way)
    for act in acts:
        before = dict(model.tree)
        done = is_accepted(model, Refused, *act)
        if not done and act[0] != "make":  # created parents stay
            model.tree = before
        assert (is_accepted(real, FilesError, *act), real.tree) == (done, dict(sorted(model.tree.items()))), act
    real.files.close()


def test_each_operation_agrees_with_a_model(way, tmp_path):
    acts = [
        *[("make", "d/e"), ("write", "a", "one", "create"), ("write", "a", "two", "create"), ("make", "a/x")],
        *[("write", "a", " two", "append"), ("edit", "a", "two", "one"), ("edit", "a", "one", "two")],
        *[("copy", "a", "d/a"), ("copy", "d", "b"), ("copy", "d", "d/e/d"), ("move", "b", "d/e/b")],
        *[("move", "a", "d"), ("move", "a", "d/e/a"), ("write", "d", "", "overwrite"), ("delete", "d/a", False)],
        *[("delete", "d", False), ("delete", "d/e", True), ("delete", "d", False), ("delete", "d", True)],
    ]
    check_by_model(acts, tmp_path, way)


@pytest.mark.slow
@settings(max_examples=100)
@given(acts=st.lists(ACTS, max_size=25))
def test_random_sequences_of_operations_agree_with_a_model(way, tmp_path, acts):
    check_by_model(acts, tmp_path, way)


# Syncs before the answer: the bytes of a file, then the directory with its name


@pytest.fixture
def synced(root, monkeypatch):
    """The list of syncs, beside an existing file `old`: sizes of files and names in directories."""
    (root / "old").write_text("old")
    return disk.synced(monkeypatch)


def test_each_operation_syncs_its_file_and_directory(files, at, root, synced):
    for act, expected in (
        (lambda: write_file(files, at("new"), "text"), [4, ["new", "old"]]),
        (lambda: write_file(files, at("old"), "text"), [4, ["new", "old"]]),
        (lambda: write_file(files, at("old"), "er", "append"), [6]),
        (lambda: create_directory(files, at("a/b")), [["a", "new", "old"], ["b"]]),
        (lambda: create_directory(files, at("a/b/c")), [["c"]]),
        (lambda: copy(files, at("old"), at("copy")), [6, ["a", "copy", "new", "old"]]),
        (lambda: move(files, at("old"), at("a/old")), [["b", "old"], ["a", "copy", "new"]]),
        (lambda: delete(files, at("new")), [["a", "copy"]]),
    ):
        act()
        assert synced == expected
        synced.clear()


@pytest.mark.parametrize(("theirs", "sizes"), [("", [5]), ("!", [5, 6])])
def test_an_edit_syncs_the_file_with_simultaneous_additions(files, at, root, synced, theirs, sizes):
    def add():
        with (root / "old").open("a") as file:
            file.write(theirs)

    edit_file(files, at("old"), [("old", "newer")], check=add)
    *file_sizes, names = synced
    assert (file_sizes, "old" in names, (root / "old").read_text()) == (sizes, True, f"newer{theirs}")


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_replacement_is_private_until_it_has_the_permissions_of_the_old_file(
    files, at, root, synced, monkeypatch, mode
):
    (root / "old").chmod(mode)
    made = disk.made(monkeypatch)
    write_file(files, at("old"), "text")
    assert (made, stat.S_IMODE((root / "old").stat().st_mode)) == ([0o600], mode)


# Names, permissions and descriptors


def test_a_trailing_slash_is_refused_for_files(root, files, write, edit):
    (root / "old").write_text("old")
    (root / "sub").mkdir()
    place = files.roots.place
    for end in ("/", "//", "/."):
        for name in (f"new{end}", f"old{end}", f"sub/new{end}", f"{root}/new{end}", f"{root.as_uri()}/new{end}"):
            assert code(write, name, "new") == code(write, name, "new", "append") == "bad_path"
            for act in (move, copy):
                assert code(act, files, place("old"), place(name.replace("old", "new"))) == "bad_path"
        assert code(edit, f"old{end}", ("old", "new")) == "bad_path"
        for act in (move, copy):
            assert code(act, files, place(f"old{end}"), place("new")) == "bad_path"
        assert code(delete, files, place(f"old{end}")) == "bad_path"
    assert sorted(path.name for path in root.rglob("*")) == ["old", "sub"]
    assert (root / "old").read_text() == "old"


def test_a_trailing_slash_is_accepted_for_directories(root, files):
    place = files.roots.place
    assert create_directory(files, place("a/"))
    move(files, place("a/"), place("b/"))
    copy(files, place("b/"), place("c/"))
    delete(files, place("b/"))
    assert [path.name for path in root.iterdir()] == ["c"]


def test_read_only_roots_refuse_all_operations(root):
    (root / "file").write_text("a")
    files = RootedFiles(Roots([root]))
    place, other = files.roots.place("file"), files.roots.place("other")
    for call in (
        lambda: write_file(files, other, ""),
        lambda: edit_file(files, place, [("a", "b")]),
        lambda: create_directory(files, other),
        lambda: move(files, place, other),
        lambda: copy(files, place, other),
        lambda: delete(files, place),
    ):
        assert code(call) == "read_only"
    assert os.listdir(root) == ["file"]
    files.close()


def both(root, tmp_path):
    """Files of a writable root that contains a read-only root and a link to another one."""
    for path in (root / "inner", tmp_path / "other"):
        path.mkdir()
        (path / "file").write_text("a")
    (root / "near").symlink_to("inner")
    (root / "far").symlink_to(tmp_path / "other")
    (root / "mine").touch()
    return RootedFiles(Roots([root, root / "inner", tmp_path / "other"], [True, False, False]))


@pytest.mark.parametrize("by", ["inner", "near", "far"])
def test_a_read_only_root_is_not_changed_by_any_path(root, tmp_path, by):
    files = both(root, tmp_path)

    def at(path):
        return files.roots.place(f"{root}/{path}")

    (root / "link").symlink_to(f"{by}/file")
    for call in (
        lambda: write_file(files, at(f"{by}/file"), ""),
        lambda: write_file(files, at(f"{by}/new"), ""),
        lambda: write_file(files, at("link"), ""),
        lambda: edit_file(files, at(f"{by}/file"), [("a", "b")]),
        lambda: create_directory(files, at(f"{by}/new")),
        lambda: move(files, at(f"{by}/file"), at("new")),
        lambda: move(files, at("mine"), at(f"{by}/new")),
        lambda: copy(files, at("mine"), at(f"{by}/new")),
        lambda: delete(files, at(f"{by}/file")),
    ):
        assert code(call) == "read_only"
    assert (root / by / "file").read_text() == "a"
    assert os.listdir(root / by) == ["file"]
    files.close()


def test_failed_operations_leave_no_descriptor_open(files, root, at, no_leak):
    (root / "dir").mkdir()
    for _ in range(30):
        code(write_file, files, at("dir"), "")
        code(edit_file, files, at("none"), [("a", "b")])
        code(move, files, at("none"), at("dir"))
        code(copy, files, at("dir"), at("dir/copy"))
        code(delete, files, at("none"))
        code(create_directory, files, at("dir/" + "x" * 300))
