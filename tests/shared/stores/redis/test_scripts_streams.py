"""streams.lua: messages are numbered without a gap, the one reader has got all from where it began, and after the end
comes nothing. What an `EventLog` promises besides is in tests/shared/stores/test_log.py, for every store."""

from typing import Any

import pytest

from tests.redis_server import RedisServer
from tests.shared.stores.redis.scripted import Scripted, scripted

KEPT = 5_000
IDLE = 10_000
LIMITS = (1_000, 10, 3_000)
STREAMS = 3


async def session(*replicas: Scripted, id_: str = "s") -> None:
    """A session that all of them have."""
    await replicas[0].do("create", id_, "record", "", IDLE)
    for one in replicas:
        await one.do("enter", id_, "", "1")


async def show(one: Scripted, name: str = "p", ids: str = "1") -> None:
    assert await one.do("show", "s", name, ids) == 1


async def append(one: Scripted, message: str, name: str = "p", mode: str = "") -> list[int]:
    own = int(name == "own")
    reply: list[int] = await one.do("append", "s", name, own, message, mode, *LIMITS, STREAMS, KEPT)
    return reply


async def read(one: Scripted, after: object = "", name: str = "p") -> list[Any] | None:
    reply: list[Any] | None = await one.do("read", "s", name, int(name == "own"), after)
    return reply


async def find(one: Scripted, name: str = "p") -> list[Any] | None:
    reply: list[Any] | None = await one.do("find", "s", name, int(name == "own"), *LIMITS, KEPT)
    return reply


async def test_messages_are_numbered_in_the_order_in_which_they_come(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await session(one, two)
        await show(one)
        numbers = [(await append(each, "m"))[0] for each in (one, two, one)]
        assert numbers == [1, 2, 3]
        assert await find(two) == [3, 0, b"", 1, b"1"]


async def test_who_adds_hears_that_its_reader_is_here_or_else_how_far_it_is_behind(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await session(one, two)
        await show(one)
        assert await append(one, "abc") == [1, 1, 0]
        assert await read(two, 0) == [0, b"", b"", b"abc"]
        assert await append(one, "de") == [2, 0, 5]
        assert await two.inbox() == [[b"message", b"s", b"p", b"2", b"de"]]
        await two.do("took", "s", "p", 4)
        assert (await one.inbox())[-1] == [b"took", b"s", b"p", b"1"]


async def test_a_reader_cuts_off_the_one_before(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 3) as (one, two, three):
        await session(one, two, three)
        await show(one)
        await read(two, 0)
        assert await one.inbox() == [[b"cut", b"s", b"p"]]
        await read(three, 0)
        assert await two.inbox() == [[b"cut", b"s", b"p"]]
        await two.do("unread", "s", "p", KEPT)
        await append(one, "m")
        assert [await two.inbox(), await three.inbox()] == [[], [[b"message", b"s", b"p", b"1", b"m"]]]


async def test_what_a_dead_reader_has_not_got_waits_for_the_next(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 3) as (one, two, three):
        await session(one, two, three)
        await show(one)
        await read(two, 0)
        await append(one, "a")
        await two.die()
        assert await append(one, "b") == [2, 0, 0]
        assert (await find(three) or [])[3] == 0
        assert await read(three, 0) == [0, b"", b"", b"a", b"b"]


@pytest.mark.parametrize(("after", "messages"), [(0, 3), (2, 1), (3, 0), (4, None), (-1, None)])
async def test_reading_begins_after_a_message_that_there_was(
    redis_server: RedisServer, after: int, messages: int | None
) -> None:
    async with scripted(redis_server) as (one,):
        await session(one)
        await show(one)
        for _ in range(3):
            await append(one, "m")
        reply = await read(one, after)
        assert (None if reply is None else len(reply) - 3) == messages


async def test_what_is_not_kept_can_not_be_read(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await session(one)
        await show(one)
        for _ in range(LIMITS[1] + 2):
            await append(one, "m")
        assert (await find(one) or [])[:2] == [12, 2]
        assert [(await read(one, number)) is not None for number in (1, 2)] == [False, True]


async def test_thousands_of_messages_can_be_read(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await session(one)
        await show(one)
        many = ("append", "s", "p", 0, "m", "", 10**6, 10**6, 10**6, STREAMS, KEPT)
        for _ in range(50):
            await one.batch(*[many] * 200)
        assert len(await read(one, 0) or []) == 3 + 10_000


async def test_the_last_answer_is_kept_whatever_its_size(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await session(one)
        await show(one)
        await append(one, "m")
        await append(one, "x" * 2_000, mode="answer")
        assert await find(one) == [2, 1, b"answered", 1, b"1"]


async def test_after_the_end_nothing_is_added(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await session(one, two)
        for name, end in (("p", ("append", "s", "p", 0, "m", "answer", *LIMITS, STREAMS, KEPT)), ("q", ())):
            await show(one, name)
            await one.do(*(end or ("finish", "s", "q", "[404]", KEPT)))
            assert await append(two, "late", name) == [0, 0, 0]
            assert await two.do("finish", "s", name, "[1]", KEPT) == 0
            assert KEPT - 1_000 < await one.left(f"m:s:{name}") <= KEPT or await one.left(f"e:s:{name}") <= KEPT
        assert (await find(one, "q") or [])[2] == b"ended"


async def test_a_stream_that_was_cancelled_is_gone(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await session(one, two)
        await show(one)
        await read(two, 0)
        await one.do("finish", "s", "p", "", KEPT)
        assert await two.inbox() == [[b"over", b"s", b"p", b"ended"]]
        assert await find(two) is None


async def test_what_a_dead_replica_owes_is_answered_once(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 3) as (one, two, three):
        await session(one, two, three)
        await show(one, ids='1\n"a"')
        await read(two, 0)
        await one.die()
        for each in (three, two):
            await each.do("owe", "s", "p", *LIMITS, KEPT)
        kinds = [[entry[0], *entry[3:4]] for entry in await two.inbox()]
        assert kinds == [[b"message", b"1"], [b"message", b"2"], [b"over", b"answered"]]
        reply = await read(three, 0) or []
        assert [b'"id":1,' in reply[3], b'"id":"a",' in reply[4], reply[1], len(reply)] == [
            True,
            True,
            b"answered",
            5,
        ]


async def test_a_stream_of_a_session_that_is_gone_is_gone(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await session(one, two)
        await show(one)
        await append(one, "m", "own")
        await two.do("delete", "s")
        for name in ("p", "own"):
            assert await append(one, "m", name) == [0, 0, 0]
        assert await one.do("show", "s", "q", "1") == 0
        assert [await read(one, "", "own"), await find(one)] == [None, None]
        assert [await one.left(key) for key in ("s:s", "e:s:p", "m:s:p", "e:s:own", "m:s:own")] == [-2] * 5


async def test_a_session_that_is_dropped_leaves_no_streams(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await session(one)
        await show(one)
        await append(one, "m")
        await append(one, "m", "own")
        await one.batch(("delete", "s"), ("drop", "s"))
        assert [key async for key in one.client.scan_iter(f"{one.prefix}?:s*")] == []


async def test_streams_of_a_session_keep_so_much_together(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await session(one)
        for name in ("p", "q", "r", "t"):
            await show(one, name)
            for _ in range(9):
                await append(one, "x" * 100, name)
        dropped = [(await find(one, name) or [])[1] for name in ("p", "q", "r", "t")]
        assert dropped == [6, 0, 0, 0]


async def test_of_the_streams_that_have_ended_the_last_few_are_kept(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await session(one, two)
        for name in ("live", "read", "a", "b", "c"):
            await show(one, name)
            await read(two, 0, name)
            if name != "read":
                await two.do("unread", "s", name, KEPT)
            if name != "live":
                await append(one, "m", name, "answer")
        assert [name for name in ("live", "read", "a", "b", "c") if await find(one, name)] == ["live", "read", "c"]


async def test_what_nobody_reads_is_not_added_twice(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await session(one, two)
        numbers = [(await append(each, "m", "own", mode))[0] for mode in ("once", "shared") for each in (one, two)]
        assert numbers == [1, 0, 0, 0]
        await read(two, "", "own")
        await two.do("sent", "s", "own", 1)
        numbers = [(await append(each, "m", "own", "shared"))[0] for each in (one, two, two)]
        assert numbers == [0, 2, 3]


async def test_a_reader_of_the_own_stream_goes_on_where_the_last_one_was(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await session(one, two)
        for message in "abc":
            await append(one, message, "own")
        assert len(await read(one, "", "own") or []) == 6
        await one.batch(("sent", "s", "own", 2), ("sent", "s", "own", 1))
        assert await read(two, "", "own") == [2, b"", b"", b"c"]


async def test_what_was_taken_is_forgotten_if_nobody_has_come_since_its_reader_left(
    redis_server: RedisServer,
) -> None:
    async with scripted(redis_server, 3) as (one, two, three):
        await session(one, two, three)
        for message in "abc":
            await append(one, message, "own")

        async def is_forgotten(left: int) -> bool:
            await one.do("forget_sent", "s", "own", left)
            return (await find(one, "own") or [])[:2] == [3, 2]

        await read(two, "", "own")
        await one.do("sent", "s", "own", 2)
        assert await one.do("unread", "s", "own", KEPT) == 0
        assert await two.do("unread", "s", "own", KEPT) == 1
        await read(three, "", "own")
        assert not await is_forgotten(1), "it is read"
        await three.die()
        assert not await is_forgotten(1), "it may be that what was taken did not arrive"
        await read(two, "", "own")
        assert await two.do("unread", "s", "own", KEPT) == 2
        assert not await is_forgotten(1), "somebody else left later"
        assert await is_forgotten(2)


async def test_a_stream_lasts_as_long_as_its_session(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await one.do("renew", IDLE)
        await session(one)
        await show(one)
        await append(one, "m")
        for key in ("e:s:p", "m:s:p", "n:s"):
            await one.client.pexpire(f"{one.prefix}{key}", 1_000)
        await one.do("keep_streams", "s", "p", "s", "unknown")
        for key in ("e:s:p", "m:s:p", "n:s"):
            assert IDLE < await one.left(key) <= 2 * IDLE
