"""Atomic changes to files, backups of them, and a lock for them."""

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
    """Write `text` to the file at `path` atomically. If the path is a link, its target is written.

    `check` is called just before the file is replaced; if it raises an exception, the file stays unchanged.

    The file keeps its mode and owner. A new file is private, since configurations contain secrets. Incomplete files
    that a killed process has left are removed, so only one process may call this at a time. Raises ValueError if the
    file can't be written.
    """

    def replace(fresh: Entry, entry: Entry) -> None:
        existing = stat_entry(entry)
        # If the owner can't be preserved, give up, since the owner could no longer read the file.
        if existing is not None and fresh.stat is not None and existing.st_uid != fresh.stat.st_uid:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        rename(fresh, entry)

    with translate_os_errors(path):
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        # `temporary_entry` gives incomplete files such names.
        for leftover in target.parent.glob(f".{escape(target.name)}.{'[0-9a-f]' * 16}.tmp"):
            leftover.unlink(missing_ok=True)
        entry = entry_at(target)
        existing = stat_entry(entry)
        fresh = prepare_replacement(entry, text, existing, temporary_entry(entry, f".{target.name}."), 0o600)
        put_in_place(fresh, entry, existing, check, replace)


def back_up(folder: Path, path: Path, text: bytes) -> Path:
    """Store `text`, the content of the file at `path`, in a private file in `folder`; return its path.

    Of the backups of that file, only the newest `MAX_BACKUPS` are kept. Raises ValueError if it can't be stored.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    # The digest of the path, since the files of all projects have the same name.
    name = f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}-{path.name}"
    backup = folder / f"{stamp}-{name}"
    write_atomically(backup, text)
    with translate_os_errors(folder):
        # `write_atomically` removes only incomplete files of the same name, which no later backup has.
        for old in [*sorted(folder.glob(f"*-{escape(name)}"))[:-MAX_BACKUPS], *folder.glob(".*.tmp")]:
            old.unlink(missing_ok=True)
    return backup


def remove_file(path: Path, max_parents: int) -> None:
    """Remove a file, and up to `max_parents` of its parent directories, as far as they are empty.

    Raises ValueError if the file can't be removed.
    """
    with translate_os_errors(path):
        path.unlink()
    with suppress(OSError):
        # `rmdir` raises OSError for the first directory that is not empty.
        for folder in list(path.parents)[:max_parents]:
            folder.rmdir()


@contextmanager
def translate_os_errors(path: Path) -> Iterator[None]:
    """Translate an OSError that is raised in the block to a ValueError that names the file, `path` by default."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{error.filename or path}: {error.strerror or error}") from None


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock at `path` during the block. If another process holds it, wait for at most ten seconds.

    If a process dies, the system releases its lock. After the block, the lock file is removed, with the directories
    that were created for it if they are empty. Raises ValueError if the lock can't be acquired.
    """
    with translate_os_errors(path):
        lock, created_parents = _acquire(path)
    try:
        yield
    finally:
        # Remove the file before the release, since afterwards another process may hold its lock. (A process that
        # acquires the lock of a removed file tries again.) On Windows, an open file can't be removed, so release it
        # first.
        if sys.platform == "win32":
            lock.release()
        with suppress(ValueError):
            remove_file(path, created_parents)
        lock.release()


def _acquire(path: Path) -> tuple[FileLock, int]:
    """Acquire the lock at `path`. Return it, and the number of directories that were created for it."""
    end = time.monotonic() + _WAIT_SECONDS
    created_parents = 0
    while True:
        remaining = max(end - time.monotonic(), 0)
        # No soft lock, whose file would stay if the process died.
        lock = FileLock(path, remaining, mode=0o600, poll_interval=_STEP_SECONDS, fallback_to_soft=False)
        try:
            created_parents = max(created_parents, sum(not folder.exists() for folder in path.parents))
            path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except FileNotFoundError:
            # The previous holder of the lock has just removed the directories: try again.
            if not remaining:
                raise
        except Timeout:
            raise ValueError(f"another command has locked {path}: try again when it has finished") from None
        else:
            return lock, created_parents
