"""Putting a new file under a name while other programs write there, so that what they wrote is seen and not lost.

A look before a rename leaves a moment in which somebody else may write. Where the system exchanges two names in one
step (Linux: renameat2), what was there at that very moment lies under the other name afterwards, where it is compared
with what the new file was made of. What was only added to it is added to the new file as well, also by those who had
opened the old one by then and write a moment later. Anything else is put back, and the caller told.
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
from shared.program.files.atomic import add, rename, sync
from shared.program.files.entries import Entry, current, open_to_append, open_to_read

try:
    import fcntl
except ImportError:  # not on Windows
    _HAS_LEASES = False
else:
    _HAS_LEASES = sys.platform == "linux"

T = TypeVar("T")

_EXCHANGE = 2
"""RENAME_EXCHANGE"""
_BLOCK = 1024 * 1024
_SETTLING, _PAUSE = 0.02, 0.0005
"""Seconds to wait for those who have the old file open, and between two looks."""
_LONGEST = 1.0
"""Seconds after which one who adds to the old file without a pause is waited for no more."""
_ATTEMPTS = 20


def persistently(act: Callable[[], T], codes: tuple[str, ...]) -> T:
    """What `act` gives, which is done anew where it raises one of these codes because of what others did."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return act()
        except PathError as error:
            if error.code not in codes:
                raise
    return act()


def exchange(fresh: Entry, entry: Entry, found: os.stat_result, data: bytes | None) -> None:
    """Give `fresh` the name of the entry, where what was `found` still lies. What was there has the other name then.

    With `data`, which is what it held, more may have been added to it by now, which is added to `fresh`. Raises
    `changed` for any other change, and leaves what is there. Where the system exchanges no names it is a rename,
    after a look.
    """
    if not _exchanged(fresh, entry):
        now = current(entry)
        if now is None or _mark(now) != _mark(found):
            raise _changed(entry)
        rename(fresh, entry)
        return
    if _is_taken_over(fresh, entry, found, data):
        return
    if not _exchanged(fresh, entry):
        rename(fresh, entry)
    elif fresh.stat is not None:
        _is_taken_over(fresh, entry, fresh.stat, b"")
    raise _changed(entry)


def _changed(entry: Entry) -> PathError:
    return PathError("changed", entry.place.written, "was changed by someone else meanwhile", "Read it again.")


def _is_taken_over(old: Entry, new: Entry, found: os.stat_result, data: bytes | None) -> bool:
    """Whether `old` is what was found, and, with the data it held, what was added to it is in `new` now."""
    # Whatever fails here, what was replaced must get its name back.
    try:
        now = current(old)
        if now is None or data is None or not os.path.samestat(now, found):
            # A rename changes the time of the inode, and nothing else.
            return now is not None and _mark(now) == _mark(found)
        descriptor = open_to_read(old)
        try:
            with os.fdopen(os.dup(descriptor), "rb") as file:
                same = file.read(len(data)) == data
            if not same:
                return False
            _carry(descriptor, max(len(data), found.st_size), new)
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return True


def _mark(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _carry(descriptor: int, begin: int, new: Entry) -> None:
    """Adds to `new` what is in the file from `begin` on, and what those add to it who have it open still: of one who
    never ceases, what is there after `_LONGEST`."""
    began, end = time.monotonic(), math.inf
    while begin < end:
        # Asked first: who writes and closes after this is read below.
        is_open = _is_written(descriptor) and time.monotonic() < began + _SETTLING
        if end == math.inf and time.monotonic() > began + _LONGEST:
            end = os.fstat(descriptor).st_size
        os.lseek(descriptor, begin, os.SEEK_SET)
        added = os.read(descriptor, _BLOCK)
        if added:
            target = open_to_append(new)
            try:
                add(target, added)
                sync(target)
            finally:
                os.close(target)
            begin += len(added)
        elif is_open:
            time.sleep(_PAUSE)
        else:
            return


def _is_written(descriptor: int) -> bool:
    """Whether another process has the file open to write to it, as far as the system tells: a lease to read is given
    only where nobody has."""
    if sys.platform != "linux" or not _HAS_LEASES:
        return False
    try:
        # Who opens the file meanwhile makes the system send a signal; this one is ignored unless somebody wants it.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    return False


def _exchanged(one: Entry, other: Entry) -> bool:
    """Exchanges the names; whether the system and the file system can. Raises OSError."""
    if one.directory is None or other.directory is None:
        return False
    number = _renameat2()(one.directory, os.fsencode(one.name), other.directory, os.fsencode(other.name), _EXCHANGE)
    # EINVAL is a file system that can't (renameat2(2)).
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    if number:
        raise OSError(number, os.strerror(number))
    return True


@cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int]:
    """The function of the system's C library, which gives the number of the error, or 0; ENOSYS where it has none."""
    import ctypes

    # glibc has it from 2.28 on.
    found = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if found is None:
        return lambda *_: errno.ENOSYS
    found.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    found.restype = ctypes.c_int
    return lambda *names: ctypes.get_errno() if found(*names) else 0
