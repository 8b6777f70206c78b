"""Replaces a file to which other programs may write, so that their changes are detected and not lost.

Another program may write between a check and a rename. If the system can exchange two names in one step (Linux:
renameat2), the old file has the name of the new one afterwards. It is then compared with the contents from which the
new file was made. If a program has only appended data, the data is appended to the new file as well, also if the
program still has the old file open and writes a moment later. After any other change, the names are exchanged back
and the caller gets an error.

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

from shared.coded_errors import PathError
from shared.program.files.atomic import append, overwrite, rename, sync
from shared.program.files.entries import Entry, open_to_append, open_to_read, read_bytes, stat_entry

from .locks import lock_new_file

try:
    import fcntl
except ImportError:  # not on Windows
    _HAS_LEASES = False
else:
    _HAS_LEASES = sys.platform == "linux"

T = TypeVar("T")

_EXCHANGE = 2
"""The flag RENAME_EXCHANGE of renameat2."""
_BLOCK_BYTES = 1024 * 1024
_SETTLE_SECONDS, _PAUSE_SECONDS = 0.02, 0.0005
"""Seconds to wait for programs that have the old file open, and seconds between checks whether they do."""
_MAX_SECONDS = 1.0
"""Maximum number of seconds to wait for a program that keeps appending to the old file."""
_MAX_ATTEMPTS = 20
"""Maximum number of attempts if other programs write all the time."""


def retry(operation: Callable[[], T], codes: tuple[str, ...]) -> T:
    """Return the result of `operation`. Retry it while it raises PathError with one of these codes, because of other
    programs."""
    for _ in range(_MAX_ATTEMPTS - 1):
        try:
            return operation()
        except PathError as error:
            if error.code not in codes:
                raise
    return operation()


def exchange(new: Entry, entry: Entry, expected: os.stat_result, data: bytes | None) -> bool:
    """Exchange the names of `new` and `entry`. The file of `entry` must still have the status `expected`.

    `data` are the contents that the file had with this status. If they are given, data that other programs have
    appended to the file is appended to `new` as well. After any other change, the file keeps its name, and PathError
    with code `changed` is raised. If the system can't exchange names, check the file and then rename `new`. Return
    False if the file was overwritten instead, because it is a mount point.
    """
    # Other server processes can open the new file as soon as it has the name. The lock makes them wait until it is
    # complete.
    with lock_new_file(new):
        try:
            if not _exchange_names(new, entry):
                _require_unchanged(entry, expected)
                rename(new, entry)
                return True
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            _require_unchanged(entry, expected)
            overwrite(new, entry)
            return False
        if _take_over(new, entry, expected, data):
            return True
        if not _exchange_names(new, entry):
            rename(new, entry)
        elif new.stat is not None:
            _take_over(new, entry, new.stat, b"")
        raise _changed_error(entry)


def _require_unchanged(entry: Entry, expected: os.stat_result) -> None:
    status = stat_entry(entry)
    if status is None or _identity(status) != _identity(expected):
        raise _changed_error(entry)


def _changed_error(entry: Entry) -> PathError:
    return PathError(
        "changed", entry.place.path, "has been changed by another program in the meantime", "Read it again."
    )


def _take_over(old: Entry, new: Entry, expected: os.stat_result, data: bytes | None) -> bool:
    """Return True if the file `old` is the expected one: it has the status `expected`, or if `data` are given, it
    begins with them. In the second case, first copy what follows them to `new`. Return False after an error, so that
    `old` gets its name back."""
    try:
        status = stat_entry(old)
        if status is None or data is None or not os.path.samestat(status, expected):
            # A rename changes the ctime, which `_identity` does not contain.
            return status is not None and _identity(status) == _identity(expected)
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
    """Append the bytes of the file from `begin` on to `new`. Wait a moment for programs that have the file open and
    may append more."""
    started_at, end = time.monotonic(), math.inf
    while begin < end:
        # Check this before reading, so that what a program writes before it closes the file is still read.
        is_open = _has_writer(descriptor) and time.monotonic() < started_at + _SETTLE_SECONDS
        # A program may never stop appending. So after a while, stop at the end that the file then has.
        if end == math.inf and time.monotonic() > started_at + _MAX_SECONDS:
            end = os.fstat(descriptor).st_size
        os.lseek(descriptor, begin, os.SEEK_SET)
        appended = os.read(descriptor, _BLOCK_BYTES)
        if appended:
            target = open_to_append(new)
            try:
                append(target, appended)
                sync(target)
            finally:
                os.close(target)
            begin += len(appended)
        elif is_open:
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def _has_writer(descriptor: int) -> bool:
    """Return True if another process has the file open for writing, as far as the system reports it."""
    if sys.platform != "linux" or not _HAS_LEASES:
        return False
    try:
        # If another program opens the file during the lease, the system sends this process a signal. Choose SIGURG,
        # because it is ignored by default.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        # A read lease is granted only if no process has the file open for writing (fcntl(2)).
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    return False


def _exchange_names(new: Entry, other: Entry) -> bool:
    """Exchange the names of two files. Return False if the system or the file system can't. Raises OSError."""
    if new.directory is None or other.directory is None:
        return False
    error_number = _renameat2()(
        new.directory, os.fsencode(new.name), other.directory, os.fsencode(other.name), _EXCHANGE
    )
    # EINVAL: the file system can't exchange names (renameat2(2)).
    if error_number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    if error_number:
        raise OSError(error_number, os.strerror(error_number))
    return True


@cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int]:
    """Return a function that calls renameat2 of the system's C library (glibc since 2.28). It returns an error
    number: 0 after success, ENOSYS if the library has no such function."""
    import ctypes

    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if function is None:
        return lambda *_: errno.ENOSYS
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    function.restype = ctypes.c_int
    return lambda *names: ctypes.get_errno() if function(*names) else 0
