"""Putting new bytes under a name, all or nothing.

The bytes go to a fresh file beside the target (random name, `O_EXCL`, never through a link), reach the
disk, get the target's mode bits, and are renamed over it; the directory is synced last. Whatever fails
before the rename takes the fresh file away; only a process that is killed leaves one, called `.mcp-….tmp`.
Because a rename needs no permission on the target, permission is asked for before (see `checks`).
"""

import errno
import os
import secrets
import stat
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

from servers.filesystem.access.walk import Entry
from servers.filesystem.writing.checks import current

_CREATE = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_SYNC = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


def beside(entry: Entry) -> Entry:
    """A fresh name in the directory of the entry, for what is not complete yet."""
    return entry._replace(name=entry.sibling(f".mcp-{secrets.token_hex(8)}.tmp"), stat=None)


def create(entry: Entry, mode: int = 0o666) -> int:
    """Make the file, which must not exist yet, and open it for writing; the umask counts."""
    return os.open(entry.name, _CREATE, mode, dir_fd=entry.directory)


def replace(
    entry: Entry,
    data: bytes,
    found: os.stat_result | None,
    check: Callable[[], None] = lambda: None,
    put: Callable[[Entry, Entry], None] | None = None,
) -> os.stat_result:
    """Put `data` under the entry's name, and tell what it is then; `check` runs last before that and may raise.

    `found` is what is there already, which is replaced, by a rename or by `put`. Where it is None the name must be
    free: `FileExistsError`.
    """
    fresh = prepared(entry, data, found)
    with ExitStack() as leftovers:
        # Where names were exchanged, this is what was replaced.
        leftovers.callback(discard, fresh)
        check()
        if found is None:
            give_name(fresh, entry)
        else:
            (put or rename)(fresh, entry)
    sync_directory(entry)
    return landed(fresh, entry)


def prepared(entry: Entry, data: bytes, found: os.stat_result | None) -> Entry:
    """A file beside the entry that holds `data` on the disk and is ready to replace `found`."""
    fresh = beside(entry)
    # Private until it has the mode of what it replaces.
    descriptor = create(fresh, 0o666 if found is None else 0o600)
    with ExitStack() as on_failure:
        on_failure.callback(discard, fresh)
        try:
            write_all(descriptor, data)
            if found is not None:
                _take_over(descriptor, found)
            # The clock of the file system may stand still for milliseconds: then two versions could have one etag.
            os.utime(descriptor if os.utime in os.supports_fd else fresh.name, ns=(time.time_ns(),) * 2)
            os.fsync(descriptor)
            made = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        on_failure.pop_all()
    return fresh._replace(stat=made)


def landed(fresh: Entry, entry: Entry) -> os.stat_result:
    """What the file that was `fresh` is under the entry's name. A rename changes the time of its inode."""
    now, made = current(entry), fresh.stat
    if made is None:
        raise ValueError("the file was not prepared")
    return now if now is not None and os.path.samestat(now, made) else made


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of `data`, however many calls it takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def add(descriptor: int, data: bytes) -> None:
    """Write all of `data` at the end of the file, which is open to append. What was written is taken away again where
    not all of it could be, unless somebody has added more."""
    begin, written = os.fstat(descriptor).st_size, 0
    try:
        while written < len(data):
            written += os.write(descriptor, data[written:])
    except OSError:
        if written and os.fstat(descriptor).st_size == begin + written:
            os.ftruncate(descriptor, begin)
        raise


def discard(fresh: Entry) -> None:
    """Take away what is not needed, if it is there."""
    with suppress(OSError):
        os.unlink(fresh.name, dir_fd=fresh.directory)


def rename(old: Entry, new: Entry) -> None:
    """Give `old` the name `new`, over a file that has it."""
    os.replace(old.name, new.name, src_dir_fd=old.directory, dst_dir_fd=new.directory)


def give_name(old: Entry, new: Entry) -> None:
    """Give `old`, no directory, the free name `new`. Raises FileExistsError where something has it.

    This is a hard link, and then the old name goes. Where there are no hard links it is a rename after a look: what
    appears in between would be replaced.
    """
    directories = {"src_dir_fd": old.directory, "dst_dir_fd": new.directory}
    try:
        os.link(old.name, new.name, **directories, follow_symlinks=False)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError):
        rename_to_free(old, new)
        return
    try:
        os.unlink(old.name, dir_fd=old.directory)
    except OSError:
        os.unlink(new.name, dir_fd=new.directory)
        raise


def rename_to_free(old: Entry, new: Entry) -> None:
    """Rename `old` to `new` after a look whether that is free. Raises FileExistsError where it is not."""
    if current(new) is not None:
        raise FileExistsError(errno.EEXIST, "")
    os.rename(old.name, new.name, src_dir_fd=old.directory, dst_dir_fd=new.directory)


def _take_over(descriptor: int, found: os.stat_result) -> None:
    if not hasattr(os, "fchown"):
        return
    made = os.fstat(descriptor)
    # As any write does, this takes set-user-id and set-group-id away.
    mode = stat.S_IMODE(found.st_mode) & ~(stat.S_ISUID | stat.S_ISGID)
    if made.st_uid != found.st_uid:
        # Only root may give files away; everyone else keeps what they made.
        with suppress(PermissionError):
            os.fchown(descriptor, found.st_uid, -1)
    if made.st_gid != found.st_gid:
        try:
            os.fchown(descriptor, -1, found.st_gid)
        except PermissionError:
            # Another group must not read what only that one could.
            mode &= ~stat.S_IRWXG
    os.chmod(descriptor, mode)


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
