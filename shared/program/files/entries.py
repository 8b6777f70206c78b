"""A name in a directory, and the system calls on it.

On systems with directory descriptors, each call identifies the directory by its descriptor. So the path of the
directory is not looked up again, and a link that is inserted into it between two calls has no effect. On other
systems the name is a full path. No call follows a link at the end of the name.
"""

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from .system import SYSTEM

RACE_FREE = (
    {os.open, os.stat, os.readlink, os.rename, os.unlink, os.mkdir} <= os.supports_dir_fd
    and hasattr(os, "O_NOFOLLOW")
    and hasattr(os, "O_DIRECTORY")
)
"""True if this system can check and use an entry in one step. Otherwise the path is checked before and after it."""
CHECKED_TWICE = (
    "this system has no directory descriptors: paths are checked before and after they are opened, and a process "
    "that changes directories at the right moment can escape the allowed ones"
)
"""The warning that a server logs at startup if `RACE_FREE` is False."""

_NAME = attrgetter("name")
_BLOCK_BYTES = 65_536
"""Number of bytes in one read. For many more, memory would be requested from the system each time."""


class Place(NamedTuple):
    """A path below a root: the index of the root, the components, and the path as the caller wrote it, which may be
    relative or a URI."""

    root_index: int
    parts: tuple[str, ...]
    path: str

    def child(self, name: str) -> "Place":
        """Return the place of the entry `name` of this directory."""
        return Place(self.root_index, (*self.parts, name), self.path)


class Entry(NamedTuple):
    """A name in a directory, as a target of system calls, with its stat when it was looked up.

    `directory` is a descriptor; on systems without them it is None, and `name` is a full path. `linked` is true if
    the path ended in a link that was followed. `place` is the place after all links, which may differ from the
    requested place.
    """

    directory: int | None
    name: str
    stat: os.stat_result | None
    linked: bool
    place: Place

    def sibling(self, name: str) -> str:
        """Return `name`, in the same directory, in the form for system calls."""
        return name if self.directory is not None else os.path.join(os.path.dirname(self.name), name)  # noqa: PTH118, PTH120


class Handle(NamedTuple):
    """An open regular file and its stat right after the open."""

    descriptor: int
    stat: os.stat_result


class SmallFile(NamedTuple):
    """The complete contents of a small file."""

    data: bytes
    stat: os.stat_result

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.data)

    def read(self, position: int, count: int) -> bytes:
        """Return `count` bytes from `position` on; fewer only at the end of the file."""
        return self.data[position : position + count]


def entry_at(path: Path) -> Entry:
    """Return the entry, without a stat, for a path whose directory is trusted."""
    return Entry(None, str(path), None, False, Place(0, path.parts, str(path)))


def stat_entry(entry: Entry) -> os.stat_result | None:
    """Return the current stat of the entry, without following links; None if it does not exist. Raises OSError."""
    try:
        return SYSTEM.stat(entry.directory, entry.name)
    except FileNotFoundError:
        return None


def is_same(path: str, stat_: os.stat_result) -> bool:
    """Return True if the path still contains no links, and leads to the file with this stat. Raises OSError."""
    real_path = os.path.realpath(path)
    return os.path.normcase(real_path) == os.path.normcase(path) and os.path.samestat(os.lstat(real_path), stat_)


def create(entry: Entry, mode: int) -> int:
    """Create the file, which must not exist yet, open it for writing, and return its descriptor. The umask applies.
    Raises OSError."""
    return SYSTEM.create(entry.directory, entry.name, mode)


def unlink(entry: Entry) -> None:
    """Delete a name that is not a directory. Raises OSError."""
    SYSTEM.unlink(entry.directory, entry.name)


@contextmanager
def enter_directory(entry: Entry) -> Iterator[int | None]:
    """Open the directory `entry` during the block, and yield its descriptor; None if the system has no directory
    descriptors. Raises OSError."""
    if entry.directory is None:
        # The mode does not show every redirection: according to it, a Windows junction is a directory.
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
    """Return the entry `name`, without a stat, in the directory `entry`, for which `enter_directory` has yielded
    `directory`."""
    path = os.path.join(entry.name, name) if directory is None else name  # noqa: PTH118 (keeps surrogates)
    return Entry(directory, path, None, False, entry.place.child(name))


def list_entries(directory: int | str) -> list["os.DirEntry[str]"]:
    """Return the entries of an open directory, sorted by name. Usable while it is open. Raises OSError."""
    with SYSTEM.scan(directory) as entries:
        return sorted(entries, key=_NAME)


def kind_of(entry: "os.DirEntry[str]") -> str:
    """Return the kind of an entry: "file", "directory", "symlink" or "other". After an error it is "other"."""
    try:
        if entry.is_file(follow_symlinks=False):
            return "file"
        if entry.is_dir(follow_symlinks=False):
            return "directory"
        return "symlink" if entry.is_symlink() else "other"
    except OSError:
        return "other"


def make_directory(entry: Entry, mode: int = 0o777) -> None:
    """Create a directory; the umask applies. Raises OSError."""
    SYSTEM.make_directory(entry.directory, entry.name, mode)


def remove_directory(entry: Entry) -> None:
    """Delete an empty directory. Raises OSError."""
    SYSTEM.remove_directory(entry.directory, entry.name)


def remove_tree(entry: Entry) -> None:
    """Delete the directory with all its contents, as far as possible. The caller limits its depth."""
    with suppress(OSError):
        with enter_directory(entry) as directory:
            for dir_entry in list_entries(entry.name if directory is None else directory):
                is_directory = dir_entry.is_dir(follow_symlinks=False)
                (remove_tree if is_directory else unlink)(child(entry, directory, dir_entry.name))
        remove_directory(entry)


def copy_link(old: Entry, new: Entry) -> str:
    """Create a link with the same target as the link `old`, and return the target. Raises OSError."""
    target = SYSTEM.read_link(old.directory, old.name)
    SYSTEM.make_link(new.directory, new.name, target)
    return target


def is_writable(entry: Entry) -> bool:
    """Return True if this process may write to the file, or if the system can't tell."""
    return SYSTEM.is_writable(entry.directory, entry.name)


def open_unblocked(path: str, flags: int) -> int:
    """Open a file without waiting for the other end of a named pipe: an `opener` of `open`. Raises OSError."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def open_to_append(entry: Entry) -> int:
    """Open the file for writing at its end, without waiting for a named pipe. Raises OSError."""
    return SYSTEM.append(entry.directory, entry.name)


def open_to_read(entry: Entry) -> int:
    """Open the file for reading, without waiting for a named pipe. Raises OSError."""
    return SYSTEM.open_file(entry.directory, entry.name)


def read_bytes(descriptor: int, count: int) -> bytes:
    """Return the next `count` bytes of an open file, fewer only at its end. Raises OSError.

    Unbuffered, because creating a buffered reader takes as long as reading a small file.
    """
    blocks: list[bytes] = []
    while count > 0 and (block := os.read(descriptor, min(count, _BLOCK_BYTES))):
        blocks.append(block)
        count -= len(block)
    return b"".join(blocks)


def etag_of(stat_: os.stat_result) -> str:
    """Return an etag for the version of a file, 16 hexadecimal digits, by which later changes can be detected.

    It is computed from data that the file system itself records with every change: inode, size, and the times of the
    last change of the contents and of the inode (RFC 9110, section 8.8.1, calls that a strong validator). So nothing
    has to be read, even for a file of many gigabytes. A file that was touched, or whose permissions have changed,
    also gets another etag: a file may seem to be changed although it is not, but never the reverse.
    """
    version = f"{stat_.st_dev} {stat_.st_ino} {stat_.st_size} {stat_.st_mtime_ns} {stat_.st_ctime_ns}"
    return hashlib.blake2b(version.encode(), digest_size=8).hexdigest()
