"""The contract of EventLog, in memory and in Redis: one reader across replicas gets the messages in order.
The limits on stored events are tested in tests/shared/transports/http/streamable/test_streams.py"""

from shared.contracts import EventReader, EventStream, Replica, SessionEvents, SessionRecord
from shared.protocol.http.rules import refuse
from shared.protocol.session.handshake import NEW
from shared.transports.http.limits.endpoint_limits import SessionLimits
from tests.shared.stores.conftest import InMemory, Kind, joined, rest

LIMITS = SessionLimits(stream_bytes=1_000, replay_events=10, replay_streams=5, session_replay_bytes=3_000)
ENDED = refuse(404, "the session has ended")


class RecordingReader(EventReader):
    """A reader that records its calls."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def wake(self) -> None:
        self.told.append("wake")

    def pause(self, retry_ms: int) -> None:
        self.told.append(f"pause {retry_ms}")

    def cancel(self) -> None:
        self.told.append("cancel")


async def events(*replicas: Replica) -> list[SessionEvents]:
    """Returns the events of one session at each replica."""
    await replicas[0].sessions.create(SessionRecord("s", None, "", 60, NEW))
    return [one.log(LIMITS).session("s") for one in replicas]


async def found(session: SessionEvents, name: str | None = None) -> EventStream:
    stream = await session.find(name)
    assert stream is not None
    return stream


async def read(stream: EventStream, after: int | None = None) -> RecordingReader:
    """Starts a reader, and waits until the stream is replicated."""
    reader = RecordingReader()
    stream.read(reader, after)
    settled = stream.pending_replication()
    if settled is not None:
        await settled
    return reader


def texts(stream: EventStream) -> list[bytes]:
    return [one.data for one in stream.take()]


class TestEventLog:
    async def test_a_shown_stream_is_read_at_another_replica(self, stores: Kind) -> None:
        async with joined(stores, 2) as replicas:
            here, there = await events(*replicas)
            stream = here.stream((1,))
            await read(stream)
            stream.put(b"a")
            assert [await there.find(name) for name in ("unknown", "")] == [None, None]
            name = stream.show()
            stream.put(b"b")
            assert (waiting := stream.pending_replication()) is None or await waiting is None
            await rest(*replicas)
            other = await found(there, name)
            assert [other.has(number) for number in (0, 2, 3)] == [True, True, False]
            await read(other, 1)
            assert [(one.data, one.id) for one in other.take()] == [(b"b", f"{name}_2")]
            stream.answer(b"c")
            await rest(*replicas)
            assert texts(other) == [b"c"]
            assert other.is_over

    async def test_the_serving_replica_reads_stored_messages(self, stores: Kind) -> None:
        async with joined(stores, 1) as replicas:
            (here,) = await events(*replicas)
            stream = here.stream((1,))
            reader = await read(stream)
            stream.put(b"a")
            name = stream.show()
            await rest(*replicas)
            assert [(one.data, one.id) for one in stream.take()] == [(b"a", f"{name}_1")]
            assert stream.position_event(5).id == f"{name}_1"
            stream.answer(b"b")
            await rest(*replicas)
            assert (stream.is_over, texts(stream), "cancel" in reader.told) == (True, [b"b"], False)

    async def test_the_streams_of_another_session_are_unknown(self, stores: Kind) -> None:
        async with joined(stores, 1) as (here,):
            (session,) = await events(here)
            name = session.stream((1,)).show()
            assert await here.log(LIMITS).session("t").find(name) is None
            assert await session.find(name) is not None

    async def test_a_new_reader_cuts_off_the_former_one(self, stores: Kind) -> None:
        async with joined(stores, 2) as replicas:
            here, there = await events(*replicas)
            stream = here.stream((1,))
            first = await read(stream)
            other = await found(there, stream.show())
            assert other.is_read
            second = await read(other, 0)
            await rest(*replicas)
            stream.leave(first)
            stream.put(b"a")
            stream.pause(5)
            await rest(*replicas)
            assert (first.told[-1], second.told[-2:]) == ("cancel", ["wake", "pause 5"])
            assert not stream.is_lost

    async def test_replicas_share_the_get_stream_of_a_session(self, stores: Kind) -> None:
        async with joined(stores, 2) as replicas:
            here, there = await events(*replicas)
            for one, message in ((here, b"a"), (there, b"b"), (there, b"a")):
                one.session_stream().put(message, once=True)
                await rest(*replicas)
            own = await found(there)
            reader = await read(own)
            assert texts(own) == [b"a", b"b"]
            own.leave(reader)
            here.session_stream().put(b"c")
            await rest(*replicas)
            again = await found(here)
            await read(again)
            assert texts(again) == [b"c"]

    async def test_an_ended_stream_does_not_expire_while_it_is_read(self) -> None:
        async with joined(InMemory(), 1) as replicas:
            (here,) = await events(*replicas)
            stream = here.stream((1,))
            stream.show()
            first = await read(stream)
            stream.put(b"a")
            stream.leave(first)
            stream.answer(b"b")
            await read(stream, 0)
            await InMemory().let_pass(LIMITS.replay_seconds + 1)
            assert texts(stream) == [b"a", b"b"]

    async def test_an_ended_session_gives_its_bytes_back(self) -> None:
        async with joined(InMemory(), 1) as replicas:
            (session,), log = await events(*replicas), replicas[0].log(LIMITS)
            stream = session.stream((1,))
            stream.show()
            stream.put(b"a")
            assert log.stored_bytes
            session.close(ENDED)
            assert not log.stored_bytes

    async def test_a_message_put_by_all_replicas_is_sent_once(self, stores: Kind) -> None:
        async with joined(stores, 2) as replicas:
            here, there = await events(*replicas)
            own = await found(there)
            await read(own)
            for one in (here, there):
                one.session_stream().put(b"changed", everywhere=True)
            await rest(*replicas)
            assert texts(own) == [b"changed"]

    async def test_the_serving_replica_notices_a_slow_reader_at_another(self, stores: Kind) -> None:
        async with joined(stores, 2) as replicas:
            here, there = await events(*replicas)
            stream, message = here.stream((1,)), b"x" * 600
            other = await found(there, stream.show())
            reader = await read(other, 0)
            stream.put(message)
            await rest(*replicas)
            assert stream.exceeds_limit(message)
            taken: list[bool] = []
            stop = here.watch_taken(lambda: taken.append(True))
            other.take()
            there.notify_taken()
            await rest(*replicas)
            stop()
            assert (stream.exceeds_limit(message), bool(taken)) == (False, True)
            for _ in range(5):
                stream.put(message)
                await rest(*replicas)
            assert reader.told[-1] == "cancel"
            assert (await found(there, stream.name)).has_all_after(1)

    async def test_a_stream_knows_which_messages_were_dropped(self, stores: Kind) -> None:
        async with joined(stores, 2) as replicas:
            here, there = await events(*replicas)
            stream = here.stream((1,))
            name = stream.show()
            for _ in range(15):
                stream.put(b"x")
            await rest(*replicas)
            other = await found(there, name)
            assert [other.has_all_after(number) for number in (4, 5)] == [False, True]

    async def test_an_ended_session_stores_no_streams(self, stores: Kind) -> None:
        async with joined(stores, 2) as replicas:
            here, there = await events(*replicas)
            stream = here.stream((1,))
            name = stream.show()
            await rest(*replicas)
            for session, replica in zip((there, here), reversed(replicas), strict=True):
                session.close(ENDED)
                replica.log(LIMITS).drop("s")
            await rest(*replicas)
            assert (stream.is_over, stream.refusal) == (True, ENDED)
            assert await replicas[0].log(LIMITS).session("s").find(name) is None

    async def test_an_ended_stream_without_a_reader_expires(self, stores: Kind) -> None:
        async with joined(stores, 2) as replicas:
            here, _ = await events(*replicas)
            stream = here.stream((1,))
            reader = await read(stream)
            name = stream.show()
            stream.answer(b"a")
            await rest(*replicas)
            stream.take()
            stream.leave(reader)
            await rest(*replicas)
            await stores.let_pass(LIMITS.replay_seconds - 1)
            assert await here.find(name) is not None
            await stores.let_pass(2)
            assert await here.find(name) is None

    async def test_sent_messages_of_the_get_stream_expire(self, stores: Kind) -> None:
        async with joined(stores, 1) as replicas:
            (here,) = await events(*replicas)
            own = here.session_stream()
            own.put(b"a")
            reader = await read(await found(here))
            own.show()
            assert texts(own) == [b"a"]
            own.leave(reader)
            own.put(b"b")
            await rest(*replicas)
            assert (await found(here)).has_all_after(0)
            await stores.let_pass(LIMITS.replay_seconds + 1)
            await rest(*replicas)
            again = await found(here)
            assert [again.has_all_after(number) for number in (0, 1)] == [False, True]

    async def test_a_session_stores_only_the_last_ended_streams(self, stores: Kind) -> None:
        async with joined(stores, 1) as replicas:
            (here,) = await events(*replicas)
            names = []
            for number in range(LIMITS.replay_streams + 2):
                stream = here.stream((number,))
                reader = await read(stream)
                names.append(stream.show())
                stream.answer(b"a")
                await rest(*replicas)
                stream.take()
                stream.leave(reader)
            await rest(*replicas)
            assert [await here.find(name) is not None for name in names] == [False] * 2 + [
                True
            ] * LIMITS.replay_streams

    async def test_streams_of_a_session_share_a_size_limit(self, stores: Kind) -> None:
        async with joined(stores, 1) as replicas:
            (here,) = await events(*replicas)
            streams = [here.stream((number,)) for number in range(4)]
            for stream in streams:
                stream.show()
                stream.put(b"x" * 500)
                stream.put(b"x" * 500)
                here.make_room()
                await rest(*replicas)
            complete = [(await found(here, stream.name)).has_all_after(0) for stream in streams]
            assert complete == [False, False, True, True] or complete == [False, True, True, True]

    async def test_streams_of_an_expired_session_are_unknown(self, stores: Kind) -> None:
        async with joined(stores, 1) as (there,):
            async with stores.join() as here:
                await here.sessions.create(SessionRecord("s", None, "", 60, NEW))
                name = here.log(LIMITS).session("s").stream((1,)).show()
            assert await there.log(LIMITS).session("s").find(name) is not None
            await stores.let_pass(121)
            assert await there.log(LIMITS).session("s").find(name) is None
