"""What is seen of changes whose process was killed."""

from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.filesystem.history.recording import History, HistoryOptions, Survey
from servers.filesystem.history.states import ABSENT, file_state
from servers.filesystem.undo.undoing import find_changes, undo_change
from tests.servers.filesystem.conftest import files, outside, root
from tests.servers.filesystem.undo.conftest import folder, history

__all__ = ["files", "folder", "history", "outside", "root"]


def begin(files, history, act, describe) -> None:
    """Note down a change, of which the process makes no more."""
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


def again(folder) -> History:
    return History(HistoryOptions(folder, 1024 * 1024, 7))


def test_of_a_change_made_in_part_that_part_is_taken_back(files, root, folder, history) -> None:
    for name in "ab":
        (root / name).write_text("old")
    with files.locate(files.roots.place("a")) as one, files.locate(files.roots.place("b")) as other:

        def describe(survey: Survey) -> None:
            survey.record_change(one, file_state(b"new"))
            survey.record_change(other, file_state(b"new"))

        begin(files, history, "edit", describe)
    (root / "a").write_text("new")
    later = again(folder)
    (change,) = find_changes(later, files, None, 0)
    assert (change.status, change.paths) == ("interrupted", (str(root / "a"),))
    undo_change(later, files, change)
    assert [(root / name).read_text() for name in "ab"] == ["old", "old"]
    later.close()


def test_a_file_that_has_both_names_was_moved_and_gets_its_old_one(files, root, folder, history) -> None:
    (root / "a").write_text("a")
    begin_move(files, history)
    (root / "b").hardlink_to(root / "a")
    later = again(folder)
    undo_change(later, files, *find_changes(later, files, None, 0))
    assert [path.name for path in root.iterdir()] == ["a"]
    later.close()


def test_a_file_that_has_both_names_loses_the_old_one(files, root, folder, history) -> None:
    (root / "a").write_text("a")
    begin_move(files, history)
    (root / "b").hardlink_to(root / "a")
    later = again(folder)
    (change,) = find_changes(later, files, None, 0)
    assert (change.status, [path.name for path in root.iterdir()]) == ("done", ["b"])
    later.close()


def test_what_was_appended_of_an_interrupted_append_is_taken_back(files, root, folder, history) -> None:
    (root / "a").write_text("old")
    with files.locate(files.roots.place("a")) as entry:
        begin(
            files, history, "append", lambda survey: survey.record_append(entry, b"old", file_state(b"old and new"))
        )
    (root / "a").write_text("old and")
    later = again(folder)
    (change,) = find_changes(later, files, None, 0)
    assert change.status == "interrupted"
    undo_change(later, files, change)
    assert (root / "a").read_text() == "old"
    later.close()


def test_a_change_elsewhere_is_left_to_who_works_there(files, root, outside, folder, history) -> None:
    (root / "a").write_text("a")
    begin_move(files, history)
    (root / "a").rename(root / "b")
    elsewhere = RootedFiles(Roots([outside], writable=True))
    later = again(folder)
    assert find_changes(later, elsewhere, None, 0) == []
    (change,) = find_changes(later, files, None, 0)
    assert (change.act, change.status) == ("move", "done")
    elsewhere.close()
    later.close()


def test_what_another_process_is_still_making_is_left_alone(files, root, folder, history) -> None:
    (root / "a").write_text("a")
    journal = history.journal(files)
    with files.locate(files.roots.place("a")) as entry:
        survey = Survey(journal, files)
        survey.record_change(entry, ABSENT)
        number = journal.begin("delete", survey.steps)
    later = again(folder)
    assert find_changes(later, files, None, 0) == []
    assert journal.change(number).status == "pending"
    later.close()


def test_a_new_file_that_has_its_fresh_name_as_well_loses_that_and_can_be_undone(
    files, root, folder, history
) -> None:
    with files.locate(files.roots.place("new"), follow=False) as entry:
        begin(files, history, "write", lambda survey: survey.record_change(entry, file_state(b"text")))
    (root / ".mcp-0123456789abcdef.tmp").write_text("text")
    (root / "new").hardlink_to(root / ".mcp-0123456789abcdef.tmp")
    (root / ".mcp-0000000000000000.tmp").write_text("another")
    later = again(folder)
    (change,) = find_changes(later, files, None, 0)
    assert sorted(path.name for path in root.iterdir()) == [".mcp-0000000000000000.tmp", "new"]
    undo_change(later, files, change)
    assert not (root / "new").exists()
    later.close()
