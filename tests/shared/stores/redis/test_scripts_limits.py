"""limits.lua: over all replicas no more is taken of a name than its rate allows."""

import asyncio

import pytest

from tests.redis_server import RedisServer
from tests.shared.stores.redis.scripted import Scripted, scripted

HOUR = 3_600_000_000
"""The interval, in microseconds, of a rate so low that none comes back within a test."""


async def take(one: Scripted, least: float = 1, most: float = 1, *, name: str = "a", interval: float = HOUR) -> float:
    """How many were taken of a burst of 10; where none, minus the microseconds to wait."""
    taken, wait = await one.do("take", name, interval, 10, least, most)
    assert (float(taken) == 0) or (int(wait) == 0)
    return float(taken) or -int(wait)


async def test_replicas_take_of_one_burst_and_no_more(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as replicas:
        taken = [await take(replicas[turn % 2]) for turn in range(12)]
        assert (taken[:10], max(taken[10:]) < 0) == ([1.0] * 10, True)


async def test_what_is_asked_for_at_most_is_given_as_far_as_it_goes(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        assert [round(await take(one, 1, most), 3) for most in (6, 6)] == [6, 4]
        assert await take(one, 0, 0) <= 0


async def test_names_are_apart(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        assert [await take(one, 10, 10, name=name) for name in "ab"] == [10, 10]


async def test_what_is_refused_takes_nothing_and_says_when(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await take(one, 10, 10)
        waits = [-await take(one, cost, cost) for cost in (2, 2, 1)]
        assert [round(wait / HOUR, 2) for wait in waits] == [2, 2, 1]


async def test_what_was_spent_already_counts_beyond_what_is_allowed(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await one.do("spend", "a", HOUR, 25)
        assert round(-await take(two, 1, 1) / HOUR, 2) == 16


async def test_what_costs_more_than_the_burst_waits_for_rest_alone(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        assert await take(one, 20, 20) == 20
        assert round(-await take(one, 20, 20) / HOUR, 2) == 20


async def test_at_the_rate_it_comes_back(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await take(one, 10, 10, interval=2_000)
        async with asyncio.timeout(10):
            while await take(one, 10, 10, interval=2_000) < 0:
                pass


@pytest.mark.parametrize("interval", [1, 0.01, 0.000001])
async def test_a_refusal_is_one_however_fast_the_rate(redis_server: RedisServer, interval: float) -> None:
    async with scripted(redis_server) as (one,):
        for _ in range(50):
            replies = await one.batch(*[("take", "b", interval, 10, 9.5, 9.5)] * 10)
            assert all(float(taken) > 0 or int(wait) > 0 for taken, wait in replies)


async def test_a_name_is_forgotten_when_it_is_at_rest(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await one.batch(("take", "a", 1_000_000, 10, 2, 2), ("spend", "b", 1_000_000, 5))
        assert 1_000 < await one.left("l:a") <= 2_001
        assert 4_000 < await one.left("l:b") <= 5_001
