"""The scripts behind every operation: batches take effect once and under a lease (batch_begin.lua, batch_end.lua);
numbers are leased once, and returned by their holder (join.lua, leave.lua); live replicas and their news
(replicas.lua)."""

import secrets
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import OutOfMemoryError, ResponseError

from tests.redis_server import RedisServer
from tests.shared.stores.redis.scripted import Scripted, scripted

PUT = ("put_blob", "a", "1", 60_000)
CLAIM = ("claim", "name", 60_000)


async def test_operations_run_in_order_and_each_is_answered(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        replies = await one.batch(PUT, ("get_blob", "a"), CLAIM, CLAIM, ("look",))
        assert [replies[0], replies[1][0], *replies[2:]] == [1, b"1", 1, 0, None]


async def test_a_repeated_batch_takes_effect_once_and_has_the_same_answer(
    redis_server: RedisServer,
) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await two.do("deliver", one.number, "notice", "s", "m")
        batch = (CLAIM, ("serving_replica", "s", "1"), ("no such operation",), ("renew", 60_000))
        first = await one.send(1, *batch)
        assert first[0] == [[b"notice", b"s", b"m", b"", b""]]
        assert first[1][0] == 1
        assert await one.send(1, *batch) == first
        assert (await one.send(2, CLAIM))[1] == [0]


@pytest.mark.parametrize(
    "wrong",
    [
        ("no such operation",),
        ("watch", "s"),
        ("take", "name", "no number", 1, 1, 1),
        ("enter", "s", "", "", *range(10_000)),
    ],
)
async def test_a_failing_operation_does_not_affect_the_others(
    redis_server: RedisServer, wrong: tuple[object, ...]
) -> None:
    async with scripted(redis_server) as (one,):
        replies = await one.batch(CLAIM, wrong, CLAIM)
        assert [replies[0], replies[1][0], replies[2]] == [1, b"ERROR", 0]


async def test_a_replica_without_its_lease_changes_nothing(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await one.batch(PUT)
        await one.die()
        with pytest.raises(ResponseError, match="LEASE"):
            await one.batch(("put_blob", "a", "2", 60_000))
        assert (await two.do("get_blob", "a"))[0] == b"1"


async def test_a_replica_whose_number_was_leased_again_changes_nothing(redis_server: RedisServer) -> None:
    """Redis was reset to before the first lease, and leased the number again."""
    async with scripted(redis_server, 1) as (one,):
        await one.client.delete(*[f"{one.prefix}{name}" for name in ("numbers", f"replica:{one.number}")])
        again = Scripted(one.client, one.prefix)
        assert await again.join() == one.number
        with pytest.raises(ResponseError, match="LEASE"):
            await one.batch(PUT)
        assert await one.leave() == 0
        assert await again.do("get_blob", "a") is None


async def test_the_first_message_in_an_empty_inbox_wakes_its_replica(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two), one.client.pubsub() as woken:
        await woken.subscribe(f"{one.prefix}wake:{one.number}")
        assert (await woken.get_message(timeout=10))["type"] == "subscribe"
        await two.batch(*[("deliver", one.number, "notice", text) for text in "ab"])
        assert (await woken.get_message(timeout=10))["type"] == "message"
        assert await woken.get_message(timeout=0.0) is None
        assert 0 < await one.ttl(f"inbox:{one.number}") <= 600_000


@pytest.mark.slow
async def test_a_batch_changes_nothing_when_redis_is_out_of_memory(tmp_path: Path) -> None:
    server = RedisServer(tmp_path, "--maxmemory-policy", "noeviction")
    server.start()
    try:
        async with scripted(server, 2) as (one, two):
            await one.batch(PUT, CLAIM)
            await two.do("deliver", one.number, "notice", "s")
            before = await _all(one.client)
            await one.client.config_set("maxmemory", 1)
            for batch in ((PUT, ("delete", "s")), (("renew", 10),), (("put_blob", secrets.token_hex(), "", 1),)):
                with pytest.raises(OutOfMemoryError):
                    await one.send(2, *batch)
            with pytest.raises(OutOfMemoryError):
                await Scripted(one.client, one.prefix).join()
            assert await _all(one.client) == before
            await one.client.config_set("maxmemory", 0)
            entries, replies = await one.send(2, CLAIM)
            assert ([entry[0] for entry in entries], replies) == ([b"notice"], [0])
    finally:
        server.stop()


async def _all(client: Redis) -> dict[bytes, bytes]:
    return {key: await client.dump(key) async for key in client.scan_iter()}


# Leases


async def test_replica_numbers_increase(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await two.leave()
        await one.die()
        later = Scripted(one.client, one.prefix)
        assert [one.number, two.number, await later.join()] == [1, 2, 3]


async def test_replica_numbers_wrap_around_and_skip_leased_ones(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await one.client.set(f"{one.prefix}numbers", 2**20 - 1)
        later = [Scripted(one.client, one.prefix) for _ in range(2)]
        assert [await made.join() for made in later] == [0, 3]
        assert (one.number, two.number) == (1, 2)


async def test_a_lease_expires(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        short = Scripted(one.client, one.prefix)
        await short.join(1_000)
        assert 0 < await one.ttl(f"replica:{short.number}") <= 1_000


async def test_a_joining_replica_has_an_empty_inbox(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await one.do("deliver", two.number, "notice", "old")
        await one.client.delete(f"{one.prefix}numbers")
        await two.die()
        await one.die()
        again = [Scripted(one.client, one.prefix) for _ in range(2)]
        assert [await made.join() for made in again] == [one.number, two.number]
        assert await again[1].inbox() == []


async def test_a_replica_that_left_gets_no_news_and_leaves_no_keys(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await one.do("deliver", two.number, "notice", "s")
        assert await two.leave() == 1
        assert await one.do("deliver", two.number, "notice", "s") == 0
        assert [await one.ttl(f"{kind}:{two.number}") for kind in ("replica", "inbox")] == [-2, -2]
        assert await one.do("renew", 60_000) == [b"2", b"1"]
        assert await two.leave() == 0


async def test_a_renewal_extends_the_lease_and_returns_live_replicas(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 3) as (one, two, three):
        await three.die()
        newest, *alive = await one.do("renew", 90_000)
        assert (newest, sorted(alive)) == (b"3", [b"1", b"2"])
        assert 60_000 < await one.ttl(f"replica:{one.number}") <= 90_000
        assert await one.ttl(f"replica:{two.number}") <= 60_000


async def test_a_dead_replica_is_removed_from_the_list(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await two.die()
        await one.do("renew", 60_000)
        members = await one.client.smembers(f"{one.prefix}replicas")
        assert members == {b"1"}


async def test_a_renewal_survives_the_loss_of_the_last_number(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await one.expire("numbers")
        assert await one.do("renew", 60_000) == [b"0", b"1"]


async def test_news_reach_one_live_replica_and_no_dead_one(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 3) as (one, two, three):
        assert await one.do("deliver", two.number, "notice", "s", "m") == 1
        await three.die()
        assert await one.do("deliver", three.number, "notice", "s", "m") == 0
        assert await two.inbox() == [[b"notice", b"s", b"m"]]
        assert await one.ttl(f"inbox:{three.number}") == -2


async def test_a_change_reaches_all_live_replicas_but_its_sender(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 4) as (one, two, three, four):
        await four.die()
        await one.do("publish", "change", "run", "[]")
        entry = [b"change", b"run", b"[]"]
        assert [await each.inbox() for each in (one, two, three)] == [[], [entry], [entry]]
        assert await one.ttl(f"inbox:{four.number}") == -2
