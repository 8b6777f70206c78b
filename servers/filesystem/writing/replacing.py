"""Putting new bytes under a name, all or nothing.

The bytes go to a fresh file beside the target (random name, `O_EXCL`, never through a link), reach the
disk, get the target's mode bits, and are renamed over it; the directory is synced last. Whatever fails
before the rename takes the fresh file away. Because a rename needs no permission on the target,
permission is asked for here: a file its owner may not write, or that this process may not write, is not
replaced, and neither is one with several hard links, which the rename would tear apart.
"""

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import ExitStack, suppress

from servers.filesystem.access.beneath import missing, require_regular
from servers.filesystem.access.walk import Entry
from servers.filesystem.errors import FilesError

_CREATE = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_SYNC = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


def current(entry: Entry) -> os.stat_result | None:
    """What is at the entry now, links not followed; None when nothing is."""
    try:
        return os.stat(entry.name, dir_fd=entry.directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def require_replaceable(entry: Entry, found: os.stat_result | None, written: str) -> None:
    """Raise unless the entry can be written: a new name, or a regular, writable file with one name."""
    if found is None:
        if entry.linked:
            raise missing(entry, written)
        return
    require_regular(found.st_mode, written)
    if not found.st_mode & stat.S_IWUSR:
        raise FilesError("read_only", written, "is write-protected", "Ask the user to change its permissions.")
    if found.st_nlink > 1:
        reason = f"has {found.st_nlink} hard links; replacing it would separate them"
        raise FilesError("hard_links", written, reason, "Write to another name.")
    if entry.directory is not None and not os.access(entry.name, os.W_OK, dir_fd=entry.directory):
        raise FilesError("permission_denied", written, "the operating system denies access")


def replace(
    entry: Entry, data: bytes, found: os.stat_result | None, check: Callable[[], None] = lambda: None
) -> None:
    """Put `data` under the entry's name; `check` runs last before the rename and may raise."""
    fresh = entry.sibling(f".{secrets.token_hex(8)}.tmp")
    # Private until it has the mode of what it replaces.
    descriptor = os.open(fresh, _CREATE, 0o666 if found is None else 0o600, dir_fd=entry.directory)
    with ExitStack() as on_failure:
        on_failure.callback(_remove, fresh, entry.directory)
        _fill(descriptor, data, found)
        check()
        os.replace(fresh, entry.name, src_dir_fd=entry.directory, dst_dir_fd=entry.directory)
        on_failure.pop_all()
    sync_directory(entry)


def _remove(name: str, directory: int | None) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=directory)


def _fill(descriptor: int, data: bytes, found: os.stat_result | None) -> None:
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) or 0 :]
        if found is not None:
            _take_over(descriptor, found)
        os.fsync(descriptor)


def _take_over(descriptor: int, found: os.stat_result) -> None:
    if not hasattr(os, "fchown"):
        return
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) != (found.st_uid, found.st_gid):
        # Only root may give files away; everyone else keeps what they made.
        with suppress(PermissionError):
            os.fchown(descriptor, found.st_uid, found.st_gid)
    # As any write does, this takes set-user-id and set-group-id away.
    os.chmod(descriptor, stat.S_IMODE(found.st_mode) & ~(stat.S_ISUID | stat.S_ISGID))


def sync_directory(entry: Entry) -> None:
    """Make the directory of the entry durable, where the system can."""
    if entry.directory is None:
        return
    with suppress(OSError):
        descriptor = os.open(".", _SYNC, dir_fd=entry.directory)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
