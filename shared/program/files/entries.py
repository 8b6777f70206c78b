"""A name in a directory, and what the system is asked to do with it.

Where the system has descriptors of directories, each act names the directory by its descriptor, so nothing above the
name is looked up again and no link on the way can be put in between. Where it has none the name is a whole path. No
act follows a link at its end.
"""

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from .system import SYSTEM

RACE_FREE = (
    {os.open, os.stat, os.readlink, os.rename, os.unlink, os.mkdir} <= os.supports_dir_fd
    and hasattr(os, "O_NOFOLLOW")
    and hasattr(os, "O_DIRECTORY")
)
"""Whether check and use are one act here. False: the path is checked before and after each open."""
CHECKED_TWICE = (
    "this system has no descriptors of directories: paths are checked before and after they are opened, and who "
    "changes directories at the right moment gets out of those that are allowed"
)
"""What a server says at its start where that is so."""


class Place(NamedTuple):
    """A path beneath a root: which root, which components, and how the caller wrote it."""

    root_index: int
    parts: tuple[str, ...]
    written: str

    def child(self, name: str) -> "Place":
        """The place of the entry `name` of this directory."""
        return Place(self.root_index, (*self.parts, name), self.written)


class Entry(NamedTuple):
    """A name in a directory: what system calls act on, and what was there when it was found.

    `directory` is a descriptor; it is None where the system has none, and `name` is a whole path then. `linked` tells
    that the written path ended in a link that was followed. `place` is where it stands, which links may have made
    another one than was asked for.
    """

    directory: int | None
    name: str
    stat: os.stat_result | None
    linked: bool
    place: Place

    def sibling(self, name: str) -> str:
        """What to hand to system calls for `name` in the same directory."""
        return name if self.directory is not None else os.path.join(os.path.dirname(self.name), name)  # noqa: PTH118, PTH120


class Handle(NamedTuple):
    """An open regular file and what it was right after the open."""

    descriptor: int
    stat: os.stat_result


class Held(NamedTuple):
    """All of a small file."""

    data: bytes
    stat: os.stat_result

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.data)

    def read(self, position: int, count: int) -> bytes:
        """`count` bytes from `position` on, fewer only at the end of the file."""
        return self.data[position : position + count]


def entry_at(path: Path) -> Entry:
    """The entry of a path that is trusted up to its last name, not looked at."""
    return Entry(None, str(path), None, False, Place(0, path.parts, str(path)))


def current(entry: Entry) -> os.stat_result | None:
    """What is at the entry now, links not followed; None when nothing is. Raises OSError."""
    try:
        return SYSTEM.stat(entry.directory, entry.name)
    except FileNotFoundError:
        return None


def is_same(path: str, found: os.stat_result) -> bool:
    """Whether the path, resolved again, is still itself, and leads to what was found. Raises OSError."""
    again = os.path.realpath(path)
    return os.path.normcase(again) == os.path.normcase(path) and os.path.samestat(os.lstat(again), found)


def create(entry: Entry, mode: int) -> int:
    """Make the file, which must not exist yet, and open it for writing; the umask counts. Raises OSError."""
    return SYSTEM.create(entry.directory, entry.name, mode)


def unlink(entry: Entry) -> None:
    """Take away the name of what is no directory. Raises OSError."""
    SYSTEM.unlink(entry.directory, entry.name)


@contextmanager
def opened(entry: Entry) -> Iterator[int | None]:
    """The directory `entry`, open; None where the system has no descriptors of directories. Raises OSError."""
    if entry.directory is None:
        # What leads elsewhere need not be a link: a junction of Windows is a directory by its mode.
        if not is_same(entry.name, os.lstat(entry.name)):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        yield None
        return
    descriptor = SYSTEM.open_directory(entry.directory, entry.name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def child(entry: Entry, directory: int | None, name: str) -> Entry:
    """The entry `name`, not looked at, of the directory that `opened` gave for `entry`."""
    path = os.path.join(entry.name, name) if directory is None else name  # noqa: PTH118 (keeps surrogates)
    return Entry(directory, path, None, False, entry.place.child(name))


def scanned(directory: int | str) -> list["os.DirEntry[str]"]:
    """The entries of an open directory, sorted by name; look at them while it is open. Raises OSError."""
    with SYSTEM.scan(directory) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def kind_of(entry: "os.DirEntry[str]") -> str:
    """What an entry is, as its directory says: file, directory, symlink or other; also where it can't be asked."""
    try:
        if entry.is_file(follow_symlinks=False):
            return "file"
        if entry.is_dir(follow_symlinks=False):
            return "directory"
        return "symlink" if entry.is_symlink() else "other"
    except OSError:
        return "other"


def make_directory(entry: Entry, mode: int = 0o777) -> None:
    """Make a directory; the umask counts. Raises OSError."""
    SYSTEM.make_directory(entry.directory, entry.name, mode)


def remove_directory(entry: Entry) -> None:
    """Take away the directory, which is empty. Raises OSError."""
    SYSTEM.remove_directory(entry.directory, entry.name)


def remove_tree(entry: Entry) -> None:
    """Take away the directory with all that it holds, as far as that can be done. The caller limits its depth."""
    with suppress(OSError):
        with opened(entry) as directory:
            for one in scanned(entry.name if directory is None else directory):
                is_directory = one.is_dir(follow_symlinks=False)
                (remove_tree if is_directory else unlink)(child(entry, directory, one.name))
        remove_directory(entry)


def copy_link(old: Entry, new: Entry) -> str:
    """Make a link that says what the link `old` says, and give that. Raises OSError."""
    target = SYSTEM.read_link(old.directory, old.name)
    SYSTEM.make_link(new.directory, new.name, target)
    return target


def is_writable(entry: Entry) -> bool:
    """Whether the system lets this process write to what is there; where that can't be asked, it is so."""
    return SYSTEM.is_writable(entry.directory, entry.name)


def open_unblocked(path: str, flags: int) -> int:
    """An `opener` that does not wait for the other end of a named pipe. Raises OSError."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def open_to_append(entry: Entry) -> int:
    """The file, open for writing at its end; a named pipe is not waited for. Raises OSError."""
    return SYSTEM.append(entry.directory, entry.name)


def open_to_read(entry: Entry) -> int:
    """The file, open for reading; a named pipe is not waited for. Raises OSError."""
    return SYSTEM.open_file(entry.directory, entry.name)


def etag_of(found: os.stat_result) -> str:
    """A short mark of what a file held when it was found so, 16 hexadecimal digits: a later look tells by it whether
    the file is the same.

    It is made of what the file system itself notes down with every change: inode, size, and the times of the last
    change of the content and of the inode (RFC 9110, section 8.8.1, calls that a strong validator). So it costs no
    reading, also of a file of many gigabytes. A file that was touched, or got other permissions, has another one,
    too: then whoever asks is told "changed" for nothing, but never "unchanged" wrongly.
    """
    mark = f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
    return hashlib.blake2b(mark.encode(), digest_size=8).hexdigest()
