"""The parts of the operator's directories that are within the client's roots.

Roots narrow access and never widen it. A client's root below an operator's directory gives access to that part; a
root that contains an operator's directory gives access to that directory; any other gives no access. Each part keeps
the operator's permission.

Parts are not kept open: each walk reaches them from the operator's directory, through directories but not through
links (see `posix`). So a part that was moved away is not followed, and nothing has to be closed.
"""

import hashlib
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from servers.common.files.names import collapse, components, fold, path_of
from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from shared.coded_errors import PathError
from shared.program.files.entries import Place

MAX_ROOTS = 100
"""Maximum number of roots of one client; further ones are ignored."""

Names = list[str]


class NarrowedRoots(Roots):
    """Parts of other roots. If there are none, everything is outside."""

    def __init__(self, outer: Roots, parts: Mapping[Place, Sequence[Names]]) -> None:
        """Create roots from `parts`: for each, its canonical place in the innermost root, and the client's spellings
        of it."""
        # Unlike for other roots, no name is looked up again, since it could lead elsewhere by now.
        self._parts = list(parts)
        self.paths = tuple(Path(outer.path(part)) for part in parts)
        self.may_change = tuple(outer.may_change[part.root_index] for part in parts)
        prefixes = []
        for index, (part, spelled) in enumerate(parts.items()):
            operator_spellings = [[*prefix, *fold(part.parts)] for prefix in outer.spellings(part.root_index)]
            prefixes += [(prefix, index) for prefix in (*operator_spellings, *map(fold, spelled))]
        self._prefixes = sorted(prefixes, key=lambda prefix: -len(prefix[0]))
        self.denylist = outer.denylist
        self._states = [outer.denylist_state_of(components(str(path))) for path in self.paths]
        self.mark = hashlib.blake2b(repr(self._prefixes).encode(), digest_size=16).hexdigest() + ":"

    def outer(self, place: Place) -> Place:
        """Return the place relative to the operator's roots."""
        part = self._parts[place.root_index]
        return Place(part.root_index, (*part.parts, *place.parts), place.path)

    def outside_error(self, path: str) -> PathError:
        """Return the same error for everything that is not below a part."""
        if self.paths:
            return super().outside_error(path)
        suggestion = "None of the client's roots is in a directory of this server, so no directory is allowed."
        return PathError("outside_roots", path, "is outside the allowed directories", suggestion)


def narrow(outer: RootedFiles, uris: Iterable[str]) -> RootedFiles:
    """Return the files below `outer` that are in one of the directories in `uris`. They need not be closed."""
    parts: dict[Place, list[Names]] = {}
    for uri in islice((uri for uri in uris if uri[:5].lower() == "file:"), MAX_ROOTS):
        try:
            spelled = collapse(components(path_of(uri)))
        except PathError:
            continue
        part = _find_part(outer, spelled)
        if part is not None:
            parts.setdefault(part, []).append(spelled)
        parts |= {inner: [] for inner in _roots_in(outer.roots, spelled) if inner not in parts}
    for part in list(parts):
        # The permission of the inner of two nested roots applies, in a part as well.
        directory = components(outer.roots.path(part))
        parts |= {inner: [] for inner in _roots_in(outer.roots, directory) if inner not in parts}
    return outer.narrow(NarrowedRoots(outer.roots, parts))


def _find_part(outer: RootedFiles, spelled: Names) -> Place | None:
    """Return the place of a directory below the roots, with links followed. It need not exist yet."""
    located = outer.roots.locate(spelled)
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
    """Return the roots that are in a directory, by any of their spellings."""
    start = fold(directory)
    for index in range(len(roots.paths)):
        if any(prefix[: len(start)] == start for prefix in roots.spellings(index)):
            yield Place(index, (), "")
