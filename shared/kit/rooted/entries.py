"""A name in a directory, and what the system is asked to do with it.

Where the system has descriptors of directories, each act names the directory by its descriptor, so nothing above the
name is looked up again and no link on the way can be put in between. Where it has none the name is a whole path. No
act follows a link at its end.
"""

import os
from pathlib import Path
from typing import NamedTuple

CLOSED = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""For children of this process nothing is open, and no byte is changed on its way."""
NO_LINK = CLOSED | getattr(os, "O_NOFOLLOW", 0)
"""As `CLOSED`, and a link at the end is refused."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK


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


def entry_at(path: Path) -> Entry:
    """The entry of a path that is trusted up to its last name, not looked at."""
    return Entry(None, str(path), None, False, Place(0, path.parts, str(path)))


def current(entry: Entry) -> os.stat_result | None:
    """What is at the entry now, links not followed; None when nothing is. Raises OSError."""
    try:
        return os.stat(entry.name, dir_fd=entry.directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def create(entry: Entry, mode: int = 0o666) -> int:
    """Make the file, which must not exist yet, and open it for writing; the umask counts. Raises OSError."""
    return os.open(entry.name, _NEW, mode, dir_fd=entry.directory)


def unlink(entry: Entry) -> None:
    """Take away the name of what is no directory. Raises OSError."""
    os.unlink(entry.name, dir_fd=entry.directory)


def remove_tree(entry: Entry) -> None:
    """Take away the directory with all that it holds, as far as that can be done."""
    import shutil

    shutil.rmtree(entry.name, ignore_errors=True, dir_fd=entry.directory)
