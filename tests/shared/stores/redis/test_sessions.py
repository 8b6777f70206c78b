"""sessions.lua: claims of ids, watched resources, compare-and-set of records, and expiry. The contract of every
`SessionStore` is tested in tests/shared/stores/test_memory.py."""

from tests.redis_server import RedisServer
from tests.shared.stores.redis.scripted import Scripted, scripted

IDLE = 10_000


async def create(one: Scripted, id_: str = "s", owner: str = "=ada") -> None:
    assert await one.do("create", id_, "record", owner, IDLE) == 1


async def test_enter_returns_the_record_only_if_it_is_unknown(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await create(one)
        assert await two.do("enter", "s", "=ada", "") == [b"1", b"record", 1]
        assert await two.do("enter", "s", "=ada", "1") == [b"1", None, 1]


async def test_claims_of_a_dead_replica_are_free(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await create(one)
        await one.do("enter", "s", "=ada", "1", "1")
        await one.die()
        assert await two.do("serving_replica", "s", "1") is None
        assert (await two.do("enter", "s", "=ada", "1", "1"))[2] == 1
        assert await two.do("serving_replica", "s", "1") == b"2"


async def test_a_replica_releases_only_its_own_claims(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await create(one)
        await one.do("enter", "s", "=ada", "1", "1", "2")
        await two.do("leave", "s", "1")
        await one.do("leave", "s", "2", "3")
        assert await one.batch(("serving_replica", "s", "1"), ("serving_replica", "s", "2")) == [b"1", None]


async def test_a_session_key_lives_twice_the_idle_time(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await create(one)
        for operation in (("enter", "s", "=ada", ""), ("keep", "t", "s")):
            await one.client.pexpire(f"{one.prefix}s:s", IDLE // 2)
            await one.batch(("renew", IDLE), operation)
            assert IDLE < await one.ttl("s:s") <= 2 * IDLE
        await one.do("release", "s")
        assert IDLE // 2 < await one.ttl("s:s") <= IDLE


async def test_a_session_expires_when_all_live_replicas_with_it_agree(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 3) as (one, two, three):
        await create(one)
        for each in (two, three):
            await each.do("enter", "s", "=ada", "")
        assert await one.do("lapse", "s", 1) == 0
        await three.die()
        assert await two.do("lapse", "s", 0) == 1
        assert await one.inbox() == [[b"ended", b"s"]]
        assert await one.ttl("s:s") == -2
        assert await one.do("lapse", "s", 1) == 1


async def test_no_operation_restores_an_ended_session(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await create(one)
        await two.do("enter", "s", "=ada", "")
        await one.do("delete", "s")
        assert await two.inbox() == [[b"ended", b"s"]]
        await two.batch(
            *(("enter", "s", "=ada", "", "1"), ("leave", "s", "1"), ("update", "s", "1", "x"), ("adopt", "s")),
            *(("watch", "s", "u", 1), ("lapse", "s", 0), ("release", "s"), ("keep", "s"), ("delete", "s")),
        )
        assert await two.ttl("s:s") == -2


async def test_a_session_lives_at_least_as_long_as_the_lease_of_its_replica(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        assert await one.do("create", "s", "record", "", 10) == 1
        assert await one.ttl("s:s") > 20_000
        await one.do("renew", 120_000)
        await one.do("keep", "s")
        assert await one.ttl("s:s") > 60_000
        await one.do("release", "s")
        assert await one.ttl("s:s") <= 10
