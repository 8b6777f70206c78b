"""The last changes with their diffs. If a diff can't be made, for example because the earlier contents are no longer
known, the reason replaces it."""

from contextlib import suppress
from typing import NamedTuple

from servers.common.files.rooted_files import RootedFiles
from shared.program.files.entries import read_bytes
from shared.text import display_name, format_count

from ..edit.diff import unified_diff
from ..edit.text import EditedText
from ..errors import FilesError
from ..history.changes import Change, Step
from ..history.journal import Journal
from ..history.recording import History
from ..history.states import State, digest_of
from ..read.charsets import decode
from .undoing import open_journal, visible_changes

_MAX_FILES = 20
"""Maximum number of files of one change whose diffs are shown."""
_MAX_FILE_BYTES = 262_144
"""Maximum size in bytes of a file that is compared."""
_MAX_DIFF_CHARACTERS = 4_000
"""Maximum number of characters shown of one diff."""


class Summary(NamedTuple):
    """A change and its diffs."""

    change: Change
    diff: str


def summaries(history: History, rooted: RootedFiles, limit: int, budget: int) -> tuple[list[Summary], int]:
    """Return the last changes in these directories, newest first, and the number of earlier changes. At most `limit`
    changes are returned; none after the diffs exceed `budget` characters. Raises PathError without a journal.
    """
    journal = open_journal(history, rooted)
    shown: list[Summary] = []
    size = 0
    changes = visible_changes(journal, rooted)
    for change in changes[:limit]:
        if size > budget:
            break
        steps = journal.steps(change.number)
        parts = [
            _diff_of(journal, rooted, step)
            for step in steps[:_MAX_FILES]
            if step.destination is None and "file" in (step.before.kind, step.after.kind)
        ]
        if len(steps) > _MAX_FILES:
            parts.append(f"[{format_count(len(steps) - _MAX_FILES, 'more entry', 'more entries')}]\n")
        shown.append(Summary(change, "".join(parts)))
        size += len(shown[-1].diff)
    return shown, len(changes) - len(shown)


def _diff_of(journal: Journal, rooted: RootedFiles, step: Step) -> str:
    """Return the diff of a step, or a note on why there is none."""
    path = "/".join(rooted.roots.place(step.path).parts)
    try:
        before, after = (_text(journal, rooted, step.path, state) for state in (step.before, step.after))
    except FilesError as error:
        return f"[no diff: {display_name(path)} {error.reason}]\n"
    diff = unified_diff(EditedText(before, after, [(0, len(before), 0, len(after))]), path)
    return (
        diff
        if len(diff) <= _MAX_DIFF_CHARACTERS
        else f"{diff[:_MAX_DIFF_CHARACTERS]}\n[truncated: {len(diff):,} characters]\n"
    )


def _text(journal: Journal, rooted: RootedFiles, path: str, state: State) -> str:
    """Return the text of a file in the given state. Raises FilesError if it is too large, not text, or unknown."""
    if state.kind != "file":
        return ""
    if state.size > _MAX_FILE_BYTES:
        raise FilesError("too_large", path, f"has more than {_MAX_FILE_BYTES:,} bytes")
    data = journal.content(state.content)
    with suppress(FilesError):
        if data is None:
            # The file may begin with these contents, if data was only appended to it.
            with rooted.open_file(rooted.roots.place(path)) as handle:
                data = read_bytes(handle.descriptor, state.size)
    if data is None or digest_of(data) != state.content:
        raise FilesError("changed", path, "has changed since")
    return decode(data, path)[0]
