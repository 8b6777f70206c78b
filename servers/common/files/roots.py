"""Converts paths to places in the directories that the operator allows, which are called roots. A `Place` is a root
and a path below it.

The conversion only compares text. The components of a client's path (see `names`) must begin with the components of a
root, in the operator's spelling or in the canonical spelling. No file is accessed, so a path outside the roots gets
the same answer whether or not it exists. Links are followed later, by the walkers, component by component.

There is one exception. On macOS most file systems ignore case, but some do not. If a path leads to a root only if
case is ignored, the identity of the directories (device and inode) decides.

With one root, relative paths start at it; with several, the first component is the last name of a root.

Each root has its own permission. If one root is inside another, the permission of the inner one applies in it, even
if the walk began at the outer one or followed a link.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from shared.coded_errors import PathError
from shared.program.files.entries import Place
from shared.text import quote_name

from .denylist import Denylist, DenylistState
from .names import collapse, components, differ_in_case, fold, path_of, uri


class Roots:
    """The allowed directories. The attribute `paths` contains their canonical paths.

    `writable` says whether files may be changed there: one value for all roots, or one for each. The attribute
    `may_change` contains one for each. A root that does not exist may be created later. Raises `ValueError` if there
    are no roots, or a root is listed with two permissions.
    """

    mark = ""
    """Text that identifies these roots: empty for the operator's, different for each client's parts of them."""

    def __init__(
        self, paths: Sequence[Path], writable: bool | Sequence[bool] = False, denylist: Denylist | None = None
    ) -> None:
        if not paths:
            raise ValueError("at least one directory is needed")
        # pathlib would raise if the home directory is unknown; `expanduser` leaves the path as it is.
        self.paths = tuple(Path(os.path.realpath(os.path.expanduser(path))) for path in paths)  # noqa: PTH111
        self.may_change = (writable,) * len(paths) if isinstance(writable, bool) else tuple(writable)
        permissions = list(zip(self.paths, self.may_change, strict=True))
        for path, change in permissions:
            if any(change != other and _is_same(path, other_path) for other_path, other in permissions):
                raise ValueError(f"{path} is listed as both read-only and writable")
        unresolved = [Path(os.path.abspath(os.path.expanduser(path))) for path in paths]  # noqa: PTH100, PTH111 (keep links)
        prefixes = [
            (fold(components(str(path))), i) for group in (self.paths, unresolved) for i, path in enumerate(group)
        ]
        # Sort the longest first, so that a path in nested roots belongs to the inner one.
        self._prefixes = sorted(prefixes, key=lambda prefix: -len(prefix[0]))
        self.denylist = denylist or Denylist()
        self._states = [self.denylist_state_of(components(str(path))) for path in self.paths]

    def place(self, path_or_uri: str) -> Place:
        """Return the place of a path or a `file:` URI. Raises `PathError` with code `bad_path` or `outside_roots`."""
        path = path_of(path_or_uri)
        if not os.path.isabs(path):  # noqa: PTH117 (pathlib would normalize first)
            return self._relative(path, path_or_uri)
        located = self.locate(collapse(components(path)))
        if located is None:
            raise self.outside_error(path_or_uri)
        return Place(*located, path_or_uri)

    def locate(self, parts: Sequence[str]) -> tuple[int, tuple[str, ...]] | None:
        """Return the index of the root that contains the absolute path `parts`, and the parts below it; None if it is
        outside the roots."""
        names = fold(parts)
        for prefix, index in self._prefixes:
            start = names[: len(prefix)]
            if start == prefix or (
                differ_in_case(start, prefix) and _are_same_directory(parts[: len(prefix)], prefix)
            ):
                return index, tuple(parts[len(prefix) :])
        return None

    def spellings(self, index: int) -> list[list[str]]:
        """Return all spellings of a root's path as components, in the form of `names.fold`."""
        return [prefix for prefix, owner in self._prefixes if owner == index]

    def outer(self, place: Place) -> Place:
        """Return the place relative to the operator's roots."""
        return place

    def denylist_state(self, index: int) -> DenylistState:
        """Return the denylist's state at a root, with which a walk begins."""
        return self._states[index]

    def denies(self, place: Place) -> bool:
        """Return True if a name on the way to `place` is denied. Links are not followed."""
        return self.denylist.denies_path(self._states[place.root_index], place.parts)

    def denied_error(self, path: str) -> PathError:
        """Return the error for a denied path. It is the same whether or not the file exists."""
        reason = "is denied to this server because of its name, or the name of a directory that contains it"
        return PathError("denied", path, reason, "Only the operator can allow it.")

    def require_allowed(self, place: Place) -> None:
        """Raise PathError with code `denied` if a name on the way to `place` is denied."""
        if self.denies(place):
            raise self.denied_error(place.path)

    def require_writable(self, place: Place) -> None:
        """Raise PathError with code `read_only` unless files may be changed at `place`."""
        if all(self.may_change):
            return
        # Determine the root by the path, because a walk that began in an outer root may have entered an inner one.
        owner = self.locate(components(self.path(place)))
        if owner is None or not self.may_change[owner[0]]:
            raise PathError("read_only", place.path, "is in a read-only directory")

    def require_movable(self, place: Place) -> None:
        """Raise PathError with code `bad_path` if `place` is a root or contains one. Moving it would change which
        permissions apply, since these depend on the paths of roots."""
        parts = fold(components(self.path(place)))
        for root in self.paths:
            root_names = fold(components(str(root)))
            start = root_names[: len(parts)]
            if start == parts or (differ_in_case(start, parts) and _are_same_directory(start, parts)):
                is_root = len(root_names) == len(parts)
                reason = "is an allowed directory itself" if is_root else "contains an allowed directory"
                raise PathError("bad_path", place.path, reason)

    def outside_error(self, path: str) -> PathError:
        """Return the error for a path that is not below a root. It is the same whether or not the file exists."""
        shown = ", ".join(quote_name(str(root)) for root in self.paths[:3])
        others = ", and others" if len(self.paths) > 3 else ""
        return PathError(
            "outside_roots", path, "is outside the allowed directories", f"Use a path beneath {shown}{others}."
        )

    def path(self, place: Place) -> str:
        """Return the absolute path of `place`, which begins with the canonical path of its root."""
        return os.path.join(self.paths[place.root_index], *place.parts)  # noqa: PTH118 (keeps surrogates, fast)

    def uri(self, place: Place) -> str:
        """Return the `file:` URI of `place`."""
        return uri(self.path(place))

    def denylist_state_of(self, root: Sequence[str]) -> DenylistState:
        """Return the denylist's state at a directory, given its canonical absolute path as components."""
        outer = [components(str(path)) for path in self.paths]
        return self.denylist.start([root[len(parts) :] for parts in outer if root[: len(parts)] == parts])

    def _relative(self, path: str, path_or_uri: str) -> Place:
        collapsed = collapse(components(path), relative=True)
        if collapsed[:1] == [".."] or not self.paths:
            raise self.outside_error(path_or_uri)
        if len(self.paths) == 1:
            return Place(0, tuple(collapsed), path_or_uri)
        matching = [i for i, root in enumerate(self.paths) if collapsed and root.name == collapsed[0]]
        if len(matching) == 1:
            return Place(matching[0], tuple(collapsed[1:]), path_or_uri)
        names = ", ".join(quote_name(str(path)) for path in self.paths)
        reason = "a relative path must begin with the name of a root"
        raise PathError("bad_path", path_or_uri, reason, f"Use an absolute path; the roots are {names}.")


def _is_same(first: Path, other: Path) -> bool:
    """Return True if two canonical paths lead to the same directory."""
    return first == other or (
        differ_in_case(first.parts, other.parts) and _are_same_directory(first.parts, other.parts)
    )


def _are_same_directory(first: Sequence[str], other: Sequence[str]) -> bool:
    """Return True if two absolute paths, given as components, now lead to the same directory."""
    try:
        return os.path.samefile(os.path.join(os.sep, *first), os.path.join(os.sep, *other))  # noqa: PTH118, PTH121
    except OSError:
        return False
