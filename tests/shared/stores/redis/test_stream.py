"""Streams in Redis while other replicas interfere or are unreachable; and streams.lua: one reader gets all messages
from its start, and an ended stream gets none. The contract of every `EventLog` is tested in
tests/shared/stores/test_memory_log.py."""

import asyncio
from typing import Any

import pytest

from shared.contracts import SessionRecord
from shared.errors import Unavailable
from shared.protocol.session.handshake import NEW
from shared.stores.redis.scripts import BATCH, JOIN
from shared.stores.redis.stores import RedisReplica
from shared.transports.http.limits.endpoint_limits import SessionLimits
from shared.transports.http.streamable.streams import Reader, Streams
from tests.redis_server import RedisServer
from tests.shared.stores.conftest import rest
from tests.shared.stores.redis.breaking import Watching, fresh, plain, until
from tests.shared.stores.redis.scripted import Scripted, scripted
from tests.shared.stores.test_memory_log import RecordingReader, found, read, texts

LIMITS = SessionLimits()
KEPT = 5_000
IDLE = 10_000
BOUNDS = (1_000, 10, 3_000)
STREAMS = 3


class Sudden:
    """Another replica, which acts between two turns of the event loop."""

    def __init__(self, server: RedisServer, prefix: str) -> None:
        self._client = plain(server)
        self._prefix = prefix
        self._number = self._client.eval(JOIN, 0, prefix, 60_000, "token")
        self._batch = 0

    def do(self, name: str, *arguments: Any) -> Any:
        self._batch += 1
        head = (self._prefix, self._number, "token", self._batch)
        return self._client.eval(BATCH, 0, *head, name, len(arguments), *arguments)[1][0]

    def close(self) -> None:
        self._client.close()


async def create(replica: RedisReplica) -> Any:
    await replica.sessions.create(SessionRecord("s", None, "", 60, NEW))
    return replica.log(LIMITS).session("s")


async def test_news_for_a_former_reader_are_ignored_by_the_next(redis_server: RedisServer) -> None:
    async with fresh(redis_server).join() as here:
        session = await create(here)
        stream = session.stream((1,))
        stream.show()
        await rest(here)
        first = await read(stream, 0)
        other, second = Sudden(redis_server, here.link.prefix), RecordingReader()
        other.do("read", "s", stream.name, 0, 0)
        stream.read(second, 0)
        other.do("append", "s", stream.name, 0, "m", "", 1_000, 10, 3_000, 5, 60_000)
        other.do("pause", "s", stream.name, 5)
        other.close()
        await rest(here)
        assert (first.told[-1:], second.told) == (["cancel"], ["wake"])
        assert texts(stream) == [b"m"]


async def test_two_concurrent_resumes_do_not_expire_the_event(redis_server: RedisServer) -> None:
    async with fresh(redis_server).join() as here:
        session = await create(here)
        shown = session.stream((1,))
        shown.put(b"a")
        event = f"{shown.show()}_0"
        await rest(here)
        streams = Streams("s", session, here.sessions)
        first, second = await asyncio.gather(streams.resume(event), streams.resume(event))
        assert isinstance(first, Reader)
        assert isinstance(second, Reader)
        assert (first.is_cancelled, second.is_cancelled, texts(shown)) == (True, False, [b"a"])


async def test_a_resume_while_the_replica_is_lost_is_to_be_retried(redis_server: RedisServer) -> None:
    async with fresh(redis_server).join() as here:
        session = await create(here)
        stream = session.stream((1,))
        event = f"{stream.show()}_0"
        await rest(here)
        resuming = asyncio.ensure_future(Streams("s", session, here.sessions).resume(event))
        while stream.reader is None or stream.is_beginning:
            await asyncio.sleep(0)
        assert not resuming.done(), "the replica is lost too late"
        here.link.give_up_lease("the test says so")
        with pytest.raises(Unavailable):
            await resuming


async def test_pending_replication_raises_unavailable_when_the_replica_is_lost(
    redis_server: RedisServer,
) -> None:
    async with fresh(redis_server).join() as here:
        watching, session = Watching(here), await create(here)
        unshown, shown, own = session.stream((1,)), session.stream((2,)), await found(session)
        shown.show()
        own.read(RecordingReader())
        here.link.give_up_lease("the test says so")
        unshown.show()
        for stream in (shown, own, unshown):
            waiting = stream.pending_replication()
            assert waiting is not None
            with pytest.raises(Unavailable):
                await waiting
        await until(lambda: len(watching.heard) == 2)


async def test_releasing_a_former_copy_keeps_the_streams_of_a_reopened_session(redis_server: RedisServer) -> None:
    stores = fresh(redis_server)
    async with stores.join() as here, stores.join() as there:
        before = await create(here)
        again = here.log(LIMITS).session("s")
        before.release()
        stream = await found(again)
        await read(stream)
        there.log(LIMITS).session("s").session_stream().put(b"m")
        await rest(there, here)
        assert texts(stream) == [b"m"]
        again.release()
        assert here.log(LIMITS).session("s") is not again


async def test_a_lost_copy_does_not_affect_a_reopened_session(redis_server: RedisServer) -> None:
    stores = fresh(redis_server)
    async with stores.join() as here, stores.join() as there:
        before = await create(here)
        watching = Watching(here)
        here.link.give_up_lease("for the test")
        await until(lambda: len(watching.heard) == 2)
        again = here.log(LIMITS).session("s")
        before.release()
        stream = await found(again)
        await read(stream)
        there.log(LIMITS).session("s").session_stream().put(b"m")
        await rest(there, here)
        assert texts(stream) == [b"m"]


# The script


async def opened(*replicas: Scripted, id_: str = "s") -> None:
    """Opens a session at all replicas."""
    await replicas[0].do("create", id_, "record", "", IDLE)
    for one in replicas:
        await one.do("enter", id_, "", "1")


async def show(one: Scripted, name: str = "p", ids: str = "1") -> None:
    assert await one.do("show", "s", name, ids) == 1


async def append(one: Scripted, message: str, name: str = "p", mode: str = "") -> list[int]:
    own = int(name == "own")
    reply: list[int] = await one.do("append", "s", name, own, message, mode, *BOUNDS, STREAMS, KEPT)
    return reply


async def reading(one: Scripted, after: object = "", name: str = "p") -> list[Any] | None:
    reply: list[Any] | None = await one.do("read", "s", name, int(name == "own"), after)
    return reply


async def find(one: Scripted, name: str = "p") -> list[Any] | None:
    reply: list[Any] | None = await one.do("find", "s", name, int(name == "own"), *BOUNDS, KEPT)
    return reply


async def test_append_returns_how_far_the_reader_is_behind(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await opened(one, two)
        await show(one)
        assert await append(one, "abc") == [1, 1, 0]
        assert await reading(two, 0) == [0, b"", b"", b"abc"]
        assert await append(one, "de") == [2, 0, 5]
        assert await two.inbox() == [[b"message", b"s", b"p", b"2", b"de"]]
        await two.do("took", "s", "p", 4)
        assert (await one.inbox())[-1] == [b"took", b"s", b"p", b"1"]


async def test_messages_unread_by_a_dead_reader_wait_for_the_next(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 3) as (one, two, three):
        await opened(one, two, three)
        await show(one)
        await reading(two, 0)
        await append(one, "a")
        await two.die()
        assert await append(one, "b") == [2, 0, 0]
        assert (await find(three) or [])[3] == 0
        assert await reading(three, 0) == [0, b"", b"", b"a", b"b"]


@pytest.mark.slow
async def test_thousands_of_messages_can_be_read(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await opened(one)
        await show(one)
        many = ("append", "s", "p", 0, "m", "", 10**6, 10**6, 10**6, STREAMS, KEPT)
        for _ in range(50):
            await one.batch(*[many] * 200)
        assert len(await reading(one, 0) or []) == 3 + 10_000


async def test_the_last_answer_is_stored_whatever_its_size(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await opened(one)
        await show(one)
        await append(one, "m")
        await append(one, "x" * 2_000, mode="answer")
        assert await find(one) == [2, 1, b"answered", 1, b"1"]


async def test_an_ended_stream_accepts_no_messages(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await opened(one, two)
        for name, end in (("p", ("append", "s", "p", 0, "m", "answer", *BOUNDS, STREAMS, KEPT)), ("q", ())):
            await show(one, name)
            await one.do(*(end or ("finish", "s", "q", "[404]", KEPT)))
            assert await append(two, "late", name) == [0, 0, 0]
            assert await two.do("finish", "s", name, "[1]", KEPT) == 0
            assert KEPT - 1_000 < await one.ttl(f"m:s:{name}") <= KEPT or await one.ttl(f"e:s:{name}") <= KEPT
        assert (await find(one, "q") or [])[2] == b"ended"


async def test_a_cancelled_stream_is_unknown(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await opened(one, two)
        await show(one)
        await reading(two, 0)
        await one.do("finish", "s", "p", "", KEPT)
        assert await two.inbox() == [[b"over", b"s", b"p", b"ended"]]
        assert await find(two) is None


async def test_requests_of_a_dead_replica_are_answered_once(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 3) as (one, two, three):
        await opened(one, two, three)
        await show(one, ids='1\n"a"')
        await reading(two, 0)
        await one.die()
        for each in (three, two):
            await each.do("answer_for_dead", "s", "p", *BOUNDS, KEPT)
        kinds = [[entry[0], *entry[3:4]] for entry in await two.inbox()]
        assert kinds == [[b"message", b"1"], [b"message", b"2"], [b"over", b"answered"]]
        reply = await reading(three, 0) or []
        assert [b'"id":1,' in reply[3], b'"id":"a",' in reply[4], reply[1], len(reply)] == [
            True,
            True,
            b"answered",
            5,
        ]


async def test_streams_of_a_deleted_session_are_unknown(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await opened(one, two)
        await show(one)
        await append(one, "m", "own")
        await two.do("delete", "s")
        for name in ("p", "own"):
            assert await append(one, "m", name) == [0, 0, 0]
        assert await one.do("show", "s", "q", "1") == 0
        assert [await reading(one, "", "own"), await find(one)] == [None, None]
        assert [await one.ttl(key) for key in ("s:s", "e:s:p", "m:s:p", "e:s:own", "m:s:own")] == [-2] * 5


async def test_a_dropped_session_leaves_no_keys(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await opened(one)
        await show(one)
        await append(one, "m")
        await append(one, "m", "own")
        await one.batch(("delete", "s"), ("drop", "s"))
        assert [key async for key in one.client.scan_iter(f"{one.prefix}?:s*")] == []


async def test_only_the_last_ended_streams_are_stored(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await opened(one, two)
        for name in ("live", "read", "a", "b", "c"):
            await show(one, name)
            await reading(two, 0, name)
            if name != "read":
                await two.do("unread", "s", name, KEPT)
            if name != "live":
                await append(one, "m", name, "answer")
        assert [name for name in ("live", "read", "a", "b", "c") if await find(one, name)] == ["live", "read", "c"]


async def test_sent_messages_are_dropped_unless_a_reader_has_returned(
    redis_server: RedisServer,
) -> None:
    async with scripted(redis_server, 3) as (one, two, three):
        await opened(one, two, three)
        for message in "abc":
            await append(one, message, "own")

        async def is_forgotten(left: int) -> bool:
            await one.do("forget_sent", "s", "own", left)
            return (await find(one, "own") or [])[:2] == [3, 2]

        await reading(two, "", "own")
        await one.do("sent", "s", "own", 2)
        assert await one.do("unread", "s", "own", KEPT) == 0
        assert await two.do("unread", "s", "own", KEPT) == 1
        await reading(three, "", "own")
        assert not await is_forgotten(1), "it is read"
        await three.die()
        assert not await is_forgotten(1), "it may be that what was taken did not arrive"
        await reading(two, "", "own")
        assert await two.do("unread", "s", "own", KEPT) == 2
        assert not await is_forgotten(1), "somebody else left later"
        assert await is_forgotten(2)


async def test_a_stream_lives_as_long_as_its_session(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await one.do("renew", IDLE)
        await opened(one)
        await show(one)
        await append(one, "m")
        for key in ("e:s:p", "m:s:p", "n:s"):
            await one.client.pexpire(f"{one.prefix}{key}", 1_000)
        await one.do("keep_streams", "s", "p", "s", "unknown")
        for key in ("e:s:p", "m:s:p", "n:s"):
            assert IDLE < await one.ttl(key) <= 2 * IDLE


async def test_reading_begins_only_after_an_existing_message(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await opened(one)
        await show(one)
        for _ in range(3):
            await append(one, "m")
        replies = [await reading(one, after) for after in (0, 2, 3, 4, -1)]
        assert [reply and len(reply) - 3 for reply in replies] == [3, 1, 0, None, None]
