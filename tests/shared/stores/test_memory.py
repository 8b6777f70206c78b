"""What the stores in memory keep: nothing of what is over, for they live as long as the server does."""

from weakref import ref

from shared.contracts import SessionRecord
from shared.protocol.http.rules import refuse
from shared.protocol.session.handshake import NEW
from shared.stores.memory import Stores
from shared.stores.memory_log import MemoryEvents, MemoryLog
from shared.transports.http.limits import SessionLimits
from tests.clock import forward
from tests.quiet import quiet

RECORD = SessionRecord("s", None, "", 60, NEW)
LIMITS = SessionLimits()


def kept(log: MemoryLog) -> tuple[int, int]:
    """How many bytes, of how many sessions."""
    return log.used, len(log._sessions)


async def test_a_session_that_nobody_has_leaves_nothing_behind() -> None:
    stores = Stores()
    async with stores.join() as replica:
        await replica.sessions.create(RECORD)
        log = replica.log(LIMITS)
        log.session("s").own().put(b"x")
        assert kept(log)[0] > 0
    assert stores.sessions
    forward(61)
    await quiet()
    assert (kept(log), stores.sessions, stores.orphans) == ((0, 0), {}, {})


async def test_a_session_that_has_ended_leaves_nothing_behind() -> None:
    async with Stores().join() as replica:
        log = replica.log(LIMITS)
        events = log.session("s")
        events.own().put(b"x")
        events.close(refuse(404, "the session has ended"))
        log.drop("s")
        assert kept(log) == (0, 0)


class Traced(MemoryEvents):
    """The streams of a session, of which a weak reference can be had."""


async def test_the_streams_of_a_session_that_has_ended_are_free_at_once() -> None:
    events = Traced(MemoryLog(LIMITS))
    traced = ref(events)
    events.own().put(b"x")
    events.close(refuse(404, "the session has ended"))
    del events
    assert traced() is None  # without the garbage collector


async def test_ids_that_were_left_take_no_room() -> None:
    stores = Stores()
    async with stores.join() as replica:
        await replica.sessions.create(RECORD)
        await replica.sessions.enter("s", None, (1,))
        replica.sessions.leave("s", (1,))
        assert stores.sessions["s"].claims is None
