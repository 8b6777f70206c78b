"""System calls on a name in an open directory.

On POSIX each act names the directory by its descriptor. Without a directory the name is a whole path, which every
system takes. No act follows a link at its end.
"""

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

CLOSED = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""For children of this process nothing is open, and no byte is changed on its way."""
_NO_LINK = CLOSED | getattr(os, "O_NOFOLLOW", 0)
"""As `CLOSED`, and a link at the end is refused."""
READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _NO_LINK
"""How a file is opened: without waiting for the other end of a pipe."""
SCAN = READ | getattr(os, "O_DIRECTORY", 0)
"""How a directory is opened to see what is in it."""
DIRECTORY = (
    getattr(os, "O_DIRECTORY", 0)
    | _NO_LINK
    # Passing through a directory takes search permission only, as it does for the kernel.
    | getattr(os, "O_PATH", os.O_RDONLY)
)
"""How a directory is opened to pass through it."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
_APPEND = os.O_WRONLY | os.O_APPEND | _NO_LINK | getattr(os, "O_NONBLOCK", 0)

Name = tuple[int | None, str]
"""An open directory and a name in it, or None and a whole path."""


class System:
    """The acts, by descriptors of directories and by whole paths.

    What they open is a descriptor, which the caller closes. They raise OSError with the numbers of POSIX, for a link
    that is to be opened ELOOP or ENOTDIR.
    """

    syncs_directories = hasattr(os, "O_DIRECTORY")
    """Whether the names in a directory are made durable by a sync of it."""

    def open_root(self, path: str) -> int:
        """The directory at a path that is trusted, to pass through it."""
        return os.open(path, DIRECTORY)

    def open_start(self, path: Path, listed: bool) -> int:
        """The directory at a path that is trusted, which may be a link; unless it is `listed`, to pass through it."""
        return os.open(path, (SCAN if listed else DIRECTORY) & ~getattr(os, "O_NOFOLLOW", 0))

    def enter(self, directory: int | None, name: str) -> int:
        """A directory, to pass through it."""
        return os.open(name, DIRECTORY, dir_fd=directory)

    def open_directory(self, directory: int | None, name: str) -> int:
        """A directory, to see what is in it."""
        return os.open(name, SCAN, dir_fd=directory)

    def open_file(self, directory: int | None, name: str) -> int:
        """A file, to read it; the other end of a pipe is not waited for."""
        return os.open(name, READ, dir_fd=directory)

    def append(self, directory: int | None, name: str) -> int:
        """A file, to write at its end; nor is it here."""
        return os.open(name, _APPEND, dir_fd=directory)

    def create(self, directory: int | None, name: str, mode: int) -> int:
        """A file that must not exist yet, to write it; the umask counts."""
        return os.open(name, _NEW, mode, dir_fd=directory)

    def make_directory(self, directory: int | None, name: str, mode: int) -> None:
        """Makes a directory; the umask counts."""
        os.mkdir(name, mode, dir_fd=directory)

    def make_link(self, directory: int | None, name: str, target: str) -> None:
        """Makes a symbolic link."""
        os.symlink(target, name, dir_fd=directory)

    def stat(self, directory: int | None, name: str) -> os.stat_result:
        """What is there; a link itself."""
        return os.stat(name, dir_fd=directory, follow_symlinks=False)

    def read_link(self, directory: int | None, name: str) -> str:
        """What a link says; EINVAL for anything else."""
        return os.readlink(name, dir_fd=directory)

    def scan(self, directory: int | str) -> AbstractContextManager[Iterator["os.DirEntry[str]"]]:
        """What is in a directory; entries are looked at while it is open."""
        return os.scandir(directory)

    def rename(self, old: Name, new: Name) -> None:
        """Gives another name, which is free; where it is not, the system may replace what has it."""
        os.rename(old[1], new[1], src_dir_fd=old[0], dst_dir_fd=new[0])

    def replace(self, old: Name, new: Name) -> None:
        """Gives another name, over a file that has it."""
        os.replace(old[1], new[1], src_dir_fd=old[0], dst_dir_fd=new[0])

    def link(self, old: Name, new: Name) -> None:
        """Gives a file a second name, which must be free; NotImplementedError where there is no such thing."""
        os.link(old[1], new[1], src_dir_fd=old[0], dst_dir_fd=new[0], follow_symlinks=False)

    def unlink(self, directory: int | None, name: str) -> None:
        """Takes away what is no directory."""
        os.unlink(name, dir_fd=directory)

    def remove_directory(self, directory: int | None, name: str) -> None:
        """Takes away an empty directory."""
        os.rmdir(name, dir_fd=directory)

    def is_writable(self, directory: int | None, name: str) -> bool:
        """Whether this process may write to what is there; where that can't be asked, it is so."""
        return directory is None or os.access(name, os.W_OK, dir_fd=directory)

    def set_times(self, descriptor: int, _directory: int | None, name: str) -> None:
        """Has an open file be changed now, whatever the clock of its file system says."""
        os.utime(descriptor if os.utime in os.supports_fd else name, ns=(time.time_ns(),) * 2)


SYSTEM = System()
