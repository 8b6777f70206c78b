"""join.lua and leave.lua: numbers are leased once, and are given back by whoever has them."""

from tests.redis_server import RedisServer
from tests.shared.stores.redis.scripted import Scripted, scripted


async def test_numbers_go_up(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await two.leave()
        await one.die()
        later = Scripted(one.client, one.prefix)
        assert [one.number, two.number, await later.join()] == [1, 2, 3]


async def test_after_a_million_numbers_begin_again_but_for_those_that_are_leased(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await one.client.set(f"{one.prefix}numbers", 2**20 - 1)
        later = [Scripted(one.client, one.prefix) for _ in range(2)]
        assert [await made.join() for made in later] == [0, 3]
        assert (one.number, two.number) == (1, 2)


async def test_a_lease_has_an_end(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        short = Scripted(one.client, one.prefix)
        await short.join(1_000)
        assert 0 < await one.left(f"replica:{short.number}") <= 1_000


async def test_who_joins_finds_an_empty_inbox(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await one.do("deliver", two.number, "news", "old")
        await one.client.delete(f"{one.prefix}numbers")
        await two.die()
        await one.die()
        again = [Scripted(one.client, one.prefix) for _ in range(2)]
        assert [await made.join() for made in again] == [one.number, two.number]
        assert await again[1].inbox() == []


async def test_who_has_left_is_told_nothing_and_leaves_nothing_behind(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await one.do("deliver", two.number, "news", "s")
        assert await two.leave() == 1
        assert await one.do("deliver", two.number, "news", "s") == 0
        assert [await one.left(f"{kind}:{two.number}") for kind in ("replica", "inbox")] == [-2, -2]
        assert await one.do("renew", 60_000) == [b"2", b"1"]
        assert await two.leave() == 0
