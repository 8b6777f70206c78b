"""Recovery of changes whose process was killed."""

from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.filesystem.history.recording import History, HistoryOptions, Survey
from servers.filesystem.history.states import ABSENT, file_state
from servers.filesystem.undo.undoing import find_changes, undo_change
from tests.servers.filesystem.conftest import files, outside, root
from tests.servers.filesystem.undo.conftest import folder, history

__all__ = ["files", "folder", "history", "outside", "root"]


def begin(files, history, act, describe) -> None:
    """Record a change that the process does not finish."""
    journal = history.journal(files)
    survey = Survey(journal, files)
    describe(survey)
    journal.begin(act, survey.steps)
    history.close()


def begin_move(files, history) -> None:
    with (
        files.locate(files.roots.place("a"), follow=False) as old,
        files.locate(files.roots.place("b"), follow=False) as new,
    ):
        begin(files, history, "move", lambda survey: survey.record_move(old, new))


def reopened(folder) -> History:
    return History(HistoryOptions(folder, 1024 * 1024, 7))


def test_undo_reverts_the_finished_part_of_an_interrupted_change(files, root, folder, history) -> None:
    for name in "ab":
        (root / name).write_text("old")
    with files.locate(files.roots.place("a")) as one, files.locate(files.roots.place("b")) as other:

        def describe(survey: Survey) -> None:
            survey.record_change(one, file_state(b"new"))
            survey.record_change(other, file_state(b"new"))

        begin(files, history, "edit", describe)
    (root / "a").write_text("new")
    later = reopened(folder)
    (change,) = find_changes(later, files, None, 0)
    assert (change.status, change.paths) == ("interrupted", (str(root / "a"),))
    undo_change(later, files, change)
    assert [(root / name).read_text() for name in "ab"] == ["old", "old"]
    later.close()


def test_an_interrupted_move_with_both_names_can_be_undone(files, root, folder, history) -> None:
    (root / "a").write_text("a")
    begin_move(files, history)
    (root / "b").hardlink_to(root / "a")
    later = reopened(folder)
    undo_change(later, files, *find_changes(later, files, None, 0))
    assert [path.name for path in root.iterdir()] == ["a"]
    later.close()


def test_an_interrupted_move_with_both_names_is_completed(files, root, folder, history) -> None:
    (root / "a").write_text("a")
    begin_move(files, history)
    (root / "b").hardlink_to(root / "a")
    later = reopened(folder)
    (change,) = find_changes(later, files, None, 0)
    assert (change.status, [path.name for path in root.iterdir()]) == ("done", ["b"])
    later.close()


def test_undo_reverts_the_written_part_of_an_interrupted_append(files, root, folder, history) -> None:
    (root / "a").write_text("old")
    with files.locate(files.roots.place("a")) as entry:
        begin(
            files, history, "append", lambda survey: survey.record_append(entry, b"old", file_state(b"old and new"))
        )
    (root / "a").write_text("old and")
    later = reopened(folder)
    (change,) = find_changes(later, files, None, 0)
    assert change.status == "interrupted"
    undo_change(later, files, change)
    assert (root / "a").read_text() == "old"
    later.close()


def test_an_interrupted_change_is_settled_only_by_a_server_of_its_directory(
    files, root, outside, folder, history
) -> None:
    (root / "a").write_text("a")
    begin_move(files, history)
    (root / "a").rename(root / "b")
    elsewhere = RootedFiles(Roots([outside], writable=True))
    later = reopened(folder)
    assert find_changes(later, elsewhere, None, 0) == []
    (change,) = find_changes(later, files, None, 0)
    assert (change.act, change.status) == ("move", "done")
    elsewhere.close()
    later.close()


def test_a_pending_change_of_a_live_process_is_not_settled(files, root, folder, history) -> None:
    (root / "a").write_text("a")
    journal = history.journal(files)
    with files.locate(files.roots.place("a")) as entry:
        survey = Survey(journal, files)
        survey.record_change(entry, ABSENT)
        number = journal.begin("delete", survey.steps)
    later = reopened(folder)
    assert find_changes(later, files, None, 0) == []
    assert journal.change(number).status == "pending"
    later.close()


def test_the_temporary_name_of_an_interrupted_new_file_is_removed(files, root, folder, history) -> None:
    with files.locate(files.roots.place("new"), follow=False) as entry:
        begin(files, history, "write", lambda survey: survey.record_change(entry, file_state(b"text")))
    (root / ".mcp-0123456789abcdef.tmp").write_text("text")
    (root / "new").hardlink_to(root / ".mcp-0123456789abcdef.tmp")
    (root / ".mcp-0000000000000000.tmp").write_text("another")
    later = reopened(folder)
    (change,) = find_changes(later, files, None, 0)
    assert sorted(path.name for path in root.iterdir()) == [".mcp-0000000000000000.tmp", "new"]
    undo_change(later, files, change)
    assert not (root / "new").exists()
    later.close()
