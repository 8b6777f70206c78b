"""Replaces a file that other programs may write to, so that their changes are detected and not lost.

Between a check and a rename, another program may write. If the system can exchange two names in one step (Linux:
renameat2), the replaced file has the other name afterwards, and is compared with the contents that the new file was
made from. Data that was only appended is appended to the new file as well, including data from programs that still
have the old file open and write a moment later. After any other change, the file is put back and the change is
reported to the caller.

A file that is a mount point has no name to exchange. It is overwritten after a check.
"""

import errno
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from servers.common.files.locks import lock_new_file
from shared.coded_errors import PathError
from shared.program.files.atomic import append, overwrite, rename, sync
from shared.program.files.entries import Entry, open_to_append, open_to_read, read_bytes, stat_entry

try:
    import fcntl
except ImportError:  # not on Windows
    _HAS_LEASES = False
else:
    _HAS_LEASES = sys.platform == "linux"

T = TypeVar("T")

_EXCHANGE = 2
"""RENAME_EXCHANGE"""
_BLOCK_BYTES = 1024 * 1024
_SETTLE_SECONDS, _PAUSE_SECONDS = 0.02, 0.0005
"""Seconds to wait for programs that have the old file open, and seconds between checks."""
_MAX_SECONDS = 1.0
"""Maximum number of seconds to wait for a program that keeps appending to the old file."""
_MAX_ATTEMPTS = 20
"""Maximum number of attempts, since other programs may write all the time."""


def retry(act: Callable[[], T], codes: tuple[str, ...]) -> T:
    """Return the result of `act`, retrying while it raises one of these codes because of other programs."""
    for _ in range(_MAX_ATTEMPTS - 1):
        try:
            return act()
        except PathError as error:
            if error.code not in codes:
                raise
    return act()


def exchange(fresh: Entry, entry: Entry, before: os.stat_result, data: bytes | None) -> bool:
    """Give `fresh` the name of the entry, which must still be the file `before`. The old file then has the other
    name.

    With `data`, its contents, data that has been appended to it since is appended to `fresh`. Raises `changed` for
    any other change, and leaves the file unchanged. If the system can't exchange names, `fresh` is renamed after a
    check. Returns False if the file was overwritten instead, because it is a mount point.
    """
    # Other server processes see the new file at once, and wait until this one has finished with it.
    with lock_new_file(fresh):
        try:
            if not _exchange_names(fresh, entry):
                _require_unchanged(entry, before)
                rename(fresh, entry)
                return True
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            _require_unchanged(entry, before)
            overwrite(fresh, entry)
            return False
        if _take_over(fresh, entry, before, data):
            return True
        if not _exchange_names(fresh, entry):
            rename(fresh, entry)
        elif fresh.stat is not None:
            _take_over(fresh, entry, fresh.stat, b"")
        raise _changed_error(entry)


def _require_unchanged(entry: Entry, before: os.stat_result) -> None:
    now = stat_entry(entry)
    if now is None or _identity(now) != _identity(before):
        raise _changed_error(entry)


def _changed_error(entry: Entry) -> PathError:
    return PathError(
        "changed", entry.place.path, "has been changed by another program in the meantime", "Read it again."
    )


def _take_over(old: Entry, new: Entry, expected: os.stat_result, data: bytes | None) -> bool:
    """Return True if `old` is the `expected` file. With its `data`, first copy any appended data to `new`."""
    # If anything fails here, the replaced file must get its name back.
    try:
        now = stat_entry(old)
        if now is None or data is None or not os.path.samestat(now, expected):
            # A rename changes only the inode's ctime.
            return now is not None and _identity(now) == _identity(expected)
        descriptor = open_to_read(old)
        try:
            if read_bytes(descriptor, len(data)) != data:
                return False
            _copy_appended(descriptor, max(len(data), expected.st_size), new)
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return True


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _copy_appended(descriptor: int, begin: int, new: Entry) -> None:
    """Append the part of the file after `begin` to `new`, including data that programs with the file open still
    append."""
    began, end = time.monotonic(), math.inf
    while begin < end:
        # Checked first: a program that writes and closes after this is read below.
        is_open = _has_writer(descriptor) and time.monotonic() < began + _SETTLE_SECONDS
        # A program may never stop appending.
        if end == math.inf and time.monotonic() > began + _MAX_SECONDS:
            end = os.fstat(descriptor).st_size
        os.lseek(descriptor, begin, os.SEEK_SET)
        added = os.read(descriptor, _BLOCK_BYTES)
        if added:
            target = open_to_append(new)
            try:
                append(target, added)
                sync(target)
            finally:
                os.close(target)
            begin += len(added)
        elif is_open:
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def _has_writer(descriptor: int) -> bool:
    """Return True if another process has the file open for writing, as far as the system reports it."""
    if sys.platform != "linux" or not _HAS_LEASES:
        return False
    try:
        # If another program opens the file now, the system sends a signal; this one is ignored by default.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        # A read lease is granted only if no process has the file open for writing (fcntl(2)).
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    return False


def _exchange_names(fresh: Entry, other: Entry) -> bool:
    """Exchange the names. Return False if the system or the file system can't. Raises OSError."""
    if fresh.directory is None or other.directory is None:
        return False
    number = _renameat2()(
        fresh.directory, os.fsencode(fresh.name), other.directory, os.fsencode(other.name), _EXCHANGE
    )
    # EINVAL means that the file system can't (renameat2(2)).
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    if number:
        raise OSError(number, os.strerror(number))
    return True


@cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int]:
    """Return renameat2 from the system's C library, wrapped to return the error number, 0, or ENOSYS if it is
    missing."""
    import ctypes

    # glibc has it since 2.28.
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if function is None:
        return lambda *_: errno.ENOSYS
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    function.restype = ctypes.c_int
    return lambda *names: ctypes.get_errno() if function(*names) else 0
