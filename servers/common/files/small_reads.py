"""Small local files and directories, read at once: the only place where the event loop itself touches a file.

Handing a read to a thread costs more than the read itself, if it is small and no other machine is involved. The
method is the simplest form of the walk in `posix`: each step opens one name in its parent directory without following
links, and the type of the file is checked once it is open. In all other cases the result is None: a link, a deep
path, a large, special, denied or missing file, another file system. Then the walk in a thread does the work or
reports the error.

A disk may be slow at any time. An access that kept the event loop waiting for it is left to a thread for the next
minute, and all others for ten times as long as the access took.
"""

import os
import stat
import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from operator import attrgetter
from typing import TypeVar

from servers.common.files.mounts import Mounts
from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from shared.program.files.entries import Place, SmallFile
from shared.program.files.system import DIRECTORY, READ, SCAN

try:
    import resource
except ModuleNotFoundError:  # as on Windows
    _getrusage = _THREAD = None
else:
    _getrusage, _THREAD = getattr(resource, "getrusage", None), getattr(resource, "RUSAGE_THREAD", None)

T = TypeVar("T")

MAX_SIZE = 65_536
"""Maximum size of a file that is read at once, in bytes."""
MAX_DEPTH = 16
"""Maximum depth of a path that is walked at once. A deeper walk takes as long as a thread."""
MAX_ENTRIES = 250
"""Maximum number of entries in a directory that is read at once, which takes a millisecond."""
LATE_SECONDS = 0.005
"""Seconds after which an access has taken too long, if it read from the disk."""
PAUSE_FACTOR = 10
"""After a late access, all accesses are left to threads for this many times its duration."""
SLOW_SECONDS = 60.0
"""Number of seconds after a late access for which only threads access that place."""
_MAX_SLOW = 1_000
"""Number of places of late accesses that are remembered."""


class SmallFiles:
    """The small local files below the roots. Used only in the thread of the event loop."""

    def __init__(self, rooted: RootedFiles, mounts: Mounts, clock: Callable[[], float] = time.monotonic) -> None:
        self._rooted = rooted
        self._mounts = mounts
        self._clock = clock
        self._disk_reads = _count_disk_reads()
        self._paused_until = 0.0
        self._slow_places: OrderedDict[tuple[int, tuple[str, ...]], float] = OrderedDict()
        """The places of late accesses, and the time from which they are tried again."""

    def read(self, place: Place) -> SmallFile | None:
        """Return the whole file at `place`, or None if it must be read in a thread."""
        return self.run_at(place, _read_whole)

    def status(self, place: Place) -> os.stat_result | None:
        """Return the status of the entry at `place`, or None if it must be read in a thread."""
        return self.run_at(place, lambda name, directory: os.stat(name, dir_fd=directory, follow_symlinks=False))

    def scan(self, place: Place, use: Callable[[list["os.DirEntry[str]"]], T]) -> T | None:
        """Return the result of `use` for the entries, sorted by name, of the directory at `place`, which is open
        during the call; None if it must be read in a thread."""

        def scan(name: str, directory: int) -> T | None:
            descriptor = os.open(name, SCAN, dir_fd=directory)
            try:
                with os.scandir(descriptor) as scanned:
                    entries = list(islice(scanned, MAX_ENTRIES + 1))
                return use(sorted(entries, key=attrgetter("name"))) if len(entries) <= MAX_ENTRIES else None
            finally:
                os.close(descriptor)

        return self.run_at(place, scan)

    def run_at(self, place: Place, act: Callable[[str, int], T | None]) -> T | None:
        """Return the result of `act` for the last name of `place` in its directory, or None if the work must be done
        in a thread, which is where a root that no longer exists is opened again."""
        parts = place.parts
        directory, passed = self._rooted.root_descriptor(place.root_index), -1
        if directory is None or len(parts) > MAX_DEPTH or ".." in parts:
            return None
        if self._rooted.roots.denies(place) or not self._mounts.is_local(place):
            return None
        began = self._clock()
        if began < self._paused_until or (self._slow_places and began < self._slow_places.get(place[:2], 0.0)):
            return None
        try:
            if not parts:
                return act(".", directory) if os.fstat(directory).st_nlink else None
            for name in parts[:-1]:
                directory = os.open(name, DIRECTORY, dir_fd=directory)
                if passed >= 0:
                    os.close(passed)
                passed = directory
            return act(parts[-1], directory)
        except OSError:
            return None
        finally:
            if passed >= 0:
                os.close(passed)
            if (seconds := self._clock() - began) > LATE_SECONDS:
                self._pause(place, seconds)

    def _pause(self, place: Place, seconds: float) -> None:
        """Leave the next accesses to threads after one that took `seconds`, unless other processes used the processor
        in the meantime."""
        before, self._disk_reads = self._disk_reads, _count_disk_reads()
        if self._disk_reads == before:
            return
        now = self._clock()
        self._paused_until = now + PAUSE_FACTOR * seconds
        self._slow_places[place[:2]] = now + SLOW_SECONDS
        if len(self._slow_places) > _MAX_SLOW:
            self._slow_places.popitem(last=False)


class NarrowedSmallFiles(SmallFiles):
    """The small local files below parts of the roots, read from the roots, so that no link is followed on the way."""

    def __init__(self, small: SmallFiles, roots: Roots) -> None:
        self._small = small
        self._roots = roots

    def run_at(self, place: Place, act: Callable[[str, int], T | None]) -> T | None:
        """Return the result of `act` for the last name of `place`, or None if the work must be done in a thread."""
        return self._small.run_at(self._roots.outer(place), act)


def _read_whole(name: str, directory: int) -> SmallFile | None:
    # Checked before opening, because merely opening can wake a writer or start a device.
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
    """Return how often this thread has read from a disk. If the system does not count that, the number is different
    each time."""
    if _getrusage is None or _THREAD is None:
        return time.monotonic_ns()
    return int(_getrusage(_THREAD).ru_inblock)


def _is_small(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_size <= MAX_SIZE
