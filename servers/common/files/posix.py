"""Walks to a place with descriptors, so that there is no gap between checking a name and using it.

A walk holds one descriptor, that of the directory reached so far. This directory is below a root because every step
was `openat(current, name, O_NOFOLLOW | O_DIRECTORY)` and the first one started at the root's descriptor. The kernel
never follows a link or a `..`; the walk does:

- a link is read, and replaced by the components of its target in the list of remaining components;
- an absolute target must begin with the components of a root, and the walk starts again at that root;
- for `..`, which only link targets contain, the walk starts again at the root and goes to the parent of the current
  directory; above the root, `..` drops a name from the path of the root, which is correct because this path is
  canonical.

A program that swaps a directory for a link during the walk can make it fail or end elsewhere below the roots, but not
outside. Each name is checked against the denylist in its actual directory, before the name is looked up, so a link
can't lead to a denied name either. A walk holds only one descriptor, so that deep trees do not use up the descriptors
of the process. The number of steps is limited.
"""

import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from shared.coded_errors import PathError, os_errors
from shared.program.files.entries import Entry, Place
from shared.program.files.system import SYSTEM

from .denylist import DenylistState
from .names import components
from .roots import Roots

MAX_LINKS = 40
"""Maximum number of links that one walk follows, the same as in Linux."""
MAX_STEPS = 20_000
"""Maximum number of components that one walk passes, including walks repeated for `..`."""
_NO_DESCRIPTOR = -1
"""Replaces the descriptor of a root that could not be opened yet."""


class DescriptorWalker:
    """Finds entries below the roots, without a gap between check and use."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._descriptors = [_NO_DESCRIPTOR] * len(roots.paths)
        self._open_lock = threading.Lock()
        for index in range(len(roots.paths)):
            # A root that does not exist yet is opened later.
            with suppress(OSError):
                self._open(index)

    @contextmanager
    def locate(self, place: Place, follow: bool = True) -> Iterator[Entry]:
        """Yield the entry of `place` in its open directory. An OSError in the block becomes a PathError."""
        with os_errors(place.path):
            walk = _Walk(self, self._roots, place)
            try:
                yield walk.run(follow)
            finally:
                walk.close()

    def verify(self, entry: Entry, descriptor: int, path: str) -> None:
        """Do nothing, since the opened file is the one that was found."""

    def trail(self, place: Place) -> tuple[str, ...]:
        """Return every path looked up on the way to `place`, including links, as far as it exists."""
        looked_up: list[str] = []
        walk = _Walk(self, self._roots, place, looked_up)
        try:
            walk.run(follow=True)
        except (OSError, PathError):
            pass
        finally:
            walk.close()
        return tuple(looked_up)

    def close(self) -> None:
        """Close the descriptors of the roots."""
        while self._descriptors:
            descriptor = self._descriptors.pop()
            if descriptor != _NO_DESCRIPTOR:
                os.close(descriptor)

    def narrow(self, roots: Roots) -> "NarrowedWalker":
        """Return a walker for `roots`, which must be parts of this walker's roots."""
        return NarrowedWalker(self, roots)

    def is_reachable(self, index: int) -> bool:
        """Return True if the path of a root leads to the directory that this walker has open.

        If the root was deleted and recreated, or another file system is mounted there, open it again first. If the
        root was moved away, do not open a new directory at its path. Raises OSError.
        """
        status = self._roots.paths[index].stat()
        descriptor = self._descriptors[index]
        if descriptor != _NO_DESCRIPTOR:
            opened = os.fstat(descriptor)
            if os.path.samestat(status, opened):
                return True
            if opened.st_nlink > 0 and opened.st_dev == status.st_dev:
                return False
        self._open(index)
        return True

    def root_descriptor(self, index: int) -> int | None:
        """Return the descriptor of a root; None if it was never opened. The root may have been deleted."""
        descriptor = self._descriptors[index]
        return None if descriptor == _NO_DESCRIPTOR else descriptor

    def root(self, index: int) -> tuple[int, bool]:
        """Return the descriptor of a root, and whether the caller must close it.

        If the root was deleted, open the directory that is now at its path. Raises OSError.
        """
        descriptor = self._descriptors[index]
        # A removed directory no longer has a name, but stays open.
        if descriptor == _NO_DESCRIPTOR or os.fstat(descriptor).st_nlink == 0:
            descriptor = self._open(index)
        return descriptor, False

    def _open(self, index: int) -> int:
        opened = SYSTEM.open_root(str(self._roots.paths[index]))
        with self._open_lock:
            descriptor = self._descriptors[index]
            if descriptor == _NO_DESCRIPTOR:
                self._descriptors[index] = opened
                return opened
            try:
                # Keep the number of the descriptor, because other threads may be using it.
                os.dup2(opened, descriptor, inheritable=False)
            finally:
                os.close(opened)
        return descriptor


class NarrowedWalker(DescriptorWalker):
    """Finds entries below parts of the roots of another walker, `outer`. Each walk begins at one of those roots."""

    def __init__(self, outer: DescriptorWalker, roots: Roots) -> None:
        self._outer = outer
        self._roots = roots

    def trail(self, place: Place) -> tuple[str, ...]:
        """Return every path looked up on the way to the part that contains `place`, and from there to `place`."""
        state = self._outer.trail(self._roots.outer(Place(place.root_index, (), "")))
        try:
            return (*state, *super().trail(place))
        except OSError:
            # The part does not exist, but may be created.
            return state

    def is_reachable(self, index: int) -> bool:
        """Return True if the path of a part leads to a directory. Raises OSError."""
        return stat.S_ISDIR(self._roots.paths[index].stat().st_mode)

    def root_descriptor(self, index: int) -> int | None:
        """Return None, since descriptors of parts are not kept."""
        return None

    def root(self, index: int) -> tuple[int, bool]:
        """Return the descriptor of a part, and whether the caller must close it. A part that is a whole root must not
        be closed. Raises OSError."""
        part = self._roots.outer(Place(index, (), ""))
        current, must_close = self._outer.root(part.root_index)
        for name in part.parts:
            try:
                # No link is followed, since the part's path is canonical.
                child = SYSTEM.enter(current, name)
            finally:
                if must_close:
                    os.close(current)
            current, must_close = child, True
        return current, must_close

    def close(self) -> None:
        """Do nothing, since nothing is open."""


class _Walk:
    """One walk. It owns at most one descriptor; those of the roots belong to the walker."""

    def __init__(self, walker: DescriptorWalker, roots: Roots, place: Place, trail: list[str] | None = None) -> None:
        self._walker = walker
        self._roots = roots
        self._path = place.path
        self._trail = trail
        self._links = self._steps = 0
        self._followed_link = False
        self._owned = -1
        self._start(place.root_index, place.parts)

    def run(self, follow: bool) -> Entry:
        """Walk to the place, and return its entry. With `follow`, a link at the end is followed too."""
        while self._remaining:
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise PathError("bad_path", self._path, "resolving the path takes too many steps")
            name = self._remaining.pop()
            if name == "..":
                self._go_up()
            elif self._remaining:
                self._enter(name)
            else:
                entry = self._find_last(name, follow)
                if entry is not None:
                    return entry
        return self._entry(".", os.fstat(self._current), ())

    def close(self) -> None:
        """Close the owned descriptor."""
        if self._owned >= 0:
            os.close(self._owned)
            self._owned = -1

    def _start(self, index: int, parts: tuple[str, ...]) -> None:
        self._index = index
        self._passed: list[str] = []
        self._remaining = list(reversed(parts))
        self._current, must_close = self._walker.root(index)
        self._owned = self._current if must_close else -1
        self._state = self._roots.denylist_state(index)

    def _step_into(self, name: str) -> DenylistState:
        state = self._roots.denylist.step(self._state, name)
        if state is None:
            raise self._roots.denied_error(self._path)
        return state

    def _record(self, name: str) -> None:
        if self._trail is not None:
            self._trail.append(os.path.join(self._roots.paths[self._index], *self._passed, name))  # noqa: PTH118

    def _enter(self, name: str) -> None:
        state = self._step_into(name)
        self._record(name)
        try:
            child = SYSTEM.enter(self._current, name)
        except FileNotFoundError:
            reason = "its parent directory does not exist"
            raise PathError("not_found", self._path, reason) from None
        except OSError as error:
            # It is a link or a file. For a link with O_DIRECTORY, Linux reports ENOTDIR, and other systems ELOOP.
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            self._splice(self._target(name))
            return
        self.close()
        self._owned = self._current = child
        self._passed.append(name)
        self._state = state

    def _find_last(self, name: str, follow: bool) -> Entry | None:
        self._step_into(name)
        self._record(name)
        try:
            status = SYSTEM.stat(self._current, name)
        except FileNotFoundError:
            return self._entry(name, None, (name,))
        if follow and stat.S_ISLNK(status.st_mode):
            self._followed_link = True
            self._splice(self._target(name))
            return None
        return self._entry(name, status, (name,))

    def _entry(self, name: str, status: os.stat_result | None, last: tuple[str, ...]) -> Entry:
        place = Place(self._index, (*self._passed, *last), self._path)
        return Entry(self._current, name, status, self._followed_link, place)

    def _target(self, name: str) -> str:
        try:
            return SYSTEM.read_link(self._current, name)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            raise NotADirectoryError(errno.ENOTDIR, "") from None

    def _splice(self, target: str) -> None:
        self._links += 1
        if self._links > MAX_LINKS:
            raise PathError("bad_path", self._path, "the path goes through too many links")
        names = components(target)
        if os.path.isabs(target):  # noqa: PTH117
            self._jump([*names, *reversed(self._remaining)])
        else:
            self._remaining.extend(reversed(names))

    def _go_up(self) -> None:
        if self._passed:
            self._passed.pop()
            # Start again at the root: the open directory may have been moved, so that it has another parent now.
            self._remaining.extend(reversed(self._passed))
            parts = tuple(reversed(self._remaining))
            self.close()
            self._start(self._index, parts)
            return
        above = components(str(self._roots.paths[self._index]))[:-1]
        while self._remaining and self._remaining[-1] == "..":
            self._remaining.pop()
            above = above[:-1]
        self._jump([*above, *reversed(self._remaining)])

    def _jump(self, absolute: list[str]) -> None:
        located = self._roots.locate(absolute)
        if located is None:
            raise self._roots.outside_error(self._path)
        self.close()
        self._start(*located)
