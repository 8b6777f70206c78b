"""Opens a directory by its path, and the entries below it without following links.

Each name is opened in its open parent directory, so checking and opening are one operation. On systems without
directory descriptors, each directory is checked before it is entered, and a file is checked again once it is open
(see `checked`).
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from shared.program.files.atomic import sync_directory
from shared.program.files.entries import RACE_FREE, Entry, Handle, Place, is_same, make_directory
from shared.program.files.system import SYSTEM

Directory = int | str
"""An open directory: its descriptor, or its path on systems without directory descriptors."""


@contextmanager
def open_directory(
    root: Path, names: Sequence[str] = (), make: bool = False, listed: bool = True, race_free: bool = RACE_FREE
) -> Iterator[Directory]:
    """Yield the open directory at these names below `root`. With `make`, create missing directories.

    If the root is not going to be listed, pass `listed=False`, so that it need not be readable. `race_free` is False
    on systems without directory descriptors.
    """
    directory: Directory = SYSTEM.open_start(root, listed) if race_free else os.path.realpath(root, strict=True)
    try:
        for name in names:
            child = _make_and_enter(directory, name) if make else enter(directory, name)
            leave(directory)
            directory = child
        yield directory
    finally:
        leave(directory)


def enter(directory: Directory, name: str) -> Directory:
    """Open the directory with this name in an open directory. The caller must `leave` it. Raises OSError, also for a
    link."""
    if isinstance(directory, int):
        return SYSTEM.open_directory(directory, name)
    path = os.path.join(directory, name)  # noqa: PTH118
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or not is_same(path, status):
        number = errno.ELOOP if stat.S_ISLNK(status.st_mode) else errno.ENOTDIR
        raise OSError(number, os.strerror(number))
    return path


def _make_and_enter(directory: Directory, name: str) -> Directory:
    with suppress(FileExistsError):
        entry = entry_in(directory, name)
        make_directory(entry)
        sync_directory(entry)
    return enter(directory, name)


def leave(directory: Directory) -> None:
    """Close an open directory."""
    if isinstance(directory, int):
        os.close(directory)


def entry_in(directory: Directory, name: str) -> Entry:
    """Return the entry with this name in an open directory, without accessing it."""
    place = Place(0, (name,), name)
    if isinstance(directory, int):
        return Entry(directory, name, None, False, place)
    return Entry(None, os.path.join(directory, name), None, False, place)  # noqa: PTH118


def open_to_read(entry: Entry) -> Handle:
    """Open the entry for reading. The caller must close it.

    Raises OSError, also for a link, and without directory descriptors for anything but a regular file.
    """
    if entry.directory is None:
        # On Windows, opening a pipe or a device may block or have effects, and no flag prevents that.
        mode = os.lstat(entry.name).st_mode
        if not stat.S_ISREG(mode):
            number = errno.ELOOP if stat.S_ISLNK(mode) else errno.ENXIO
            raise OSError(number, os.strerror(number))
    descriptor = SYSTEM.open_file(entry.directory, entry.name)
    with ExitStack() as on_failure:
        on_failure.callback(os.close, descriptor)
        status = os.fstat(descriptor)
        if entry.directory is None and not is_same(entry.name, status):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        on_failure.pop_all()
    return Handle(descriptor, status)


def read_file(entry: Entry, max_bytes: int) -> bytes | None:
    """Return the contents of a regular file; None if it has more than `max_bytes` bytes. Raises OSError."""
    handle = open_to_read(entry)
    try:
        if not stat.S_ISREG(handle.stat.st_mode):
            raise FileNotFoundError
        parts: list[bytes] = []
        size = 0
        while size <= max_bytes:
            part = os.read(handle.descriptor, min(max_bytes + 1 - size, 1 << 20))
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
        return None
    finally:
        os.close(handle.descriptor)
