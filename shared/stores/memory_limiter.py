"""Counts by name in the memory of one process: what replicas share that live in one event loop.

Of each name one number is kept, the moment from which on it would be as if it had never done anything (the generic
cell rate algorithm, ITU-T I.371). Whoever is at rest is forgotten, so that memory is taken by those alone who have
done something lately.
"""

import time
from collections.abc import Callable

from ..contracts import Rate

FEW = 1_024
"""How many names are kept without a look at who is at rest."""
_ROUNDING = 1e-9
"""Seconds that sums of many small costs may be wrong by."""


class MemoryLimiter:
    """A `Limiter` in memory. Its methods never suspend."""

    __slots__ = ("_clock", "_look_at", "_rests")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rests: dict[str, float] = {}
        self._look_at = FEW

    def __len__(self) -> int:
        return len(self._rests)

    async def take(self, key: str, rate: Rate, cost: float = 1.0) -> float:
        """Takes `cost` of what `rate` allows to `key`; 0 where it may be done now. Else nothing is taken, and this is
        how many seconds to wait. What costs more than the burst may be done after rest."""
        now = self._clock()
        rests = max(self._rests.get(key, now), now) + cost / rate.per_second
        wait = rests - now - max(rate.burst, cost) / rate.per_second
        if wait > _ROUNDING:
            return wait
        if cost:
            self._note(key, rests, now)
        return 0.0

    def spend(self, key: str, rate: Rate, cost: float) -> None:
        """Takes `cost` for what was done already, whatever is allowed."""
        now = self._clock()
        self._note(key, max(self._rests.get(key, now), now) + cost / rate.per_second, now)

    def _note(self, key: str, rests: float, now: float) -> None:
        self._rests[key] = rests
        if len(self._rests) >= self._look_at:
            # A dict that has shrunk keeps its room, so it is made anew.
            self._rests = {name: at for name, at in self._rests.items() if at > now}
            self._look_at = max(FEW, 2 * len(self._rests))
