"""File-system calls on a name relative to an open directory.

On POSIX each call identifies the directory by its descriptor. Without a directory the name is a full path, which
every system accepts. No call follows a link at the end of the name.
"""

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

BASE_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""The flags for every file: child processes do not inherit it, and bytes are not translated."""
_NO_LINK = BASE_FLAGS | getattr(os, "O_NOFOLLOW", 0)
"""`BASE_FLAGS`, with which also a link at the end of the name is refused."""
READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _NO_LINK
"""The flags for opening a file to read it, without waiting for the other end of a pipe."""
SCAN = READ | getattr(os, "O_DIRECTORY", 0)
"""The flags for opening a directory whose entries are to be listed."""
DIRECTORY = (
    getattr(os, "O_DIRECTORY", 0)
    | _NO_LINK
    # With O_PATH, passing through a directory requires only search permission, as in path names.
    | getattr(os, "O_PATH", os.O_RDONLY)
)
"""The flags for opening a directory through which entries are accessed."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
_WRITE = os.O_WRONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0)
_APPEND = _WRITE | os.O_APPEND

Location = tuple[int | None, str]
"""An open directory and a name in it, or None and a full path."""


class System:
    """File-system calls that take a directory descriptor and a name, or a full path.

    The opening methods return a descriptor, which the caller closes. They raise OSError with POSIX errno values:
    ELOOP or ENOTDIR if the name is a link.
    """

    syncs_directories = hasattr(os, "O_DIRECTORY")
    """True if syncing a directory makes the names in it durable."""

    def open_root(self, path: str) -> int:
        """Open the directory at a trusted path, to access entries through it."""
        return os.open(path, DIRECTORY)

    def open_start(self, path: Path, for_listing: bool) -> int:
        """Open the directory at a trusted path, which may be a link: to list its entries if `for_listing`, otherwise
        to access entries through it."""
        return os.open(path, (SCAN if for_listing else DIRECTORY) & ~getattr(os, "O_NOFOLLOW", 0))

    def enter(self, directory: int | None, name: str) -> int:
        """Open a directory, to access entries through it."""
        return os.open(name, DIRECTORY, dir_fd=directory)

    def open_directory(self, directory: int | None, name: str) -> int:
        """Open a directory, to list its entries."""
        return os.open(name, SCAN, dir_fd=directory)

    def open_file(self, directory: int | None, name: str) -> int:
        """Open a file for reading, without waiting for the other end of a pipe."""
        return os.open(name, READ, dir_fd=directory)

    def append(self, directory: int | None, name: str) -> int:
        """Open a file for writing at its end, without waiting for the other end of a pipe."""
        return os.open(name, _APPEND, dir_fd=directory)

    def open_to_write(self, directory: int | None, name: str) -> int:
        """Open a file for writing at its start, without waiting for the other end of a pipe."""
        return os.open(name, _WRITE, dir_fd=directory)

    def create(self, directory: int | None, name: str, mode: int) -> int:
        """Create a file that must not exist yet, and open it for writing; the umask applies."""
        return os.open(name, _NEW, mode, dir_fd=directory)

    def make_directory(self, directory: int | None, name: str, mode: int) -> None:
        """Create a directory; the umask applies."""
        os.mkdir(name, mode, dir_fd=directory)

    def make_link(self, directory: int | None, name: str, target: str) -> None:
        """Create a symbolic link."""
        os.symlink(target, name, dir_fd=directory)

    def stat(self, directory: int | None, name: str) -> os.stat_result:
        """Return the stat of a name; for a link, of the link itself."""
        return os.stat(name, dir_fd=directory, follow_symlinks=False)

    def read_link(self, directory: int | None, name: str) -> str:
        """Return the target of a link. Raises OSError with EINVAL for anything else."""
        return os.readlink(name, dir_fd=directory)

    def scan(self, directory: int | str) -> AbstractContextManager[Iterator["os.DirEntry[str]"]]:
        """Return the entries of a directory. They can be used while the directory is open."""
        return os.scandir(directory)

    def rename(self, old: Location, new: Location) -> None:
        """Rename a file to an unused name. If the name is in use, the system may replace the other file."""
        os.rename(old[1], new[1], src_dir_fd=old[0], dst_dir_fd=new[0])

    def replace(self, old: Location, new: Location) -> None:
        """Rename a file. A file that already has the new name is replaced."""
        os.replace(old[1], new[1], src_dir_fd=old[0], dst_dir_fd=new[0])

    def link(self, old: Location, new: Location) -> None:
        """Give a file a second name, which must not exist. Raises NotImplementedError if the system has no links."""
        os.link(old[1], new[1], src_dir_fd=old[0], dst_dir_fd=new[0], follow_symlinks=False)

    def unlink(self, directory: int | None, name: str) -> None:
        """Delete a name that is not a directory."""
        os.unlink(name, dir_fd=directory)

    def remove_directory(self, directory: int | None, name: str) -> None:
        """Delete an empty directory."""
        os.rmdir(name, dir_fd=directory)

    def is_writable(self, directory: int | None, name: str) -> bool:
        """Return True if this process may write to the file, or if the system can't tell."""
        return directory is None or os.access(name, os.W_OK, dir_fd=directory)

    def touch(self, descriptor: int, _directory: int | None, name: str) -> None:
        """Set the access and modification times of an open file to the current time of the system, which is more
        precise than that of some file systems."""
        os.utime(descriptor if os.utime in os.supports_fd else name, ns=(time.time_ns(),) * 2)


SYSTEM = System()
