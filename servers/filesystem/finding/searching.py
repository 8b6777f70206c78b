"""Finding files by name: a glob over the paths relative to the start.

The walk is depth first in name order, every directory opened beneath the root, no link followed. Matching
states travel down with it (see `patterns`), so subtrees that cannot match are not entered. Three things
end a search early, and the result says which: enough matches, a budget of matching steps, and the
caller's cancellation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from servers.filesystem.access.beneath import Beneath
from servers.filesystem.access.roots import Place
from servers.filesystem.errors import FilesError
from servers.filesystem.finding.listing import kind_of, scanned
from servers.filesystem.finding.patterns import Glob, States
from servers.filesystem.names import displayed

_CHECK_EVERY = 512


class Search(NamedTuple):
    """What to look for: globs are relative to the start; excluded directories are not entered."""

    pattern: str
    exclude_patterns: tuple[str, ...] = ()
    limit: int = 1_000
    max_steps: int = 2_000_000


@dataclass(frozen=True, slots=True)
class Match:
    """A file found: its path relative to the start as shown, its kind, and its URI."""

    path: str
    kind: str
    uri: str


@dataclass(frozen=True, slots=True)
class Found:
    """The matches in walk order: a directory's own entries before those below them.

    `stopped` is None, or why there may be more: limit, budget or cancelled.

    `unreadable` counts directories that could not be read.
    """

    matches: tuple[Match, ...]
    truncated: bool
    stopped: str | None
    unreadable: int


class _Directory(NamedTuple):
    place: Place
    path: tuple[str, ...]
    included: States
    excluded: States


class _Run:
    """One search under way."""

    def __init__(self, beneath: Beneath, search: Search, cancelled: Callable[[], bool]) -> None:
        self._beneath = beneath
        self._search = search
        self._cancelled = cancelled
        self._include = Glob([search.pattern])
        self._exclude = Glob(search.exclude_patterns)
        self._steps = 0
        self._until_check = _CHECK_EVERY
        self.matches: list[Match] = []
        self.unreadable = 0
        self.stopped: str | None = None

    def walk(self, place: Place) -> None:
        """Search everything below `place`."""
        pending = [_Directory(place, (), self._include.start, self._exclude.start)]
        while pending and not self._stop():
            pending += reversed(self._visit(pending.pop()))

    def _visit(self, directory: _Directory) -> list[_Directory]:
        try:
            with self._beneath.open_directory(directory.place, follow=not directory.path) as opened:
                entries = takewhile(lambda _: not self._full(), scanned(opened))
                looks = (self._look(directory, entry.name, kind_of(entry)) for entry in entries)
                return [child for child in looks if child is not None]
        except FilesError:
            if not directory.path:
                raise
            self.unreadable += 1
            return []

    def _look(self, directory: _Directory, name: str, kind: str) -> _Directory | None:
        self._steps += 1 + len(directory.included) + len(directory.excluded)
        excluded = self._exclude.step(directory.excluded, name)
        if self._exclude.accepts(excluded):
            return None
        included = self._include.step(directory.included, name)
        path = (*directory.path, name)
        place = directory.place.child(name)
        if self._include.accepts(included):
            if len(self.matches) == self._search.limit:
                self.stopped = "limit"
                return None
            self.matches.append(Match(displayed("/".join(path)), kind, self._beneath.roots.uri(place)))
        if kind != "directory" or not self._include.alive(included):
            return None
        return _Directory(place, path, included, excluded)

    def _full(self) -> bool:
        if self._steps > self._search.max_steps:
            self.stopped = "budget"
        self._until_check -= 1
        if self._until_check <= 0:
            self._until_check = _CHECK_EVERY
            return self._stop()
        return self.stopped is not None

    def _stop(self) -> bool:
        if self.stopped is None and self._cancelled():
            self.stopped = "cancelled"
        return self.stopped is not None


def search_files(
    beneath: Beneath, place: Place, search: Search, cancelled: Callable[[], bool] = lambda: False
) -> Found:
    """The files and directories below `place` that match; `cancelled` is asked now and then."""
    run = _Run(beneath, search, cancelled)
    run.walk(place)
    return Found(tuple(run.matches), run.stopped is not None, run.stopped, run.unreadable)
