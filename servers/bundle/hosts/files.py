"""Files that are changed whole or not at all."""

import hashlib
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from glob import escape
from pathlib import Path

__all__ = ["back_up", "remove_file", "told", "write_atomically"]

KEPT_BACKUPS = 10
"""How many backups of one file are kept."""


def write_atomically(path: Path, text: bytes, check: Callable[[], None] = lambda: None) -> None:
    """Puts `text` into the file at `path`, or leaves it as it is; where it is a link, the file it leads to.

    What `check` raises, which is called at the very last, leaves it as it is.

    It keeps the mode of the file and its owner; a new one is for its owner only, since configurations have secrets.
    What a process that was killed at this left beside the file goes, so only one may be at it. Raises ValueError
    where it can't be written.
    """
    with told(path):
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        for left in target.parent.glob(f".{escape(target.name)}.{'[0-9a-f]' * 16}.tmp"):
            left.unlink(missing_ok=True)
        new = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                _as_it_was(new, target.stat())
            check()
            new.replace(target)
        finally:
            new.unlink(missing_ok=True)
        _sync_folder(target.parent)


def back_up(folder: Path, path: Path, text: bytes) -> Path:
    """Keeps `text`, which stands in the file at `path`, in a file of `folder` for its owner only; its path.

    Of the earlier ones of that file the newest are kept. Raises ValueError where that can't be done.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    # Those of each project have the same name.
    name = f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}-{path.name}"
    kept = folder / f"{stamp}-{name}"
    write_atomically(kept, text)
    with told(folder):
        # A backup that was cut short has a name of its own, under which nothing is written again.
        for old in [*sorted(folder.glob(f"*-{escape(name)}"))[:-KEPT_BACKUPS], *folder.glob(".*.tmp")]:
            old.unlink(missing_ok=True)
    return kept


def remove_file(path: Path, folders: int) -> None:
    """Removes a file, and of the directories above it as many as are empty, `folders` at most.

    Raises ValueError where the file can't be removed.
    """
    with told(path):
        path.unlink()
    with suppress(OSError):
        # The first that is not empty ends it.
        for folder in list(path.parents)[:folders]:
            folder.rmdir()


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Has what the system refuses raised as ValueError, with the path."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{error.filename or path}: {error.strerror or error}") from None


def _as_it_was(path: Path, before: os.stat_result) -> None:
    """Gives a file the mode of the one it replaces, and its owner, who has to read what root wrote.

    A group that the user is not in can't be kept, and then may do nothing.
    """
    mode = before.st_mode & 0o7777
    if sys.platform != "win32":
        now = path.stat()
        try:
            if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid):
                os.chown(path, before.st_uid, before.st_gid)
        except PermissionError:
            if before.st_uid != now.st_uid:
                raise
            mode &= 0o7707
    path.chmod(mode)


def _sync_folder(folder: Path) -> None:
    """Makes the new name of a file last; Windows has no such thing for directories."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
