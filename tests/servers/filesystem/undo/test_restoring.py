"""What one step of an undo finds, which others may have changed since all of them were looked at."""

from servers.filesystem.history.changes import Step
from servers.filesystem.history.states import ABSENT, file_state
from servers.filesystem.undo.restoring import restore
from tests.servers.filesystem.conftest import files, outside, root
from tests.servers.filesystem.editing_files import code

__all__ = ["files", "outside", "root"]


def test_what_others_have_changed_stays(files, root) -> None:
    (root / "a").write_text("theirs")
    for before, after in (("new", file_state(b"old")), ("new", ABSENT)):
        step = Step(str(root / "a"), file_state(before.encode()), after)
        assert code(restore, files, step, b"old") == "changed"
        assert (root / "a").read_text() == "theirs"
