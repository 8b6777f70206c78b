"""Finding files by name, and going through what is below a directory in a fixed order, and what ends that early.

The order: a directory's own entries by name, then what is below them, directory by directory. Glob states and ignore
rules travel down with it, so what cannot match is not entered (see `servers.common.globs`, `gitignore`). No link is
followed. The walk ends early for a budget of matching steps, a deadline or the caller's cancellation, and can be
taken up again after any entry, since the order depends on the names alone.
"""

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from typing import NamedTuple

from typing_extensions import TypedDict

from servers.common.files.descent import Descent, Names, descent
from servers.common.files.rooted_files import RootedFiles
from servers.common.globs import Glob, States
from servers.filesystem.errors import FilesError
from servers.filesystem.names import told
from servers.filesystem.search.gitignore import REPOSITORY, Rules, rules_above
from servers.filesystem.search.page import ByteBudget, Page, Position, decode_cursor, encode_cursor
from shared.program.files.entries import Place, kind_of
from shared.text import displayed

MAX_STEPS = 2_000_000
"""Names compared with components of globs, in one call."""
_OVERHEAD = 12
"""Bytes of the line of a match besides its path."""


class Control:
    """How far a search has come, and when it is to end. One thread searches, others look and cancel."""

    def __init__(self, seconds: float = inf, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = seconds
        self._deadline = clock() + seconds
        self._cancelled = self._is_short = False
        self.seen = 0
        """Entries looked at so far."""

    def cancel(self) -> None:
        """Ends the search at its next step."""
        self._cancelled = True

    def ended(self) -> str | None:
        """Why the search must end: `cancelled` or `time`; None while it may go on."""
        if self._cancelled:
            return "cancelled"
        return "time" if self._is_short or self._clock() > self._deadline else None

    def share_of_time(self) -> float | None:
        """Seconds for one document, a third of all; None, and the search ends, where fewer are left.

        So the search that goes on has the time for it.
        """
        share = self._seconds / 3
        self._is_short = self._clock() + share > self._deadline
        return None if self._is_short else share


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
        rules = Rules() if self._scope.include_ignored else rules_above(self._beneath, self._place)
        pending = [_Directory((), self._include.start, self._exclude.start, rules, after.parts if after else ())]
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
            # Of the directory where the page before ended, what comes behind that, or it again.
            after = directory.after
            if not after or (len(after) == 1 and (name > after[0] or (self._again and name == after[0]))):
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


class Match(TypedDict):
    """A file found: its path relative to the start as told in a result, and its kind."""

    path: str
    kind: str


class Found(TypedDict):
    """The matches in walk order: a directory's own entries before those below them.

    `stopped` is None, or why there may be more: limit, size, budget, time or cancelled; `cursor` goes on from there.
    `ignored` counts what was left out for a .gitignore, `unreadable` directories that could not be read.
    """

    matches: list[Match]
    stopped: str | None
    cursor: str | None
    ignored: int
    unreadable: int


def search_files(beneath: RootedFiles, place: Place, scope: Scope, page: Page, control: Control) -> Found:
    """The files and directories below `place` that match. Raises FilesError."""
    after = None if page.cursor is None else decode_cursor(page.cursor)
    walk, budget = Walk(beneath, place, scope, control), ByteBudget(page.max_bytes)
    matches: list[Match] = []
    with descent(beneath, place) as below:
        for path, kind in walk.entries(below, after):
            if len(matches) == page.limit:
                walk.stopped = "limit"
                break
            shown = told(displayed("/".join(path)), partial(below.uri, path))
            if not budget.take(_OVERHEAD, shown):
                walk.stopped = "size"
                break
            matches.append(Match(path=shown, kind=kind))
    reached = walk.position() or after
    cursor = encode_cursor(reached) if walk.stopped and reached else None
    return Found(
        matches=matches, stopped=walk.stopped, cursor=cursor, ignored=walk.ignored, unreadable=walk.unreadable
    )
