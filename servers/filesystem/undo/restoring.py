"""Restores a path to an earlier state, for undo.

A path is changed only if it still has the expected state. If another program replaces the file, link or directory
after this was checked, the change is refused. Like every write, it is atomic. A recreated entry gets the recorded
mode, owner and attributes; an existing file keeps its own.
"""

import errno
import os
import stat
from contextlib import ExitStack
from functools import partial

from servers.common.files.exchange import exchange
from servers.common.files.locks import lock_entries
from servers.common.files.rooted_files import RootedFiles
from shared.program.files.atomic import (
    check_and_rename,
    discard,
    is_temporary_name,
    prepare_replacement,
    put_in_place,
    rename_to_unused,
    sync,
    sync_directory,
    temporary_entry,
    write_all,
)
from shared.program.files.entries import (
    Entry,
    create,
    enter_directory,
    make_directory,
    remove_directory,
    remove_tree,
    stat_entry,
    unlink,
)
from shared.program.files.metadata import initial_mode, set_link_owner, set_metadata
from shared.program.files.system import SYSTEM

from ..edit.delete import Bounds, children, empty, is_directory, unlink_same
from ..edit.move import rename_entry
from ..edit.preconditions import require_free
from ..edit.write import MAX_EDITED
from ..errors import FilesError
from ..history.changes import Step
from ..history.states import State, state_of


def restore(rooted: RootedFiles, step: Step, data: bytes) -> list[str]:
    """Make `step`, one step of an undo: change its path from `step.before` to `step.after`. A file then contains
    `data`. Return any owner, group or attributes that could not be restored.

    Raises FilesError, with code `changed` if the path is not in the state `step.before`.
    """
    if step.destination is not None:
        _move_back(rooted, step.path, step.destination, step.before)
        return []
    place = rooted.roots.place(step.path)
    rooted.roots.require_writable(place)
    with rooted.locate(place, follow=False) as located, lock_entries(located):
        rooted.roots.require_writable(located.place)
        entry = located._replace(stat=stat_entry(located))
        current_data: bytes | None = None
        if entry.stat is not None and stat.S_ISREG(entry.stat.st_mode):
            # The comparison below and the exchange use the same bytes, so that data appended in between is detected.
            handle = rooted.open_entry(entry, entry.place.path)
            with os.fdopen(handle.descriptor, "rb") as file:
                current_data = file.read() if handle.stat.st_size <= MAX_EDITED else None
        if not state_of(rooted, entry, current_data).is_like(step.before):
            raise changed_error(step.path)
        lost: list[str] = []
        if step.after.kind == "absent":
            _remove(rooted, entry)
        elif step.after.kind == "directory":
            lost = _make_directory(entry, step.after)
        elif step.after.kind == "link":
            SYSTEM.make_link(entry.directory, entry.name, step.after.content)
            lost = set_link_owner(entry, step.after.stat)
        elif entry.stat is not None:
            put_file = partial(exchange, expected=entry.stat, data=current_data)
            put_in_place(prepare_replacement(entry, data, entry.stat), entry, entry.stat, put_file=put_file)
        else:
            lost = _make_file(entry, data, step.after)
        sync_directory(entry)
    return lost


def finish_directory(rooted: RootedFiles, path: str, state: State) -> list[str]:
    """Set the mode of a recreated directory if it denies its owner access. This comes last, since entries must first
    be created in the directory. Return the metadata that could not be set."""
    if state.mode & stat.S_IRWXU == stat.S_IRWXU:
        return []
    with rooted.locate(rooted.roots.place(path), follow=False) as entry, enter_directory(entry) as directory:
        return [] if directory is None else set_metadata(directory, state.stat, state.raw_attributes)


def changed_error(path: str) -> FilesError:
    """Return the error for a path that another program has changed after the change that is to be undone."""
    return FilesError(
        "changed", path, "has been modified since that change", "Undo later changes first, or edit the file."
    )


def is_unchanged(rooted: RootedFiles, entry: Entry, state: State) -> bool:
    """Return True if the entry is still the one that was moved: a file with the same contents (if it is large, of the
    same size), or a directory or link in the same state.
    """
    status = stat_entry(entry)
    if status is not None and state.kind == "file" and not state.content:
        return stat.S_ISREG(status.st_mode) and status.st_size == state.size
    return state_of(rooted, entry).is_like(state)


def _move_back(rooted: RootedFiles, source: str, destination: str, state: State) -> None:
    """Move the entry at `source` to `destination`, if it still has this state."""
    roots = rooted.roots
    places = roots.place(source), roots.place(destination)
    for place in places:
        roots.require_writable(place)
        roots.require_movable(place)
    with (
        rooted.locate(places[0], follow=False) as located,
        rooted.locate(places[1], follow=False) as new,
        lock_entries(located, new),
    ):
        old = located._replace(stat=stat_entry(located))
        if not is_unchanged(rooted, old, state):
            raise changed_error(source)
        require_free(stat_entry(new), destination)
        rename_entry(rooted, old, new, lambda: None)
        sync_directory(new)
        sync_directory(old)


def _remove(rooted: RootedFiles, entry: Entry) -> None:
    """Delete the entry. A directory may contain only temporary files that a killed process has left."""
    if entry.stat is not None and stat.S_ISDIR(entry.stat.st_mode):
        rooted.roots.require_movable(entry.place)
        _discard_unfinished(rooted, entry)
        try:
            remove_directory(entry)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            reason = "contains entries that were added after that change"
            raise FilesError("changed", entry.place.path, reason, "Undo later changes first.") from None
    else:
        unlink_same(entry)


def _discard_unfinished(rooted: RootedFiles, entry: Entry) -> None:
    """Delete temporary files and directories that a killed process has left in the directory. They have names such as
    `temporary_entry` creates."""
    with enter_directory(entry) as directory:
        for name, inner in children(entry, directory):
            if not is_temporary_name(name):
                continue
            if is_directory(inner):
                empty(inner, Bounds(rooted, entry.place.path))
                remove_directory(inner)
            else:
                unlink(inner)


def _make_directory(entry: Entry, state: State) -> list[str]:
    temporary = temporary_entry(entry)
    make_directory(temporary, stat.S_IRWXU)
    with ExitStack() as on_failure:
        on_failure.callback(remove_tree, temporary)
        with enter_directory(temporary) as directory:
            # The owner needs permission to write into it.
            writable = state._replace(mode=state.mode | stat.S_IRWXU)
            lost = [] if directory is None else set_metadata(directory, writable.stat, state.raw_attributes)
        check_and_rename(temporary, entry)
        on_failure.pop_all()
    return lost


def _make_file(entry: Entry, data: bytes, state: State) -> list[str]:
    temporary = temporary_entry(entry)
    descriptor = create(temporary, initial_mode(state.stat))
    try:
        write_all(descriptor, data)
        lost = set_metadata(descriptor, state.stat, state.raw_attributes)
        sync(descriptor)
        rename_to_unused(temporary, entry)
    finally:
        os.close(descriptor)
        discard(temporary)
    return lost
