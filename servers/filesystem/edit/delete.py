"""Deleting a file, a link itself or a directory, and going through a whole directory within limits.

Like `rm`, this needs permission on the directory and not on what is deleted. A directory that is not empty is gone
through twice: first to see that everything in it may go, then to delete it. So what is refused, too large or
cancelled loses nothing. A directory is opened by its name in the directory that is held open above it, and never
through a link, so what is swapped meanwhile leads nowhere else. One descriptor is held for each level, which is why
the depth is limited.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice

from servers.common.files.locks import locked
from servers.common.files.rooted_files import RootedFiles, missing
from servers.filesystem.edit.preconditions import require_file_name, require_same
from servers.filesystem.errors import FilesError
from servers.filesystem.history.recording import NOT_RECORDED, Recorder, Survey
from servers.filesystem.history.states import ABSENT
from shared.program.files.atomic import beside, give_name, rename, rename_to_free, sync_directory
from shared.program.files.entries import Entry, Place, child, current, opened, remove_directory, unlink
from shared.program.files.system import SYSTEM

MAX_ENTRIES = 100_000
"""Files and directories one call copies or deletes."""
MAX_DEPTH = 100
"""Directories within each other that one call copies or deletes."""


Mark = tuple[int, ...]


class Bounds:
    """What ends a way through a tree, and how far it went."""

    def __init__(
        self,
        beneath: RootedFiles,
        written: str,
        device: int | None = None,
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        """With `device` the way stays on that file system. `checkpoint` is called again and again, and raises when
        nobody waits any more."""
        self.entries = 0
        self.beneath = beneath
        self._written = written
        self._device = device
        self._checkpoint = checkpoint

    def enter(self, found: os.stat_result, depth: int) -> None:
        """Raise where the directory `found`, on level `depth` from 1, must not be entered."""
        if depth > MAX_DEPTH:
            raise FilesError("too_large", self._written, f"holds directories nested deeper than {MAX_DEPTH}")
        if self._device not in (None, found.st_dev):
            raise FilesError("cross_device", self._written, "holds a directory on another file system")

    def anew(self) -> "Bounds":
        """The same, from the start."""
        return Bounds(self.beneath, self._written, self._device, self._checkpoint)

    def count(self, entry: Entry) -> None:
        """Count an entry; raise where it is denied, where there are too many, or nobody waits any more."""
        self._checkpoint()
        self.entries += 1
        if self.entries > MAX_ENTRIES:
            raise FilesError("too_large", self._written, f"holds more than {MAX_ENTRIES:,} entries")
        if self.beneath.roots.denies(entry.place):
            reason = "holds something that is denied to this server by its name"
            raise FilesError("denied", self._written, reason, "Only the operator can allow it.")


def stat_of(entry: Entry, directory: int | None) -> os.stat_result:
    """What the directory is that `opened` gave for `entry`."""
    return os.lstat(entry.name) if directory is None else os.fstat(directory)


def children(entry: Entry, directory: int | None) -> Iterator[tuple[str, Entry]]:
    """What is in the directory that `opened` gave for `entry`: names, and entries as they are found now."""
    there = entry.name if directory is None else directory
    with SYSTEM.scan(there) as scan:
        # All at once, for entries may be deleted meanwhile; one too many is enough to see that there are too many.
        names = [one.name for one in islice(scan, MAX_ENTRIES + 1)]
    for name in names:
        found = child(entry, directory, name)
        now = current(found)
        if now is not None:
            yield name, found._replace(stat=now)


def is_directory(entry: Entry) -> bool:
    """Whether the entry was a directory, not a link to one, when it was found."""
    return entry.stat is not None and stat.S_ISDIR(entry.stat.st_mode)


def delete(
    beneath: RootedFiles,
    place: Place,
    recursive: bool = False,
    etag: str | None = None,
    checkpoint: Callable[[], None] = lambda: None,
    recorder: Recorder = NOT_RECORDED,
) -> int:
    """Delete what is at `place`, and tell how many entries that were; with `etag`, only while it still has that.

    A directory that is not empty needs `recursive`. Raises `not_empty`, `changed`, `too_large`, `denied` and
    `cross_device` for what it holds, and `bad_path` for what is an allowed directory or holds one. `checkpoint` may
    raise as long as nothing is deleted.
    """
    roots = beneath.roots
    roots.require_writable(place)
    roots.require_movable(place)
    with beneath.locate(place, follow=False) as named, locked(named):
        roots.require_writable(named.place)
        roots.require_movable(named.place)
        entry = named._replace(stat=current(named))
        if entry.stat is None:
            raise missing(entry, place.written)
        require_same(entry.stat, etag, place.written)
        count = 1
        if is_directory(entry):
            bounds = Bounds(beneath, place.written, entry.stat.st_dev, checkpoint)
            if recursive:
                empty(entry, bounds, remove=False)
            count += bounds.entries
            # From here on it goes to the end, however long the caller waits.
            bounds = Bounds(beneath, place.written, entry.stat.st_dev)
            _delete_directory(entry, bounds, recursive, recorder)
        else:
            require_file_name(place)
            with recorder.recording(beneath, "delete", lambda survey: survey.changes(entry, ABSENT)) as number:
                (unlink if number is None else unlink_same)(entry)
        sync_directory(entry)
    return count


def empty(entry: Entry, bounds: Bounds, depth: int = 1, remove: bool = True) -> None:
    """Remove everything that is in the directory `entry`, links as links; without `remove`, only count it."""
    with opened(entry) as directory:
        bounds.enter(stat_of(entry, directory), depth)
        for _, child in children(entry, directory):
            bounds.count(child)
            if is_directory(child):
                empty(child, bounds, depth + 1, remove)
            if remove:
                (remove_directory if is_directory(child) else unlink)(child)


def unlink_same(entry: Entry) -> None:
    """Delete the file or link of the entry as it was found, and nothing that others have put there since. Raises
    `changed`, OSError."""
    aside = beside(entry)
    rename(entry, aside)
    if not _is_same(current(aside), entry.stat):
        give_name(aside, entry)
        raise _changed(entry)
    unlink(aside)


def _delete_directory(entry: Entry, bounds: Bounds, recursive: bool, recorder: Recorder) -> None:
    marks: dict[tuple[str, ...], Mark] = {}

    def describe(survey: Survey) -> None:
        if recursive:
            _describe_tree(entry, bounds.anew(), survey, marks)
        survey.changes(entry, ABSENT)

    with recorder.recording(bounds.beneath, "delete", describe) as number:
        if not marks or number is None:
            if recursive:
                empty(entry, bounds)
            _remove_directory(entry, entry.place.written)
            return
        # Under a name that nobody knows, nothing comes into it that was not noted down.
        aside = beside(entry)
        rename_to_free(entry, aside)
        with ExitStack() as on_failure:
            on_failure.callback(rename_to_free, aside, entry)
            if _marks_in(aside, bounds.anew()) != marks:
                raise _changed(entry)
            empty(aside, bounds)
            remove_directory(aside)
            on_failure.pop_all()


def _describe_tree(entry: Entry, bounds: Bounds, survey: Survey, marks: dict[tuple[str, ...], Mark]) -> None:
    """Notes down all that is in the directory, what is in one before itself, and the marks of all."""
    with opened(entry) as directory:
        for _, inner in children(entry, directory):
            bounds.count(inner)
            marks[inner.place.parts] = _mark(inner)
            if is_directory(inner):
                _describe_tree(inner, bounds, survey, marks)
            survey.changes(inner, ABSENT)


def _marks_in(entry: Entry, bounds: Bounds) -> dict[tuple[str, ...], Mark]:
    """What is in the directory, with marks that are other ones where somebody has changed it."""
    marks: dict[tuple[str, ...], Mark] = {}
    with opened(entry) as directory:
        for _, inner in children(entry, directory):
            bounds.count(inner)
            marks[inner.place.parts] = _mark(inner)
            if is_directory(inner):
                marks |= _marks_in(inner, bounds)
    return marks


def _mark(entry: Entry) -> Mark:
    found = entry.stat
    return () if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _is_same(now: os.stat_result | None, found: os.stat_result | None) -> bool:
    """Whether nobody has written to what was found; a rename, or a second name, changes no more than its ctime."""
    if now is None or found is None:
        return False
    return os.path.samestat(now, found) and (now.st_size, now.st_mtime_ns) == (found.st_size, found.st_mtime_ns)


def _changed(entry: Entry) -> FilesError:
    return FilesError("changed", entry.place.written, "was changed by someone else meanwhile", "List it again.")


def _remove_directory(entry: Entry, written: str) -> None:
    try:
        remove_directory(entry)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        suggestion = "With recursive: true it is deleted with all it holds."
        raise FilesError("not_empty", written, "is a directory that is not empty", suggestion) from None
