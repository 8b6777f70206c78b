"""Search for files by name: the ordered walk below a directory, and its limits.

A directory's own entries come first, by name, then everything below them, directory by directory. The walk knows the
glob states and ignore rules of each directory, so it does not enter directories without possible matches (see
`servers.common.globs`, `gitignore`). It follows no links. A maximum number of matching steps, a deadline or
cancellation ends it early. It can be resumed after any entry, since the order depends only on names.
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
from shared.program.files.entries import Place, kind_of
from shared.text import display_name

from ..errors import FilesError
from ..names import add_uri
from .gitignore import GIT_DIRECTORY, Rules, rules_above
from .page import ByteBudget, Page, Position, decode_cursor, encode_cursor

MAX_STEPS = 2_000_000
"""Maximum number of comparisons of names with glob components in one call."""
_BATCH_ENTRIES = 64
"""Number of entries that are compared with globs and rules between checks of the clock."""
_OVERHEAD_BYTES = 12
"""Bytes that a match takes in the result, in addition to its path."""


class SearchProgress:
    """The progress of a search, and its time limit. One thread searches; other threads read the progress and can
    cancel the search."""

    def __init__(self, seconds: float = inf, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = seconds
        self._deadline = clock() + seconds
        self._cancelled = self._is_short = False
        self.examined = 0
        """Number of entries examined so far."""

    def cancel(self) -> None:
        """End the search at its next step."""
        self._cancelled = True

    def stop_reason(self) -> str | None:
        """Return the reason that the search must end, `cancelled` or `time`; None while it may continue."""
        if self._cancelled:
            return "cancelled"
        return "time" if self._is_short or self._clock() > self._deadline else None

    def share_of_time(self) -> float | None:
        """Return the time for one document in seconds, a third of the limit. If less is left, end the search and
        return None: the call that continues the search has enough time."""
        share = self._seconds / 3
        self._is_short = self._clock() + share > self._deadline
        return None if self._is_short else share


class Scope(NamedTuple):
    """The requested part of a tree. Globs are relative to its root; excluded or ignored directories are skipped."""

    pattern: str = "*"
    exclude_patterns: tuple[str, ...] = ()
    include_ignored: bool = False
    include_hidden: bool = True
    max_steps: int = MAX_STEPS


NameAndKind = tuple[str, str]
"""An entry of a directory: its name and its kind."""


class _Directory(NamedTuple):
    path: Names
    include_states: States
    exclude_states: States
    rules: Rules
    after: Names
    """The last entry of the previous page, by its components below this directory. If empty, all entries of this
    directory are new."""


class Walk:
    """One walk. Iterate over `directories`, then read `stopped`, the reason that the walk ended early."""

    def __init__(self, rooted: RootedFiles, place: Place, scope: Scope, progress: SearchProgress) -> None:
        self._rooted = rooted
        self._place = place
        self._scope = scope
        self._progress = progress
        self._include = Glob([scope.pattern])
        self._exclude = Glob(scope.exclude_patterns)
        self._steps = 0
        self._repeats_last = False
        """True if the walk begins with the last entry of the previous page, which did not show all of its lines."""
        self._last: tuple[Names, str] | None = None
        self.stopped: str | None = None
        """None, or the reason that there may be more: `budget`, `time`, `cancelled`, or one that the caller set."""
        self.ignored = 0
        """Number of entries left out because of a .gitignore, not counting those in an ignored directory."""
        self.hidden = 0
        """Number of hidden entries left out that match, or may contain matches, not counting `.git`."""
        self.unreadable = 0
        """Number of directories that could not be read."""

    def directories(self, opened: Descent, after: Position | None) -> Iterator[tuple[Names, list[NameAndKind]]]:
        """Yield each directory with its matches after the given entry, or beginning with it if the position includes
        one of its lines.

        The directory is the one that `opened` scanned last. A caller that may stop within a directory calls `finish`
        for the matches that are in its result.
        """
        self._repeats_last = after is not None and after.number > 0
        rules = Rules() if self._scope.include_ignored else rules_above(self._rooted, self._place)
        pending = [_Directory((), self._include.start, self._exclude.start, rules, after.parts if after else ())]
        while pending and self.stopped is None:
            directory, listed = self._scan(opened, pending.pop())
            matches, children = self._match_directory(directory, listed)
            yield directory.path, matches
            if self.stopped is None:
                after_names = directory.after
                if listed and (not after_names or (len(after_names) == 1 and listed[-1].name >= after_names[0])):
                    self._last = directory.path, listed[-1].name
                self._progress.examined += len(listed)
                self._steps += len(listed) * (1 + len(directory.include_states) + len(directory.exclude_states))
                self.stopped = self._progress.stop_reason()
                if self.stopped is None and self._steps > self._scope.max_steps:
                    self.stopped = "budget"
            pending += reversed(children)

    def finish(self, path: Names, name: str) -> None:
        """Note that this match in the directory, and all before it, are in the result."""
        self._last = path, name

    def _match_directory(
        self, directory: _Directory, listed: list["os.DirEntry[str]"]
    ) -> tuple[list[NameAndKind], list[_Directory]]:
        """Return the matches in one directory, and the directories to enter. If the search has to stop before
        the end, the rest is removed from `listed` and left for another page."""
        _, include_states, exclude_states, rules, after = directory
        entries: list[NameAndKind] = []
        for entry in listed:
            # The common case of `kind_of` is inlined, since this runs for many thousands of entries.
            try:
                kind = "file" if entry.is_file(follow_symlinks=False) else kind_of(entry)
            except OSError:
                kind = "other"
            entries.append((entry.name, kind))
        may_ignore = rules.may_ignore(entries)
        all_files_match = self._include.matches_after_any(include_states) and not (
            exclude_states or may_ignore or after
        )
        matches: list[NameAndKind] = []
        children: list[_Directory] = []
        compared = 0
        for number, (name, kind) in enumerate(entries, 1):
            if all_files_match and kind == "file":
                matches.append((name, kind))
                continue
            # In the directory in which the previous page ended, only entries after its last one are new, and that one
            # if it is repeated.
            is_new = not after or (len(after) == 1 and (name > after[0] or (self._repeats_last and name == after[0])))
            if not is_new and kind != "directory":
                continue
            is_match, child = self._match_entry(directory, name, kind, may_ignore)
            if child is not None:
                children.append(child)
            if is_match and is_new:
                matches.append((name, kind))
            compared += 1
            if compared % _BATCH_ENTRIES == 0 and self._progress.stop_reason() is not None:
                del listed[number:]
                break
        return matches, children

    def position(self) -> Position | None:
        """Return the position of the last finished entry, or None."""
        return None if self._last is None else Position((*self._last[0], self._last[1]))

    def _scan(self, opened: Descent, directory: _Directory) -> tuple[_Directory, list["os.DirEntry[str]"]]:
        """Return the directory with the rules in effect in it, and the entries to examine."""
        try:
            entries = opened.scan(directory.path)
        except FilesError:
            if not directory.path:
                raise
            self.unreadable += 1
            return directory, []
        if not self._scope.include_ignored:
            rules = directory.rules.extend([entry.name for entry in entries], opened.read)
            directory = directory._replace(rules=rules)
        if not self._scope.include_hidden:
            hidden = [entry for entry in entries if entry.name[0] == "."]
            if hidden and not directory.after:
                self.hidden += sum(self._may_match(directory, entry) for entry in hidden)
            entries = [entry for entry in entries if entry.name[0] != "."]
        elif not self._scope.include_ignored:
            entries = [entry for entry in entries if entry.name != GIT_DIRECTORY]
        if len(directory.after) > 1:
            # The previous pages contain all entries of this directory, and everything below the earlier names.
            entries = [
                entry for entry in entries if entry.name >= directory.after[0] and kind_of(entry) == "directory"
            ]
        return directory, entries

    def _may_match(self, directory: _Directory, entry: "os.DirEntry[str]") -> bool:
        """Return True if the entry matches, or may contain matches. `.git` counts as no match."""
        is_match, child = self._match_entry(directory, entry.name, kind_of(entry), False)
        return entry.name != GIT_DIRECTORY and (is_match or child is not None)

    def _match_entry(
        self, directory: _Directory, name: str, kind: str, may_ignore: bool
    ) -> tuple[bool, _Directory | None]:
        """Return True if the entry matches, and the directory to enter, if any. The ignore rules are applied only if
        they `may_ignore` an entry of this directory."""
        _, include_states, exclude_states, rules, _ = directory
        if exclude_states and self._exclude.matches_after(exclude_states, name):
            return False, None
        is_match = self._include.matches_after(include_states, name)
        child = None
        if kind == "directory":
            included_below = self._include.step(include_states, name)
            if self._include.can_match_below(included_below):
                excluded_below = self._exclude.step(exclude_states, name)
                after = directory.after[1:] if directory.after[:1] == (name,) else ()
                child = _Directory((*directory.path, name), included_below, excluded_below, rules.enter(name), after)
        if may_ignore and (is_match or child) and rules.ignores(name, kind == "directory"):
            self.ignored += 1
            return False, None
        return is_match, child


class Match(TypedDict):
    """A matching entry: its displayed path, relative to the directory that is searched, and its kind."""

    path: str
    kind: str


class FileSearch(TypedDict):
    """The matches in walk order: a directory's own entries before those below them.

    `stopped` is None, or the reason that there may be more: limit, size, budget, time or cancelled; `cursor`
    continues from there. `ignored` counts entries left out because of a .gitignore, `unreadable` directories that
    could not be read.
    """

    matches: list[Match]
    stopped: str | None
    cursor: str | None
    ignored: int
    unreadable: int


def search_files(rooted: RootedFiles, place: Place, scope: Scope, page: Page, progress: SearchProgress) -> FileSearch:
    """Return the files and directories below `place` that match. Raises FilesError."""
    after = None if page.cursor is None else decode_cursor(page.cursor)
    walk, budget = Walk(rooted, place, scope, progress), ByteBudget(page.max_bytes)
    matches: list[Match] = []
    with descent(rooted, place) as opened:
        listed = walk.directories(opened, after)
        for path, name, kind in ((path, *entry) for path, entries in listed for entry in entries):
            shown = add_uri(display_name("/".join((*path, name))), partial(opened.uri, (*path, name)))
            if len(matches) == page.limit:
                walk.stopped = "limit"
                break
            if not budget.take(_OVERHEAD_BYTES, shown):
                walk.stopped = "size"
                break
            matches.append(Match(path=shown, kind=kind))
            walk.finish(path, name)
    position = walk.position() or after
    cursor = encode_cursor(position) if walk.stopped and position else None
    return FileSearch(
        matches=matches, stopped=walk.stopped, cursor=cursor, ignored=walk.ignored, unreadable=walk.unreadable
    )
