"""A directory and what is below it as a tree, read breadth first: where a limit cuts it, the top is whole.

A directory whose entries are not all there says so with `cut`: ask for the tree that begins there. One that cannot be
read has the code of the error instead of its entries. No link is followed.
"""

import os
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, NotRequired

from typing_extensions import TypedDict

from servers.common.files.descent import Descent, Names, descent
from servers.common.files.rooted_files import RootedFiles
from servers.common.globs import Glob, States
from servers.filesystem.errors import FilesError
from servers.filesystem.names import told
from servers.filesystem.search.files import Control
from servers.filesystem.search.gitignore import REPOSITORY, Rules, rules_above
from servers.filesystem.search.page import ByteBudget
from shared.program.files.entries import Place, kind_of
from shared.text import displayed

MAX_DEPTH = 64
"""Deepest tree, whatever a caller asks for."""
_OVERHEAD = 40
"""Bytes of one node besides its name, and besides the indentation of its line."""


class Limits(NamedTuple):
    """How much of a tree is shown: levels, entries, and bytes of JSON; and whether what .gitignore files name is."""

    depth: int
    entries: int
    max_bytes: int
    with_ignored: bool = True


class TreeNode(TypedDict):
    """An entry of a tree: `name` as told in a result; `kind` as in a listing.

    A directory has `children`, unless `error` is the code of what kept it from being read, or nothing below it was
    looked at. `cut`: not all that is in the directory is shown.
    """

    name: str
    kind: str
    children: NotRequired["list[TreeNode]"]
    cut: NotRequired[bool]
    error: NotRequired[str]


class Tree(TypedDict):
    """A directory with everything below it, up to the limits; `truncated` when they left something out. `ignored`
    counts what was left out for a .gitignore, but for what is in an ignored directory."""

    root: TreeNode
    entries: int
    truncated: bool
    ignored: int


class _Branch(NamedTuple):
    path: Names
    node: TreeNode
    excluded: States
    rules: Rules


def directory_tree(
    beneath: RootedFiles, place: Place, exclude_patterns: Sequence[str], limits: Limits, control: Control
) -> Tree:
    """The directory at `place` and what is below it, without what the patterns exclude. Raises FilesError."""
    exclude = Glob(exclude_patterns)
    name = place.parts[-1] if place.parts else beneath.roots.paths[place.root_index].name
    root = TreeNode(name=told(displayed(name), lambda: beneath.roots.uri(place)), kind="directory")
    with descent(beneath, place) as below:
        growth = _Growth(below, exclude, limits, control)
        rules = Rules() if limits.with_ignored else rules_above(beneath, place)
        pending = deque([_Branch((), root, exclude.start, rules)])
        while pending:
            pending.extend(growth.grow(pending.popleft()))
    return Tree(root=root, entries=growth.entries, truncated=growth.truncated, ignored=growth.ignored)


class _Growth:
    """One tree being read: its limits and what was used of them."""

    def __init__(self, below: Descent, exclude: Glob, limits: Limits, control: Control) -> None:
        self._below = below
        self._exclude = exclude
        self._depth = min(limits.depth, MAX_DEPTH)
        self._limit = limits.entries
        self._with_ignored = limits.with_ignored
        self._budget = ByteBudget(limits.max_bytes)
        self._control = control
        self.entries = 0
        self.truncated = False
        self.ignored = 0

    def grow(self, branch: _Branch) -> list[_Branch]:
        """Read one directory; the directories in it are what is to read later."""
        path, node, states, rules = branch
        if len(path) >= self._depth or self._full():
            return self._cut(node, [])
        try:
            found = self._below.scan(path)
        except FilesError as error:
            if not path:
                raise
            node["error"] = error.code
            return []
        if not self._with_ignored:
            rules = rules.read([entry.name for entry in found], self._below.read)
            found = [entry for entry in found if not self._is_ignored(entry, rules)]
        children = node["children"] = []
        branches: list[_Branch] = []
        for entry in found:
            name = entry.name
            self._control.seen += 1
            if self._exclude.ends(states, name):
                continue
            shown = told(displayed(name), partial(self._below.uri, (*path, name)))
            if self._full() or not self._budget.take(_OVERHEAD + 2 * len(path), shown):
                return self._cut(node, branches)
            self.entries += 1
            child = TreeNode(name=shown, kind=kind_of(entry))
            children.append(child)
            if child["kind"] == "directory":
                excluded = self._exclude.step(states, name)
                branches.append(_Branch((*path, name), child, excluded, rules.below(name)))
        return branches

    def _is_ignored(self, entry: "os.DirEntry[str]", rules: Rules) -> bool:
        if entry.name == REPOSITORY:
            return True
        is_ignored = rules.ignore(entry.name, kind_of(entry) == "directory")
        self.ignored += is_ignored
        return is_ignored

    def _full(self) -> bool:
        return self.entries >= self._limit or self._control.ended() is not None

    def _cut(self, node: TreeNode, branches: list[_Branch]) -> list[_Branch]:
        node["cut"] = self.truncated = True
        return branches
