"""What a limiter in Redis does besides: it takes a part ahead, and counts alone where Redis is away."""

import pytest

from shared.contracts import Rate
from tests.clock import forward
from tests.quiet import quiet
from tests.redis_server import RedisServer
from tests.shared.stores.redis.breaking import fresh, plain, until

WIDE = Rate(per_second=1 / 3_600, burst=640)
NARROW = Rate(per_second=1 / 3_600, burst=5)


def trips(server: RedisServer) -> int:
    """How many scripts it has run."""
    with plain(server) as client:
        said = client.info("commandstats")
    return sum(said.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("eval", "evalsha"))


async def test_of_a_wide_burst_ten_pass_by_one_trip(redis_server: RedisServer) -> None:
    async with fresh(redis_server).join() as one:
        await one.blobs.get("")
        await quiet()
        before = trips(redis_server)
        for _ in range(100):
            assert await one.limiter.take("ada", WIDE) == 0
        assert trips(redis_server) - before <= 12  # and a look into the inbox


async def test_what_was_taken_ahead_is_given_up_after_a_second(redis_server: RedisServer) -> None:
    stores = fresh(redis_server)
    async with stores.join() as one, stores.join() as two:
        assert await one.limiter.take("ada", WIDE) == 0
        while await two.limiter.take("ada", WIDE) == 0:
            pass
        assert [await one.limiter.take("ada", WIDE) for _ in range(8)] == [0.0] * 8
        forward(1.1)
        await quiet()
        assert await one.limiter.take("ada", WIDE) > 0


async def test_one_that_is_lost_counts_alone_and_then_together_again(redis_server: RedisServer) -> None:
    stores = fresh(redis_server)
    async with stores.join() as one, stores.join() as two:
        for _ in range(5):
            await two.limiter.take("ada", NARROW)
        one.link.lose("the test says so")
        assert [await one.limiter.take("ada", NARROW) > 0 for _ in range(6)] == [False] * 5 + [True]
        one.limiter.spend("eve", NARROW, 10)
        forward(0.3)
        await quiet()
        assert await one.limiter.take("eve", NARROW, 0) > 0 or one.reason is None
        await until(lambda: one.reason is None)
        assert await one.limiter.take("ada", NARROW) > 0
        assert await two.limiter.take("bob", NARROW) == 0


@pytest.mark.parametrize("cost", [0.25, 7.5])
async def test_costs_need_not_be_whole(redis_server: RedisServer, cost: float) -> None:
    stores = fresh(redis_server)
    async with stores.join() as one, stores.join() as two:
        allowed = 0.0
        while not (await one.limiter.take("ada", WIDE, cost) and await two.limiter.take("ada", WIDE, cost)):
            allowed += cost
        assert allowed <= WIDE.burst
