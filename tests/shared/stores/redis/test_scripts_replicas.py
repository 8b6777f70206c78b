"""replicas.lua: leases, who there is, and what one tells others."""

from tests.redis_server import RedisServer
from tests.shared.stores.redis.scripted import scripted


async def test_a_renewal_lengthens_the_lease_and_says_who_there_is(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 3) as (one, two, three):
        await three.die()
        newest, *alive = await one.do("renew", 90_000)
        assert (newest, sorted(alive)) == (b"3", [b"1", b"2"])
        assert 60_000 < await one.left(f"replica:{one.number}") <= 90_000
        assert await one.left(f"replica:{two.number}") <= 60_000


async def test_who_is_gone_is_forgotten(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await two.die()
        await one.do("renew", 60_000)
        members = await one.client.smembers(f"{one.prefix}replicas")
        assert members == {b"1"}


async def test_redis_that_forgets_the_last_number_is_endured(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await one.expire("numbers")
        assert await one.do("renew", 60_000) == [b"0", b"1"]


async def test_news_reach_one_replica_and_a_dead_one_gets_none(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 3) as (one, two, three):
        assert await one.do("deliver", two.number, "news", "s", "m") == 1
        await three.die()
        assert await one.do("deliver", three.number, "news", "s", "m") == 0
        assert await two.inbox() == [[b"news", b"s", b"m"]]
        assert await one.left(f"inbox:{three.number}") == -2


async def test_a_change_reaches_all_that_are_alive_but_for_the_teller(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 4) as (one, two, three, four):
        await four.die()
        await one.do("publish", "change", "run", "[]")
        told = [b"change", b"run", b"[]"]
        assert [await each.inbox() for each in (one, two, three)] == [[], [told], [told]]
        assert await one.left(f"inbox:{four.number}") == -2


async def test_a_look_changes_nothing(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        assert await one.do("look") is None
