"""The last changes with their diffs, as far as what files held before and after is known."""

from itertools import islice
from typing import NamedTuple

from servers.common.files.rooted_files import RootedFiles
from servers.filesystem.edit.diff import unified_diff
from servers.filesystem.edit.text import Edited
from servers.filesystem.errors import FilesError
from servers.filesystem.history.changes import Change, Step
from servers.filesystem.history.journal import Journal
from servers.filesystem.history.recording import History
from servers.filesystem.history.states import State, digest_of
from servers.filesystem.read.charsets import decode
from servers.filesystem.undo.undoing import open_journal, visible

_MOST_FILES = 20
"""Files of one change whose diffs are shown."""
_LARGEST = 262_144
"""Bytes of a file up to which it is compared."""
_LONGEST = 4_000
"""Characters of one diff that are shown."""


class Summary(NamedTuple):
    """A change, and what it made of files."""

    change: Change
    diff: str


def summaries(history: History, beneath: RootedFiles, limit: int, budget: int) -> list[Summary]:
    """The last changes in these directories, `limit` at most, the newest first; until their diffs have more than
    `budget` characters. Raises PathError where there is no journal."""
    journal = open_journal(history, beneath)
    shown: list[Summary] = []
    size = 0
    for change in islice(visible(journal, beneath), limit):
        if size > budget:
            break
        shown.append(Summary(change, _diff(journal, beneath, change)))
        size += len(shown[-1].diff)
    return shown


def _diff(journal: Journal, beneath: RootedFiles, change: Change) -> str:
    steps = journal.steps(change.number)
    parts = [_diff_of(journal, beneath, step) for step in steps[:_MOST_FILES] if _has_text(step)]
    if len(steps) > _MOST_FILES:
        parts.append(f"[{len(steps) - _MOST_FILES:,} more entries]\n")
    return "".join(parts)


def _has_text(step: Step) -> bool:
    return step.destination is None and "file" in (step.before.kind, step.after.kind)


def _diff_of(journal: Journal, beneath: RootedFiles, step: Step) -> str:
    place = beneath.roots.place(step.path)
    before, after = (_text(journal, beneath, step.path, state) for state in (step.before, step.after))
    if before is None or after is None:
        return ""
    diff = unified_diff(Edited(before, after, [(0, len(before), 0, len(after))]), "/".join(place.parts))
    return diff if len(diff) <= _LONGEST else f"{diff[:_LONGEST]}\n[cut: {len(diff):,} characters]\n"


def _text(journal: Journal, beneath: RootedFiles, path: str, state: State) -> str | None:
    """The text of a file in a state; None where it is not known any more, or no text."""
    if state.kind != "file":
        return ""
    if state.size > _LARGEST:
        return None
    try:
        data = journal.content(state.content)
        if data is None:
            with (
                beneath.open_file(beneath.roots.place(path)) as handle,
                open(handle.descriptor, "rb", closefd=False) as f,
            ):
                data = f.read(_LARGEST)[: state.size]
        return decode(data, path)[0] if digest_of(data) == state.content else None
    except FilesError:
        return None
