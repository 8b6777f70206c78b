"""One writer per file among all processes that ask: a lock of the system on the file itself (flock).

It leaves nothing behind in anybody's directory. A write puts another file under the name, so whoever has got the lock
looks whether the name still leads to what was locked, and otherwise begins anew with what is there now. A name that
is free needs no lock: only one can give it. Where the system or the file system has no such locks there are none.
"""

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from servers.filesystem.errors import FilesError
from shared.kit.rooted.entries import Entry, current

if sys.platform != "win32":
    import fcntl

PATIENCE = 10.0
"""Seconds to wait for other processes; a write takes milliseconds."""

_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.01

Inode = tuple[int, int]


@contextmanager
def claimed(entry: Entry, held: set[Inode], check: Callable[[], None]) -> Iterator[None]:
    """Holds the regular file of the entry against other processes, unless its inode is among those `held` already.

    `check` is called again and again while others hold it, and may raise. Raises FilesError `busy` where they hold it
    for too long.
    """
    waiting = _Waiting(entry, time.monotonic() + PATIENCE, check)
    with ExitStack() as stack:
        while (descriptor := _opened(entry)) is not None:
            stack.callback(os.close, descriptor)
            found = os.fstat(descriptor)
            inode = found.st_dev, found.st_ino
            if not stat.S_ISREG(found.st_mode) or inode in held or not _lock(descriptor, waiting):
                break
            now = current(entry)
            if now is not None and os.path.samestat(now, found):
                held.add(inode)
                break
            stack.close()
        yield


class _Waiting(NamedTuple):
    """For which entry, on the clock of `time.monotonic` until when, and what may end it before."""

    entry: Entry
    until: float
    check: Callable[[], None]


def _opened(entry: Entry) -> int | None:
    """The file; None where there is none, or none that this process may read."""
    if sys.platform == "win32":
        return None
    try:
        return os.open(entry.name, _FILE, dir_fd=entry.directory)
    except OSError:
        return None


def _lock(descriptor: int, waiting: _Waiting) -> bool:
    """Locks the file; False where the file system has no locks. Raises FilesError `busy`."""
    pause = _FIRST_PAUSE
    while time.monotonic() < waiting.until:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting.check()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        except OSError:
            return False
        else:
            return True
    raise FilesError("busy", waiting.entry.place.written, "is being written by another process", "Try again.")
