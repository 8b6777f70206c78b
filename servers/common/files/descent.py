"""Walks through everything below a directory, and opens each directory from its parent.

The starting directory is opened by a walk from its root (see `posix`). As in that walk, each further step is one
`openat` of one name that follows no link. Unlike in that walk, the directories on the way down stay open, so that
opening a sibling of the last directory takes one system call instead of one for each level. Only the first levels
stay open, so that a deep tree does not use up the descriptors of the process. Names are never joined to a path, so no
path can be too long. Every name is checked against the denylist.
"""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from shared.coded_errors import PathError, from_os_error
from shared.program.files.entries import Handle, Place, list_entries
from shared.program.files.system import SYSTEM

from .denylist import DenylistState
from .names import components
from .rooted_files import RootedFiles, require_regular

MAX_OPEN_LEVELS = 16
"""Maximum number of levels whose directories stay open."""

Names = tuple[str, ...]


class Descent:
    """Scans the directories below a starting directory, one after the other. Only one thread may use it.

    `place` is the starting directory as requested, and `resolved` the same with links followed. `start` is its
    descriptor, or its path on systems without directory descriptors.
    """

    def __init__(self, rooted: RootedFiles, place: Place, resolved: Place, start: int | str) -> None:
        self._rooted = rooted
        self._roots = rooted.roots
        self._step = self._roots.denylist.step
        self._place = place
        innermost = self._innermost(resolved)
        # Matching against the denylist begins anew at each root, so keep its states at the start and at roots below
        # it.
        self._states: dict[Names, DenylistState] = {
            (): self._step_into(self._roots.denylist_state(innermost.root_index), innermost.parts)
        }
        absolute = components(self._roots.path(resolved))
        for index, root in enumerate(self._roots.paths):
            opened_descent = components(str(root))
            if opened_descent[: len(absolute)] == absolute:
                self._states[tuple(opened_descent[len(absolute) :])] = self._roots.denylist_state(index)
        self._state = self._states[()]
        self._start = start
        self._open_levels: list[tuple[str, int]] = []
        self._deep_descriptor = -1
        self._current: int | str = start
        self._path: Names = ()

    def scan(self, path: Names) -> list["os.DirEntry[str]"]:
        """Enter the directory at `path`, which is relative to the start, and return its entries, sorted by name.
        Raises PathError."""
        try:
            known_depth = 0
            if len(self._states) > 1:
                known_depth = max(depth for depth in range(len(path) + 1) if path[:depth] in self._states)
            self._state = self._step_into(self._states[path[:known_depth]], path[known_depth:])
            self._path = path
            if isinstance(self._start, int):
                self._current = self._open(self._start, path)
            else:
                # Without directory descriptors nothing stays open, and the path is checked again each time.
                innermost = self._innermost(self.place(path))
                with self._rooted.open_directory(innermost, follow=not path) as opened:
                    self._current = opened
            return list_entries(self._current)
        except OSError as error:
            raise from_os_error(self._place.path, error) from None

    def open_file(self, name: str) -> Handle:
        """Open the regular file with this name in the directory that was scanned last. The caller must close it.
        Raises PathError."""
        if self._step(self._state, name) is None:
            raise self._roots.denied_error(self._place.path)
        if isinstance(self._current, str):
            with self._rooted.locate(self._innermost(self.place((*self._path, name))), follow=False) as entry:
                return self._rooted.open_entry(entry, self._place.path)
        # This runs for many thousands of files, so the common case is inlined, without a context manager.
        try:
            descriptor = SYSTEM.open_file(self._current, name)
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    require_regular(status.st_mode, self._place.path)
            except (OSError, PathError):
                os.close(descriptor)
                raise
        except OSError as error:
            raise from_os_error(self._place.path, error) from None
        return Handle(descriptor, status)

    def read(self, name: str, limit: int) -> bytes:
        """Return the first `limit` bytes of the file that `open_file` would open. Raises PathError."""
        handle = self.open_file(name)
        try:
            return os.read(handle.descriptor, limit)
        except OSError as error:
            raise from_os_error(self._place.path, error) from None
        finally:
            os.close(handle.descriptor)

    def read_small(self, name: str, limit: int) -> bytes | None:
        """Return the contents of the file with this name in the directory that was scanned last, if it has fewer than
        `limit` bytes. The scan must have seen it as a regular file.

        Return None if it is larger or denied, or if this system has no `pread`. The caller must then use `open_file`.
        Raises OSError.
        """
        if sys.platform == "win32" or isinstance(self._current, str) or self._step(self._state, name) is None:
            return None
        # A search does this for thousands of files, so there is no `fstat`. It is not needed: no link is followed,
        # `pread` fails for a pipe or socket that has replaced the file after the scan, and only root can create
        # devices.
        descriptor = SYSTEM.open_file(self._current, name)
        try:
            data = os.pread(descriptor, limit, 0)
        finally:
            os.close(descriptor)
        return data if len(data) < limit else None

    def place(self, path: Names) -> Place:
        """Return the place with these components below the start."""
        return self._place._replace(parts=(*self._place.parts, *path))

    def uri(self, path: Names) -> str:
        """Return the `file:` URI of the place with these components below the start."""
        return self._roots.uri(self.place(path))

    def close(self) -> None:
        """Close all directories except the start."""
        self._close_below(0)

    def _innermost(self, place: Place) -> Place:
        """Return the place relative to its innermost root."""
        located = self._roots.locate(components(self._roots.path(place)))
        return place if located is None else Place(*located, place.path)

    def _step_into(self, state: DenylistState, names: Names) -> DenylistState:
        """Return the denylist's state after these names. Raises PathError with code `denied`."""
        for name in names:
            next_state = self._roots.denylist.step(state, name)
            if next_state is None:
                raise self._roots.denied_error(self._place.path)
            state = next_state
        return state

    def _open(self, start: int, path: Names) -> int:
        common = 0
        while common < min(len(self._open_levels), len(path)) and self._open_levels[common][0] == path[common]:
            common += 1
        self._close_below(common)
        directory = self._open_levels[-1][1] if self._open_levels else start
        for name in path[common:]:
            directory = SYSTEM.open_directory(directory, name)
            if len(self._open_levels) < MAX_OPEN_LEVELS:
                self._open_levels.append((name, directory))
            else:
                self._close_deep()
                self._deep_descriptor = directory
        return directory

    def _close_below(self, count: int) -> None:
        self._close_deep()
        while len(self._open_levels) > count:
            os.close(self._open_levels.pop()[1])

    def _close_deep(self) -> None:
        if self._deep_descriptor >= 0:
            os.close(self._deep_descriptor)
            self._deep_descriptor = -1


@contextmanager
def descent(rooted: RootedFiles, place: Place) -> Iterator[Descent]:
    """Yield a descent from the directory at `place`. Raises PathError if the directory can't be opened."""
    with rooted.locate(place) as entry:
        resolved = entry.place
    with rooted.open_directory(resolved, follow=False) as start:
        opened_descent = Descent(rooted, place, resolved, start)
        try:
            yield opened_descent
        finally:
            opened_descent.close()
