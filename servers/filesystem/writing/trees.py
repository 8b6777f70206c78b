"""Going through a whole directory, within limits.

A directory is opened by its name in the directory that is held open above it, and never through a link, so what is
swapped meanwhile leads nowhere else. One descriptor is held for each level, which is why the depth is limited.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice

from servers.filesystem.access.beneath import Beneath
from servers.filesystem.access.walk import Entry
from servers.filesystem.errors import FilesError
from servers.filesystem.writing.checks import current

MAX_ENTRIES = 100_000
"""Files and directories one call copies or deletes."""
MAX_DEPTH = 100
"""Directories within each other that one call copies or deletes."""

_SCAN = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

Identity = tuple[int, int]
"""Device and inode."""


class Bounds:
    """What ends a way through a tree, and how far it went."""

    def __init__(
        self,
        written: str,
        barred: Mapping[Identity, str],
        checkpoint: Callable[[], None] = lambda: None,
        device: int | None = None,
    ) -> None:
        """`barred` are directories that must not be entered, with the reason. `checkpoint` is called again and again,
        and raises when nobody waits any more. With `device`, the way stays on that file system."""
        self.entries = 0
        self._written = written
        self._barred = barred
        self._checkpoint = checkpoint
        self._device = device

    def enter(self, found: os.stat_result, depth: int) -> None:
        """Raise where the directory `found`, on level `depth` from 1, must not be entered."""
        reason = self._barred.get(identity(found))
        if reason is not None:
            raise FilesError("bad_path", self._written, reason)
        if depth > MAX_DEPTH:
            raise FilesError("too_large", self._written, f"holds directories nested deeper than {MAX_DEPTH}")
        if self._device not in (None, found.st_dev):
            raise FilesError("cross_device", self._written, "holds a directory on another file system")

    def count(self) -> None:
        """Count an entry; raise where there are too many, or nobody waits any more."""
        self._checkpoint()
        self.entries += 1
        if self.entries > MAX_ENTRIES:
            raise FilesError("too_large", self._written, f"holds more than {MAX_ENTRIES:,} entries")


def identity(found: os.stat_result) -> Identity:
    """What tells a directory from every other, whatever its name."""
    return found.st_dev, found.st_ino


def roots_of(beneath: Beneath) -> set[Identity]:
    """The allowed directories themselves."""
    held = [(beneath.held(index), path) for index, path in enumerate(beneath.roots.paths)]
    return {identity(path.stat() if one is None else os.fstat(one)) for one, path in held}


@contextmanager
def opened(entry: Entry) -> Iterator[int | None]:
    """The directory `entry`, open; None where the system has no descriptors of directories."""
    if entry.directory is None:
        yield None
        return
    descriptor = os.open(entry.name, _SCAN, dir_fd=entry.directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def stat_of(entry: Entry, directory: int | None) -> os.stat_result:
    """What the directory is that `opened` gave for `entry`."""
    return os.lstat(entry.name) if directory is None else os.fstat(directory)


def children(entry: Entry, directory: int | None) -> Iterator[tuple[str, Entry]]:
    """What is in the directory that `opened` gave for `entry`: names, and entries as they are found now."""
    with os.scandir(entry.name if directory is None else directory) as scan:
        # All at once, for entries may be deleted meanwhile; one too many is enough to see that there are too many.
        names = [one.name for one in islice(scan, MAX_ENTRIES + 1)]
    for name in names:
        path = os.path.join(entry.name, name) if directory is None else name  # noqa: PTH118 (keeps surrogates)
        child = Entry(directory, path, None, linked=False)
        now = current(child)
        if now is not None:
            yield name, child._replace(stat=now)


def is_directory(entry: Entry) -> bool:
    """Whether the entry was a directory, not a link to one, when it was found."""
    return entry.stat is not None and stat.S_ISDIR(entry.stat.st_mode)
