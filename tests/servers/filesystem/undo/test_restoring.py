"""One step of an undo, with files that changed after the check of all steps."""

from servers.filesystem.history.changes import Step
from servers.filesystem.history.states import ABSENT, file_state
from servers.filesystem.undo.restoring import restore
from tests.servers.filesystem.conftest import files, outside, root
from tests.servers.filesystem.editing_files import code

__all__ = ["files", "outside", "root"]


def test_a_file_changed_by_another_program_is_not_restored(files, root) -> None:
    (root / "a").write_text("theirs")
    for before, after in (("new", file_state(b"old")), ("new", ABSENT)):
        step = Step(str(root / "a"), file_state(before.encode()), after)
        assert code(restore, files, step, b"old") == "changed"
        assert (root / "a").read_text() == "theirs"


def test_the_target_of_a_link_that_replaced_the_file_is_not_restored(files, root) -> None:
    (root / "b").write_text("new")
    (root / "a").symlink_to("b")
    step = Step(str(root / "a"), file_state(b"new"), file_state(b"old"))
    assert code(restore, files, step, b"old") == "changed"
    assert (root / "b").read_text() == "new"
