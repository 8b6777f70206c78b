"""Finds places on systems without directory descriptors (Windows), with weaker guarantees.

The whole path is resolved and must be below a root. After the file is opened, its path must still lead to it. An
attacker who swaps a directory for a link and back between the two checks is not detected. `entries.RACE_FREE` is
False on these systems; on others, `posix` finds places.

Windows may give a file a second, short name, such as `ENV~1` for `.env`. No rule of the denylist matches short names.
Resolving a path replaces short names by long ones, except for the last name if links are not followed, and for names
that this process may not examine. So an existing name that looks like a short one is accepted only if its directory
lists it.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from shared.coded_errors import PathError, os_errors
from shared.program.files.entries import Entry, Place, is_same, list_entries

from .names import components, is_short
from .roots import Roots


class PathWalker:
    """Finds entries below the roots by their resolved paths, which are checked before and after a file is opened."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots

    @contextmanager
    def locate(self, place: Place, follow: bool = True) -> Iterator[Entry]:
        """Yield the entry of `place`. Its name is a whole path. An OSError in the block becomes a PathError."""
        with os_errors(place.path):
            self._roots.require_allowed(place)
            path = self._roots.path(place)
            if follow or not place.parts:
                resolved = os.path.realpath(path)
            else:
                parent, name = os.path.split(path)
                resolved = os.path.join(os.path.realpath(parent), name)  # noqa: PTH118
            located = self._roots.locate(components(resolved))
            if located is None:
                raise self._roots.outside_error(place.path)
            resolved_place = Place(*located, place.path)
            self._roots.require_allowed(resolved_place)
            self._require_listed(resolved_place)
            try:
                status = os.lstat(resolved)
            except FileNotFoundError:
                status = None
            is_link = follow and os.path.islink(path)  # noqa: PTH114
            yield Entry(None, resolved, status, is_link, resolved_place)

    def verify(self, entry: Entry, descriptor: int, path: str) -> None:
        """Raise PathError if the path no longer leads to the opened file."""
        if not is_same(entry.name, os.fstat(descriptor)):
            raise PathError("changed", path, "the path was replaced while it was being opened", "Try again.")

    def trail(self, place: Place) -> tuple[str, ...]:
        """Return every path on the way to `place` that is below a root, both before and after links are resolved."""
        unresolved = self._roots.path(place)
        paths: list[str] = []
        for path in (unresolved, os.path.realpath(unresolved)):
            located = self._roots.locate(components(path))
            if located is None:
                continue
            index, parts = located
            paths += [self._roots.path(Place(index, parts[: i + 1], "")) for i in range(len(parts))]
        return tuple(dict.fromkeys(paths))

    def narrow(self, roots: Roots) -> "PathWalker":
        """Return a walker for `roots`, which must be parts of this walker's roots."""
        return PathWalker(roots)

    def is_reachable(self, index: int) -> bool:
        """Return True if the path of a root leads to a directory. Raises OSError."""
        return stat.S_ISDIR(self._roots.paths[index].stat().st_mode)

    def root_descriptor(self, index: int) -> int | None:
        """Return None, since roots have no descriptors."""
        return None

    def close(self) -> None:
        """Do nothing, since nothing is open."""

    def _require_listed(self, place: Place) -> None:
        """Raise FileNotFoundError if a name in `place` is the short name of a file that has a long one."""
        path = self._roots.path(Place(place.root_index, (), ""))
        for name in place.parts:
            parent, path = path, os.path.join(path, name)  # noqa: PTH118
            if not is_short(name) or not os.path.lexists(path):
                continue
            if name.upper() not in (listed.name.upper() for listed in list_entries(parent)):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
