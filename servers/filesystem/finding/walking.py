"""Going through what is below a directory in a fixed order, and what ends that early.

The order: a directory's own entries by name, then what is below them, directory by directory. Glob states and ignore
rules travel down with it, so what cannot match is not entered (see `globs`, `ignoring`). No link is followed. The
walk ends early for a budget of matching steps, a deadline or the caller's cancellation, and can be taken up again
after any entry, since the order depends on the names alone.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from servers.filesystem.errors import FilesError
from servers.filesystem.finding.control import Control
from servers.filesystem.finding.cursors import Position
from servers.filesystem.finding.ignoring import REPOSITORY, Rules, rules_above
from shared.kit.globs import Glob, States
from shared.kit.rooted.descent import Descent, Names
from shared.kit.rooted.entries import Place, kind_of
from shared.kit.rooted.files import RootedFiles

MAX_STEPS = 2_000_000
"""Names compared with components of globs, in one call."""


class Scope(NamedTuple):
    """What of a tree is wanted. Globs are relative to the start; what is excluded or ignored is not entered."""

    pattern: str = "*"
    exclude_patterns: tuple[str, ...] = ()
    include_ignored: bool = False
    include_hidden: bool = True
    max_steps: int = MAX_STEPS


Seen = tuple[Names, str]
"""An entry that matches: its components below the start, and its kind."""


class _Directory(NamedTuple):
    path: Names
    included: States
    excluded: States
    rules: Rules
    after: Names
    """Where to go on: what stands at these components below this directory came last. Empty: all is new."""


class Walk:
    """One walk. Iterate over `entries`, then look why it ended."""

    def __init__(self, beneath: RootedFiles, place: Place, scope: Scope, control: Control) -> None:
        self._beneath = beneath
        self._place = place
        self._scope = scope
        self._control = control
        self._include = Glob([scope.pattern])
        self._exclude = Glob(scope.exclude_patterns)
        self._steps = 0
        self._again = False
        self._last: tuple[Names, str] | None = None
        self.stopped: str | None = None
        """None, or why there may be more: `budget`, `time` or `cancelled`, or what the caller gave as the reason."""
        self.ignored = 0
        """Entries left out for what a .gitignore says; what is in an ignored directory is not counted."""
        self.unreadable = 0
        """Directories that could not be read."""

    def entries(self, below: Descent, after: Position | None) -> Iterator[Seen]:
        """What matches and comes after that entry; the entry itself comes again where a line of it is given."""
        self._again = after is not None and after.number > 0
        pending = [self._start(after)]
        while pending and self.stopped is None:
            directory, found = self._visit(below, pending.pop())
            children: list[_Directory] = []
            yield from self._matching(directory, found, children)
            pending += reversed(children)

    def _matching(
        self, directory: _Directory, found: list["os.DirEntry[str]"], children: list[_Directory]
    ) -> Iterator[Seen]:
        """What matches in one directory; `children` gets what is to be entered."""
        for entry in found:
            name = entry.name
            kind = kind_of(entry)
            matched, child = self._look(directory, name, kind)
            if child is not None:
                children.append(child)
            if not directory.after or self._is_new(name, directory.after):
                if matched:
                    yield (*directory.path, name), kind
                self._last = directory.path, name
            self.stopped = self._control.ended()
            if self.stopped is not None:
                return
        self._control.seen += len(found)
        self._steps += len(found) * (1 + len(directory.included) + len(directory.excluded))
        if self._steps > self._scope.max_steps:
            self.stopped = "budget"

    def position(self) -> Position | None:
        """The entry that was finished last, where there was one."""
        return None if self._last is None else Position((*self._last[0], self._last[1]))

    def _start(self, after: Position | None) -> _Directory:
        rules = Rules() if self._scope.include_ignored else rules_above(self._beneath, self._place)
        return _Directory((), self._include.start, self._exclude.start, rules, after.parts if after else ())

    def _visit(self, below: Descent, directory: _Directory) -> tuple[_Directory, list["os.DirEntry[str]"]]:
        """The directory with the rules that hold in it, and the entries to look at."""
        try:
            entries = below.scan(directory.path)
        except FilesError:
            if not directory.path:
                raise
            self.unreadable += 1
            return directory, []
        if not self._scope.include_ignored:
            rules = directory.rules.read([entry.name for entry in entries], below.read)
            directory = directory._replace(rules=rules)
            entries = [entry for entry in entries if entry.name != REPOSITORY]
        if not self._scope.include_hidden:
            entries = [entry for entry in entries if not entry.name.startswith(".")]
        if len(directory.after) > 1:
            # All that stands in this directory came before, and so did what is below those names.
            entries = [
                entry for entry in entries if entry.name >= directory.after[0] and kind_of(entry) == "directory"
            ]
        return directory, entries

    def _is_new(self, name: str, after: Names) -> bool:
        return len(after) == 1 and (name > after[0] or (self._again and name == after[0]))

    def _look(self, directory: _Directory, name: str, kind: str) -> tuple[bool, _Directory | None]:
        """Whether the entry matches, and what to enter for it."""
        _, included, excluded, rules, _ = directory
        if excluded and self._exclude.ends(excluded, name):
            return False, None
        matched = self._include.ends(included, name)
        child = self._child(directory, name) if kind == "directory" else None
        if rules.levels and (matched or child) and rules.ignore(name, kind == "directory"):
            self.ignored += 1
            return False, None
        return matched, child

    def _child(self, directory: _Directory, name: str) -> _Directory | None:
        included = self._include.step(directory.included, name)
        if not self._include.alive(included):
            return None
        excluded = self._exclude.step(directory.excluded, name)
        after = directory.after[1:] if directory.after[:1] == (name,) else ()
        return _Directory((*directory.path, name), included, excluded, directory.rules.below(name), after)
