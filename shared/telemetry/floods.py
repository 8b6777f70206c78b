"""Limits log entries that come in floods: the first entry of each kind is written at once, then at most one per
second, with the number of entries that it stands for.

A refused client may try again any number of times. That must not fill the log, or cause its rotation to delete the
entries of others.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

FLOOD_SECONDS = 1.0
"""Seconds from the first entry of a kind to the one that stands for all further ones."""
MAX_KINDS = 1_000
"""Maximum number of kinds that are counted at the same time."""

Entry = dict[str, Any]


@dataclass(slots=True)
class _Flood:
    ends_at: float
    """The time, by the clock, at which the count is written."""
    entry: Entry
    """The last entry, with the number of entries after the first; empty if only the first has come."""


class Floods:
    """The current floods. `write` writes an entry."""

    def __init__(self, write: Callable[[Entry], None], clock: Callable[[], float]) -> None:
        self._write = write
        self._clock = clock
        self.current: dict[Hashable, _Flood] = {}
        """The floods whose counts have not been written yet, by kind. Don't change it."""
        self._next_check_at = 0.0

    def add(self, kind: Hashable, entry: Entry) -> None:
        """Write `entry` if it is the first of its `kind`; otherwise count it for the next one that is written."""
        self.write_counts()
        flood = self.current.get(kind)
        if flood is not None:
            flood.entry = {**entry, "times": flood.entry.get("times", 0) + 1}
            return
        if len(self.current) >= MAX_KINDS:
            self.write_counts(all_floods=True)
        ends_at = self._clock() + FLOOD_SECONDS
        if not self.current:
            self._next_check_at = ends_at
        self.current[kind] = _Flood(ends_at, {})
        self._write(entry)

    def write_counts(self, *, all_floods: bool = False) -> None:
        """Write the counts of the floods whose time has come; with `all_floods`, of all floods."""
        now = self._clock()
        if now < self._next_check_at and not all_floods:
            return
        self._next_check_at = now + FLOOD_SECONDS
        ended = [kind for kind, flood in self.current.items() if all_floods or now >= flood.ends_at]
        for entry in [self.current.pop(kind).entry for kind in ended]:
            if entry:
                self._write(entry)
