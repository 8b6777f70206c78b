"""Listing directories and describing files, links never followed.

A directory is opened beneath its root and read through its descriptor; entries are looked at with
`lstat`, so a link is a link and its target's size or existence is no business of a listing. Names are
shown on one line (see `names`), and the URI of an entry names the very bytes. A tree is read breadth
first: when a limit cuts it, what is near the start is complete. Directories that cannot be read become
entries with an error instead of failing it all.
"""

import os
import stat
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from servers.filesystem.access.beneath import Beneath, missing
from servers.filesystem.access.roots import Place
from servers.filesystem.errors import FilesError
from servers.filesystem.finding.patterns import Glob, States
from servers.filesystem.names import displayed
from servers.filesystem.reading.read import mime_of

MAX_DEPTH = 64
"""Deepest tree, whatever a caller asks for."""


@dataclass(frozen=True, slots=True)
class ListedEntry:
    """One entry: `name` as shown, `kind` file, directory, symlink or other; `size` of files in bytes.

    `modified` is in seconds since 1970; both are None where they could not be read or mean nothing.
    """

    name: str
    kind: str
    size: int | None
    modified: float | None
    uri: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The first entries of a directory by name, and how many it has."""

    entries: tuple[ListedEntry, ...]
    total: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class TreeNode:
    """An entry of a tree. `children` is None for what is no directory or was not descended into.

    `error` is the code of what kept a directory from being read.
    """

    name: str
    kind: str
    children: "tuple[TreeNode, ...] | None" = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Tree:
    """A directory with everything below it, up to the limits; `truncated` when they left something out."""

    root: TreeNode
    entries: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What is known about a file without reading it; times in seconds since 1970, None where unknown."""

    path: str
    uri: str
    kind: str
    size: int
    created: float | None
    modified: float
    accessed: float
    permissions: str
    mime: str | None


def list_directory(beneath: Beneath, place: Place, limit: int) -> Listing:
    """The first `limit` entries of the directory at `place`, sorted by name."""
    with beneath.open_directory(place) as directory:
        found = scanned(directory)
        entries = [_listed(beneath, place, entry) for entry in found[:limit]]
    return Listing(tuple(entries), len(found), len(found) > limit)


def scanned(directory: int | str) -> list["os.DirEntry[str]"]:
    """The entries of an open directory, sorted by name; look at them while it is open."""
    with os.scandir(directory) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def kind_of(entry: "os.DirEntry[str]") -> str:
    """What an entry is, as its directory says."""
    if entry.is_symlink():
        return "symlink"
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _listed(beneath: Beneath, place: Place, entry: "os.DirEntry[str]") -> ListedEntry:
    kind = kind_of(entry)
    uri = beneath.roots.uri(place.child(entry.name))
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return ListedEntry(displayed(entry.name), kind, None, None, uri)
    size = found.st_size if kind == "file" else None
    return ListedEntry(displayed(entry.name), kind, size, found.st_mtime, uri)


def info(beneath: Beneath, place: Place) -> FileInfo:
    """What is at `place`; a link at its end is described itself."""
    with beneath.locate(place, follow=False) as entry:
        if entry.stat is None:
            raise missing(entry, place.written)
        found = entry.stat
    kind = _kind_of_mode(found.st_mode)
    path = beneath.roots.path(place)
    return FileInfo(
        path=displayed(path),
        uri=beneath.roots.uri(place),
        kind=kind,
        size=found.st_size,
        created=getattr(found, "st_birthtime", None),
        modified=found.st_mtime,
        accessed=found.st_atime,
        permissions=stat.filemode(found.st_mode),
        mime=mime_of(path) if kind == "file" else None,
    )


def _kind_of_mode(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "symlink"
    if stat.S_ISDIR(mode):
        return "directory"
    return "file" if stat.S_ISREG(mode) else "other"


@dataclass(slots=True)
class _Branch:
    """A directory of the tree while it grows."""

    place: Place
    name: str
    depth: int
    excluded: States
    children: "list[_Branch | TreeNode] | None" = None
    error: str | None = None

    def frozen(self) -> TreeNode:
        if self.children is None:
            return TreeNode(self.name, "directory", None, self.error)
        children = tuple(c.frozen() if isinstance(c, _Branch) else c for c in self.children)
        return TreeNode(self.name, "directory", children, self.error)


@dataclass(slots=True)
class _Growth:
    """One tree being read: its limits and what was used of them."""

    beneath: Beneath
    exclude: Glob
    max_depth: int
    max_entries: int
    entries: int = 0
    truncated: bool = False

    def grow(self, branch: _Branch) -> list[_Branch]:
        """Read one directory; the directories in it are what is to read later."""
        if branch.depth >= self.max_depth:
            self.truncated = True
            return []
        try:
            with self.beneath.open_directory(branch.place, follow=branch.depth == 0) as directory:
                found = scanned(directory)
                branch.children = []
                return [b for entry in found if (b := self._add(branch, branch.children, entry)) is not None]
        except FilesError as error:
            if branch.depth == 0:
                raise
            branch.error = error.code
            return []

    def _add(
        self, branch: _Branch, children: "list[_Branch | TreeNode]", entry: "os.DirEntry[str]"
    ) -> _Branch | None:
        excluded = self.exclude.step(branch.excluded, entry.name)
        if self.exclude.accepts(excluded):
            return None
        if self.entries >= self.max_entries:
            self.truncated = True
            return None
        self.entries += 1
        kind = kind_of(entry)
        if kind != "directory":
            children.append(TreeNode(displayed(entry.name), kind))
            return None
        child = _Branch(branch.place.child(entry.name), displayed(entry.name), branch.depth + 1, excluded)
        children.append(child)
        return child


def directory_tree(
    beneath: Beneath, place: Place, exclude_patterns: Sequence[str], max_depth: int, max_entries: int
) -> Tree:
    """The directory at `place` and what is below it, without what the patterns exclude."""
    exclude = Glob(exclude_patterns)
    growth = _Growth(beneath, exclude, min(max_depth, MAX_DEPTH), max_entries)
    name = place.parts[-1] if place.parts else beneath.roots.paths[place.root_index].name
    root = _Branch(place, displayed(name), 0, exclude.start)
    pending = deque([root])
    while pending:
        pending.extend(growth.grow(pending.popleft()))
    return Tree(root.frozen(), growth.entries, growth.truncated)


def by_size(found: Listing) -> Listing:
    """`found` with the largest first."""
    return replace(found, entries=tuple(sorted(found.entries, key=lambda entry: -(entry.size or 0))))
