"""One writer per file: within this process, and among all processes of ours on this machine.

A lock belongs to a name in a directory (device and inode of the directory, and the name), not to a
spelling and not to the file's inode, which every atomic write replaces. Locks exist only while someone
holds or awaits them.

Under it the file itself is locked against other processes that ask (flock). That leaves nothing behind in anybody's
directory. A write puts another file under the name, so whoever has got the lock looks whether the name still leads to
what was locked, and otherwise begins anew with what is there now. A name that is free needs no lock: only one can
give it. Where the system or the file system has no such locks there are none.

Whoever waits looks now and then whether the call he waits for was cancelled, or has had its time.
"""

import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from anyio import from_thread

from shared.coded_errors import PathError
from shared.program.files.entries import Entry, current, open_to_read

try:
    import fcntl
except ImportError:  # not on Windows
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True

PATIENCE = 10.0
"""Seconds to wait for other processes; a write takes milliseconds."""

_PAUSE = 0.05
"""Seconds between two looks whether to go on waiting."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.01

Key = tuple[int, int, str]
Inode = tuple[int, int]


class _Lock:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0


_guard = threading.Lock()
_locks: dict[Key, _Lock] = {}


def _key(entry: Entry) -> Key:
    if entry.directory is None:
        return 0, 0, entry.name
    directory = os.fstat(entry.directory)
    return directory.st_dev, directory.st_ino, os.path.normcase(entry.name)


@contextmanager
def _held(key: Key) -> Iterator[None]:
    with _guard:
        shared = _locks.setdefault(key, _Lock())
        shared.users += 1
    try:
        while not shared.lock.acquire(timeout=_PAUSE):
            _check()
        try:
            yield
        finally:
            shared.lock.release()
    finally:
        with _guard:
            shared.users -= 1
            if shared.users == 0:
                del _locks[key]


@contextmanager
def locked(*entries: Entry) -> Iterator[None]:
    """Hold the entries against every other writer; always taken in the same order. Raises PathError `busy`."""
    named = {_key(entry): entry for entry in entries}
    held: set[Inode] = set()
    with ExitStack() as stack:
        for key in sorted(named):
            stack.enter_context(_held(key))
            stack.enter_context(_claimed(named[key], held))
        yield


def _check() -> None:
    """Raises in the thread of a call that was cancelled; elsewhere there is no call."""
    with suppress(RuntimeError):
        from_thread.check_cancelled()


@contextmanager
def _claimed(entry: Entry, held: set[Inode]) -> Iterator[None]:
    """Holds the regular file of the entry against other processes, unless its inode is among those `held` already.
    Raises PathError `busy` where they hold it for too long."""
    until = time.monotonic() + PATIENCE
    with ExitStack() as stack:
        while (descriptor := _opened(entry)) is not None:
            stack.callback(os.close, descriptor)
            found = os.fstat(descriptor)
            inode = found.st_dev, found.st_ino
            if not stat.S_ISREG(found.st_mode) or inode in held or not _lock(descriptor, until, entry):
                break
            # Who held it before may have put another file under the name.
            now = current(entry)
            if now is not None and os.path.samestat(now, found):
                held.add(inode)
                break
            stack.close()
        yield


def _opened(entry: Entry) -> int | None:
    """The regular file; None where there is none, none that this process may read, or no lock to be had.

    Nothing else is opened: that alone wakes who waits at a pipe. Nor is anything where it can't be locked: on Windows
    what is open can't be replaced.
    """
    if not _HAS_LOCKS:
        return None
    try:
        found = current(entry)
        is_file = found is not None and stat.S_ISREG(found.st_mode)
        return open_to_read(entry) if is_file else None
    except OSError:
        return None


def _lock(descriptor: int, until: float, entry: Entry) -> bool:
    """Locks the file of the entry; False where the system or the file system has no locks. Raises PathError `busy`
    where others hold it `until` that time of `time.monotonic`."""
    if sys.platform == "win32" or not _HAS_LOCKS:
        return False
    pause = _FIRST_PAUSE
    while time.monotonic() < until:
        try:
            # No lock of fcntl(2): those end as soon as the process closes any descriptor of the file.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _check()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        except OSError:
            return False
        else:
            return True
    raise PathError("busy", entry.place.written, "is being written by another process", "Try again.")
