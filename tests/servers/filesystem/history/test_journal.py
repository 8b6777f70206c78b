"""The journal on disk: permissions, size, and recovery after a killed process."""

import os
import shutil
import sqlite3
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from servers.common.files.rooted_files import RootedFiles
from servers.filesystem.edit.delete import delete
from servers.filesystem.edit.edit import FileEdits, edit_files
from servers.filesystem.edit.replacements import Edit
from servers.filesystem.edit.write import write_file
from servers.filesystem.history.recording import History, HistoryOptions, Recorder, Survey
from servers.filesystem.history.states import file_state
from servers.filesystem.undo.undoing import find_changes, undo_change
from shared.program.files.entries import Entry, Handle
from tests.servers.filesystem.conftest import files, root
from tests.servers.filesystem.editing_files import code
from tests.servers.filesystem.undo.conftest import folder, history, recorder

__all__ = ["files", "folder", "history", "recorder", "root"]

LARGE = "x" * 100_000


def place(files, name="a"):
    return files.roots.place(name)


def modes(folder: Path) -> set[str]:
    return {oct(path.stat().st_mode)[-3:] for path in [folder, *folder.rglob("*")] if path.is_dir()}


def test_only_the_user_can_read_the_journal(files, root, folder, recorder) -> None:
    (root / "a").write_text(LARGE)
    write_file(files, place(files), "", recorder=recorder)
    assert modes(folder) == {"700"}
    assert oct((folder / "journal.db").stat().st_mode)[-3:] == "600"


def test_a_large_file_is_hard_linked_and_a_small_one_stored_in_the_database(files, root, folder, recorder) -> None:
    (root / "a").write_text(LARGE)
    inode = (root / "a").stat().st_ino
    write_file(files, place(files), "small", recorder=recorder)
    write_file(files, place(files), "new", recorder=recorder)
    assert [path.stat().st_ino for path in (folder / "images").iterdir()] == [inode]


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there is no second file system")
def test_a_large_file_is_copied_to_a_journal_on_another_file_system(files, root) -> None:
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    history = History(HistoryOptions(folder / "undo", 1024 * 1024, 7))
    (root / "a").write_text(LARGE)
    (root / "a").chmod(0o644)
    delete(files, place(files), recorder=Recorder(history))
    (image,) = (folder / "undo" / "images").iterdir()
    assert (image.read_text(), oct(image.stat().st_mode)[-3:]) == (LARGE, "600")
    undo_change(history, files, *find_changes(history, files, None, None))
    assert (root / "a").read_text() == LARGE
    history.close()
    shutil.rmtree(folder)


def test_the_oldest_changes_are_removed_over_the_size_limit(files, root, folder, history) -> None:
    for number in range(15):
        write_file(files, place(files), f"{number}{LARGE}", recorder=Recorder(history))
    changes = find_changes(history, files, None, 0)
    assert [change.number for change in changes] == list(range(15, 5, -1))
    assert len(list((folder / "images").iterdir())) == 10


def test_changes_over_a_lowered_size_limit_are_removed_at_the_next_start(files, root, folder, history) -> None:
    for number in range(3):
        write_file(files, place(files), f"{number}{LARGE}", recorder=Recorder(history))
    history.close()
    later = History(HistoryOptions(folder, 150_000, 7))
    assert [change.number for change in find_changes(later, files, None, 0)] == [3]
    assert len(list((folder / "images").iterdir())) == 1
    later.close()


class Traced(sqlite3.Connection):
    """A database that lists whether each transaction waits for the disk."""

    waits: ClassVar[list[bool]] = []

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement.startswith(("BEGIN", "UPDATE")):
            self.waits.append(super().execute("PRAGMA synchronous").fetchone() == (2,))
        return super().execute(statement, *values)


@pytest.fixture
def waits(monkeypatch) -> list[bool]:
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Traced))
    monkeypatch.setattr(Traced, "waits", [])
    return Traced.waits


def test_a_write_and_an_edit_of_one_file_do_not_sync_the_journal(files, root, recorder, waits) -> None:
    (root / "a").write_text("old")
    write_file(files, place(files), "new", recorder=recorder)
    waits.clear()
    edit_files(files, [FileEdits(place(files), [Edit("new", "newer")])], recorder=recorder)
    assert waits == []


def test_a_deletion_and_an_edit_of_two_files_sync_only_the_record_before(
    files, root, history, recorder, waits
) -> None:
    for name in "abc":
        (root / name).write_text("old")
    history.journal(files)
    waits.clear()
    delete(files, place(files, "c"), recorder=recorder)
    edit_files(files, [FileEdits(place(files, name), [Edit("old", "new")]) for name in "ab"], recorder=recorder)
    assert waits == [True, False] * 2


def test_a_change_that_is_too_large_to_record_leaves_no_image(files, root, folder) -> None:
    (root / "directory").mkdir()
    for name in "ab":
        (root / "directory" / name).write_text(LARGE)
    history = History(HistoryOptions(folder, 150_000, 7))
    recorder = Recorder(history)
    assert delete(files, place(files, "directory"), recursive=True, recorder=recorder) == 3
    assert "exceeds the journal's limit" in recorder.note
    assert list((folder / "images").iterdir()) == []
    history.close()


def test_expired_changes_are_removed_at_the_next_start(files, root, folder, history) -> None:
    (root / "a").write_text(LARGE)
    write_file(files, place(files), "", recorder=Recorder(history))
    history.close()
    with sqlite3.connect(folder / "journal.db") as database:
        database.execute("UPDATE change SET time = ?", (time.time() - 8 * 86_400,))
    later = History(HistoryOptions(folder, 1024 * 1024, 7))
    assert find_changes(later, files, None, 0) == []
    assert list((folder / "images").iterdir()) == []
    later.close()


def test_a_recorded_change_that_was_not_made_is_removed_at_the_next_start(files, root, folder, history) -> None:
    (root / "a").write_text(LARGE)
    begin_and_stop(files, history)
    assert (root / "a").stat().st_nlink == 2
    later = History(HistoryOptions(folder, 1024 * 1024, 7))
    assert find_changes(later, files, None, 0) == []
    assert (root / "a").stat().st_nlink == 1
    later.close()


def begin_and_stop(files, history) -> None:
    """Record a change without making it, as a process killed in between does."""
    journal = history.journal(files)
    with files.locate(place(files)) as entry:
        survey = Survey(journal, files)
        survey.record_change(entry, file_state(b"new"))
        journal.begin("write", survey.steps)
    history.close()


def test_undo_with_a_damaged_image_is_refused(files, root, folder, history) -> None:
    (root / "a").write_text(LARGE)
    write_file(files, place(files), "new", recorder=Recorder(history))
    (image,) = (folder / "images").iterdir()
    os.truncate(image, 5)
    (change,) = find_changes(history, files, None, None)
    with pytest.raises(Exception, match="no longer has all of its previous contents") as caught:
        undo_change(history, files, change)
    assert caught.value.code == "damaged"
    assert (root / "a").read_text() == "new"


def test_a_link_whose_target_is_not_utf_8_is_restored(files, root, history) -> None:
    (root / "link").symlink_to(os.fsdecode(b"caf\xe9"))
    delete(files, place(files, "link"), recorder=Recorder(history))
    undo_change(history, files, *find_changes(history, files, None, None))
    assert os.readlink(os.fsencode(root / "link")) == b"caf\xe9"


def test_a_file_over_the_size_limit_is_not_read(files, root, recorder, monkeypatch) -> None:
    with (root / "a").open("wb") as file:
        file.truncate(2 * 1024 * 1024)
    monkeypatch.setattr(RootedFiles, "open_entry", no_reading)
    delete(files, place(files), recorder=recorder)
    assert recorder.note == "the change exceeds the journal's limit of 1,048,576 bytes"


def test_a_journal_that_can_not_be_opened_leaves_no_run_file(files, root, folder, recorder) -> None:
    folder.mkdir(parents=True)
    (folder / "journal.db").write_bytes(b"no database" * 1_000)
    write_file(files, place(files), "new", recorder=recorder)
    assert recorder.note == "the journal can't be written (database error)"
    assert list((folder / "runs").iterdir()) == []


def test_a_damaged_journal_is_an_error_of_undo(files, root, folder, history) -> None:
    write_file(files, place(files), "new", recorder=Recorder(history))
    for path in folder.glob("journal.db*"):
        path.write_bytes(b"no database" * 1_000)
    assert code(find_changes, history, files, None, None) == "no_undo"


def no_reading(files: RootedFiles, entry: Entry, written: str) -> Handle:
    raise AssertionError(f"{written} is read")
