"""The directories the operator allowed, and the way from a written path to a place beneath one of them.

Everything here is lexical. The components of what a caller wrote (see `names`) must begin with those of a root, in
the operator's spelling or in the canonical one. No file is touched, so a path outside gets the same answer whether or
not anything exists there. Links are no concern of this module: a walk follows them, component by component.

There is one exception. On macOS most file systems take no notice of case, and some do: where a path would lead to a
root if case did not count, identity (device and inode) tells whether it does.

Relative paths: with one root they start at it; with several, the first component names a root by its last
name.

Each root has its own permission. Of two nested roots the inner one's counts for what is in it, by whichever way it
is reached: what counts is the place where the walk ended, links followed.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from servers.common.files.denylist import Denylist, Way
from servers.common.files.names import collapse, components, differ_in_case, folded, path_of, uri
from shared.coded_errors import PathError
from shared.program.files.entries import Place
from shared.text import quoted


class Roots:
    """The allowed directories. `paths` holds them canonical; nothing outside them is reachable.

    `writable` says of all of them, or of each in turn, whether files may be changed there; `may_change` holds it.
    One that does not exist may come to. Raises `ValueError` when there is none, or when one has two permissions.
    """

    mark = ""
    """Tells these roots from other ones over the same files."""

    def __init__(
        self, paths: Sequence[Path], writable: bool | Sequence[bool] = False, denylist: Denylist | None = None
    ) -> None:
        if not paths:
            raise ValueError("at least one directory is needed")
        self.paths = tuple(_canonical(path) for path in paths)
        self.may_change = (writable,) * len(paths) if isinstance(writable, bool) else tuple(writable)
        permissions = list(zip(self.paths, self.may_change, strict=True))
        for path, change in permissions:
            if any(change != other and _is_same(path, known) for known, other in permissions):
                raise ValueError(f"{path}: is given both as read-only and as writable")
        spelled = [Path(os.path.abspath(os.path.expanduser(path))) for path in paths]  # noqa: PTH100, PTH111 (keep links)
        prefixes = [
            (folded(components(str(path))), i) for group in (self.paths, spelled) for i, path in enumerate(group)
        ]
        # The longest first: of two nested roots the inner one owns its paths.
        self._prefixes = sorted(prefixes, key=lambda prefix: -len(prefix[0]))
        self.denylist = denylist or Denylist()
        self._ways = [self.way_into(components(str(path))) for path in self.paths]

    def place(self, written: str) -> Place:
        """The place `written` stands for. Raises `PathError` `bad_path` or `outside_roots`."""
        path = path_of(written)
        if not os.path.isabs(path):  # noqa: PTH117 (pathlib would normalise first)
            return self._relative(path, written)
        found = self.locate(collapse(components(path)))
        if found is None:
            raise self.outside(written)
        return Place(*found, written)

    def locate(self, parts: Sequence[str]) -> tuple[int, tuple[str, ...]] | None:
        """The root whose components begin the absolute `parts`, and what follows; None when outside."""
        names = folded(parts)
        for prefix, index in self._prefixes:
            start = names[: len(prefix)]
            if start == prefix or (differ_in_case(start, prefix) and _are_one(parts[: len(prefix)], prefix)):
                return index, tuple(parts[len(prefix) :])
        return None

    def spellings(self, index: int) -> list[list[str]]:
        """The components that paths into a root may begin with, folded."""
        return [prefix for prefix, owner in self._prefixes if owner == index]

    def outer(self, place: Place) -> Place:
        """The place as the operator's roots have it."""
        return place

    def way(self, index: int) -> Way:
        """Where a walk from a root starts on the denylist."""
        return self._ways[index]

    def denies(self, place: Place) -> bool:
        """Whether a name on the way to `place` is denied. Where links lead is the matter of the walk."""
        return self.denylist.closes(self._ways[place.root_index], place.parts)

    def denied(self, written: str) -> PathError:
        """The one answer for everything that is denied, whether or not it exists."""
        reason = "is denied to this server by its name, or by that of a directory it is in"
        return PathError("denied", written, reason, "Only the operator can allow it.")

    def require_allowed(self, place: Place) -> None:
        """Raise `denied` where a name on the way to `place` is denied."""
        if self.denies(place):
            raise self.denied(place.written)

    def require_writable(self, place: Place) -> None:
        """Raise `read_only` unless files may be changed at `place`."""
        # Asked of the path, because a walk that started in an outer root may have come into an inner one.
        owner = self.locate(components(self.path(place)))
        if owner is None or not self.may_change[owner[0]]:
            raise PathError("read_only", place.written, "is in a directory that may only be read")

    def require_movable(self, place: Place) -> None:
        """Raise `bad_path` where `place` is a root or holds one, whose path is what the permission hangs on."""
        parts = folded(components(self.path(place)))
        for root in self.paths:
            beneath = folded(components(str(root)))
            start = beneath[: len(parts)]
            if start == parts or (differ_in_case(start, parts) and _are_one(start, parts)):
                whole = len(beneath) == len(parts)
                reason = "is an allowed directory itself" if whole else "holds an allowed directory"
                raise PathError("bad_path", place.written, reason)

    def outside(self, written: str) -> PathError:
        """The one answer for everything that is not beneath a root."""
        shown = ", ".join(quoted(str(path)) for path in self.paths[:3])
        others = ", and others" if len(self.paths) > 3 else ""
        return PathError(
            "outside_roots", written, "is outside the allowed directories", f"Use a path beneath {shown}{others}."
        )

    def path(self, place: Place) -> str:
        """The absolute path of `place`, beneath the canonical root."""
        return os.path.join(self.paths[place.root_index], *place.parts)  # noqa: PTH118 (keeps surrogates, fast)

    def uri(self, place: Place) -> str:
        """The `file:` URI of `place`."""
        return uri(self.path(place))

    def way_into(self, root: Sequence[str]) -> Way:
        """Where the absolute components `root`, which are canonical and beneath a root, stand on the denylist."""
        outer = [components(str(path)) for path in self.paths]
        return self.denylist.start([root[len(parts) :] for parts in outer if root[: len(parts)] == parts])

    def _relative(self, path: str, written: str) -> Place:
        collapsed = collapse(components(path), relative=True)
        if collapsed[:1] == [".."] or not self.paths:
            raise self.outside(written)
        if len(self.paths) == 1:
            return Place(0, tuple(collapsed), written)
        named = [i for i, root in enumerate(self.paths) if collapsed and root.name == collapsed[0]]
        if len(named) == 1:
            return Place(named[0], tuple(collapsed[1:]), written)
        names = ", ".join(quoted(str(path)) for path in self.paths)
        reason = "a relative path must begin with the name of one root"
        raise PathError("bad_path", written, reason, f"Use an absolute path; the roots are {names}.")


def _is_same(one: Path, other: Path) -> bool:
    """Whether two canonical paths lead to one directory."""
    return one == other or (differ_in_case(one.parts, other.parts) and _are_one(one.parts, other.parts))


def _are_one(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether absolute components that differ in case lead to one directory now."""
    try:
        return os.path.samefile(os.path.join(os.sep, *one), os.path.join(os.sep, *other))  # noqa: PTH118, PTH121
    except OSError:
        return False


def _canonical(path: Path) -> Path:
    """The path with links followed as far as it exists, and as it is written where nobody has such a home."""
    return Path(os.path.realpath(os.path.expanduser(path)))  # noqa: PTH111 (pathlib raises there)
