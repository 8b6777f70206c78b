"""Atomic changes to files, by one process at a time."""

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

from shared.program.files.atomic import prepare_replacement, put_in_place, rename, temporary_entry
from shared.program.files.entries import Entry, entry_at, stat_entry

MAX_BACKUPS = 10
"""Number of backups that are kept of one file."""
_WAIT_SECONDS = 10.0
_STEP_SECONDS = 0.02


def write_atomically(path: Path, text: bytes, check: Callable[[], None] = lambda: None) -> None:
    """Write `text` into the file at `path` atomically; a link is followed.

    `check` is called just before the replacement; if it raises, the file stays unchanged.

    The file keeps its mode and its owner; a new file is private, since configurations contain secrets.
    Leftovers of a killed process next to the file are removed, so only one process may write at a time. Raises
    ValueError if the file can't be written.
    """

    def replace(fresh: Entry, entry: Entry) -> None:
        existing = stat_entry(entry)
        # The present owner must still be able to read the file.
        if existing is not None and fresh.stat is not None and existing.st_uid != fresh.stat.st_uid:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        rename(fresh, entry)

    with translate_os_errors(path):
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        # The names that `temporary_entry` gives to incomplete files.
        for leftover in target.parent.glob(f".{escape(target.name)}.{'[0-9a-f]' * 16}.tmp"):
            leftover.unlink(missing_ok=True)
        entry = entry_at(target)
        existing = stat_entry(entry)
        fresh = prepare_replacement(entry, text, existing, temporary_entry(entry, f".{target.name}."), 0o600)
        put_in_place(fresh, entry, existing, check, replace)


def back_up(folder: Path, path: Path, text: bytes) -> Path:
    """Store `text`, the content of the file at `path`, in a private file in `folder`; return its path.

    Only the newest backups of that file are kept. Raises ValueError if it can't be stored.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    # Configurations of all projects have the same name.
    name = f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}-{path.name}"
    backup = folder / f"{stamp}-{name}"
    write_atomically(backup, text)
    with translate_os_errors(folder):
        # `write_atomically` removes the leftovers of the same name only, and no later backup has the name of an
        # interrupted one.
        for old in [*sorted(folder.glob(f"*-{escape(name)}"))[:-MAX_BACKUPS], *folder.glob(".*.tmp")]:
            old.unlink(missing_ok=True)
    return backup


def remove_file(path: Path, max_parents: int) -> None:
    """Remove a file, and at most `max_parents` of its parent directories while they are empty.

    Raises ValueError if the file can't be removed.
    """
    with translate_os_errors(path):
        path.unlink()
    with suppress(OSError):
        # Stops at the first that is not empty.
        for folder in list(path.parents)[:max_parents]:
            folder.rmdir()


@contextmanager
def translate_os_errors(path: Path) -> Iterator[None]:
    """Translate an OSError in the block to ValueError, with the path."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{error.filename or path}: {error.strerror or error}") from None


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock at `path` during the block, after waiting at most ten seconds for another process to release it.

    The system releases the lock of a process that dies. The file is removed afterwards, and so are the empty
    directories created for it. Raises ValueError if the lock can't be acquired.
    """
    with translate_os_errors(path):
        lock, created_parents = _acquire(path)
    try:
        yield
    finally:
        # Windows can't remove an open file. Elsewhere the file is removed before the release: afterwards it could be
        # the lock of another process already. A process that acquires the lock of a removed file tries again.
        if sys.platform == "win32":
            lock.release()
        with suppress(ValueError):
            remove_file(path, created_parents)
        lock.release()


def _acquire(path: Path) -> tuple[FileLock, int]:
    """Acquire the lock. Returns it with the number of directories created for it."""
    end = time.monotonic() + _WAIT_SECONDS
    created_parents = 0
    while True:
        remaining = max(end - time.monotonic(), 0)
        # A lock that is merely an existing file would outlive a holder that dies.
        lock = FileLock(path, remaining, mode=0o600, poll_interval=_STEP_SECONDS, fallback_to_soft=False)
        try:
            created_parents = max(created_parents, sum(not folder.exists() for folder in path.parents))
            path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except FileNotFoundError:
            # The previous holder has just removed the directories.
            if not remaining:
                raise
        except Timeout:
            raise ValueError(f"another command has locked {path}: try again when it has finished") from None
        else:
            return lock, created_parents
