"""One process at a time changes what others change as well."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .files import remove_file, told

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["held"]

_WAIT_SECONDS = 10.0
_STEP_SECONDS = 0.02


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Holds the lock at `path`, for which it waits until its holder lets go of it, ten seconds at most.

    The system lets go of it for a holder that dies. The file is gone afterwards, and so are those of the directories
    made for it that are empty. Raises ValueError where the lock can't be had.
    """
    with told(path):
        descriptor, folders = _wait_for(path)
    try:
        yield
    finally:
        # What is open can't be removed on Windows. Elsewhere it has to be: the next holder may have it by then.
        if sys.platform == "win32":
            os.close(descriptor)
        with suppress(ValueError):
            remove_file(path, folders)
        if sys.platform != "win32":
            os.close(descriptor)


def _wait_for(path: Path) -> tuple[int, int]:
    """The open lock file, and how many directories were made for it."""
    end = time.monotonic() + _WAIT_SECONDS
    folders = 0
    while True:
        try:
            folders = max(folders, sum(not folder.exists() for folder in path.parents))
            path.parent.mkdir(parents=True, exist_ok=True)
            if (descriptor := _opened(path)) is not None:
                return descriptor, folders
        except FileNotFoundError:
            # The holder before has just removed them.
            if time.monotonic() > end:
                raise
        if time.monotonic() > end:
            raise ValueError(f"another install or uninstall holds {path}: try again when it has ended")
        time.sleep(_STEP_SECONDS)


def _opened(path: Path) -> int | None:
    """The lock file, where its lock is had: of the file that stands at `path`, and not of one that went with its
    holder."""
    descriptor, ours = os.open(path, os.O_RDWR | os.O_CREAT, 0o600), False
    try:
        with suppress(BlockingIOError, PermissionError, FileNotFoundError):
            if sys.platform == "win32":
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = os.path.samestat(os.fstat(descriptor), path.stat())
    finally:
        if not ours:
            os.close(descriptor)
    return descriptor if ours else None
