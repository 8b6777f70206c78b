"""Atomic writes of files: either the whole file is replaced, or nothing changes.

The bytes are written to a new file next to the target (random name, `O_EXCL`, never through a link), which only its
owner may read until it has the owner, mode and attributes of the replaced file (see `metadata`). The new file is
synced to disk, and then renamed over the target, or linked to a name that must not exist; the directory is synced
last. After an error, the new file is removed; it remains only if the process is killed. A rename needs no permission
on the target, so callers check that permission first.

A file that is itself a mount point, as in containers, can't be replaced, so its contents are overwritten (see
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
PutInPlace = Callable[[Entry, Entry], object]
"""Renames the first entry to the name of the second entry."""


def temporary_entry(entry: Entry, stem: str = ".mcp-") -> Entry:
    """Return an entry with a new name, in the directory of `entry`, for an incomplete file."""
    return entry._replace(name=entry.sibling(temporary_name(stem)), stat=None)


def temporary_name(stem: str = ".mcp-") -> str:
    """Return a name that no file has: `stem`, 16 random hexadecimal digits, and `.tmp`."""
    return f"{stem}{os.urandom(8).hex()}.tmp"


def is_temporary_name(name: str) -> bool:
    """Return True if `name` has the form of names from `temporary_name`. A killed process may leave such files."""
    return _TEMPORARY_NAME.fullmatch(name) is not None


def replace(
    entry: Entry,
    data: bytes,
    existing: os.stat_result | None,
    check: Callable[[], None] = lambda: None,
    put_file: PutInPlace | None = None,
    attributes: Attributes | None = None,
) -> os.stat_result:
    """Create or replace the file at the entry, so that it contains `data`, and return its stat.

    `check` is called just before the change, and may raise an error. `existing` is the stat of the file to replace,
    by a rename or with `put_file`; `attributes` are that file's attributes, if they were read. If `existing` is None
    and the name exists, FileExistsError is raised. Raises OSError.
    """
    return put_in_place(
        prepare_replacement(entry, data, existing, attributes=attributes), entry, existing, check, put_file
    )


def put_in_place(
    new_file: Entry,
    entry: Entry,
    existing: os.stat_result | None,
    check: Callable[[], None] = lambda: None,
    put_file: PutInPlace | None = None,
) -> os.stat_result:
    """Give `new_file`, which `prepare_replacement` has returned, the name of the entry: the second half of `replace`.
    After an error, `new_file` is removed."""
    with ExitStack() as leftovers:
        # If the names were exchanged, this is the old file.
        leftovers.callback(discard, new_file)
        check()
        if existing is None:
            rename_to_unused(new_file, entry)
        else:
            (put_file or _rename_over)(new_file, entry)
    # The directory is synced last: if the name was durable before the bytes, a crash could leave an empty file.
    sync_directory(entry)
    return final_stat(new_file, entry, existing)


def prepare_replacement(
    entry: Entry,
    data: bytes,
    existing: os.stat_result | None,
    new_file: Entry | None = None,
    mode: int = 0o666,
    attributes: Attributes | None = None,
) -> Entry:
    """Create a file with `data` next to the entry, sync it to disk, and return it. It is ready to replace the file
    with the stat `existing` and these `attributes`, if they were read. `mode` is the mode of a file that replaces
    nothing; the umask applies. `new_file` is the new file's name, from `temporary_entry`. Raises OSError."""
    new_file = new_file or temporary_entry(entry)
    # Only the owner may read the new file until it has the mode of the file that it replaces.
    descriptor = create(new_file, mode if existing is None else 0o600)
    with ExitStack() as on_failure:
        on_failure.callback(discard, new_file)
        try:
            write_all(descriptor, data)
            unset: list[str] = []
            if existing is not None:
                unset = set_metadata(descriptor, existing, attributes_at(entry) if attributes is None else attributes)
            # An owner or group that can't be set is tolerated, since the system may not allow it.
            if required := {*unset} - {"owner", "group"}:
                raise MetadataError(f"its attribute {min(required)}")
            # The file system's clock may advance only every few milliseconds, so that two versions could have the
            # same etag.
            SYSTEM.touch(descriptor, new_file.directory, new_file.name)
            sync(descriptor)
            stat_ = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        on_failure.pop_all()
    return new_file._replace(stat=stat_)


def final_stat(new_file: Entry, entry: Entry, existing: os.stat_result | None) -> os.stat_result:
    """Return the current stat of the file at the entry, which was `new_file`, or is `existing` if that was
    overwritten. It is read again because a rename changes the time of the inode."""
    current_stat, prepared_stat = stat_entry(entry), new_file.stat
    if prepared_stat is None:
        raise ValueError("the file has not been prepared")
    written = (prepared_stat,) if existing is None else (prepared_stat, existing)
    return (
        current_stat
        if current_stat is not None and any(os.path.samestat(current_stat, stat_) for stat_ in written)
        else prepared_stat
    )


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of `data`, with as many calls as needed. Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync(descriptor: int, full_sync: int | None = _FULL_SYNC) -> None:
    """Write the file to the disk. Raises OSError.

    On macOS `fsync` leaves the data in the drive's cache, which the operation `full_sync` empties. Some file systems
    do not support `full_sync`; for these `fsync` is used, as in SQLite.
    """
    if sys.platform != "win32" and full_sync is not None:
        with suppress(OSError):
            fcntl.fcntl(descriptor, full_sync)
            return
    os.fsync(descriptor)


def append(descriptor: int, data: bytes) -> None:
    """Append all of `data` to the file, which is open for appending. After an error, a part that was written is
    removed again, unless another process has appended data after it. Raises OSError."""
    old_size, written = os.fstat(descriptor).st_size, 0
    try:
        while written < len(data):
            written += os.write(descriptor, data[written:])
    except OSError:
        if written and os.fstat(descriptor).st_size == old_size + written:
            os.ftruncate(descriptor, old_size)
        raise


def discard(new_file: Entry) -> None:
    """Delete a new file that is not needed, if it exists."""
    with suppress(OSError):
        unlink(new_file)


def rename(old: Entry, new: Entry) -> None:
    """Give `old` the name `new`, replacing any file with that name. Raises OSError."""
    SYSTEM.replace((old.directory, old.name), (new.directory, new.name))


def _rename_over(new_file: Entry, entry: Entry) -> None:
    try:
        rename(new_file, entry)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        overwrite(new_file, entry)


def overwrite(new_file: Entry, entry: Entry) -> None:
    """Overwrite the file at the entry, which keeps its inode, with the contents of `new_file`. Raises OSError.

    This is not atomic: if the process is killed during the write, the file contains only a part of the contents, and
    `new_file` all of them. Space is reserved first, if the system supports it, so that a full disk changes nothing.
    """
    source = SYSTEM.open_file(new_file.directory, new_file.name)
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

    This creates a hard link and then removes the old name. Without hard links, it checks the name and then renames,
    so a file that appears in between would be replaced.
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
        # If the file kept both names, edits under either name would change it.
        unlink(new)
        raise


def check_and_rename(old: Entry, new: Entry) -> None:
    """Rename `old` to `new` after a check that `new` does not exist. Raises OSError, such as FileExistsError."""
    if stat_entry(new) is not None:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    SYSTEM.rename((old.directory, old.name), (new.directory, new.name))


def sync_directory(entry: Entry) -> None:
    """Make the names in the entry's directory durable, if the system can."""
    if not SYSTEM.syncs_directories:
        return
    directory_path = "." if entry.directory is not None else os.path.dirname(entry.name) or "."  # noqa: PTH120
    with suppress(OSError):
        descriptor = os.open(directory_path, getattr(os, "O_DIRECTORY", 0) | BASE_FLAGS, dir_fd=entry.directory)
        try:
            sync(descriptor)
        finally:
            os.close(descriptor)
