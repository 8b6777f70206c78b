"""The limiter: allowed and refused requests, waits, and names that are dropped."""

import asyncio
import time
import tracemalloc

import pytest

from shared.contracts import Rate, Replica
from shared.stores.memory_limiter import CLEANUP_THRESHOLD, MemoryLimiter
from tests.clock import Clock
from tests.shared.stores.conftest import Kind, joined, rest

RATE = Rate(per_second=10, burst=5)
SLOW = Rate(per_second=1 / 3_600, burst=5)
"""One of which none comes back within a test."""
WIDE = Rate(per_second=1 / 3_600, burst=1_000)
"""One of whose burst a part may be taken ahead."""


def limiter() -> tuple[MemoryLimiter, Clock]:
    clock = Clock(1_000.0)
    return MemoryLimiter(clock), clock


async def test_a_burst_is_allowed_before_the_rate_applies() -> None:
    made, clock = limiter()
    assert [await made.take("ada", RATE) for _ in range(5)] == [0.0] * 5
    assert round(await made.take("ada", RATE), 6) == 0.1
    clock.now += 0.1
    assert await made.take("ada", RATE) == 0.0
    assert round(await made.take("ada", RATE), 6) == 0.1


async def test_a_refusal_takes_nothing() -> None:
    made, clock = limiter()
    for _ in range(100):
        await made.take("ada", RATE)
    clock.now += 0.1
    assert await made.take("ada", RATE) == 0.0


async def test_a_long_rest_allows_one_burst_only() -> None:
    made, clock = limiter()
    clock.now += 1_000_000
    assert [await made.take("ada", RATE) > 0 for _ in range(7)] == [False] * 5 + [True] * 2


async def test_costs_add_up() -> None:
    made, _ = limiter()
    assert await made.take("ada", RATE, 4) == 0.0
    assert await made.take("ada", RATE, 2) > 0
    assert await made.take("ada", RATE, 1) == 0.0


async def test_names_with_a_full_burst_are_dropped() -> None:
    made, clock = limiter()
    for number in range(CLEANUP_THRESHOLD - 1):
        await made.take(str(number), RATE)
    clock.now += 1
    await made.take("ada", RATE)
    assert len(made) == 1


async def test_a_name_in_use_is_not_dropped_among_many() -> None:
    made, _ = limiter()
    for _ in range(5):
        await made.take("ada", RATE)
    for number in range(10 * CLEANUP_THRESHOLD):
        await made.take(str(number), RATE)
    assert await made.take("ada", RATE) > 0


async def test_many_names_take_little_memory() -> None:
    made, _ = limiter()
    tracemalloc.start()
    for number in range(2_000):
        await made.take(f"https://issuer.example/#person-{number}", RATE)
        made.spend(f"bytes https://issuer.example/#person-{number}", RATE, 1_000)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken < 2_000 * 630


async def taken(replicas: list[Replica], rate: Rate, cost: float = 1, *, times: int = 2_000) -> float:
    """Takes from the replicas in turn until each has refused; returns the sum of allowed costs."""
    allowed, refused = 0.0, set()
    for turn in range(times):
        one = replicas[turn % len(replicas)]
        if await one.limiter.take("ada", rate, cost):
            refused.add(one.number)
        else:
            allowed += cost
        if len(refused) == len(replicas):
            break
    return allowed


class TestLimiter:
    """The contract of every limiter, across replicas."""

    async def test_replicas_share_a_count(self, stores: Kind) -> None:
        async with joined(stores, 2) as replicas:
            assert await taken(replicas, SLOW) == 5
            assert round(await replicas[0].limiter.take("ada", SLOW), -1) == 3_600
            assert await replicas[0].limiter.take("bob", SLOW) == 0

    @pytest.mark.parametrize("cost", [0.5, 1, 3])
    async def test_replicas_together_allow_one_burst(self, stores: Kind, cost: float) -> None:
        async with joined(stores, 2) as replicas:
            allowed = await taken(replicas, WIDE, cost, times=5_000)
            assert WIDE.burst - 2 * (WIDE.burst // 64 + cost) <= allowed <= WIDE.burst

    async def test_a_cost_over_the_burst_is_allowed_after_rest(self, stores: Kind) -> None:
        async with joined(stores, 2) as (one, two):
            assert await one.limiter.take("ada", SLOW, 20) == 0
            assert round(await two.limiter.take("ada", SLOW, 20) / 3_600) == 20

    async def test_spending_at_one_replica_counts_at_the_others(self, stores: Kind) -> None:
        async with joined(stores, 2) as (one, two):
            for _ in range(25):
                one.limiter.spend("ada", SLOW, 1)
            await stores.let_pass(1)
            await rest(one, two)
            assert round(await two.limiter.take("ada", SLOW, 0) / 3_600) == 20

    async def test_the_rate_applies_to_all_replicas_together(self, stores: Kind) -> None:
        fast, allowed = Rate(per_second=1_000, burst=64), 0
        async with joined(stores, 2) as replicas, asyncio.timeout(30):
            start = time.monotonic()
            while allowed < 100:
                for one in replicas:
                    allowed += not await one.limiter.take("ada", fast)
            assert allowed <= 64 + 1_000 * (time.monotonic() - start)
