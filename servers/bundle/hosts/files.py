"""Files that are changed whole or not at all, and by one process at a time."""

import errno
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from glob import escape
from pathlib import Path

from filelock import FileLock, Timeout

from shared.program.files.atomic import beside, prepared, put_in_place, rename
from shared.program.files.entries import Entry, current, entry_at

KEPT_BACKUPS = 10
"""How many backups of one file are kept."""
_WAIT_SECONDS = 10.0
_STEP_SECONDS = 0.02


def write_atomically(path: Path, text: bytes, check: Callable[[], None] = lambda: None) -> None:
    """Puts `text` into the file at `path`, or leaves it as it is; where it is a link, the file it leads to.

    What `check` raises, which is called at the very last, leaves it as it is.

    It keeps the mode of the file and its owner; a new one is for its owner only, since configurations have secrets.
    What a process that was killed at this left beside the file goes, so only one may be at it. Raises ValueError
    where it can't be written.
    """
    with as_value_errors(path):
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        for left in target.parent.glob(f".{escape(target.name)}.{'[0-9a-f]' * 16}.tmp"):
            left.unlink(missing_ok=True)
        entry = entry_at(target)
        found = current(entry)
        fresh = prepared(entry, text, found, beside(entry, f".{target.name}."), 0o600)
        put_in_place(fresh, entry, found, check, _keep_owner)


def back_up(folder: Path, path: Path, text: bytes) -> Path:
    """Keeps `text`, which stands in the file at `path`, in a file of `folder` for its owner only; its path.

    Of the earlier ones of that file the newest are kept. Raises ValueError where that can't be done.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    # Those of each project have the same name.
    name = f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}-{path.name}"
    kept = folder / f"{stamp}-{name}"
    write_atomically(kept, text)
    with as_value_errors(folder):
        # A backup that was cut short has a name of its own, under which nothing is written again.
        for old in [*sorted(folder.glob(f"*-{escape(name)}"))[:-KEPT_BACKUPS], *folder.glob(".*.tmp")]:
            old.unlink(missing_ok=True)
    return kept


def remove_file(path: Path, folders: int) -> None:
    """Removes a file, and of the directories above it as many as are empty, `folders` at most.

    Raises ValueError where the file can't be removed.
    """
    with as_value_errors(path):
        path.unlink()
    with suppress(OSError):
        # The first that is not empty ends it.
        for folder in list(path.parents)[:folders]:
            folder.rmdir()


@contextmanager
def as_value_errors(path: Path) -> Iterator[None]:
    """Has what the system refuses raised as ValueError, with the path."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{error.filename or path}: {error.strerror or error}") from None


def _keep_owner(fresh: Entry, entry: Entry) -> None:
    """Puts the fresh file in the place of the one that is there, unless it has another owner, who has to read it."""
    found = current(entry)
    if found is not None and fresh.stat is not None and found.st_uid != fresh.stat.st_uid:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
    rename(fresh, entry)


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Holds the lock at `path`, for which it waits until its holder lets go of it, ten seconds at most.

    The system lets go of it for a holder that dies. The file is gone afterwards, and so are those of the directories
    made for it that are empty. Raises ValueError where the lock can't be had.
    """
    with as_value_errors(path):
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
            raise ValueError(f"another command holds {path}: try again when it has ended") from None
        else:
            return lock, folders
