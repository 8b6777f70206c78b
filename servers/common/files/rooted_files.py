"""Opens files and directories below the roots, and nothing else. A `Place` is a root and a path below it.

A walker finds the entry of a place. This module opens the entry without following a link and without blocking
(`O_NONBLOCK`), and then checks the type of the file that is open. The type is also checked before opening, because
merely opening a pipe or a device can wake a writer or start the device.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from shared.coded_errors import PathError, os_errors
from shared.program.files.entries import RACE_FREE, Entry, Handle, Place, enter_directory, open_to_read

from .checked import PathWalker
from .posix import DescriptorWalker
from .roots import Roots

Walker = DescriptorWalker | PathWalker
"""Finds entries by descriptors, or by paths that are resolved twice."""


class RootedFiles:
    """The files below the roots. Thread-safe; `close` it when done."""

    def __init__(self, roots: Roots, walker: Walker | None = None) -> None:
        """Open the roots. `walker` defaults to the one for this system."""
        self.roots = roots
        self._walker = walker or (DescriptorWalker(roots) if RACE_FREE else PathWalker(roots))
        self.locate = self._walker.locate
        """`with locate(place, follow=True) as entry` yields the entry of a place, a name in an open directory."""
        self.trail = self._walker.trail
        """`trail(place)` returns every path that is looked up on the way to a place, so that changes can be
        watched."""
        self.root_descriptor = self._walker.root_descriptor
        """`root_descriptor(index)` returns the descriptor of a root; None if the walker has none."""
        self.close = self._walker.close

    def narrow(self, roots: Roots) -> "RootedFiles":
        """Return the files below `roots`, which must be parts of these roots. The result need not be closed."""
        return RootedFiles(roots, self._walker.narrow(roots))

    def is_reachable(self, index: int) -> bool:
        """Return True if the path of a root can be entered and leads to the directory that the walker has open. The
        walker may open a recreated root again. Blocks."""
        try:
            return os.access(self.roots.paths[index], os.X_OK) and self._walker.is_reachable(index)
        except OSError:
            return False

    @contextmanager
    def open_file(self, place: Place) -> Iterator[Handle]:
        """Yield the regular file at `place`, open for reading. Raises PathError."""
        with self.locate(place) as entry:
            handle = self.open_entry(entry, place.path)
        try:
            with os_errors(place.path):
                yield handle
        finally:
            os.close(handle.descriptor)

    def open_entry(self, entry: Entry, path: str) -> Handle:
        """Open the regular file of `entry` for reading. The caller must close it. Raises PathError and OSError."""
        require_file(entry, path)
        descriptor = open_to_read(entry)
        with ExitStack() as on_failure:
            on_failure.callback(os.close, descriptor)
            handle = Handle(descriptor, os.fstat(descriptor))
            require_regular(handle.stat.st_mode, path)
            self._walker.verify(entry, descriptor, path)
            on_failure.pop_all()
        return handle

    @contextmanager
    def open_directory(self, place: Place, follow: bool = True) -> Iterator[int | str]:
        """Yield the open directory at `place`: its descriptor, or its path on systems without directory descriptors.
        `entries.list_entries` takes both. Raises PathError."""
        with self.locate(place, follow) as entry:
            if entry.stat is None:
                raise missing_error(entry, place.path)
            if not stat.S_ISDIR(entry.stat.st_mode):
                raise PathError("not_a_directory", place.path, "is not a directory")
            with enter_directory(entry) as descriptor:
                yield entry.name if descriptor is None else descriptor

    def stat(self, place: Place, follow: bool = True) -> os.stat_result:
        """Return the status of the entry at `place`. Raises PathError with code `not_found` if it does not exist."""
        with self.locate(place, follow) as entry:
            if entry.stat is None:
                raise missing_error(entry, place.path)
            return entry.stat


def missing_error(entry: Entry, path: str) -> PathError:
    """Return the error for a missing entry."""
    if entry.linked:
        return PathError("not_found", path, "is a link to something that does not exist")
    suggestion = "List the parent directory to see what is there."
    return PathError("not_found", path, "does not exist", suggestion)


def require_file(entry: Entry, path: str) -> os.stat_result:
    """Return the status of `entry`. Raises PathError unless it is a regular file."""
    if entry.stat is None:
        raise missing_error(entry, path)
    require_regular(entry.stat.st_mode, path)
    return entry.stat


def require_regular(mode: int, path: str) -> None:
    """Raise PathError unless `mode` is the mode of a regular file."""
    if stat.S_ISDIR(mode):
        raise PathError("not_a_file", path, "is a directory")
    if not stat.S_ISREG(mode):
        raise PathError("special_file", path, "is neither a regular file nor a directory")
