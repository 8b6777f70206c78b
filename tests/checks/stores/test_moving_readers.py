"""A client that comes back to any replica gets every message once and in order, whatever breaks; or it is told that
not all of it is kept, where more was put than is kept."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts import EventReader, EventStream, SessionRecord
from shared.errors import Unavailable
from shared.protocol.session.handshake import NEW
from shared.stores.redis.stores import RedisReplica
from shared.transports.http.limits.endpoint_limits import SessionLimits
from tests.checks.stores.histories import AtWork, Plan, run
from tests.checks.stores.test_linearizable import WRONG, many
from tests.redis_server import RedisServer
from tests.shared.stores.conftest import rest
from tests.shared.stores.redis.breaking import Proxy, plain

KEPT = 5


WIDE, NARROW = SessionLimits(), SessionLimits(replay_events=KEPT)


class Reader(EventReader):
    """Notices that it was cut off."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self.woken = asyncio.Event()

    def wake(self) -> None:
        self.woken.set()

    def pause(self, retry_ms: int) -> None:
        raise AssertionError("nobody pauses")

    def cancel(self) -> None:
        self.is_cancelled = True
        self.woken.set()


class Reading(AtWork):
    """One client, which reads here and there, and replicas that write: the first answers a request, or all of them
    put messages on the session's own stream."""

    limits = WIDE
    is_own = False

    def __init__(self, server: RedisServer, proxy: Proxy, replicas: Sequence[RedisReplica]) -> None:
        super().__init__(server, proxy, replicas)
        self.put: list[bytes] = []
        self.got: list[bytes] = []
        self.is_gone = False
        """Whether the client was told that not everything is kept."""
        self.is_over = False
        self._left: list[tuple[EventStream, Reader]] = []
        self._numbers = [one.number for one in replicas]

    async def prepare(self) -> None:
        first = self.replicas[0]
        await first.sessions.create(SessionRecord("s", None, "", 60, NEW))
        self.stream = self._events(first).session_stream() if self.is_own else self._events(first).stream((7,))
        self.name = "" if self.is_own else self.stream.show()
        await self._settled(self.stream)

    async def act(self, replica: RedisReplica, name: str, *arguments: Any) -> None:
        if name == "put":
            writer = replica if self.is_own else self.replicas[0]
            stream = self._events(replica).session_stream() if self.is_own else self.stream
            message = b"%d %d" % (writer.number, len(self.put))
            if writer.link.is_joined and not stream.is_lost:
                self.put.append(message)
                stream.put(message)
        elif not (self.is_gone or self.is_over):
            at, turns, leaves = arguments
            await self._visit(self.replicas[at], turns, leaves=leaves)

    async def look(self) -> None:
        """All that were lost are dead by now, and those that were not say all that they have to say."""
        with plain(self.server) as client:
            for number in {*self._numbers} - {one.number for one in self.replicas}:
                client.delete(f"{self.replicas[0].link.prefix}replica:{number}")
        if not self.is_own:
            self.stream.answer(b"answer")
        last = self.replicas[-1]
        await last.link.ask("look")
        before = [reader for _, reader in self._left]
        async with asyncio.timeout(20):
            while not (self.is_gone or self.is_over):
                await self._visit(last, 0, leaves=False)
                if self.is_own and await self._has_all(last):
                    break
        if self.is_own and not self.is_gone:
            await rest(*self.replicas)
            assert all(one.is_cancelled for one in before), "one does not know that another has begun"
        self._check()

    def _events(self, replica: RedisReplica) -> Any:
        return replica.log(self.limits).session("s")

    async def _has_all(self, replica: RedisReplica) -> bool:
        stream = await self._events(replica).find()
        return stream is not None and not stream.has(len(self.got) + 1)

    async def _visit(self, replica: RedisReplica, turns: int, *, leaves: bool) -> None:
        """The client comes with the number of the last message that it has got."""
        try:
            stream: EventStream | None = await self._events(replica).find(self.name or None)
            assert stream is not None
            assert stream.has(len(self.got)), "what the client has got is not known"
            if not stream.has_all_after(len(self.got)):
                self.is_gone = True
                return
            reader = Reader()
            stream.read(reader, len(self.got))
            self._left.append((stream, reader))
            await self._settled(stream)
            for _ in range(turns):
                await asyncio.sleep(0)
            await self._take(stream, reader)
        except Unavailable:
            await self.recover()
        if leaves:
            left, self._left = self._left, []
            for stream, reader in left:
                stream.leave(reader)

    async def _take(self, stream: EventStream, reader: Reader) -> None:
        """What there is for it leaves when the others know it."""
        if reader.is_cancelled:
            return
        events, is_over = stream.take(), stream.is_over
        await self._settled(stream)
        if reader.is_cancelled:
            return
        for event in events:
            assert event.id is not None
            assert event.id.endswith(f"_{len(self.got) + 1}"), "a gap, or a message that came before"
            self.got.append(event.data)
        self.is_over = is_over

    async def _settled(self, stream: EventStream) -> None:
        settled = stream.pending_replication()
        if settled is not None:
            await settled

    def _check(self) -> None:
        """The messages of each come in their order; of one that was not lost, all."""
        if self.is_gone:
            assert self.limits is NARROW
            return
        alive = {one.number for one in self.replicas} & {*self._numbers}
        for number in self._numbers:
            put, got = ([one for one in all_ if one.startswith(b"%d " % number)] for all_ in (self.put, self.got))
            assert got == (put if number in alive else put[: len(got)])
        if not self.is_own:
            answered = self.got[-1] == b"answer"
            assert answered if self._numbers[0] in alive else answered or b"-32603" in self.got[-1]


class ReadingOwn(Reading):
    is_own = True


class ReadingLittle(Reading):
    limits = NARROW


class ReadingLittleOwn(ReadingOwn):
    limits = NARROW


KINDS = [Reading, ReadingOwn, ReadingLittle, ReadingLittleOwn]
PUT = st.tuples(st.integers(0, 6), st.just("put"), st.just(()))
VISIT = st.tuples(
    st.integers(0, 30), st.just("visit"), st.tuples(st.integers(0, 2), st.integers(0, 20), st.booleans())
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Who writes, where one reads after the other, and what goes wrong meanwhile."""
    writers = draw(st.lists(st.tuples(st.integers(0, 2), st.lists(PUT, max_size=10)), min_size=1, max_size=3))
    kinds = st.one_of(WRONG, st.just("reply"))
    wrong = draw(st.lists(st.tuples(st.integers(0, 20), kinds, st.tuples(st.integers(0, 2))), max_size=6))
    return [*writers, (0, draw(st.lists(VISIT, max_size=6))), (-1, wrong)]


@pytest.mark.parametrize("kind", KINDS)
@many(25)
@given(plan=plans())
def test_a_client_gets_every_message_once_and_in_order(
    redis_server: RedisServer, kind: type[Reading], plan: Plan
) -> None:
    asyncio.run(run(kind, redis_server, plan))
