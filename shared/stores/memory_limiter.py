"""Rate limits by key in the memory of one process, for replicas that live in one event loop.

For each key, one number is stored: the time at which its allowance will be full again (the generic cell rate
algorithm, ITU-T I.371). Keys whose allowance is full are deleted, so that only recently used keys take memory.
"""

import time
from collections.abc import Callable

from ..contracts import Rate

CLEANUP_THRESHOLD = 1_024
"""The number of stored keys at which keys with a full allowance start being deleted."""
_ROUNDING = 1e-9
"""Tolerance, in seconds, for rounding errors in sums of many small costs."""


class MemoryLimiter:
    """A `Limiter` in memory. Its methods never suspend."""

    __slots__ = ("_cleanup_size", "_clock", "_full_at")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._full_at: dict[str, float] = {}
        self._cleanup_size = CLEANUP_THRESHOLD

    def __len__(self) -> int:
        return len(self._full_at)

    async def take(self, key: str, rate: Rate, cost: float = 1.0) -> float:
        """Take `cost` from the allowance of `key` under `rate`. Return 0 if the action may be done now; otherwise
        nothing is taken, and the result is the number of seconds to wait. An action that costs more than the burst is
        allowed once the allowance is full."""
        now = self._clock()
        full_at = max(self._full_at.get(key, now), now) + cost / rate.per_second
        wait = full_at - now - max(rate.burst, cost) / rate.per_second
        if wait > _ROUNDING:
            return wait
        if cost:
            self._store(key, full_at, now)
        return 0.0

    def spend(self, key: str, rate: Rate, cost: float) -> None:
        """Take `cost` for an action that has already been done, even beyond the allowance."""
        now = self._clock()
        self._store(key, max(self._full_at.get(key, now), now) + cost / rate.per_second, now)

    def _store(self, key: str, full_at: float, now: float) -> None:
        self._full_at[key] = full_at
        if len(self._full_at) >= self._cleanup_size:
            # A new dict, since a dict does not return memory when entries are deleted.
            self._full_at = {name: at for name, at in self._full_at.items() if at > now}
            self._cleanup_size = max(CLEANUP_THRESHOLD, 2 * len(self._full_at))
