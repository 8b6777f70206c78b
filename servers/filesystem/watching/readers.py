"""Whom the changes in a tree concern: many globs that begin in one directory share one look at it.

A key is told once of a look, so its glob is compared with no more names after the first that it matches. Where there
would be too many comparisons all the same, all keys are told: to be told is a reason to look, and says no more.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from servers.filesystem.watching.trees import Event, Parts
from shared.kit.globs import Glob

MAX_COMPARED = 100_000
"""Comparisons of a path with a glob, for one look: a fifth of a second."""


class Readers:
    """The globs below the directory at `start`, each under its key."""

    def __init__(self, start: Parts) -> None:
        self._start = len(start)
        self._globs: dict[str, Glob] = {}

    def __len__(self) -> int:
        return len(self._globs)

    def add(self, key: str, glob: Glob) -> None:
        """Has `key` told of what `glob` matches."""
        self._globs[key] = glob

    def remove(self, key: str) -> None:
        """No longer."""
        del self._globs[key]

    def concerned(self, events: Sequence[Event]) -> list[str]:
        """The keys to tell of these events."""
        globs = list(self._globs.items())
        if len(globs) * len(events) > MAX_COMPARED:
            return [key for key, _ in globs]
        changed: dict[Parts, set[str]] = defaultdict(set)
        for event in events:
            *parents, name = event.place.parts[self._start :]
            changed[tuple(parents)].add(name)
        return [key for key, glob in globs if any(_matches(glob, *one) for one in changed.items())]


def _matches(glob: Glob, parents: Parts, names: Iterable[str]) -> bool:
    states = glob.after(parents)
    return any(glob.accepts(glob.step(states, name)) for name in names)
