"""Deletes a file, a link (not its target) or a directory, and walks through directories within limits.

Like `rm`, this needs write permission on the parent directory, not on the entry itself. A directory that is not empty
is walked twice: first to check that everything in it may be deleted, then to delete it. So a call that is refused,
exceeds a limit or is cancelled deletes nothing. A directory is opened by its name in its open parent directory, and
never through a link, so an entry that is swapped in the meantime can't redirect the deletion. The depth is limited
because one descriptor is open for each level.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice

from servers.common.files.locks import lock_entries
from servers.common.files.rooted_files import RootedFiles, missing_error
from shared.program.files.atomic import check_and_rename, rename, rename_to_unused, sync_directory, temporary_entry
from shared.program.files.entries import Entry, Place, child, enter_directory, remove_directory, stat_entry, unlink
from shared.program.files.system import SYSTEM

from ..errors import FilesError
from ..history.recording import NOT_RECORDED, Recorder, Survey
from ..history.states import ABSENT
from .preconditions import require_file_name, require_same

MAX_ENTRIES = 100_000
"""Maximum number of files and directories that one call copies or deletes."""
MAX_DEPTH = 100
"""Maximum depth of a directory that one call copies or deletes."""


Mark = tuple[int, ...]
"""Properties of an entry, at least one of which differs after another program has changed the entry."""


class Bounds:
    """The limits of a walk through a directory tree, and the number of entries counted so far."""

    def __init__(
        self,
        rooted: RootedFiles,
        path: str,
        device: int | None = None,
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        """`path` is for errors. With `device`, the walk fails at a directory on another file system. `checkpoint` is
        called for each entry, and raises if the call was cancelled.
        """
        self.entries = 0
        self.rooted = rooted
        self._path = path
        self._device = device
        self._checkpoint = checkpoint

    def require_enterable(self, status: os.stat_result, depth: int) -> None:
        """Raise if the directory with this `status` must not be entered. The first directory has depth 1."""
        if depth > MAX_DEPTH:
            raise FilesError("too_large", self._path, f"contains directories nested deeper than {MAX_DEPTH}")
        if self._device not in (None, status.st_dev):
            raise FilesError("cross_device", self._path, "contains a directory on another file system")

    def renew(self) -> "Bounds":
        """Return a copy of these bounds with the count at zero."""
        return Bounds(self.rooted, self._path, self._device, self._checkpoint)

    def count(self, entry: Entry) -> None:
        """Count an entry. Raises if it is denied, if there are too many, or if the call was cancelled."""
        self._checkpoint()
        self.entries += 1
        if self.entries > MAX_ENTRIES:
            raise FilesError("too_large", self._path, f"contains more than {MAX_ENTRIES:,} entries")
        if self.rooted.roots.denies(entry.place):
            reason = "contains an entry whose name is denied to this server"
            raise FilesError("denied", self._path, reason, "Only the operator can allow it.")


def stat_of(entry: Entry, directory: int | None) -> os.stat_result:
    """Return the status of the directory that `enter_directory` returned for `entry`."""
    return os.lstat(entry.name) if directory is None else os.fstat(directory)


def children(entry: Entry, directory: int | None) -> Iterator[tuple[str, Entry]]:
    """Yield the names and entries currently in the directory that `enter_directory` returned for `entry`."""
    target = entry.name if directory is None else directory
    with SYSTEM.scan(target) as scan:
        # All names are read at once, since entries may be deleted during the walk. One name more than the limit shows
        # that the directory has too many.
        names = [item.name for item in islice(scan, MAX_ENTRIES + 1)]
    for name in names:
        inner = child(entry, directory, name)
        status = stat_entry(inner)
        if status is not None:
            yield name, inner._replace(stat=status)


def is_directory(entry: Entry) -> bool:
    """Return True if the entry was a directory when it was looked up; False for a link to a directory."""
    return entry.stat is not None and stat.S_ISDIR(entry.stat.st_mode)


def delete(
    rooted: RootedFiles,
    place: Place,
    recursive: bool = False,
    etag: str | None = None,
    checkpoint: Callable[[], None] = lambda: None,
    recorder: Recorder = NOT_RECORDED,
) -> int:
    """Delete the entry at `place` and return the number of deleted entries. With `etag`, delete it only if its etag
    still matches.

    A directory that is not empty needs `recursive`. Raises FilesError with code `changed`; with `not_empty`,
    `too_large`, `denied` and `cross_device` because of a directory's contents; and with `bad_path` for an allowed
    directory or a parent of one. `checkpoint` may raise until the first entry is deleted.
    """
    roots = rooted.roots
    roots.require_writable(place)
    roots.require_movable(place)
    with rooted.locate(place, follow=False) as located, lock_entries(located):
        roots.require_writable(located.place)
        roots.require_movable(located.place)
        entry = located._replace(stat=stat_entry(located))
        if entry.stat is None:
            raise missing_error(entry, place.path)
        require_same(entry.stat, etag, place.path)
        count = 1
        if is_directory(entry):
            bounds = Bounds(rooted, place.path, entry.stat.st_dev, checkpoint)
            if recursive:
                empty(entry, bounds, remove=False)
            count += bounds.entries
            # From here on the deletion runs to its end, even if the call is cancelled.
            bounds = Bounds(rooted, place.path, entry.stat.st_dev)
            _delete_directory(entry, bounds, recursive, recorder)
        else:
            require_file_name(place)
            with recorder.record(rooted, "delete", lambda survey: survey.record_change(entry, ABSENT)) as number:
                (unlink if number is None else unlink_same)(entry)
        sync_directory(entry)
    return count


def empty(entry: Entry, bounds: Bounds, depth: int = 1, remove: bool = True) -> None:
    """Delete everything in the directory `entry`, including links but not their targets; without `remove`, only count
    and check the entries."""
    with enter_directory(entry) as directory:
        bounds.require_enterable(stat_of(entry, directory), depth)
        for _, inner in children(entry, directory):
            bounds.count(inner)
            if is_directory(inner):
                empty(inner, bounds, depth + 1, remove)
            if remove:
                (remove_directory if is_directory(inner) else unlink)(inner)


def unlink_same(entry: Entry) -> None:
    """Delete exactly this file or link, and never an entry that has replaced it. Raises OSError, and FilesError with
    code `changed`."""
    temporary = temporary_entry(entry)
    rename(entry, temporary)
    now, before = stat_entry(temporary), entry.stat
    if (
        now is None
        or before is None
        or not os.path.samestat(now, before)
        # The ctime is not compared, because a rename or a new hard link changes it too.
        or (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns)
    ):
        rename_to_unused(temporary, entry)
        raise _changed_error(entry)
    unlink(temporary)


def _delete_directory(entry: Entry, bounds: Bounds, recursive: bool, recorder: Recorder) -> None:
    marks: dict[tuple[str, ...], Mark] = {}

    def describe(survey: Survey) -> None:
        if recursive:
            _describe_tree(entry, bounds.renew(), survey, marks)
        survey.record_change(entry, ABSENT)

    with recorder.record(bounds.rooted, "delete", describe) as number:
        if not marks or number is None:
            if recursive:
                empty(entry, bounds)
            _remove_directory(entry, entry.place.path)
            return
        # No other program knows the temporary name, so no entries are added that were not recorded.
        temporary = temporary_entry(entry)
        check_and_rename(entry, temporary)
        with ExitStack() as on_failure:
            on_failure.callback(check_and_rename, temporary, entry)
            if _read_marks(temporary, bounds.renew()) != marks:
                raise _changed_error(entry)
            empty(temporary, bounds)
            remove_directory(temporary)
            on_failure.pop_all()


def _describe_tree(entry: Entry, bounds: Bounds, survey: Survey, marks: dict[tuple[str, ...], Mark]) -> None:
    """Record everything in the directory, and add the mark of each entry to `marks`. The contents of a directory are
    recorded before the directory itself."""
    with enter_directory(entry) as directory:
        for _, inner in children(entry, directory):
            bounds.count(inner)
            marks[inner.place.parts] = _mark(inner)
            if is_directory(inner):
                _describe_tree(inner, bounds, survey, marks)
            survey.record_change(inner, ABSENT)


def _read_marks(entry: Entry, bounds: Bounds) -> dict[tuple[str, ...], Mark]:
    """Return the marks of all entries in the directory, by their components."""
    marks: dict[tuple[str, ...], Mark] = {}
    with enter_directory(entry) as directory:
        for _, inner in children(entry, directory):
            bounds.count(inner)
            marks[inner.place.parts] = _mark(inner)
            if is_directory(inner):
                marks |= _read_marks(inner, bounds)
    return marks


def _mark(entry: Entry) -> Mark:
    status = entry.stat
    return () if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _changed_error(entry: Entry) -> FilesError:
    return FilesError(
        "changed", entry.place.path, "has been changed by another program in the meantime", "List it again."
    )


def _remove_directory(entry: Entry, path: str) -> None:
    try:
        remove_directory(entry)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        suggestion = "Pass recursive: true to delete it with everything in it."
        raise FilesError("not_empty", path, "is a directory that is not empty", suggestion) from None
