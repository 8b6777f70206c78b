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
from itertools import islice

from servers.common.files.locks import locked
from servers.common.files.rooted_files import RootedFiles, missing
from servers.filesystem.edit.preconditions import require_file_name, require_same
from servers.filesystem.errors import FilesError
from shared.program.files.atomic import sync_directory
from shared.program.files.entries import Entry, Place, child, current, opened, remove_directory, unlink
from shared.program.files.system import SYSTEM

MAX_ENTRIES = 100_000
"""Files and directories one call copies or deletes."""
MAX_DEPTH = 100
"""Directories within each other that one call copies or deletes."""


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
        self._roots = beneath.roots
        self._written = written
        self._device = device
        self._checkpoint = checkpoint

    def enter(self, found: os.stat_result, depth: int) -> None:
        """Raise where the directory `found`, on level `depth` from 1, must not be entered."""
        if depth > MAX_DEPTH:
            raise FilesError("too_large", self._written, f"holds directories nested deeper than {MAX_DEPTH}")
        if self._device not in (None, found.st_dev):
            raise FilesError("cross_device", self._written, "holds a directory on another file system")

    def count(self, entry: Entry) -> None:
        """Count an entry; raise where it is denied, where there are too many, or nobody waits any more."""
        self._checkpoint()
        self.entries += 1
        if self.entries > MAX_ENTRIES:
            raise FilesError("too_large", self._written, f"holds more than {MAX_ENTRIES:,} entries")
        if self._roots.denies(entry.place):
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
            if recursive:
                device = entry.stat.st_dev
                survey = Bounds(beneath, place.written, device, checkpoint)
                empty(entry, survey, remove=False)
                # From here on it goes to the end, however long the caller waits.
                empty(entry, Bounds(beneath, place.written, device))
                count += survey.entries
            _remove_directory(entry, place.written)
        else:
            require_file_name(place)
            unlink(entry)
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


def _remove_directory(entry: Entry, written: str) -> None:
    try:
        remove_directory(entry)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        suggestion = "With recursive: true it is deleted with all it holds."
        raise FilesError("not_empty", written, "is a directory that is not empty", suggestion) from None
