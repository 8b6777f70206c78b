"""Settles unfinished changes: the state of their paths shows which steps were made.

A process may be killed, or the machine may crash, at any moment. If no step of a change was made, its record is
deleted. If some were made, only the records of these remain, so that they can be undone.
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from servers.common.files.rooted_files import RootedFiles
from shared.program.files.atomic import is_temporary_name
from shared.program.files.entries import Entry, enter_directory, list_entries, stat_entry, unlink

from ..errors import FilesError
from .changes import Step
from .journal import Journal
from .states import ABSENT, State, state_of

_MISSING = ("not_found", "not_a_directory")


def settle(journal: Journal, rooted: RootedFiles, number: int, failed: bool = False) -> None:
    """Record which steps of a pending change were made, judging by the state of their paths. Raises PathError.

    If a path has neither of the two recorded states, another program has changed it. Its step then counts as made
    after an interruption, when it may have been made, but not if the change `failed`.
    """
    steps = journal.steps(number)
    not_made = [index for index, step in enumerate(steps) if not _is_made(rooted, step, failed)]
    if len(not_made) == len(steps):
        journal.forget(number)
        return
    partly_made = (
        {} if failed else {index: now for index, step in enumerate(steps) if (now := _appended_part(rooted, step))}
    )
    for index, now in partly_made.items():
        journal.amend(number, index, now)
    journal.forget(number, not_made)
    journal.finish(number, "interrupted" if not_made or partly_made else "done")


def settle_all(journal: Journal, rooted: RootedFiles) -> None:
    """Settle the pending changes in these directories whose process has ended."""
    for change in journal.changes():
        if change.status == "pending" and not journal.is_alive(change.run):
            # Changes elsewhere are settled by the servers of those directories.
            with suppress(FilesError):
                _drop_second_names(rooted, journal.steps(change.number))
                settle(journal, rooted, change.number)


def current_state(rooted: RootedFiles, path: str) -> State:
    """Return the current state of a path; `ABSENT` also if a directory on the way to it is missing. Raises
    PathError."""
    try:
        with rooted.locate(rooted.roots.place(path), follow=False) as entry:
            return state_of(rooted, entry)
    except FilesError as error:
        if error.code in _MISSING:
            return ABSENT
        raise


def _drop_second_names(rooted: RootedFiles, steps: Iterable[Step]) -> None:
    """Delete the temporary names of new files, and the old names of moved files. A process that is killed just after
    it gave a file its final name leaves such a second name (see `rename_to_unused`), and a file with two names can't
    be changed."""
    for step in steps:
        with suppress(FilesError), rooted.locate(rooted.roots.place(step.path), follow=False) as entry:
            status = stat_entry(entry)
            if status is None or status.st_nlink < 2 or stat.S_ISDIR(status.st_mode):
                continue
            moved = None if step.destination is None else _stat(rooted, step.destination)
            if moved is not None and os.path.samestat(moved, status):
                unlink(entry)
            else:
                _drop_fresh_names(entry, status)


def _drop_fresh_names(entry: Entry, status: os.stat_result) -> None:
    folder = "." if entry.directory is not None else os.path.dirname(entry.name)  # noqa: PTH120
    with enter_directory(entry._replace(name=folder)) as directory:
        names = [other.name for other in list_entries(folder if directory is None else directory)]
    for name in filter(is_temporary_name, names):
        second = entry._replace(name=entry.sibling(name))
        status_of_second = stat_entry(second)
        if status_of_second is not None and os.path.samestat(status_of_second, status):
            unlink(second)


def _stat(rooted: RootedFiles, path: str) -> os.stat_result | None:
    try:
        return rooted.stat(rooted.roots.place(path), follow=False)
    except FilesError as error:
        if error.code in _MISSING:
            return None
        raise


def _appended_part(rooted: RootedFiles, step: Step) -> State | None:
    """Return the current state of a file to which only part of the data was appended; None for any other step. The
    undo checks that the file still begins with its earlier contents."""
    if step.image is None or step.image.data is not None or step.image.name is not None:
        return None
    now = current_state(rooted, step.path)
    return now if step.before.size < now.size < step.after.size else None


def _is_made(rooted: RootedFiles, step: Step, failed: bool) -> bool:
    if step.destination is not None:
        source, moved = _stat(rooted, step.path), _stat(rooted, step.destination)
        # A file has both names for a moment while it is moved. The move counts as made even if the old name remains.
        return moved is not None and (source is None or os.path.samestat(source, moved))
    now = current_state(rooted, step.path)
    return now.is_like(step.after) if failed else not now.is_like(step.before)
