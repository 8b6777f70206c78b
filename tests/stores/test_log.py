"""What an EventLog promises: the messages of a stream in order, to one reader over all replicas, bounded.

How much is kept, and what goes first, is tested where streams are served: tests/transports/http/test_replay.py.
"""

from shared.contracts import EventReader, Replica, SessionEvents, SessionRecord, Stores
from shared.protocol.http.rules import refuse
from shared.protocol.session.handshake import NEW
from shared.transports.http.limits import SessionLimits
from tests.clock import forward
from tests.quiet import quiet
from tests.stores.conftest import joined

LIMITS = SessionLimits(stream_bytes=1_000, replay_events=10)
ENDED = refuse(404, "the session has ended")


class Heard(EventReader):
    """A reader that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def wake(self) -> None:
        self.told.append("wake")

    def pause(self, retry_ms: int) -> None:
        self.told.append(f"pause {retry_ms}")

    def cut(self) -> None:
        self.told.append("cut")


def events(*replicas: Replica) -> list[SessionEvents]:
    """The same session, as each of them sees it."""
    return [one.log(LIMITS).session("s") for one in replicas]


class TestEventLog:
    async def test_a_stream_that_was_shown_is_read_at_another_replica(self, stores: Stores) -> None:
        async with joined(stores, 2) as replicas:
            here, there = events(*replicas)
            stream = here.stream((1,))
            stream.read(Heard())
            stream.put(b"a")
            assert await there.find("") is None
            name = stream.show()
            stream.put(b"b")
            assert (waiting := stream.settled()) is None or await waiting
            found = await there.find(name)
            assert found is not None
            assert [found.has(number) for number in (0, 2, 3)] == [True, True, False]
            found.read(Heard(), 1)
            assert [(one.data, one.id) for one in found.take()] == [(b"b", f"{name}_2")]
            stream.answer(b"c")
            assert [one.data for one in found.take()] == [b"c"]
            assert found.is_over

    async def test_the_streams_of_another_session_are_unknown(self, stores: Stores) -> None:
        async with joined(stores, 1) as (here,):
            log = here.log(LIMITS)
            name = log.session("s").stream((1,)).show()
            assert await log.session("t").find(name) is None
            assert await log.session("s").find(name) is not None

    async def test_who_begins_to_read_cuts_off_who_did(self, stores: Stores) -> None:
        async with joined(stores, 2) as replicas:
            here, there = events(*replicas)
            first, second = Heard(), Heard()
            stream = here.stream((1,))
            stream.read(first)
            found = await there.find(stream.show())
            assert found is not None
            assert found.is_read
            found.read(second, 0)
            stream.leave(first)
            stream.put(b"a")
            stream.pause(5)
            assert (first.told, second.told) == (["cut"], ["wake", "pause 5"])
            assert not stream.is_lost

    async def test_replicas_have_one_stream_for_what_nobody_asked_for(self, stores: Stores) -> None:
        async with joined(stores, 2) as replicas:
            here, there = events(*replicas)
            here.own().put(b"a", once=True)
            there.own().put(b"b", once=True)
            there.own().put(b"a", once=True)
            own = await there.find()
            assert own is not None
            reader = Heard()
            own.read(reader)
            assert [one.data for one in own.take()] == [b"a", b"b"]
            own.leave(reader)
            here.own().put(b"c")
            again = await here.find()
            assert again is not None
            again.read(Heard())
            assert [one.data for one in again.take()] == [b"c"]

    async def test_who_writes_knows_of_a_reader_elsewhere_that_falls_behind(self, stores: Stores) -> None:
        async with joined(stores, 2) as replicas:
            here, there = events(*replicas)
            stream = here.stream((1,))
            found = await there.find(stream.show())
            assert found is not None
            stream.put(b"x" * 600)
            assert not stream.crowds(b"x" * 600)
            reader = Heard()
            found.read(reader, 0)
            assert stream.crowds(b"x" * 600)
            found.take()
            assert not stream.crowds(b"x" * 600)
            stream.put(b"x" * 600)
            stream.put(b"x" * 600)
            assert "cut" in reader.told

    async def test_what_is_not_kept_any_more_is_known(self, stores: Stores) -> None:
        async with joined(stores, 2) as replicas:
            here, there = events(*replicas)
            stream = here.stream((1,))
            name = stream.show()
            for _ in range(15):
                stream.put(b"x")
            found = await there.find(name)
            assert found is not None
            assert [found.follows(number) for number in (4, 5)] == [False, True]

    async def test_of_a_session_that_has_ended_nothing_is_kept(self, stores: Stores) -> None:
        async with joined(stores, 2) as replicas:
            here, there = events(*replicas)
            stream, reader = here.stream((1,)), Heard()
            name = stream.show()
            stream.read(reader)
            there.close(ENDED)
            replicas[1].log(LIMITS).drop("s")
            assert (stream.is_over, stream.refusal, reader.told) == (True, ENDED, ["wake"])
            assert await events(replicas[0])[0].find(name) is None

    async def test_what_nobody_comes_back_for_is_given_up_in_time(self, stores: Stores) -> None:
        async with joined(stores, 2) as replicas:
            here, there = events(*replicas)
            names = []
            for number in range(2):
                stream, reader = here.stream((number,)), Heard()
                stream.read(reader)
                names.append(stream.show())
                stream.answer(b"a")
                stream.take()
                stream.leave(reader)
            kept = await there.find(names[0])
            assert kept is not None
            kept.read(Heard(), 0)
            forward(LIMITS.replay_seconds + 1)
            await quiet()
            assert [await there.find(name) is None for name in names] == [False, True]
            assert [one.data for one in kept.take()] == [b"a"]

    async def test_the_streams_of_a_session_that_nobody_has_end_with_it(self, stores: Stores) -> None:
        async with joined(stores, 1) as (there,):
            async with stores.join() as here:
                await here.sessions.create(SessionRecord("s", None, "", 60, NEW))
                name = here.log(LIMITS).session("s").stream((1,)).show()
            assert await there.log(LIMITS).session("s").find(name) is not None
            forward(61)
            await quiet()
            assert await there.log(LIMITS).session("s").find(name) is None
