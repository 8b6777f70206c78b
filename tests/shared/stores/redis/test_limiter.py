"""The Redis limiter beyond the contract: prefetched permits, and counting alone without Redis; and limits.lua."""

from shared.contracts import Rate
from tests.clock import forward
from tests.quiet import quiet
from tests.redis_server import RedisServer
from tests.shared.stores.redis.breaking import fresh, plain, until
from tests.shared.stores.redis.scripted import Scripted, scripted

WIDE = Rate(per_second=1 / 3_600, burst=640)
NARROW = Rate(per_second=1 / 3_600, burst=5)
HOUR = 3_600_000_000
"""The interval, in microseconds, of a rate so low that none comes back within a test."""


def trips(server: RedisServer) -> int:
    """Returns the number of scripts that a server has run."""
    with plain(server) as client:
        stats = client.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("eval", "evalsha"))


async def test_ten_permits_of_a_wide_burst_take_one_round_trip(redis_server: RedisServer) -> None:
    async with fresh(redis_server).join() as one:
        await one.blobs.get("")
        await quiet()
        before = trips(redis_server)
        for _ in range(100):
            assert await one.limiter.take("ada", WIDE) == 0
        assert trips(redis_server) - before <= 12  # including one read of the inbox


async def test_prefetched_permits_expire_after_a_second(redis_server: RedisServer) -> None:
    stores = fresh(redis_server)
    async with stores.join() as one, stores.join() as two:
        assert await one.limiter.take("ada", WIDE) == 0
        while await two.limiter.take("ada", WIDE) == 0:
            pass
        assert [await one.limiter.take("ada", WIDE) for _ in range(8)] == [0.0] * 8
        forward(1.1)
        await quiet()
        assert await one.limiter.take("ada", WIDE) > 0


async def test_a_lost_replica_counts_alone_until_it_rejoins(redis_server: RedisServer) -> None:
    stores = fresh(redis_server)
    async with stores.join() as one, stores.join() as two:
        for _ in range(5):
            await two.limiter.take("ada", NARROW)
        one.link.give_up_lease("the test says so")
        assert [await one.limiter.take("ada", NARROW) > 0 for _ in range(6)] == [False] * 5 + [True]
        one.limiter.spend("eve", NARROW, 10)
        forward(0.3)
        await quiet()
        assert await one.limiter.take("eve", NARROW, 0) > 0 or one.disconnect_reason is None
        await until(lambda: one.disconnect_reason is None)
        assert await one.limiter.take("ada", NARROW) > 0
        assert await two.limiter.take("bob", NARROW) == 0


# The script


async def take(one: Scripted, least: float = 1, most: float = 1, *, name: str = "a", interval: float = HOUR) -> float:
    """Takes of a burst of 10; returns the count, or minus the microseconds to wait if refused."""
    taken, wait = await one.do("take", name, interval, 10, least, most)
    assert (float(taken) == 0) or (int(wait) == 0)
    return float(taken) or -int(wait)


async def test_take_grants_as_much_as_is_left(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        assert [round(await take(one, 1, most), 3) for most in (6, 6)] == [6, 4]
        assert await take(one, 0, 0) <= 0


async def test_a_refusal_takes_nothing_and_returns_the_wait(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await take(one, 10, 10)
        waits = [-await take(one, cost, cost) for cost in (2, 2, 1)]
        assert [round(wait / HOUR, 2) for wait in waits] == [2, 2, 1]


async def test_a_count_expires_when_its_burst_is_full_again(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await one.batch(("take", "a", 1_000_000, 10, 2, 2), ("spend", "b", 1_000_000, 5))
        assert 1_000 < await one.ttl("l:a") <= 2_001
        assert 4_000 < await one.ttl("l:b") <= 5_001


async def test_every_refusal_has_a_positive_wait(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        for interval in (1, 0.01, 0.000001):
            for _ in range(10):
                replies = await one.batch(*[("take", f"b{interval}", interval, 10, 9.5, 9.5)] * 10)
                assert all(float(taken) > 0 or int(wait) > 0 for taken, wait in replies)
