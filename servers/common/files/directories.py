"""One directory, found by its path each time, and what is below it: no link is followed there, wherever it leads.

Every name is opened in the open directory before it, so checking and opening are one act. Where the system has no
descriptors of directories, each is looked at before it is entered, and a file once more when it is open (see
`checked`).
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
"""An open directory: its descriptor, or its path where there is none. `System.scan` takes both."""


@contextmanager
def open_directory(
    root: Path, names: Sequence[str] = (), make: bool = False, listed: bool = True, race_free: bool = RACE_FREE
) -> Iterator[Directory]:
    """The directory at these names below `root`, held open; with `make`, those that are missing are made. The root
    itself need not be readable unless it is to be `listed`. Where that is not `race_free`, each is found by its path.

    Whoever names the root itself is trusted, so it may be a link. Raises OSError, with ELOOP where a link is on the
    way below it.
    """
    here: Directory = SYSTEM.open_start(root, listed) if race_free else os.path.realpath(root, strict=True)
    try:
        for name in names:
            below = _made(here, name) if make else enter(here, name)
            leave(here)
            here = below
        yield here
    finally:
        leave(here)


def enter(directory: Directory, name: str) -> Directory:
    """The directory of that name in another one, which stays open; the caller leaves it. Raises OSError."""
    if isinstance(directory, int):
        return SYSTEM.open_directory(directory, name)
    path = os.path.join(directory, name)  # noqa: PTH118
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or not is_same(path, found):
        number = errno.ELOOP if stat.S_ISLNK(found.st_mode) else errno.ENOTDIR
        raise OSError(number, os.strerror(number))
    return path


def _made(directory: Directory, name: str) -> Directory:
    with suppress(FileExistsError):
        entry = entry_in(directory, name)
        make_directory(entry)
        sync_directory(entry)
    return enter(directory, name)


def leave(directory: Directory) -> None:
    """Give an open directory back."""
    if isinstance(directory, int):
        os.close(directory)


def entry_in(directory: Directory, name: str) -> Entry:
    """The entry of that name in an open directory, not looked at."""
    place = Place(0, (name,), name)
    if isinstance(directory, int):
        return Entry(directory, name, None, False, place)
    return Entry(None, os.path.join(directory, name), None, False, place)  # noqa: PTH118


def open_to_read(entry: Entry) -> Handle:
    """What is at the entry, open to be read, whatever it is; the caller closes it. Raises OSError, for a link as
    well."""
    if entry.directory is None:
        # To open a pipe or a device may wait, or start something, where nothing can be said about that.
        mode = os.lstat(entry.name).st_mode
        if not stat.S_ISREG(mode):
            number = errno.ELOOP if stat.S_ISLNK(mode) else errno.ENXIO
            raise OSError(number, os.strerror(number))
    descriptor = SYSTEM.open_file(entry.directory, entry.name)
    with ExitStack() as on_failure:
        on_failure.callback(os.close, descriptor)
        found = os.fstat(descriptor)
        if entry.directory is None and not is_same(entry.name, found):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        on_failure.pop_all()
    return Handle(descriptor, found)


def read_file(entry: Entry, most: int) -> bytes | None:
    """What is in the regular file; None where that is more than `most` bytes. Raises OSError."""
    handle = open_to_read(entry)
    try:
        if not stat.S_ISREG(handle.stat.st_mode):
            raise FileNotFoundError
        parts: list[bytes] = []
        size = 0
        while size <= most:
            part = os.read(handle.descriptor, min(most + 1 - size, 1 << 20))
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
        return None
    finally:
        os.close(handle.descriptor)
