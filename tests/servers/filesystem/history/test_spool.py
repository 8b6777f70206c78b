"""Reading spools, also after failed writes."""

import os

import pytest

from servers.filesystem.edit.edit import FileEdits, edit_files
from servers.filesystem.edit.replacements import Edit
from servers.filesystem.edit.write import write_file
from servers.filesystem.history.changes import Step
from servers.filesystem.history.images import Image
from servers.filesystem.history.recording import History, HistoryOptions, Recorder
from servers.filesystem.history.spool import Spool, read_spool
from servers.filesystem.history.states import file_state
from servers.filesystem.undo.undoing import find_changes, undo_change
from tests.servers.filesystem.conftest import files, root
from tests.servers.filesystem.undo.conftest import folder, history, recorder

__all__ = ["files", "folder", "history", "recorder", "root"]

STEP = Step(os.fsdecode(b"/caf\xe9"), file_state(b"old"), file_state(b"new"), Image(3, b"old"))


@pytest.fixture
def spool(tmp_path):
    spool = Spool(tmp_path, "run")
    yield spool
    spool.renew()


def read(spool, tmp_path, position=0, is_alive=True):
    result = read_spool(tmp_path / spool.name, position, is_alive)
    assert result is not None
    records, end = result
    return [(record.time, record.status) for record in records], end


def test_a_finished_record_is_read_as_it_was_written(spool, tmp_path) -> None:
    spool.mark(spool.begin(2.5, "edit", STEP), done=True)
    result = read_spool(tmp_path / spool.name, 0, True)
    assert result is not None
    ((record,), end) = result
    assert (record.time, record.act, record.step, record.status) == (2.5, "edit", STEP, "done")
    assert end == spool.size
    assert (tmp_path / spool.name).stat().st_mode & 0o777 == 0o600


def test_an_unfinished_record_of_a_live_process_is_read_later(spool, tmp_path) -> None:
    first, second, third = (spool.begin(time, "edit", STEP) for time in (1.0, 2.0, 3.0))
    spool.mark(first, done=True)
    spool.mark(third, done=True)
    records, end = read(spool, tmp_path)
    assert records == [(1.0, "done"), (3.0, "done")]
    assert read(spool, tmp_path, end, is_alive=False)[0] == [(2.0, "pending"), (3.0, "done")]
    spool.mark(second, done=False)
    assert read(spool, tmp_path, end) == ([(2.0, "pending"), (3.0, "done")], spool.size)


@pytest.mark.parametrize("damage", [b"", b"\0" * 40, b"abc"])
def test_an_incomplete_record_and_all_after_it_are_ignored(spool, tmp_path, damage) -> None:
    spool.mark(spool.begin(1.0, "edit", STEP), done=True)
    whole = spool.size
    spool.mark(spool.begin(2.0, "edit", STEP), done=True)
    path = tmp_path / spool.name
    path.write_bytes(path.read_bytes()[: whole + 20] + damage)
    assert read(spool, tmp_path) == ([(1.0, "done")], whole)


def test_a_failed_write_leaves_no_record_and_marks_are_written_later(spool, tmp_path, monkeypatch) -> None:
    number = spool.begin(1.0, "edit", STEP)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half_written(os.write))
        with pytest.raises(OSError, match="No space"):
            spool.begin(2.0, "edit", STEP)
        spool.mark(number, done=True)
    assert read(spool, tmp_path) == ([], 0)
    spool.mark(spool.begin(3.0, "edit", STEP), done=True)
    assert read(spool, tmp_path) == ([(1.0, "done"), (3.0, "done")], spool.size)


def half_written(write):
    """Writes ten bytes, then fails as a full disk does."""
    room = [10]

    def call(descriptor, data):
        if not room:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[: room.pop()])

    return call


def reopened(folder) -> History:
    return History(HistoryOptions(folder, 1024 * 1024, 7))


def test_another_process_sees_a_change_at_once_and_undoes_it(files, root, folder, recorder) -> None:
    (root / "a").write_text("old")
    write_file(files, files.roots.place("a"), "new", recorder=recorder)
    later = reopened(folder)
    (change,) = find_changes(later, files, None, None)
    assert (change.number, change.status, change.paths) == (1, "done", (str(root / "a"),))
    undo_change(later, files, change)
    assert (root / "a").read_text() == "old"
    later.close()


def test_changes_of_two_processes_are_sorted_by_time(files, root, folder, history) -> None:
    later = reopened(folder)
    for name, maker in (("a", history), ("b", later), ("c", history)):
        write_file(files, files.roots.place(name), name, recorder=Recorder(maker))
    changes = find_changes(later, files, None, 0)
    assert [change.paths[0][-1] for change in changes] == ["c", "b", "a"]
    later.close()


def test_a_pending_change_hides_no_later_change(files, root, folder, history) -> None:
    (root / "a").write_text("old")

    def describe(survey) -> None:
        with files.locate(files.roots.place("a")) as entry:
            survey.record_change(entry, file_state(b"new"))

    with Recorder(history).record(files, "edit", describe):
        write_file(files, files.roots.place("b"), "b", recorder=Recorder(history))
        assert [change.paths for change in find_changes(history, files, None, 0)] == [(str(root / "b"),)]
        (root / "a").write_text("new")
    paths = [change.paths[0][-1] for change in find_changes(history, files, None, 0)]
    assert sorted(paths) == ["a", "b"]


def test_a_long_spool_is_moved_to_the_database_and_restarted(files, root, folder, history) -> None:
    (root / "a").write_text("x" * 9_000)
    for number in range(5):
        place, edits = files.roots.place("a"), [Edit("x" * 10, f"{number}" * 10, 0)]
        edit_files(files, [FileEdits(place, edits[:1])], recorder=Recorder(history))
        (root / "a").write_text("x" * 9_000)
    assert [path.stat().st_size < 16_384 for path in (folder / "spools").iterdir()] == [True]
    assert len(find_changes(history, files, None, 0)) == 5
    history.close()
    assert list((folder / "spools").iterdir()) == []


def test_a_failed_change_is_removed_from_the_journal(files, root, folder, history, monkeypatch) -> None:
    (root / "a").write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_disk)
        with pytest.raises(Exception, match="output error"):
            write_file(files, files.roots.place("a"), "new", recorder=Recorder(history))
    assert (root / "a").read_text() == "old"
    assert find_changes(history, files, None, 0) == []
    assert list(history.journal(files).changes()) == []  # nor is it pending for good


def no_disk(_descriptor):
    raise OSError(5, "Input/output error")
