"""A stream as one replica sees it, where the others do something at the wrong moment, or are out of reach."""

import asyncio
from typing import Any

import pytest

from shared.contracts import SessionRecord
from shared.errors import Unavailable
from shared.protocol.session.handshake import NEW
from shared.stores.redis.scripts import BATCH, JOIN
from shared.stores.redis.stores import RedisReplica
from shared.transports.http.limits import SessionLimits
from shared.transports.http.streams import Reader, Streams
from tests.redis_server import RedisServer
from tests.shared.stores.conftest import rest
from tests.shared.stores.redis.breaking import Watching, fresh, plain, until
from tests.shared.stores.test_log import Heard, found, read, texts

LIMITS = SessionLimits()


class Sudden:
    """Another replica, which acts between two turns of the loop."""

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


async def test_what_was_said_to_the_reader_before_is_nothing_to_this_one(redis_server: RedisServer) -> None:
    async with fresh(redis_server).join() as here:
        session = await create(here)
        stream = session.stream((1,))
        stream.show()
        await rest(here)
        first = await read(stream, 0)
        other, second = Sudden(redis_server, here.link.prefix), Heard()
        other.do("read", "s", stream.name, 0, 0)
        stream.read(second, 0)
        other.do("append", "s", stream.name, 0, "m", "", 1_000, 10, 3_000, 5, 60_000)
        other.do("pause", "s", stream.name, 5)
        other.close()
        await rest(here)
        assert (first.told[-1:], second.told) == (["cut"], ["wake"])
        assert texts(stream) == [b"m"]


async def test_who_comes_back_twice_at_once_is_not_told_that_it_is_too_late(redis_server: RedisServer) -> None:
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
        assert (first.is_cut, second.is_cut, texts(shown)) == (True, False, [b"a"])


async def test_who_comes_back_as_a_replica_is_lost_is_told_to_come_again(redis_server: RedisServer) -> None:
    async with fresh(redis_server).join() as here:
        session = await create(here)
        stream = session.stream((1,))
        event = f"{stream.show()}_0"
        await rest(here)
        resuming = asyncio.ensure_future(Streams("s", session, here.sessions).resume(event))
        while stream.reader is None or stream.is_beginning:
            await asyncio.sleep(0)
        assert not resuming.done(), "the replica is lost too late"
        here.link.lose("the test says so")
        with pytest.raises(Unavailable):
            await resuming


async def test_who_waits_for_what_the_others_know_is_told_that_they_are_out_of_reach(
    redis_server: RedisServer,
) -> None:
    async with fresh(redis_server).join() as here:
        watching, session = Watching(here), await create(here)
        unshown, shown, own = session.stream((1,)), session.stream((2,)), await found(session)
        shown.show()
        own.read(Heard())
        here.link.lose("the test says so")
        unshown.show()
        for stream in (shown, own, unshown):
            waiting = stream.settled()
            assert waiting is not None
            with pytest.raises(Unavailable):
                await waiting
        await until(lambda: len(watching.heard) == 2)


async def test_the_end_of_a_session_here_leaves_it_to_who_has_it_again(redis_server: RedisServer) -> None:
    stores = fresh(redis_server)
    async with stores.join() as here, stores.join() as there:
        before = await create(here)
        again = here.log(LIMITS).session("s")
        before.release()
        stream = await found(again)
        await read(stream)
        there.log(LIMITS).session("s").own().put(b"m")
        await rest(there, here)
        assert texts(stream) == [b"m"]


async def test_what_was_lost_takes_nothing_with_it_of_what_is_here_again(redis_server: RedisServer) -> None:
    stores = fresh(redis_server)
    async with stores.join() as here, stores.join() as there:
        before = await create(here)
        watching = Watching(here)
        here.link.lose("for the test")
        await until(lambda: len(watching.heard) == 2)
        again = here.log(LIMITS).session("s")
        before.release()
        stream = await found(again)
        await read(stream)
        there.log(LIMITS).session("s").own().put(b"m")
        await rest(there, here)
        assert texts(stream) == [b"m"]
