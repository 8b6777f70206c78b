"""batch_begin.lua and batch_end.lua: a batch takes effect once, and only that of a replica that has its lease."""

import secrets
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import OutOfMemoryError, ResponseError

from tests.redis_server import RedisServer
from tests.shared.stores.redis.scripted import Scripted, scripted

PUT = ("put_blob", "a", "1", 60_000)
CLAIM = ("claim", "name", 60_000)


async def test_operations_are_done_in_order_and_each_is_answered(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        replies = await one.batch(PUT, ("get_blob", "a"), CLAIM, CLAIM, ("look",))
        assert [replies[0], replies[1][0], *replies[2:]] == [1, b"1", 1, 0, None]


async def test_a_batch_that_is_sent_again_takes_effect_once_and_is_answered_the_same(
    redis_server: RedisServer,
) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await two.do("deliver", one.number, "news", "s", "m")
        batch = (CLAIM, ("owner", "s", "1"), ("no such operation",), ("renew", 60_000))
        first = await one.send(1, *batch)
        assert first[0] == [[b"news", b"s", b"m", b"", b""]]
        assert first[1][0] == 1
        assert await one.send(1, *batch) == first
        assert (await one.send(2, CLAIM))[1] == [0]


async def test_a_batch_that_comes_late_changes_nothing(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await one.send(1, ("look",))
        await one.send(2, PUT)
        with pytest.raises(ResponseError, match="LATE"):
            await one.send(1, ("put_blob", "a", "0", 60_000))
        assert (await one.send(3, ("get_blob", "a")))[1][0][0] == b"1"


@pytest.mark.parametrize(
    "wrong",
    [
        ("no such operation",),
        ("watch", "s"),
        ("take", "name", "no number", 1, 1, 1),
        ("enter", "s", "", "", *range(10_000)),
    ],
)
async def test_an_operation_that_fails_leaves_the_others_alone(
    redis_server: RedisServer, wrong: tuple[object, ...]
) -> None:
    async with scripted(redis_server) as (one,):
        replies = await one.batch(CLAIM, wrong, CLAIM)
        assert [replies[0], replies[1][0], replies[2]] == [1, b"ERROR", 0]


async def test_a_replica_that_has_lost_its_lease_changes_nothing(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await one.batch(PUT)
        await one.die()
        with pytest.raises(ResponseError, match="LEASE"):
            await one.batch(("put_blob", "a", "2", 60_000))
        assert (await two.do("get_blob", "a"))[0] == b"1"


async def test_a_number_of_another_lease_changes_nothing(redis_server: RedisServer) -> None:
    """Redis was set back to before the first lease, and leased the number again."""
    async with scripted(redis_server, 1) as (one,):
        await one.client.delete(*[f"{one.prefix}{name}" for name in ("numbers", f"replica:{one.number}")])
        again = Scripted(one.client, one.prefix)
        assert await again.join() == one.number
        with pytest.raises(ResponseError, match="LEASE"):
            await one.batch(PUT)
        assert await one.leave() == 0
        assert await again.do("get_blob", "a") is None


async def test_what_is_in_the_inbox_comes_once_and_in_order(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        for text in "abc":
            assert await two.do("deliver", one.number, "news", text) == 1
        assert [entry[1] for entry in await one.inbox()] == [b"a", b"b", b"c"]
        assert await one.inbox() == []


async def test_who_has_nothing_in_the_inbox_is_woken_by_the_first(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two), one.client.pubsub() as woken:
        await woken.subscribe(f"{one.prefix}wake:{one.number}")
        assert (await woken.get_message(timeout=10))["type"] == "subscribe"
        await two.batch(*[("deliver", one.number, "news", text) for text in "ab"])
        assert (await woken.get_message(timeout=10))["type"] == "message"
        assert await woken.get_message(timeout=0.0) is None
        assert 0 < await one.left(f"inbox:{one.number}") <= 600_000


@pytest.mark.slow
async def test_where_memory_is_short_nothing_changes_at_all(tmp_path: Path) -> None:
    server = RedisServer(tmp_path, "--maxmemory-policy", "noeviction")
    server.start()
    try:
        async with scripted(server, 2) as (one, two):
            await one.batch(PUT, CLAIM)
            await two.do("deliver", one.number, "news", "s")
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
            assert ([entry[0] for entry in entries], replies) == ([b"news"], [0])
    finally:
        server.stop()


async def _all(client: Redis) -> dict[bytes, bytes]:
    return {key: await client.dump(key) async for key in client.scan_iter()}
