"""Rate limits per key, shared by all replicas, in Redis: see `scripts/limits.lua`.

If the permitted burst is large, a replica reserves a part of it in advance, and then admits requests without a round
trip to Redis until that part is used. The unused part expires after one second. So all replicas together never allow
more than the rate, and sometimes a little less. While Redis can't be reached, each replica counts separately.
"""

import asyncio

from ...concurrency import ExpiryQueue
from ...contracts import Rate
from ...errors import Unavailable
from ..memory_limiter import MemoryLimiter
from .link import Link

RESERVATION_DIVISOR = 64
"""A replica reserves 1/`RESERVATION_DIVISOR` of a burst in advance."""
RESERVATION_SECONDS = 1.0
"""Seconds after which the unused rest of a reservation expires."""
SPEND_SECONDS = 0.25
"""Seconds for which the costs of finished actions are added up before they are sent to Redis."""
_MICROSECONDS = 1_000_000
"""Microseconds in a second: Redis counts in microseconds."""


class RedisLimiter:
    """A `Limiter` in Redis."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._local_limiter = MemoryLimiter()
        self._reservation_expiry = ExpiryQueue(RESERVATION_SECONDS, self._forget)
        self._remaining: dict[str, float] = {}
        self._spent: dict[str, tuple[Rate, float]] = {}

    async def take(self, key: str, rate: Rate, cost: float = 1.0) -> float:
        """Take `cost` from the allowance of `key` under `rate`. A cost of 0 only checks whether anything is left.
        Return 0 if the action is allowed now; otherwise take nothing, and return the number of seconds to wait. An
        action that costs more than the burst is allowed when the allowance is full."""
        remaining = self._remaining.get(key, 0.0)
        if cost and remaining >= cost:
            self._remaining[key] = remaining - cost
            return 0.0
        if not cost and key in self._reservation_expiry:
            return 0.0
        try:
            reserved = max(cost, rate.burst // RESERVATION_DIVISOR) if cost else 0
            interval_us = _MICROSECONDS / rate.per_second
            granted, wait_us = await self._link.ask("take", key, interval_us, rate.burst, cost, reserved)
            if int(wait_us):
                return int(wait_us) / _MICROSECONDS
            surplus = float(granted) - cost
            if surplus > 0 or not cost:
                self._remaining[key] = self._remaining.get(key, 0.0) + max(surplus, 0.0)
                self._reservation_expiry.start(key)
            return 0.0
        except Unavailable:
            return await self._local_limiter.take(key, rate, cost)

    def spend(self, key: str, rate: Rate, cost: float) -> None:
        """Take `cost` for an action that has been done already, even beyond the allowance."""
        if not self._spent:
            asyncio.get_running_loop().call_later(SPEND_SECONDS, self._send_spent)
        self._spent[key] = rate, self._spent.get(key, (rate, 0.0))[1] + cost

    def _send_spent(self) -> None:
        spent, self._spent = self._spent, {}
        for key, (rate, cost) in spent.items():
            if self._link.disconnect_reason is None:
                self._link.enqueue("spend", key, _MICROSECONDS / rate.per_second, cost)
            else:
                self._local_limiter.spend(key, rate, cost)

    def _forget(self, key: str) -> None:
        self._remaining.pop(key, None)
