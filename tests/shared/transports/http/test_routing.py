"""Which stream of a session each message goes to, without a network."""

import json

import anyio
import pytest

from shared.contracts import SessionRecord, SessionStore
from shared.protocol.http.rules import Refusal
from shared.protocol.session.events import Outgoing
from shared.protocol.session.handshake import NEW
from shared.protocol.wire.jsonrpc import Notification, Request, Response
from shared.stores.memory import Stores
from shared.stores.memory_log import MemoryLog
from shared.transports.http.limits import SessionLimits
from shared.transports.http.streams import Reader, Streams
from tests.shared.transports.http.http_wire import Json


def streams(limits: SessionLimits | None = None, sessions: SessionStore | None = None) -> Streams:
    events = MemoryLog(limits or SessionLimits(stream_bytes=1_000)).session("s")
    return Streams("s", events, sessions or Stores().replica().sessions)


def updated(number: int) -> Outgoing:
    return Outgoing(Notification("notifications/resources/updated", {"uri": f"memo://{number}"}))


async def take(reader: Reader | Refusal | None) -> list[Json]:
    assert isinstance(reader, Reader)
    with anyio.fail_after(30):
        await reader.wait()
        return [json.loads(event.data) for event in reader.stream.take()]


async def test_what_waits_for_a_get_stream_is_bounded_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    one = streams(SessionLimits(replay_events=50))
    for number in (0, 0, *range(51)):
        one.send([updated(number)])
    got = await take(await one.listen())
    assert [message["params"]["uri"] for message in got] == [f"memo://{number + 1}" for number in range(50)]
    assert "dropped" in caplog.text


async def test_a_reader_that_falls_behind_is_waited_for_and_then_cut_off() -> None:
    one = streams()
    reader = await one.listen()
    assert isinstance(reader, Reader)
    for number in range(50):
        one.send(one.send([updated(number)]), patient=False)
    assert reader.is_cut
    one.leave(reader)
    again = await one.listen()
    assert [message["params"]["uri"] for message in await take(again)] == [f"memo://{number}" for number in range(50)]


async def test_questions_move_from_a_lost_post_to_the_get_stream() -> None:
    sessions = Stores().replica().sessions
    await sessions.create(SessionRecord("s", None, "", 60, NEW))
    await sessions.enter("s", None, (1, 2))
    one = streams(sessions=sessions)
    lost, kept = one.post((1,)), one.post((2,))
    one.leave(lost)
    one.send(
        [
            Outgoing(Notification("notifications/progress", {"progress": 1}), 1),
            Outgoing(Request(7, "elicitation/create"), 1),
            Outgoing(Request(8, "elicitation/create"), 2),
            Outgoing(Response(1, {}), 1),
            Outgoing(Notification("notifications/cancelled", {"requestId": 7}), 1),
        ]
    )
    assert [message["id"] for message in await take(kept)] == [8]
    assert [message.get("id", message["method"]) for message in await take(await one.listen())] == [
        7,
        "notifications/cancelled",
    ]
    assert await sessions.owner("s", 1) is None
    assert await sessions.owner("s", 2) == 0


async def test_an_answer_leaves_however_much_waits() -> None:
    one = streams()
    feed = one.post((1,))
    one.send([Outgoing(Notification("notifications/progress", {"message": "x" * 900}), 1)])
    one.send([Outgoing(Response(1, {"text": "x" * 5_000}), 1)])
    assert [message.get("id") for message in await take(feed)] == [None, 1]
