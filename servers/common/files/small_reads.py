"""Reads small local files and directories in the event loop itself. No other code accesses files there.

Handing a small read of a local file to a thread takes longer than the read itself. This module does the simplest form
of the walk in `posix`: each step opens one name in its parent directory without following links, and the type of the
file is checked once it is open. In all other cases the result is None: for a link, a deep path, a large, special,
denied or missing file, or a file system that is not local. The caller then lets a thread do the work or report the
error.

A disk may be slow at any time. After an access that kept the event loop waiting for the disk, accesses to that place
are left to threads for a minute, and accesses to all other places for ten times as long as that access took.
"""

import os
import stat
import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from operator import attrgetter
from typing import TypeVar

from shared.program.files.entries import Place, SmallFile
from shared.program.files.system import DIRECTORY, READ, SCAN

from .mounts import Mounts
from .rooted_files import RootedFiles
from .roots import Roots

try:
    import resource
except ModuleNotFoundError:  # as on Windows
    _getrusage = _THREAD = None
else:
    _getrusage, _THREAD = getattr(resource, "getrusage", None), getattr(resource, "RUSAGE_THREAD", None)

T = TypeVar("T")

MAX_SIZE = 65_536
"""Maximum size of a file that the event loop reads, in bytes."""
MAX_DEPTH = 16
"""Maximum depth of a path that the event loop walks. A deeper walk takes longer than starting a thread."""
MAX_ENTRIES = 250
"""Maximum number of entries in a directory that the event loop reads. Reading that many takes a millisecond."""
LATE_SECONDS = 0.005
"""An access that read from the disk is late if it took longer than this many seconds."""
PAUSE_FACTOR = 10
"""After a late access, all accesses are left to threads for this many times its duration."""
SLOW_SECONDS = 60.0
"""Number of seconds after a late access for which only threads access that place."""
_MAX_SLOW = 1_000
"""Maximum number of places of late accesses that are remembered."""


class SmallFiles:
    """Reads small local files below the roots. Only the thread of the event loop may use it."""

    def __init__(self, rooted: RootedFiles, mounts: Mounts, clock: Callable[[], float] = time.monotonic) -> None:
        self._rooted = rooted
        self._mounts = mounts
        self._clock = clock
        self._disk_reads = _count_disk_reads()
        self._paused_until = 0.0
        self._slow_places: OrderedDict[tuple[int, tuple[str, ...]], float] = OrderedDict()
        """For each place with a late access, the time until which accesses to it are left to threads."""

    def read(self, place: Place) -> SmallFile | None:
        """Return the file at `place`, or None if it must be read in a thread."""
        return self.run_at(place, _read_small_file)

    def status(self, place: Place) -> os.stat_result | None:
        """Return the status of the entry at `place`, or None if it must be read in a thread."""
        return self.run_at(place, lambda name, directory: os.stat(name, dir_fd=directory, follow_symlinks=False))

    def scan(self, place: Place, function: Callable[[list["os.DirEntry[str]"]], T]) -> T | None:
        """Call `function` with the entries of the directory at `place`, sorted by name, while the directory is open,
        and return the result; None if the directory must be read in a thread."""

        def scan(name: str, directory: int) -> T | None:
            descriptor = os.open(name, SCAN, dir_fd=directory)
            try:
                with os.scandir(descriptor) as scanned:
                    entries = list(islice(scanned, MAX_ENTRIES + 1))
                return function(sorted(entries, key=attrgetter("name"))) if len(entries) <= MAX_ENTRIES else None
            finally:
                os.close(descriptor)

        return self.run_at(place, scan)

    def run_at(self, place: Place, operation: Callable[[str, int], T | None]) -> T | None:
        """Call `operation` with the last name of `place` and the descriptor of its directory, and return the result;
        None if a thread must do the work. For example, only a thread opens a root again that was recreated."""
        parts = place.parts
        directory, opened = self._rooted.root_descriptor(place.root_index), -1
        if directory is None or len(parts) > MAX_DEPTH or ".." in parts:
            return None
        if self._rooted.roots.denies(place) or not self._mounts.is_local(place):
            return None
        began = self._clock()
        if began < self._paused_until or (self._slow_places and began < self._slow_places.get(place[:2], 0.0)):
            return None
        try:
            if not parts:
                return operation(".", directory) if os.fstat(directory).st_nlink else None
            for name in parts[:-1]:
                directory = os.open(name, DIRECTORY, dir_fd=directory)
                if opened >= 0:
                    os.close(opened)
                opened = directory
            return operation(parts[-1], directory)
        except OSError:
            return None
        finally:
            if opened >= 0:
                os.close(opened)
            if (duration := self._clock() - began) > LATE_SECONDS:
                self._pause(place, duration)

    def _pause(self, place: Place, duration: float) -> None:
        """Leave the next accesses to threads after one that took `duration` seconds, if it read from the disk. If it
        did not, it was late because other processes used the processor."""
        before, self._disk_reads = self._disk_reads, _count_disk_reads()
        if self._disk_reads == before:
            return
        now = self._clock()
        self._paused_until = now + PAUSE_FACTOR * duration
        self._slow_places[place[:2]] = now + SLOW_SECONDS
        if len(self._slow_places) > _MAX_SLOW:
            self._slow_places.popitem(last=False)


class NarrowedSmallFiles(SmallFiles):
    """Reads small local files below parts of the roots. Each walk begins at the root, so that no link is followed on
    the way to the part."""

    def __init__(self, small: SmallFiles, roots: Roots) -> None:
        self._small = small
        self._roots = roots

    def run_at(self, place: Place, operation: Callable[[str, int], T | None]) -> T | None:
        """Call `SmallFiles.run_at` for the place in the operator's roots."""
        return self._small.run_at(self._roots.outer(place), operation)


def _read_small_file(name: str, directory: int) -> SmallFile | None:
    # Check the type before opening, because merely opening can wake the writer of a pipe, or start a device.
    if not _is_small(os.stat(name, dir_fd=directory, follow_symlinks=False)):
        return None
    descriptor = os.open(name, READ, dir_fd=directory)
    try:
        status = os.fstat(descriptor)
        if not _is_small(status):
            return None
        data = os.read(descriptor, status.st_size + 1)
        return SmallFile(data, status) if len(data) == status.st_size else None
    finally:
        os.close(descriptor)


def _count_disk_reads() -> int:
    """Return how many blocks this thread has read from disks. If the system does not count them, return a different
    number each time, so that every late access counts as one to the disk."""
    if _getrusage is None or _THREAD is None:
        return time.monotonic_ns()
    return int(_getrusage(_THREAD).ru_inblock)


def _is_small(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_size <= MAX_SIZE
