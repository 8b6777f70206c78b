"""One writer per file: within this process, and among all processes of ours on this machine.

A lock belongs to a name in a directory (device and inode of the directory, and the name), not to a
spelling and not to the file's inode, which every atomic write replaces. Locks exist only while someone
holds or awaits them. Under it the file itself is locked against other processes (see `advisory`).

Whoever waits looks now and then whether the call he waits for was cancelled, or has had its time.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from anyio import from_thread

from servers.filesystem.writing.advisory import Inode, claimed
from shared.kit.rooted.entries import Entry

_PAUSE = 0.05
"""Seconds between two looks whether to go on waiting."""

Key = tuple[int, int, str]


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
    return directory.st_dev, directory.st_ino, entry.name


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
    """Hold the entries against every other writer; always taken in the same order. Raises FilesError `busy`."""
    named = {_key(entry): entry for entry in entries}
    held: set[Inode] = set()
    with ExitStack() as stack:
        for key in sorted(named):
            stack.enter_context(_held(key))
            stack.enter_context(claimed(named[key], held, _check))
        yield


def _check() -> None:
    """Raises in the thread of a call that was cancelled; elsewhere there is no call."""
    with suppress(RuntimeError):
        from_thread.check_cancelled()
