"""Locks files, so that each has one writer at a time, in this process and among all server processes on this machine.

Within this process, a lock belongs to a name in a directory: the device and inode of the directory, and the name. It
can't belong to a path, since several paths can lead to the same name, nor to the inode of the file, since every
atomic write replaces the file. These locks exist only while a call holds or awaits them.

Against other processes, the file itself is locked with flock, an advisory lock that leaves nothing behind in the
directory. A write replaces the file with another one of the same name. So after locking, a process checks whether the
name still leads to the locked file; if not, it tries again with the new file. A name without a file needs no lock
between processes, since only one of them can create the file. Where flock is not supported, there are no locks
between processes.

A waiting call regularly checks whether it was cancelled. It waits at most `TIMEOUT_SECONDS` for another process.
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
from shared.program.files.entries import Entry, Handle, open_to_read, stat_entry

try:
    import fcntl
except ImportError:  # not on Windows
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True

TIMEOUT_SECONDS = 10.0
"""Maximum number of seconds to wait for a lock of another process. A write takes milliseconds."""

_CHECK_SECONDS = 0.05
"""Seconds between checks whether a waiting call was cancelled."""
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.0005, 0.01
"""The first and the longest pause between attempts to lock a file, in seconds. Each is twice as long as the last."""

Key = tuple[int, int, str]
"""The device and the inode of a directory, and a name in it."""
Inode = tuple[int, int]
"""A device and an inode."""


class _Lock:
    """The lock of one name, and the number of calls that hold it or wait for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0


_locks_guard = threading.Lock()
_locks: dict[Key, _Lock] = {}


def _key(entry: Entry) -> Key:
    if entry.directory is None:
        return 0, 0, entry.name
    directory = os.fstat(entry.directory)
    return directory.st_dev, directory.st_ino, os.path.normcase(entry.name)


@contextmanager
def _lock_name(key: Key, entry: Entry, locked_inodes: set[Inode]) -> Iterator[Handle | None]:
    with _locks_guard:
        counted_lock = _locks.setdefault(key, _Lock())
        counted_lock.users += 1
    try:
        while not counted_lock.lock.acquire(timeout=_CHECK_SECONDS):
            _raise_if_cancelled()
        try:
            with _lock_until_end(entry, locked_inodes) as handle:
                yield handle
        finally:
            counted_lock.lock.release()
    finally:
        with _locks_guard:
            counted_lock.users -= 1
            if counted_lock.users == 0:
                del _locks[key]


@contextmanager
def lock_entries(*entries: Entry) -> Iterator[list[Handle | None]]:
    """Lock the entries against other writers. Raises PathError with code `busy` if another process holds a lock too
    long.

    Yield for each entry the handle of its locked file, which is open for reading at its start; None if there is no
    file, or it can't be locked. All calls lock in the order of the keys, to avoid deadlock.
    """
    keys = [_key(entry) for entry in entries]
    entries_by_key = dict(zip(keys, entries, strict=True))
    locked_inodes: set[Inode] = set()
    with ExitStack() as stack:
        handles = {
            key: stack.enter_context(_lock_name(key, entries_by_key[key], locked_inodes))
            for key in sorted(entries_by_key)
        }
        yield [handles[key] for key in keys]


@contextmanager
def lock_new_file(new: Entry) -> Iterator[None]:
    """Lock a new file against other processes. Other calls of this process don't know its name yet."""
    descriptor = None
    if _HAS_LOCKS:
        with suppress(OSError):
            descriptor = open_to_read(new)
    if descriptor is None:
        yield
        return
    try:
        _flock(descriptor, time.monotonic() + TIMEOUT_SECONDS, new)
        yield
    finally:
        os.close(descriptor)


def _raise_if_cancelled() -> None:
    """Raise if this thread works for a call that was cancelled. Do nothing in a thread that anyio did not start."""
    with suppress(RuntimeError):
        from_thread.check_cancelled()


@contextmanager
def _lock_until_end(entry: Entry, locked_inodes: set[Inode]) -> Iterator[Handle | None]:
    handle = _lock_file(entry, locked_inodes)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle.descriptor)


def _lock_file(entry: Entry, locked_inodes: set[Inode]) -> Handle | None:
    """Lock the regular file of the entry against other processes, and return its handle. Return None if this call has
    already locked it under another name (`locked_inodes`), or if there is nothing to lock.

    Raises PathError with code `busy` if another process keeps it locked for too long.
    """
    deadline = time.monotonic() + TIMEOUT_SECONDS
    status = entry.stat
    while (descriptor := _open_lockable(entry, status)) is not None:
        is_locked = False
        try:
            opened = os.fstat(descriptor)
            inode = opened.st_dev, opened.st_ino
            if not stat.S_ISREG(opened.st_mode) or inode in locked_inodes or not _flock(descriptor, deadline, entry):
                return None
            # The process that held the lock before may have replaced the file.
            status = stat_entry(entry)
            if status is not None and os.path.samestat(status, opened):
                is_locked = True
                locked_inodes.add(inode)
                return Handle(descriptor, status)
        finally:
            if not is_locked:
                os.close(descriptor)
    return None


def _open_lockable(entry: Entry, status: os.stat_result | None) -> int | None:
    """Open the regular file of the entry. `status` is its last known status, if any. Return None if the file does not
    exist, or this process can't read or lock it."""
    # On Windows an open file can't be replaced.
    if not _HAS_LOCKS:
        return None
    try:
        status = status or stat_entry(entry)
        # Opening a pipe would wake the process that waits to write to it.
        is_file = status is not None and stat.S_ISREG(status.st_mode)
        return open_to_read(entry) if is_file else None
    except OSError:
        return None


def _flock(descriptor: int, deadline: float, entry: Entry) -> bool:
    """Lock the file that `descriptor` has open. Return False if the system or the file system has no locks.

    Raises PathError with code `busy` if another process still locks it at the time `deadline` (`time.monotonic`).
    """
    if sys.platform == "win32" or not _HAS_LOCKS:
        return False
    pause = _FIRST_PAUSE_SECONDS
    while time.monotonic() < deadline:
        try:
            # Locks of fcntl(2) would end as soon as the process closes any descriptor of the file.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _raise_if_cancelled()
            time.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_SECONDS)
        except OSError:
            return False
        else:
            return True
    raise PathError("busy", entry.place.path, "is being written by another process", "Try again.")
