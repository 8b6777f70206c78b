"""Limits access to those parts of the operator's directories that are within the client's roots.

A client's roots narrow access and never widen it. A client's root below an operator's directory gives access to that
part. A root that contains an operator's directory gives access to that directory. Any other root gives no access.
Each part keeps the permission that the operator gave it.

Parts are not kept open: each walk goes to them from the operator's directory, without following links (see `posix`).
So a part that was moved elsewhere is no longer accessible, and nothing has to be closed.
"""

import hashlib
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from shared.coded_errors import PathError
from shared.program.files.entries import Place

from .names import collapse, components, fold, path_of
from .rooted_files import RootedFiles
from .roots import Roots

MAX_ROOTS = 100
"""Maximum number of roots of one client; further ones are ignored."""

Names = list[str]


class NarrowedRoots(Roots):
    """Parts of the operator's roots (`outer`). If there are none, nothing is accessible."""

    def __init__(self, outer: Roots, parts: Mapping[Place, Sequence[Names]]) -> None:
        """Create roots from `parts`: the canonical place of each in its innermost root, and the spellings of its path
        by the client."""
        # The places are canonical. Unlike `Roots`, don't resolve the paths again: a link could lead elsewhere by now.
        self._parts = list(parts)
        self.paths = tuple(Path(outer.path(part)) for part in parts)
        self.may_change = tuple(outer.may_change[part.root_index] for part in parts)
        prefixes = []
        for index, (part, spelling) in enumerate(parts.items()):
            operator_spellings = [[*prefix, *fold(part.parts)] for prefix in outer.spellings(part.root_index)]
            prefixes += [(prefix, index) for prefix in (*operator_spellings, *map(fold, spelling))]
        self._prefixes = sorted(prefixes, key=lambda prefix: -len(prefix[0]))
        self.denylist = outer.denylist
        self._states = [outer.denylist_state_of(components(str(path))) for path in self.paths]
        self.mark = hashlib.blake2b(repr(self._prefixes).encode(), digest_size=16).hexdigest() + ":"

    def outer(self, place: Place) -> Place:
        """Return the place relative to the operator's roots."""
        part = self._parts[place.root_index]
        return Place(part.root_index, (*part.parts, *place.parts), place.path)

    def outside_error(self, path: str) -> PathError:
        """Return the error for a path that is not below a part. It is the same for all such paths."""
        if self.paths:
            return super().outside_error(path)
        suggestion = "None of the client's roots is in a directory of this server, so no directory is allowed."
        return PathError("outside_roots", path, "is outside the allowed directories", suggestion)


def narrow(outer: RootedFiles, uris: Iterable[str]) -> RootedFiles:
    """Return the files of `outer` that are in one of the directories `uris`. The result need not be closed."""
    parts: dict[Place, list[Names]] = {}
    for uri in islice((uri for uri in uris if uri[:5].lower() == "file:"), MAX_ROOTS):
        try:
            spelling = collapse(components(path_of(uri)))
        except PathError:
            continue
        part = _find_part(outer, spelling)
        if part is not None:
            parts.setdefault(part, []).append(spelling)
        parts |= {inner: [] for inner in _roots_in(outer.roots, spelling) if inner not in parts}
    for part in list(parts):
        # A root inside a part has its own permission, so it becomes a part as well.
        directory = components(outer.roots.path(part))
        parts |= {inner: [] for inner in _roots_in(outer.roots, directory) if inner not in parts}
    return outer.narrow(NarrowedRoots(outer.roots, parts))


def _find_part(outer: RootedFiles, spelling: Names) -> Place | None:
    """Return the place of a directory, with links followed, in its innermost root; None if it is outside the roots.
    The directory need not exist yet."""
    located = outer.roots.locate(spelling)
    if located is None:
        return None
    place = Place(*located, "")
    try:
        with outer.locate(place) as entry:
            if entry.stat is not None and not stat.S_ISDIR(entry.stat.st_mode):
                return None
            place = entry.place
    except PathError as error:
        if error.code != "not_found" or outer.roots.denies(place):
            return None
    owner = outer.roots.locate(components(outer.roots.path(place)))
    return None if owner is None else Place(*owner, "")


def _roots_in(roots: Roots, directory: Names) -> Iterator[Place]:
    """Yield the places of the roots that are in a directory, whichever spelling of a root's path begins with that of
    the directory."""
    start = fold(directory)
    for index in range(len(roots.paths)):
        if any(prefix[: len(start)] == start for prefix in roots.spellings(index)):
            yield Place(index, (), "")
