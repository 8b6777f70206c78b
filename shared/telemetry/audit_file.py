"""A file to which several processes append whole lines, rotated by size and reopened when it is moved.

Each line is appended with one write (`O_APPEND`), so that lines of several processes don't mix. If only a part of a
line could be written, it is removed, or a line ending is added before the next line. Only one process at a time
rotates the file, under a lock. A process that still has the moved file open writes its line there, so that none is
lost. Each process checks at most once a millisecond whether the file was moved, because the check takes longer than
writing a line.
"""

import errno
import io
import os
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from filelock import FileLock

from .trace import protect_file

RETRY_SECONDS = 0.05
"""Seconds until the next attempt to rotate after one that failed, for instance because another process is rotating
the file. Until then, the file may exceed its maximum size."""

_CHECK_SECONDS = 0.001
"""Seconds between two checks that the file is still at its path. That is short enough: a program that compresses
moved files does not start that soon."""
_WRITING_SECONDS = 0.02
"""Seconds after which an unchanged incomplete last line is considered the rest of a process that died."""


class AuditFile:
    """The open file. Creating this raises OSError if it can't be opened, ValueError if it is not a regular file."""

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int = 100 * 1024**2,
        files: int = 10,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The file is rotated before it exceeds `max_bytes`. `files` is the number of files that are kept, including
        the current one."""
        self._path, self._name = path, os.fspath(path)
        self._max_bytes = max_bytes
        self._files = files
        self._lock = FileLock(f"{path}.lock", timeout=0, mode=0o600)
        self._clock = clock
        self._check_at = self._rotate_at = 0.0
        self._is_torn = False
        self._file = self._open()

    def write(self, line: bytes) -> None:
        """Append `line`, which ends with a line ending. Raises OSError if it can't be written completely; the part
        that was written is then removed."""
        now = self._clock()
        if now >= self._check_at:
            self._check_at = now + _CHECK_SECONDS
            if not self._is_at_path():
                self._reopen()
        size = os.lseek(self._fd, 0, os.SEEK_END)
        # A line that exceeds the maximum size gets a file of its own. An empty file is not rotated.
        if size + len(line) > self._max_bytes and size and now >= self._rotate_at:
            self._rotate_at = now + RETRY_SECONDS
            with suppress(OSError), self._lock:  # a lock that another process has raises TimeoutError, an OSError
                if self._is_at_path():  # otherwise another process was faster
                    self._rotate()
                self._reopen()
        text = b"\n" + line if self._is_torn else line
        written = os.write(self._fd, text)
        if written == len(text):
            self._is_torn = False
            return
        # Remove the part that was written. If another process has appended something after it, the next line begins
        # with a line ending instead.
        fd = self._fd
        # After a write with O_APPEND, the position is the end of what was written.
        end = os.lseek(fd, 0, os.SEEK_CUR)
        self._is_torn = written > 0
        with suppress(OSError):
            if self._is_torn and os.fstat(fd).st_size == end:
                os.ftruncate(fd, end - written)
                self._is_torn = False
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _is_at_path(self) -> bool:
        try:
            status = os.stat(self._name)  # noqa: PTH116 - pathlib takes twice as long
        except FileNotFoundError:
            return False
        # While the file is open, no other file can have the same inode.
        return (status.st_dev, status.st_ino) == self._identity

    def _rotate(self) -> None:
        paths = [self._path, *(Path(f"{self._path}.{number}") for number in range(1, self._files))]
        # Begin with the oldest file, since each move frees the name for the next one.
        for source, target in reversed(list(pairwise(paths))):
            with suppress(FileNotFoundError):
                source.replace(target)
        if len(paths) == 1:
            self._path.unlink()

    def _reopen(self) -> None:
        old_file, self._file = self._file, self._open()
        old_file.close()
        self._rotate_at = 0.0

    def _open(self) -> io.FileIO:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0)
        fd = os.open(self._path, flags, 0o600)
        file = io.FileIO(fd, "a")
        try:
            protect_file(fd, self._path)
            status, is_torn = os.fstat(fd), _has_torn_end(fd)
        except (OSError, ValueError):
            file.close()
            raise
        self._fd, self._identity, self._is_torn = fd, (status.st_dev, status.st_ino), is_torn
        return file


def _has_torn_end(fd: int) -> bool:
    """Return True if the file ends with a part of a line, which a process left when it died."""
    size = None
    # Read by its descriptor: another process may have rotated the file since it was opened.
    while size != (size := os.lseek(fd, 0, os.SEEK_END)):
        os.lseek(fd, max(0, size - 1), os.SEEK_SET)
        if os.read(fd, 1) in (b"", b"\n"):
            return False
        # Another process may just be writing the line, so wait and look again.
        time.sleep(_WRITING_SECONDS)
    return True
