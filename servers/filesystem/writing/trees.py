"""Going through a whole directory, within limits.

A directory is opened by its name in the directory that is held open above it, and never through a link, so what is
swapped meanwhile leads nowhere else. One descriptor is held for each level, which is why the depth is limited.
"""

import os
import stat
from collections.abc import Callable, Iterator
from itertools import islice

from servers.filesystem.errors import FilesError
from shared.kit.rooted.entries import Entry, child, current
from shared.kit.rooted.files import RootedFiles

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
    with os.scandir(entry.name if directory is None else directory) as scan:
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
