"""Any sequence of changes, beside a model: a dict from each path to its text, or to None for a directory."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servers.filesystem.edit.delete import delete
from servers.filesystem.edit.move import copy, move
from servers.filesystem.edit.write import create_directory, write_file
from servers.filesystem.errors import FilesError
from shared.kit.rooted.files import RootedFiles
from shared.kit.rooted.roots import Roots
from tests.servers.filesystem.editing_files import edit_file

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
    """The model refuses an act."""


def require(condition):
    if not condition:
        raise Refused


class Model:
    """What there is, and what the acts make of it."""

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
    """The same acts on a disk."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.files = RootedFiles(Roots([self.folder], writable=True))
        self.at = self.files.roots.place

    @property
    def tree(self):
        found = sorted(self.folder.rglob("*"))
        return {str(path.relative_to(self.folder)): None if path.is_dir() else path.read_text() for path in found}

    def write(self, path, text, mode):
        write_file(self.files, self.at(path), text, mode)

    def edit(self, path, old, new):
        edit_file(self.files, self.at(path), [(old, new)])

    def make(self, path):
        create_directory(self.files, self.at(path))

    def copy(self, old, new):
        copy(self.files, self.at(old), self.at(new))

    def move(self, old, new):
        move(self.files, self.at(old), self.at(new))

    def delete(self, path, recursive):
        delete(self.files, self.at(path), recursive)


def acted(on, refusal, act, *arguments):
    try:
        getattr(on, act)(*arguments)
    except refusal:
        return False
    return True


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(ACTS, max_size=25))
def test_changes_are_those_of_a_model(acts):
    with tempfile.TemporaryDirectory() as folder:
        model, real = Model(), Real(folder)
        for act in acts:
            before = dict(model.tree)
            done = acted(model, Refused, *act)
            if not done and act[0] != "make":  # what is made above stays
                model.tree = before
            assert (acted(real, FilesError, *act), real.tree) == (done, dict(sorted(model.tree.items())))
        real.files.close()
