"""Finding places where the system has no descriptors of directories (Windows): weaker, and says so.

The path is resolved as a whole and must lie beneath a root; after the open it is resolved again and must
still be the very file that was opened. Someone who swaps a directory for a link and back between the two
checks is not noticed. `entries.RACE_FREE` tells which of the two walkers is at work.

What the path is resolved to has the long name of each file that could be asked. The last name stays as it was written
where no link is followed, though, and so does one that may not be looked at: a short one, which no rule knows, counts
only where the directory lists it.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from servers.common.files.names import components, is_short
from servers.common.files.roots import Roots
from shared.coded_errors import PathError, os_errors
from shared.program.files.entries import Entry, Place, is_same, scanned


class PathWalker:
    """Finds entries beneath the roots by resolved path, checked before and after the use."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots

    @contextmanager
    def locate(self, place: Place, follow: bool = True) -> Iterator[Entry]:
        """The entry of `place` as a whole path; `OSError`s of the block become `PathError`s."""
        with os_errors(place.written):
            self._roots.require_allowed(place)
            path = self._roots.path(place)
            if follow or not place.parts:
                resolved = os.path.realpath(path)
            else:
                parent, name = os.path.split(path)
                resolved = os.path.join(os.path.realpath(parent), name)  # noqa: PTH118
            beneath = self._roots.locate(components(resolved))
            if beneath is None:
                raise self._roots.outside(place.written)
            found_at = Place(*beneath, place.written)
            self._roots.require_allowed(found_at)
            self._require_listed(found_at)
            try:
                found = os.lstat(resolved)
            except FileNotFoundError:
                found = None
            linked = follow and os.path.islink(path)  # noqa: PTH114
            yield Entry(None, resolved, found, linked, found_at)

    def verify(self, entry: Entry, descriptor: int, written: str) -> None:
        """Refuse when the path no longer leads to what was opened."""
        if not is_same(entry.name, os.fstat(descriptor)):
            raise PathError("changed", written, "the path was replaced while it was opened", "Try again.")

    def trail(self, place: Place) -> tuple[str, ...]:
        """Every path on the way to `place`, as written and as resolved, as far as it is beneath a root."""
        written = self._roots.path(place)
        passed: list[str] = []
        for path in (written, os.path.realpath(written)):
            found = self._roots.locate(components(path))
            if found is None:
                continue
            index, parts = found
            passed += [self._roots.path(Place(index, parts[: i + 1], "")) for i in range(len(parts))]
        return tuple(dict.fromkeys(passed))

    def narrowed(self, roots: Roots) -> "PathWalker":
        """The walker for parts of the roots."""
        return PathWalker(roots)

    def is_there(self, index: int) -> bool:
        """Whether a root can be reached by its path. Raises OSError."""
        return stat.S_ISDIR(self._roots.paths[index].stat().st_mode)

    def held(self, index: int) -> int | None:
        """The descriptor of a root: there is none."""
        return None

    def close(self) -> None:
        """Nothing is held."""

    def _require_listed(self, place: Place) -> None:
        """Raise FileNotFoundError for a short name of what has a long one."""
        path = self._roots.path(Place(place.root_index, (), ""))
        for name in place.parts:
            above, path = path, os.path.join(path, name)  # noqa: PTH118
            if not is_short(name) or not os.path.lexists(path):
                continue
            if name.upper() not in (one.name.upper() for one in scanned(above)):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
