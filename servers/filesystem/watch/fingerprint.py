"""The state of a watched place at one check, so that a later check can detect a change.

Only content counts: small files are compared by hash, larger ones by size, modification time and inode, directories
by the names and kinds of their entries, and unreadable places by the code of the error. So for a small file, a chmod,
a touch, or a replacement with the same bytes is not a change. A file whose stamp (device, inode, size and times) is
unchanged is not read again, unless its times are so recent that a second write could have left the stamp the same.
"""

import hashlib
import os
import stat
import time
from collections.abc import Collection
from typing import NamedTuple

from servers.common.files.rooted_files import RootedFiles
from shared.program.files.entries import Place, list_entries

from ..errors import FilesError

MAX_HASHED = 1024 * 1024
"""Maximum size in bytes of a file compared by content."""

_SETTLED_NS = 2_000_000_000
"""Age in nanoseconds at which a stamp proves that a file has not changed: FAT stores times in two-second steps."""


class Fingerprint(NamedTuple):
    """The result of checking a place. If two fingerprints have the same `content`, nothing has changed in between.

    `trail` contains every path looked up on the way; `directory` is the path of the place if it is a directory;
    `checked_at` is the time at which the content was read, in nanoseconds since 1970.
    """

    content: bytes
    trail: tuple[str, ...]
    directory: str | None
    stamp: tuple[int, ...] | None
    checked_at: int


def take_fingerprint(rooted: RootedFiles, place: Place, last: Fingerprint | None = None) -> Fingerprint:
    """Check `place`. The `last` result may save reading the file again."""
    now = time.time_ns()
    # The trail is read before the content, so the next check detects a change of the path that comes between.
    trail = trail_of(rooted, place)
    try:
        status = rooted.stat(place)
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        directory = None
        if stat.S_ISDIR(status.st_mode):
            directory = trail[-1] if trail else rooted.roots.path(place)
        if last is not None and last.stamp == stamp and max(stamp[3:]) < last.checked_at - _SETTLED_NS:
            return Fingerprint(last.content, trail, directory, stamp, last.checked_at)
        return Fingerprint(_content(rooted, place, status), trail, directory, stamp, now)
    except FilesError as error:
        return Fingerprint(b"!" + error.code.encode(), trail, None, None, now)


def trail_of(rooted: RootedFiles, place: Place) -> tuple[str, ...]:
    """Return every path looked up on the way to `place`, as far as it exists."""
    try:
        return rooted.trail(place)
    except OSError:
        # The root itself no longer exists.
        return ()


class WatchedPlace:
    """One watched place: its last fingerprint, and the paths to watch for changes."""

    def __init__(self, rooted: RootedFiles, place: Place) -> None:
        self._rooted = rooted
        self._place = place
        self.place = rooted.roots.outer(place)
        """The place, below the operator's roots."""
        self.last: Fingerprint | None = None

    @property
    def trail(self) -> tuple[str, ...]:
        """The paths whose changes affect the place."""
        return self.last.trail if self.last is not None else ()

    @property
    def directories(self) -> tuple[str, ...]:
        """The directories all of whose entries affect the place."""
        return () if self.last is None or self.last.directory is None else (self.last.directory,)

    @property
    def is_outside(self) -> bool:
        """True if the place is outside the roots, or denied."""
        return self.last is not None and self.last.content in (b"!outside_roots", b"!denied")

    def check(self, _noticed: Collection[str] | None) -> bool:
        """Check again, and return True if something has changed since the last check."""
        before = self.last
        self.last = take_fingerprint(self._rooted, self._place, before)
        return before is not None and before.content != self.last.content

    def close(self) -> None:
        """Do nothing, since nothing is open."""


def _content(rooted: RootedFiles, place: Place, status: os.stat_result) -> bytes:
    if stat.S_ISDIR(status.st_mode):
        with rooted.open_directory(place) as directory:
            names: list[bytes] = []
            for entry in list_entries(directory):
                kind = b"/l" if entry.is_symlink() else b"/d" if entry.is_dir(follow_symlinks=False) else b"/"
                names.append(os.fsencode(entry.name) + kind)
            return _digest(b"\0".join(sorted(names)))
    if status.st_size > MAX_HASHED:
        return f"{status.st_size} {status.st_mtime_ns} {status.st_ino}".encode()
    with rooted.open_file(place) as handle:
        return _digest(os.read(handle.descriptor, MAX_HASHED + 1))


def _digest(data: bytes) -> bytes:
    return b"#" + hashlib.blake2b(data, digest_size=16).digest()
