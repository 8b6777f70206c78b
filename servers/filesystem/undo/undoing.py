"""Undo of a change: all or nothing, and only if its files are as the change left them.

An undo is itself a change, recorded before it is made, so it can be undone as well. If it fails midway, its steps are
reverted; if the process is killed, it is settled like any change (see `settling`).
"""

import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

from servers.common.files.rooted_files import RootedFiles
from shared.coded_errors import os_errors
from shared.program.files.entries import Place

from ..edit.preconditions import require_replaceable
from ..errors import FilesError
from ..history.changes import Change, NotRecorded, Step
from ..history.journal import Journal
from ..history.recording import History, Recorder, Survey
from ..history.settling import current_state, settle_all
from ..history.states import digest_of
from .restoring import changed_error, finish_directory, is_unchanged, restore

UNDO, REDO = "undo", "redo"


class UndoResult(NamedTuple):
    """The undone change, the number of the change that undid it, its places, and any lost metadata."""

    change: Change
    number: int
    places: list[Place]
    lost: list[str]


def open_journal(history: History, rooted: RootedFiles) -> Journal:
    """Return the journal, with all interrupted changes settled. Raises PathError."""
    try:
        journal = history.journal(rooted)
        settle_all(journal, rooted)
    except (NotRecorded, sqlite3.Error) as error:
        reason = str(error) if isinstance(error, NotRecorded) else "the journal can't be read (database error)"
        raise FilesError("no_undo", "", reason, "Ask the operator to check --undo-dir.") from None
    return journal


def visible_changes(journal: Journal, rooted: RootedFiles) -> list[Change]:
    """Return the changes whose paths are all in these directories and not denied, newest first."""
    changes = (change._replace(paths=tuple(journal.paths(change.number))) for change in journal.changes())
    return [change for change in changes if _is_visible(rooted, change)]


def find_changes(history: History, rooted: RootedFiles, number: int | None, since: float | None) -> list[Change]:
    """Return the changes to undo, newest first: the one with that number, all `since` a time, or else the last.

    Raises PathError if no change has that number, or if nothing can be undone.
    """
    journal = open_journal(history, rooted)
    if number is not None:
        return [find_change(journal, rooted, number)]
    listed = visible_changes(journal, rooted)
    changes = [
        candidate
        for candidate in listed
        if candidate.undone_by is None
        and candidate.status != "pending"
        # An undo is only selected by its number, unless it was interrupted: then it counts like any other change.
        and (candidate.act != UNDO or candidate.status == "interrupted")
    ]
    if since is not None:
        return [candidate for candidate in changes if candidate.time >= since]
    if not changes:
        undos = (change.number for change in listed if change.act == UNDO and change.undone_by is None)
        last = next(undos, None)
        suggestion = "" if last is None else f"To redo what was undone last, undo change {last}."
        raise FilesError("not_found", "", "there is no change to undo", suggestion)
    return changes[:1]


def find_change(journal: Journal, rooted: RootedFiles, number: int) -> Change:
    """Return the change with that number, if it can be undone. Raises PathError."""
    recorded = journal.change(number)
    change = None if recorded is None else recorded._replace(paths=tuple(journal.paths(number)))
    if change is None or not _is_visible(rooted, change):
        raise FilesError("not_found", "", f"there is no change {number} here", "See recent_changes.")
    if change.undone_by is not None:
        raise FilesError("already_undone", "", f"change {number} was undone by change {change.undone_by}")
    if change.status == "pending":
        raise FilesError("busy", "", f"change {number} is still in progress", "Try again.")
    return change


def undo_change(history: History, rooted: RootedFiles, change: Change, protected: bool = False) -> UndoResult:
    """Undo a change.

    With `protected`, write-protected files and files with several hard links are replaced, too. Raises FilesError,
    with code `changed` if a file has changed since the change, `already_undone`, or `too_large` if the undo can't be
    recorded. If it raises, nothing is changed.
    """
    journal = open_journal(history, rooted)
    change = find_change(journal, rooted, change.number)
    steps = journal.steps(change.number)[::-1]
    with os_errors(""):
        # All images are read before anything is changed.
        data = [_content(journal, rooted, step) for step in steps]
    for step in steps:
        _require_unchanged(rooted, step, protected)

    def describe(survey: Survey) -> None:
        for step in steps:
            _describe(rooted, step, survey)

    recorder = Recorder(history)
    act = REDO if change.act == UNDO and change.status == "done" else UNDO
    with recorder.record(rooted, act, describe, change.number) as number:
        if number is None:
            reason = f"can't be undone, because undoing it could not be recorded: {recorder.note}"
            raise FilesError(
                "too_large", "", f"change {change.number} {reason}", "Change the files with other tools."
            )
        lost = _restore_all(journal, rooted, number, data)
    paths = dict.fromkeys(path for step in steps for path in step.paths)
    return UndoResult(change, number, [rooted.roots.place(path) for path in paths], lost)


def _is_visible(rooted: RootedFiles, change: Change) -> bool:
    with suppress(FilesError):
        places = [rooted.roots.place(path) for path in change.paths]
        return bool(places) and not any(map(rooted.roots.denies, places))
    return False


def _content(journal: Journal, rooted: RootedFiles, step: Step) -> bytes:
    """Return the contents that a step's file had before the change. Raises FilesError, with code `damaged` if the
    journal has lost them."""
    if step.image is None:
        return b""
    now = b""
    if step.image.data is None and step.image.name is None:
        with (
            rooted.open_file(rooted.roots.place(step.path)) as handle,
            open(handle.descriptor, "rb", closefd=False) as f,
        ):
            now = f.read(step.image.size)
    data = journal.images.read(step.image, now)
    if digest_of(data) != step.before.content:
        if step.image.data is None and step.image.name is None:
            raise changed_error(step.path)
        raise FilesError("damaged", step.path, "the journal no longer has all of its previous contents")
    return data


def _require_unchanged(rooted: RootedFiles, step: Step, protected: bool) -> None:
    """Raise FilesError unless the path is as the step left it and can be changed. `protected` is as in
    `require_replaceable`."""
    if step.destination is not None:
        with rooted.locate(rooted.roots.place(step.destination), follow=False) as entry:
            if not is_unchanged(rooted, entry, step.before):
                raise changed_error(step.destination)
    elif not current_state(rooted, step.path).is_like(step.after):
        raise changed_error(step.path)
    elif step.after.kind == step.before.kind == "file":
        with rooted.locate(rooted.roots.place(step.path), follow=False) as entry:
            require_replaceable(entry, entry.stat, step.path, protected)


def _describe(rooted: RootedFiles, step: Step, survey: Survey) -> None:
    """Record what undoing the step is about to change. Raises FilesError with code `changed` if the file is not as
    the step left it."""
    roots = rooted.roots
    if step.destination is not None:
        with (
            rooted.locate(roots.place(step.destination), follow=False) as old,
            rooted.locate(roots.place(step.path), follow=False) as new,
        ):
            survey.record_move(old, new)
    elif step.after.kind == "absent":
        # The path is recorded without a lookup, because its directory may not exist yet.
        survey.record_creation(step.path, step.before)
    else:
        with rooted.locate(roots.place(step.path), follow=False) as entry:
            count = len(survey.steps)
            survey.record_change(entry, step.before)
        # Another program may have changed it since `_require_unchanged`.
        if len(survey.steps) == count or not survey.steps[count].before.is_like(step.after):
            raise changed_error(step.path)


def _restore_all(journal: Journal, rooted: RootedFiles, number: int, data: Sequence[bytes]) -> list[str]:
    """Make the recorded steps of the undo, which is the change with that number, and return the metadata that could
    not be restored. On failure, all steps are reverted.
    """
    steps = journal.steps(number)
    lost: dict[str, None] = {}
    restored: list[Step] = []
    with ExitStack() as on_failure:
        on_failure.callback(_put_back, journal, rooted, restored)
        for step, content in zip(steps, data, strict=True):
            lost |= dict.fromkeys(restore(rooted, step, content))
            restored.append(step)
        for step in reversed(steps):
            if step.after.kind == "directory" and step.destination is None:
                lost |= dict.fromkeys(finish_directory(rooted, step.path, step.after))
        on_failure.pop_all()
    return list(lost)


def _put_back(journal: Journal, rooted: RootedFiles, restored: Sequence[Step]) -> None:
    """Revert the steps that were made, latest first."""
    for step in reversed(restored):
        with suppress(FilesError, OSError):
            data = b"" if step.image is None else journal.images.read(step.image)
            path, destination = (step.path, None) if step.destination is None else (step.destination, step.path)
            restore(rooted, Step(path, step.after, step.before, None, destination), data)
            if step.before.kind == "directory" and destination is None:
                finish_directory(rooted, path, step.before)
