"""A directory and everything below it as a tree. It is read breadth first, so that the upper levels are complete if a
limit cuts the tree.

A directory whose entries are not all shown is marked with `cut`; a client can request the tree that begins there. A
directory that can't be read has an error code instead of entries. No link is followed.
"""

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, NotRequired

from typing_extensions import TypedDict

from servers.common.files.descent import Descent, Names, descent
from servers.common.files.rooted_files import RootedFiles
from servers.common.globs import Glob, States
from shared.program.files.entries import Place, kind_of
from shared.text import display_name

from ..errors import FilesError
from ..names import add_uri
from .files import SearchProgress
from .gitignore import GIT_DIRECTORY, Rules, rules_above
from .page import ByteBudget

MAX_DEPTH = 64
"""Maximum depth of a tree, whatever the caller requests."""
_OVERHEAD_BYTES = 8
"""Bytes that a node takes in the result, in addition to its name and indentation."""


class Limits(NamedTuple):
    """The limits of a tree: levels, entries, and bytes of JSON; and whether ignored entries are shown."""

    depth: int
    entries: int
    max_bytes: int
    with_ignored: bool = True


class TreeNode(TypedDict):
    """An entry of a tree: its displayed `name`, and its `kind` as in a listing.

    A directory has `children`, unless reading it failed with the code `error`, or it was not read. If `cut`, some of
    its entries are not shown.
    """

    name: str
    kind: str
    children: NotRequired["list[TreeNode]"]
    cut: NotRequired[bool]
    error: NotRequired[str]


class Tree(TypedDict):
    """A directory with everything below it, up to the limits; `truncated` is True if they left something out.
    `ignored` is the number of entries left out because of a .gitignore, without those in an ignored directory.
    """

    root: TreeNode
    entries: int
    truncated: bool
    ignored: int


class _Branch(NamedTuple):
    path: Names
    node: TreeNode
    exclude_states: States
    rules: Rules


def directory_tree(
    rooted: RootedFiles, place: Place, exclude_patterns: Sequence[str], limits: Limits, progress: SearchProgress
) -> Tree:
    """Return the directory at `place` and everything below it, without excluded entries. Raises FilesError."""
    exclude = Glob(exclude_patterns)
    name = place.parts[-1] if place.parts else rooted.roots.paths[place.root_index].name
    root = TreeNode(name=add_uri(display_name(name), lambda: rooted.roots.uri(place)), kind="directory")
    with descent(rooted, place) as opened:
        reader = _TreeReader(opened, exclude, limits, progress)
        rules = Rules() if limits.with_ignored else rules_above(rooted, place)
        pending = deque([_Branch((), root, exclude.start, rules)])
        while pending:
            pending.extend(reader.read_directory(pending.popleft()))
    return Tree(root=root, entries=reader.entries, truncated=reader.truncated, ignored=reader.ignored)


class _TreeReader:
    """Reads a tree level by level, and counts entries and bytes to stay within its limits."""

    def __init__(self, opened: Descent, exclude: Glob, limits: Limits, progress: SearchProgress) -> None:
        self._descent = opened
        self._exclude = exclude
        self._depth = min(limits.depth, MAX_DEPTH)
        self._limit = limits.entries
        self._with_ignored = limits.with_ignored
        self._budget = ByteBudget(limits.max_bytes)
        self._progress = progress
        self.entries = 0
        self.truncated = False
        self.ignored = 0

    def read_directory(self, branch: _Branch) -> list[_Branch]:
        """Read one directory, and return the directories in it, which are to be read later."""
        path, node, exclude_states, rules = branch
        if len(path) >= self._depth or self._is_full():
            self._mark_cut(node)
            return []
        try:
            listed = self._descent.scan(path)
        except FilesError as error:
            if not path:
                raise
            node["error"] = error.code
            return []
        if not self._with_ignored:
            rules = rules.extend([entry.name for entry in listed], self._descent.read)
            listed = [entry for entry in listed if entry.name != GIT_DIRECTORY]
            if rules.may_ignore([(entry.name, kind_of(entry)) for entry in listed]):
                count = len(listed)
                listed = [entry for entry in listed if not rules.ignores(entry.name, kind_of(entry) == "directory")]
                self.ignored += count - len(listed)
        children = node["children"] = []
        branches: list[_Branch] = []
        for entry in listed:
            name = entry.name
            self._progress.examined += 1
            if self._exclude.matches_after(exclude_states, name):
                continue
            shown = add_uri(display_name(name), partial(self._descent.uri, (*path, name)))
            if self._is_full() or not self._budget.take(_OVERHEAD_BYTES + 2 * len(path), shown):
                self._mark_cut(node)
                return branches
            self.entries += 1
            child = TreeNode(name=shown, kind=kind_of(entry))
            children.append(child)
            if child["kind"] == "directory":
                states = self._exclude.step(exclude_states, name)
                branches.append(_Branch((*path, name), child, states, rules.enter(name)))
        return branches

    def _is_full(self) -> bool:
        return self.entries >= self._limit or self._progress.stop_reason() is not None

    def _mark_cut(self, node: TreeNode) -> None:
        node["cut"] = self.truncated = True
