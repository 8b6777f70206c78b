"""Putting new bytes under a name, all or nothing.

The bytes go to a fresh file beside the target (random name, `O_EXCL`, never through a link), which only its owner
may read until it has the owner, the mode and the attributes of what it replaces (see `metadata`). They reach the
disk, and the file is renamed over the target, or linked to a name that must be free; the directory is synced last.
Whatever fails before that takes the fresh file away; only a process that is killed leaves one. A rename needs no
permission on the target, so whoever calls this asks for that before.
"""

import errno
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress

from ...coded_errors import MetadataError
from .entries import Entry, create, current, unlink
from .metadata import attributes_at, give_metadata
from .system import CLOSED, SYSTEM

try:
    import fcntl
except ImportError:  # not on Windows
    _FULL_SYNC = None
else:
    _FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)

Put = Callable[[Entry, Entry], None]
"""Gives the first entry the name of the second."""


def beside(entry: Entry, stem: str = ".mcp-") -> Entry:
    """A fresh name in the directory of the entry, for what is not complete yet."""
    return entry._replace(name=entry.sibling(fresh_name(stem)), stat=None)


def fresh_name(stem: str = ".mcp-") -> str:
    """A name that nothing has: `stem`, 16 random digits, `.tmp`."""
    return f"{stem}{os.urandom(8).hex()}.tmp"


def replace(
    entry: Entry,
    data: bytes,
    found: os.stat_result | None,
    check: Callable[[], None] = lambda: None,
    put: Put | None = None,
) -> os.stat_result:
    """Put `data` under the entry's name, and tell what it is then; `check` runs last before that and may raise.

    `found` is what is there already, which is replaced, by a rename or by `put`. Where it is None the name must be
    free: `FileExistsError`. Raises OSError.
    """
    return put_in_place(prepared(entry, data, found), entry, found, check, put)


def put_in_place(
    fresh: Entry,
    entry: Entry,
    found: os.stat_result | None,
    check: Callable[[], None] = lambda: None,
    put: Put | None = None,
) -> os.stat_result:
    """The second half of `replace`, for a file that was `prepared`; it is gone where this fails."""
    with ExitStack() as leftovers:
        # Where names were exchanged, this is what was replaced.
        leftovers.callback(discard, fresh)
        check()
        if found is None:
            give_name(fresh, entry)
        else:
            (put or rename)(fresh, entry)
    # Last: a name that is durable before its bytes could lead to an empty file after a crash.
    sync_directory(entry)
    return landed(fresh, entry)


def prepared(
    entry: Entry, data: bytes, found: os.stat_result | None, fresh: Entry | None = None, mode: int = 0o666
) -> Entry:
    """A file beside the entry that holds `data` on the disk and is ready to replace `found`; `mode` is that of a file
    which replaces nothing, and the umask counts. `fresh` is its name, as `beside` gives one. Raises OSError."""
    fresh = fresh or beside(entry)
    # Private until it has the mode of what it replaces.
    descriptor = create(fresh, mode if found is None else 0o600)
    with ExitStack() as on_failure:
        on_failure.callback(discard, fresh)
        try:
            write_all(descriptor, data)
            if found is not None:
                _take_over(descriptor, entry, found)
            # The clock of the file system may stand still for milliseconds: then two versions could have one etag.
            SYSTEM.set_times(descriptor, fresh.directory, fresh.name)
            sync(descriptor)
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
    """Write all of `data`, however many calls it takes. Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync(descriptor: int, full: int | None = _FULL_SYNC) -> None:
    """Have what was written to the file reach the disk. Raises OSError.

    On macOS `fsync` leaves it in the cache of the drive. What empties that, `full`, not every file system has: there
    `fsync` is what can be done, as SQLite does it.
    """
    if sys.platform != "win32" and full is not None:
        with suppress(OSError):
            fcntl.fcntl(descriptor, full)
            return
    os.fsync(descriptor)


def add(descriptor: int, data: bytes) -> None:
    """Write all of `data` at the end of the file, which is open to append. What was written is taken away again where
    not all of it could be, unless somebody has added more. Raises OSError."""
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
        unlink(fresh)


def rename(old: Entry, new: Entry) -> None:
    """Give `old` the name `new`, over a file that has it. Raises OSError."""
    SYSTEM.replace((old.directory, old.name), (new.directory, new.name))


def link(old: Entry, new: Entry) -> None:
    """Give `old`, no directory, a second name. Raises FileExistsError, OSError, and NotImplementedError where there
    is no such thing."""
    SYSTEM.link((old.directory, old.name), (new.directory, new.name))


def give_name(old: Entry, new: Entry) -> None:
    """Give `old`, no directory, the free name `new`. Raises FileExistsError where something has it, and OSError.

    This is a hard link, and then the old name goes. Where there are no hard links it is a rename after a look: what
    appears in between would be replaced.
    """
    try:
        link(old, new)
    # A hard link never replaces, which a rename would: two who make one name at once can't both succeed.
    except FileExistsError:
        raise
    except (OSError, NotImplementedError):
        rename_to_free(old, new)
        return
    try:
        unlink(old)
    except OSError:
        # One file under two names would be changed by whoever edits the other.
        unlink(new)
        raise


def rename_to_free(old: Entry, new: Entry) -> None:
    """Rename `old` to `new` after a look whether that is free: FileExistsError where it is not. Raises OSError."""
    if current(new) is not None:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    SYSTEM.rename((old.directory, old.name), (new.directory, new.name))


def sync_directory(entry: Entry) -> None:
    """Make the names in the directory of the entry durable, where the system can."""
    if not SYSTEM.syncs_directories:
        return
    here = "." if entry.directory is not None else os.path.dirname(entry.name) or "."  # noqa: PTH120
    with suppress(OSError):
        descriptor = os.open(here, getattr(os, "O_DIRECTORY", 0) | CLOSED, dir_fd=entry.directory)
        try:
            sync(descriptor)
        finally:
            os.close(descriptor)


def _take_over(descriptor: int, entry: Entry, found: os.stat_result) -> None:
    """Gives a file what the one at the entry has besides its bytes, but for its owner and its group where the system
    does not let it. Raises MetadataError, OSError."""
    lost = {*give_metadata(descriptor, found, attributes_at(entry))} - {"owner", "group"}
    if lost:
        raise MetadataError(f"its attribute {min(lost)}")
