"""Undo of changes."""

import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.filesystem.history.recording import NOT_RECORDED, History, HistoryOptions, Recorder
from servers.filesystem.undo.undoing import find_changes, undo_change
from shared.coded_errors import PathError
from tests.servers.filesystem.undo.trees import ACTS, fill, make, tree_of

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where a sync takes no time, of which there are thousands."""


class Case:
    """A directory with a journal, and an equal one without."""

    def __init__(self, folder: Path) -> None:
        self.root, self.other = folder / "root", folder / "other"
        for path in (self.root, self.other):
            path.mkdir()
            fill(path)
        self.files, self.plain = (RootedFiles(Roots([path], writable=True)) for path in (self.root, self.other))
        self.history = History(HistoryOptions(folder / "undo", 8 * 1024 * 1024, 7))

    def make(self, act: tuple[str, ...]) -> None:
        recorder = Recorder(self.history)
        assert make(self.files, act, recorder) == make(self.plain, act, NOT_RECORDED)
        assert tree_of(self.root) == tree_of(self.other)

    def close(self) -> None:
        self.history.close()
        self.files.close()
        self.plain.close()


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(ACTS, min_size=1, max_size=8))
def test_random_changes_are_undone_to_the_exact_tree_and_redone(acts) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        case = Case(Path(folder))
        trees = [tree_of(case.root)]
        for act in acts:
            case.make(act)
            if tree_of(case.root) != trees[-1]:
                trees.append(tree_of(case.root))
        undone = []
        for change, tree in zip(find_changes(case.history, case.files, None, 0), reversed(trees[:-1]), strict=True):
            undone.append(undo_change(case.history, case.files, change).number)
            assert tree_of(case.root) == tree
        for number, tree in zip(reversed(undone), trees[1:], strict=True):
            undo_change(case.history, case.files, *find_changes(case.history, case.files, number, None))
            assert tree_of(case.root) == tree
        case.close()


@pytest.mark.parametrize("moment", range(4))
def test_text_appended_by_another_program_during_an_undo_is_kept(files, root, history, edit, moment) -> None:
    (root / "a").write_text("old\n")
    edit("a", ("old", "new"), recorder=Recorder(history))
    changes = find_changes(history, files, None, None)
    open_entry, opened = files.open_entry, []

    def append_and_open(entry, written):
        if len(opened) == moment:
            (root / "a").write_text("new\ntheirs\n")
        opened.append(entry)
        return open_entry(entry, written)

    files.open_entry = append_and_open
    with contextlib.suppress(PathError):
        undo_change(history, files, *changes)
    assert "theirs" in (root / "a").read_text() or len(opened) <= moment
