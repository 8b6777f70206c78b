"""What a watched place looked like, so that a later look tells whether it changed.

A change is one of content: small files are compared by hash, larger ones by size, time and inode, directories by
the names in them, and what cannot be read by the reason why. So a chmod, a touch, or a rename-over with the same
bytes is none. A file whose stamp stayed the same is not read again, unless the stamp is so fresh that a second
write could have left it alone.
"""

import hashlib
import os
import stat
import time
from typing import NamedTuple

from servers.filesystem.access.beneath import Beneath
from servers.filesystem.access.roots import Place
from servers.filesystem.errors import FilesError

MAX_HASHED = 1024 * 1024
"""Largest file compared by content, in bytes."""

_SETTLED_NS = 2_000_000_000


class Sighting(NamedTuple):
    """One look at a place. Two with the same `content` show no change.

    `trail` holds every path looked up on the way; `directory` is the path of the place itself if it is one.
    """

    content: bytes
    trail: tuple[str, ...]
    directory: str | None
    stamp: tuple[int, ...] | None
    taken: int


def look(beneath: Beneath, place: Place, last: Sighting | None = None) -> Sighting:
    """Look at `place`; `last` is the look before, which may save reading."""
    taken = time.time_ns()
    # Before the content: what changes the way after this is seen by the next look.
    trail = beneath.trail(place)
    try:
        found = beneath.stat(place)
        stamp = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        directory = None
        if stat.S_ISDIR(found.st_mode):
            directory = trail[-1] if trail else beneath.roots.path(place)
        if last is not None and last.stamp == stamp and max(stamp[3:]) < last.taken - _SETTLED_NS:
            return Sighting(last.content, trail, directory, stamp, last.taken)
        return Sighting(_content(beneath, place, found), trail, directory, stamp, taken)
    except FilesError as error:
        return Sighting(b"!" + error.code.encode(), trail, None, None, taken)


def _content(beneath: Beneath, place: Place, found: os.stat_result) -> bytes:
    if stat.S_ISDIR(found.st_mode):
        with beneath.open_directory(place) as directory:
            return _digest(b"\0".join(sorted(os.fsencode(name) for name in os.listdir(directory))))  # noqa: PTH208
    if found.st_size > MAX_HASHED:
        return f"{found.st_size} {found.st_mtime_ns} {found.st_ino}".encode()
    with beneath.open_file(place) as handle:
        return _digest(os.read(handle.descriptor, MAX_HASHED + 1))


def _digest(data: bytes) -> bytes:
    return b"#" + hashlib.blake2b(data, digest_size=16).digest()
