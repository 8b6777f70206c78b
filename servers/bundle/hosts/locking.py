"""One process at a time changes what others change as well."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from .files import remove_file, told

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
        lock, folders = _wait_for(path)
    try:
        yield
    finally:
        # What is open can't be removed on Windows. Elsewhere it has to be: the next holder may have it by then, and
        # whoever gets the lock of a file that is gone tries again.
        if sys.platform == "win32":
            lock.release()
        with suppress(ValueError):
            remove_file(path, folders)
        lock.release()


def _wait_for(path: Path) -> tuple[FileLock, int]:
    """The lock, and how many directories were made for it."""
    end = time.monotonic() + _WAIT_SECONDS
    folders = 0
    while True:
        left = max(end - time.monotonic(), 0)
        # A lock by the mere presence of the file would outlive a holder that dies.
        lock = FileLock(path, left, mode=0o600, poll_interval=_STEP_SECONDS, fallback_to_soft=False)
        try:
            folders = max(folders, sum(not folder.exists() for folder in path.parents))
            path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except FileNotFoundError:
            # The holder before has just removed them.
            if not left:
                raise
        except Timeout:
            raise ValueError(f"another install or uninstall holds {path}: try again when it has ended") from None
        else:
            return lock, folders
