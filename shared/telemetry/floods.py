"""Entries that come in floods: one per second for each kind, first the original entry, then the number of further
ones.

A refused client may try again any number of times, and must neither fill a log nor rotate away the entries of others.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

FLOOD_SECONDS = 1.0
"""Seconds for which one entry represents all of its kind."""
MAX_KINDS = 1_000
"""Maximum number of kinds that are counted at once."""

Entry = dict[str, Any]


@dataclass(slots=True)
class _Flood:
    until: float
    """The time of the clock at which the flood is over."""
    entry: Entry
    """The last entry that has not been written yet, with the number of entries."""


class Floods:
    """The recent floods."""

    def __init__(self, write: Callable[[Entry], None], clock: Callable[[], float]) -> None:
        self._write = write
        self._clock = clock
        self.recent: dict[Hashable, _Flood] = {}
        """The floods that are not over, by kind; read only."""
        self._next_check = 0.0

    def add(self, kind: Hashable, entry: Entry) -> None:
        """Write `entry`, or count it with the entries of its `kind` that are written later."""
        self.write_counts()
        flood = self.recent.get(kind)
        if flood is not None:
            flood.entry = {**entry, "times": flood.entry.get("times", 0) + 1}
            return
        if len(self.recent) >= MAX_KINDS:
            self.write_counts(all_floods=True)
        until = self._clock() + FLOOD_SECONDS
        if not self.recent:
            self._next_check = until
        self.recent[kind] = _Flood(until, {})
        self._write(entry)

    def write_counts(self, *, all_floods: bool = False) -> None:
        """Write the counts of the floods that are over; with `all_floods`, of all floods."""
        now = self._clock()
        if now < self._next_check and not all_floods:
            return
        self._next_check = now + FLOOD_SECONDS
        over = [kind for kind, flood in self.recent.items() if all_floods or now >= flood.until]
        for entry in [self.recent.pop(kind).entry for kind in over]:
            if entry:
                self._write(entry)
