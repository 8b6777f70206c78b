"""Atomic writes of files, all or nothing.

The bytes are written to a new file next to the target (random name, `O_EXCL`, never through a link), which only its
owner may read until it has the owner, mode and attributes of the replaced file (see `metadata`). They are synced to
disk, and the file is renamed over the target, or linked to a name that must not exist; the directory is synced last.
After an error before that, the new file is removed; only a killed process leaves one. A rename needs no permission on
the target, so callers check that first.

A file that is itself a mount point, as in containers, can't be replaced: its contents are overwritten (see
`overwrite`).
"""

import errno
import os
import re
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress

from ...coded_errors import MetadataError
from .entries import Entry, create, stat_entry, unlink
from .metadata import Attributes, attributes_at, set_metadata
from .system import BASE_FLAGS, SYSTEM

try:
    import fcntl
except ImportError:  # not on Windows
    _FULL_SYNC = None
else:
    _FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)

_BLOCK_BYTES = 1024 * 1024
_TEMPORARY_NAME = re.compile(r"\.mcp-[0-9a-f]{16}\.tmp")
Put = Callable[[Entry, Entry], object]
"""Gives the first entry the second entry's name."""


def temporary_entry(entry: Entry, stem: str = ".mcp-") -> Entry:
    """Return a new name, in the entry's directory, for an incomplete file."""
    return entry._replace(name=entry.sibling(temporary_name(stem)), stat=None)


def temporary_name(stem: str = ".mcp-") -> str:
    """Return a name that does not exist: `stem`, 16 random digits, `.tmp`."""
    return f"{stem}{os.urandom(8).hex()}.tmp"


def is_temporary_name(name: str) -> bool:
    """Return True if `name` has the form that `temporary_entry` returns; a killed process leaves such files."""
    return _TEMPORARY_NAME.fullmatch(name) is not None


def replace(
    entry: Entry,
    data: bytes,
    existing: os.stat_result | None,
    check: Callable[[], None] = lambda: None,
    put: Put | None = None,
    attributes: Attributes | None = None,
) -> os.stat_result:
    """Put `data` under the entry's name, and return its stat.

    `check` runs just before that and may raise. `existing` is the stat of the file to replace, by a rename or with
    `put`; `attributes` are that file's attributes, if they were read. If `existing` is None and the name exists,
    raises FileExistsError. Raises OSError.
    """
    return put_in_place(
        prepare_replacement(entry, data, existing, attributes=attributes), entry, existing, check, put
    )


def put_in_place(
    fresh: Entry,
    entry: Entry,
    existing: os.stat_result | None,
    check: Callable[[], None] = lambda: None,
    put: Put | None = None,
) -> os.stat_result:
    """Do the second half of `replace`, for a file from `prepare_replacement`. After an error, the file is removed."""
    with ExitStack() as leftovers:
        # After an exchange of names, this is the old file.
        leftovers.callback(discard, fresh)
        check()
        if existing is None:
            rename_to_unused(fresh, entry)
        else:
            (put or _rename_over)(fresh, entry)
    # Last: a name that is durable before its bytes could lead to an empty file after a crash.
    sync_directory(entry)
    return final_stat(fresh, entry, existing)


def prepare_replacement(
    entry: Entry,
    data: bytes,
    existing: os.stat_result | None,
    fresh: Entry | None = None,
    mode: int = 0o666,
    attributes: Attributes | None = None,
) -> Entry:
    """Create a file next to the entry that contains `data`, synced to disk, and is ready to replace `existing`, which
    has these `attributes`, if they were read. `mode` is the mode of a file that replaces nothing; the umask applies.
    `fresh` is its name, from `temporary_entry`. Raises OSError."""
    fresh = fresh or temporary_entry(entry)
    # Only its owner may read it until it has the mode of the file that it replaces.
    descriptor = create(fresh, mode if existing is None else 0o600)
    with ExitStack() as on_failure:
        on_failure.callback(discard, fresh)
        try:
            write_all(descriptor, data)
            lost: list[str] = []
            if existing is not None:
                lost = set_metadata(descriptor, existing, attributes_at(entry) if attributes is None else attributes)
            # The system may not allow the owner and the group to be set.
            if required := {*lost} - {"owner", "group"}:
                raise MetadataError(f"its attribute {min(required)}")
            # The clock of the file system may stand still for milliseconds: two versions could then have the same
            # etag.
            SYSTEM.touch(descriptor, fresh.directory, fresh.name)
            sync(descriptor)
            stat_ = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        on_failure.pop_all()
    return fresh._replace(stat=stat_)


def final_stat(fresh: Entry, entry: Entry, existing: os.stat_result | None) -> os.stat_result:
    """Return the stat of the file that was `fresh`, under the entry's name, or of `existing` if that file was
    overwritten. A rename changes the time of the inode."""
    now, prepared_stat = stat_entry(entry), fresh.stat
    if prepared_stat is None:
        raise ValueError("the file has not been prepared")
    written = (prepared_stat,) if existing is None else (prepared_stat, existing)
    return now if now is not None and any(os.path.samestat(now, stat_) for stat_ in written) else prepared_stat


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of `data`, with as many calls as needed. Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync(descriptor: int, full: int | None = _FULL_SYNC) -> None:
    """Write the file to the disk. Raises OSError.

    On macOS `fsync` leaves it in the drive's cache. Some file systems do not support `full`, which empties that
    cache; `fsync` is used there, as in SQLite.
    """
    if sys.platform != "win32" and full is not None:
        with suppress(OSError):
            fcntl.fcntl(descriptor, full)
            return
    os.fsync(descriptor)


def append(descriptor: int, data: bytes) -> None:
    """Append all of `data` to the file, which is open for appending. A partial write is removed again, unless another
    process has appended more data. Raises OSError."""
    begin, written = os.fstat(descriptor).st_size, 0
    try:
        while written < len(data):
            written += os.write(descriptor, data[written:])
    except OSError:
        if written and os.fstat(descriptor).st_size == begin + written:
            os.ftruncate(descriptor, begin)
        raise


def discard(fresh: Entry) -> None:
    """Delete a file that is not needed, if it exists."""
    with suppress(OSError):
        unlink(fresh)


def rename(old: Entry, new: Entry) -> None:
    """Give `old` the name `new`, replacing any file with that name. Raises OSError."""
    SYSTEM.replace((old.directory, old.name), (new.directory, new.name))


def _rename_over(fresh: Entry, entry: Entry) -> None:
    try:
        rename(fresh, entry)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        overwrite(fresh, entry)


def overwrite(fresh: Entry, entry: Entry) -> None:
    """Overwrite the file at the entry, which keeps its inode, with the contents of `fresh`. Raises OSError.

    The write is not atomic: a process killed in the middle leaves part of the contents there, and all of them in
    `fresh`. Space is reserved first, if the system supports it, so that a full disk changes nothing.
    """
    source = SYSTEM.open_file(fresh.directory, fresh.name)
    try:
        target = SYSTEM.open_to_write(entry.directory, entry.name)
        try:
            _copy_over(source, target)
        finally:
            os.close(target)
    finally:
        os.close(source)


def _copy_over(source: int, target: int) -> None:
    size, old_size = os.fstat(source).st_size, os.fstat(target).st_size
    if hasattr(os, "posix_fallocate") and size > old_size:
        try:
            os.posix_fallocate(target, old_size, size - old_size)
        except OSError as error:
            os.ftruncate(target, old_size)
            if error.errno == errno.ENOSPC:
                raise
    while block := os.read(source, _BLOCK_BYTES):
        write_all(target, block)
    os.ftruncate(target, size)
    sync(target)


def link(old: Entry, new: Entry) -> None:
    """Give `old`, which is not a directory, a second name. Raises FileExistsError, OSError, and NotImplementedError
    if the system has no links."""
    SYSTEM.link((old.directory, old.name), (new.directory, new.name))


def rename_to_unused(old: Entry, new: Entry) -> None:
    """Give `old`, which is not a directory, the unused name `new`. Raises FileExistsError if it exists, and OSError.

    This makes a hard link and then removes the old name. Without hard links it is a check and a rename, so a file
    that appears in between would be replaced.
    """
    try:
        link(old, new)
    # Unlike a rename, a hard link never replaces a file: if two processes create a name at once, one fails.
    except FileExistsError:
        raise
    except (OSError, NotImplementedError):
        check_and_rename(old, new)
        return
    try:
        unlink(old)
    except OSError:
        # A file with two names would be changed by edits under the other name.
        unlink(new)
        raise


def check_and_rename(old: Entry, new: Entry) -> None:
    """Rename `old` to `new` after a check that it does not exist; otherwise raises FileExistsError. Raises
    OSError."""
    if stat_entry(new) is not None:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    SYSTEM.rename((old.directory, old.name), (new.directory, new.name))


def sync_directory(entry: Entry) -> None:
    """Make the names in the entry's directory durable, if the system can."""
    if not SYSTEM.syncs_directories:
        return
    here = "." if entry.directory is not None else os.path.dirname(entry.name) or "."  # noqa: PTH120
    with suppress(OSError):
        descriptor = os.open(here, getattr(os, "O_DIRECTORY", 0) | BASE_FLAGS, dir_fd=entry.directory)
        try:
            sync(descriptor)
        finally:
            os.close(descriptor)
