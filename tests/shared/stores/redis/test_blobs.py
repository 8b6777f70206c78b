"""blobs.lua: data with an expiry, and names claimed once."""

from tests.redis_server import RedisServer
from tests.shared.stores.redis.scripted import scripted

SECOND = 1_000


async def test_data_expire_after_their_time(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await one.do("put_blob", "a", b"\0\xff", 60 * SECOND)
        data, left = await two.do("get_blob", "a")
        assert data == b"\0\xff"
        assert 59 * SECOND < left <= 60 * SECOND
        assert await two.do("get_blob", "b") is None


async def test_a_name_is_claimed_once(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        claims = [await each.do("claim", "a", 60 * SECOND) for each in (one, two, one)]
        assert claims == [1, 0, 0]
        await one.die()
        assert await two.do("claim", "a", 60 * SECOND) == 0
        assert 59 * SECOND < await two.ttl("b:a") <= 60 * SECOND
