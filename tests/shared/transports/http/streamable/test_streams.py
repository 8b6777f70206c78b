"""The streams of a session: resumption, early ends of responses, stored events, and the stream of each message."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx
import pytest

from shared.contracts import SessionRecord, SessionStore
from shared.errors import Unavailable
from shared.protocol.http.rules import Refusal, refuse
from shared.protocol.session.events import Outgoing
from shared.protocol.session.handshake import NEW
from shared.protocol.session.questions import list_roots
from shared.protocol.wire.codec import decode
from shared.protocol.wire.framing import ServerSentEvent
from shared.protocol.wire.jsonrpc import Notification, Request, Response
from shared.server.dispatch.context import Context
from shared.server.dispatch.room import LARGE_RESULT_BYTES, Room
from shared.server.server import Server
from shared.stores.memory import Stores
from shared.stores.memory_log import MemoryLog, MemoryStream
from shared.transports.http.limits.endpoint_limits import EndpointLimits, SessionLimits
from shared.transports.http.streamable.streams import Reader, Streams
from tests.shared.transports.http.http_wire import (
    Json,
    Probe,
    Site,
    first_events,
    make_server,
    merged,
    read_events,
    served,
)

EVENT_ID = re.compile(r"([0-9a-f]{16})_([0-9]+)")


def wait_server() -> Server[Probe]:
    """Makes the usual server with tools that close their stream."""
    app = make_server()

    @app.tool()
    async def part(ctx: Context[Probe], previous: int = 1, after: int = 0) -> str:
        """Log, wait until released, log again."""
        for number in range(previous):
            await ctx.log("error", number)
        ctx.state.started.set()
        await ctx.state.release.wait()
        for number in range(previous, previous + after):
            await ctx.log("error", number)
        ctx.state.finished.set()
        return "released"

    @app.tool()
    async def leave(ctx: Context[Probe]) -> str:
        """Close the stream, wait until released."""
        await ctx.close_stream(retry_ms=20)
        await ctx.state.release.wait()
        return "released"

    @app.tool()
    async def colour_later(ctx: Context[Probe]) -> str:
        """Close the stream, then ask."""
        await ctx.close_stream()
        await ctx.state.release.wait()
        answer = await ctx.inputs({"roots": list_roots()})
        return str(answer["roots"].roots[0].uri)

    return app


def call(site: Site, name: str, **arguments: Any) -> Json:
    return site.message("tools/call", {"name": name, "arguments": arguments})


def data(events: list[ServerSentEvent]) -> list[Any]:
    """Returns the data of log messages and the texts of answers."""
    messages = [decode(event.data) for event in events if event.data]
    return [
        one.params["data"] if isinstance(one, Notification) else one.result["content"][0]["text"] for one in messages
    ]


@asynccontextmanager
async def resumed(site: Site, session: Json, event_id: str | None) -> AsyncIterator[httpx.Response]:
    headers = merged({**session, "Last-Event-ID": event_id})
    async with site.client.stream("GET", "/mcp", headers=headers) as response:
        yield response


async def replay(site: Site, session: Json, event_id: str | None) -> list[ServerSentEvent]:
    """Resumes a stream; returns the events after `Last-Event-ID`."""
    async with resumed(site, session, event_id) as response:
        assert response.status_code == 200, await response.aread()
        return [one async for one in read_events(response)]


async def drop_post(site: Site, session: Json, message: Json, count: int) -> list[ServerSentEvent]:
    """Returns the first events of a POST, and drops its connection."""
    async with site.stream(message, session) as response:
        return await first_events(response, count)


# Event ids


@pytest.mark.parametrize(("version", "primes"), [("2025-06-18", False), ("2025-11-25", True)])
async def test_event_ids_name_their_stream(version: str, primes: bool) -> None:
    async with served(wait_server()) as site:
        session = await site.initialize(version)
        names = set()
        site.probe.release.set()
        for _ in range(3):
            async with site.stream(call(site, "part", previous=2), session) as response:
                events = [one async for one in read_events(response)]
            found = [EVENT_ID.fullmatch(one.id or "") for one in events]
            assert all(found)
            names |= {one[1] for one in found if one}
            assert [int(one[2]) for one in found if one] == [*([0] if primes else []), 1, 2, 3]
            assert (not events[0].data and events[0].retry == 1_000) is primes
            assert data(events) == [0, 1, "released"]
        assert len(names) == 3


async def test_stateless_streams_have_no_event_ids() -> None:
    async with served() as site:
        message, headers = site.stateless("tools/call", {"name": "report", "arguments": {}}, progressToken=1)
        async with site.stream(message, {**headers, "Last-Event-ID": "any"}) as response:
            assert [one.id async for one in read_events(response)] == [None] * 3


async def test_a_silent_call_begins_its_stream_after_the_keep_alive_time() -> None:
    async with served(wait_server(), limits=EndpointLimits(keep_alive_seconds=0.02)) as site:
        session = await site.initialize()
        first = (await drop_post(site, session, call(site, "wait"), 1))[0]
        assert (first.data, first.retry) == (b"", 1_000)
        site.probe.release.set()
        assert data(await replay(site, session, first.id)) == ["released"]


# Resumption


@pytest.mark.parametrize("version", ["2025-03-26", "2025-11-25"])
async def test_a_dropped_post_is_resumed_live(version: str) -> None:
    async with served(wait_server()) as site:
        session = await site.initialize(version)
        lost = await drop_post(site, session, call(site, "part", previous=3, after=2), 2)
        await site.idle()
        async with resumed(site, session, lost[-1].id) as response:
            events = read_events(response)
            seen = [await anext(events) for _ in range(4 - len(data(lost)) - 1)]
            site.probe.release.set()
            seen += [one async for one in events]
        assert data(lost + seen) == [0, 1, 2, 3, 4, "released"]
        assert all(one.data for one in seen)
        assert not site.probe.cancelled.is_set()


async def test_an_answer_sent_while_disconnected_is_replayed_repeatedly() -> None:
    async with served(wait_server()) as site:
        session = await site.initialize()
        lost = await drop_post(site, session, call(site, "part", after=1), 2)
        await site.idle()
        site.probe.release.set()
        await site.probe.finished.wait()
        for first, missed in ((0, [0, 1, "released"]), (1, [1, "released"])):
            for _ in range(2):
                assert data(await replay(site, session, lost[first].id)) == missed
        stream_id = str(lost[0].id).removesuffix("_0")
        assert await replay(site, session, f"{stream_id}_3") == []


@pytest.mark.parametrize("page", [{}, {"Origin": "http://localhost"}])
async def test_resuming_a_stream_closes_its_earlier_connection(page: Json, caplog: pytest.LogCaptureFixture) -> None:
    async with served(wait_server()) as site:
        session = {**await site.initialize(), **page}
        async with site.stream(call(site, "part"), session) as response:
            first = read_events(response)
            lost = [await anext(first), await anext(first)]
            async with resumed(site, session, lost[0].id) as again:
                second = read_events(again)
                assert data([await anext(second)]) == [0]
                with pytest.raises(httpx.RemoteProtocolError):
                    await anext(first)
                site.probe.release.set()
                assert data([one async for one in second]) == ["released"]
    assert not caplog.records


async def test_resumed_and_get_streams_run_side_by_side() -> None:
    async with served(wait_server()) as site:
        session = await site.initialize()
        async with resumed(site, session, None) as standing:
            own = read_events(standing)
            assert (await anext(own)).data == b""
            lost = await drop_post(site, session, call(site, "part"), 1)
            async with resumed(site, session, lost[0].id) as response:
                assert data([await anext(read_events(response))]) == [0]
                site.running.changes.tools()
                assert b"list_changed" in (await anext(own)).data
                site.probe.release.set()


async def test_the_get_stream_is_resumed() -> None:
    async with served() as site:
        session = await site.initialize()
        async with resumed(site, session, None) as response:
            primer = (await first_events(response, 1))[0]
        await site.idle()
        site.running.changes.tools()
        async with resumed(site, session, primer.id) as response:
            first = (await first_events(response, 1))[0]
            assert b"tools/list_changed" in first.data
        await site.idle()
        site.running.changes.prompts()
        async with resumed(site, session, None) as response:
            events = await first_events(response, 2)
            assert [b"prompts/list_changed" in one.data for one in events] == [False, True]
        async with resumed(site, session, first.id) as response:
            assert await first_events(response, 1) == events[1:]


async def test_a_server_request_waits_for_the_client_to_resume() -> None:
    async with served(wait_server()) as site:
        session = await site.initialize(capabilities={"roots": {}})
        async with site.stream(call(site, "colour_later"), session) as response:
            closed = [one async for one in read_events(response)]
        site.probe.release.set()
        async with resumed(site, session, closed[-1].id) as response:
            events = read_events(response)
            question = decode((await anext(events)).data)
            assert isinstance(question, Request)
            reply = {"jsonrpc": "2.0", "id": question.id, "result": {"roots": [{"uri": "file:///a"}]}}
            assert (await site.post(reply, session)).status_code == 202
            assert data([one async for one in events]) == ["file:///a"]


async def test_unknown_event_ids_are_refused() -> None:
    async with served(wait_server()) as site:
        session = await site.initialize()
        site.probe.release.set()
        async with site.stream(call(site, "part"), session) as response:
            stream_id = str((await anext(read_events(response))).id).removesuffix("_0")
        for event_id in ("x", "0_0", "é", "_", "{}_99", "{}_-1", "{}", "{}_1x", "{}_9999999999999999"):
            headers = merged({**session, "Last-Event-ID": event_id.format(stream_id)})
            answer = await site.client.get("/mcp", headers=[(name, value.encode()) for name, value in headers])
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600), event_id
            assert "no such event" in answer.text
        assert (await site.health())["sessions"] == 1


async def test_streams_of_other_sessions_and_principals_cannot_be_resumed() -> None:
    async with served(wait_server(), tokens=("one", "two")) as site:
        first, second = [{"Authorization": f"Bearer {token}"} for token in ("one", "two")]
        mine, other = await site.initialize(headers=first), await site.initialize(headers=first)
        theirs = await site.initialize(headers=second)
        lost = (await drop_post(site, mine, call(site, "part"), 1))[0]
        for session, status in ((other, 400), (theirs, 400), ({**mine, **second}, 404), ({**second}, 400)):
            answer = await site.client.get("/mcp", headers=merged({**session, "Last-Event-ID": lost.id}))
            assert answer.status_code == status
            assert "released" not in answer.text
        site.probe.release.set()
        assert data(await replay(site, mine, lost.id)) == [0, "released"]


async def test_a_cancelled_call_is_not_resumed() -> None:
    async with served(wait_server()) as site:
        session = await site.initialize()
        message = call(site, "part")
        lost = await drop_post(site, session, message, 2)
        params = {"requestId": message["id"]}
        await site.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}, session)
        answer = await site.client.get("/mcp", headers=merged({**session, "Last-Event-ID": lost[0].id}))
        while answer.status_code == 200:
            answer = await site.client.get("/mcp", headers=merged({**session, "Last-Event-ID": lost[0].id}))
        assert answer.status_code == 400


# Closing the response, not the stream


async def test_a_handler_can_close_its_stream_for_later_resumption() -> None:
    async with served(wait_server()) as site:
        session = await site.initialize()
        async with site.stream(call(site, "leave"), session) as response:
            events = [one async for one in read_events(response)]
        assert [(one.data, one.retry) for one in events] == [(b"", 1_000), (b"", 20)]
        assert events[0].id == events[1].id
        async with resumed(site, session, events[0].id) as response:
            site.probe.release.set()
            assert data([one async for one in read_events(response)]) == ["released"]


async def test_closing_a_stream_has_no_effect_in_other_versions() -> None:
    async with served(wait_server()) as site:
        site.probe.release.set()
        left = {"name": "leave", "arguments": {}}
        old = await site.initialize("2025-06-18")
        for answer in (await site.post(site.message("tools/call", left), old), await site.call("tools/call", left)):
            assert answer.headers["content-type"] == "application/json"
            assert answer.json()["result"]["content"][0]["text"] == "released"


# Stored events


def numbered(number: int, about: int | None = 1) -> Outgoing:
    return Outgoing(Notification("notifications/message", {"level": "info", "data": number}), about)


async def taken(reader: Reader | Refusal | None) -> list[Any]:
    assert isinstance(reader, Reader)
    with anyio.fail_after(30):
        await reader.wait()
    return data(reader.stream.take())


def streams(limits: SessionLimits) -> Streams:
    return of_session("s", MemoryLog(limits))


def of_session(id: str, log: MemoryLog) -> Streams:
    return Streams(id, log.session(id), Stores().replica().sessions)


def begin(session: Streams, reader: Reader | Refusal | None) -> Reader:
    """Sends the first event to the client."""
    assert isinstance(reader, Reader)
    session.begin(reader)
    return reader


def answer(id: int, text: str = "done") -> Outgoing:
    return Outgoing(Response(id, {"content": [{"text": text}]}), id)


async def test_an_answer_is_stored_whatever_its_size() -> None:
    one = streams(SessionLimits(replay_bytes=500))
    reader = begin(one, one.post((1,)))
    one.leave(reader)
    one.send([*map(numbered, range(50)), answer(1, "x" * 5_000)])
    name = reader.stream.name
    refused = await one.resume(f"{name}_0")
    assert isinstance(refused, Refusal)
    assert refused.status == 400
    assert await taken(await one.resume(f"{name}_50")) == ["x" * 5_000]


async def test_unread_events_are_not_dropped() -> None:
    one = streams(SessionLimits(replay_events=10, session_replay_bytes=1_000))
    reader = begin(one, one.post((1,)))
    one.send([numbered(number) for number in range(30)])
    assert await taken(reader) == list(range(30))


async def test_a_cut_off_reader_stores_nothing() -> None:
    log = MemoryLog(SessionLimits(stream_bytes=1_000, replay_bytes=2_000))
    one = of_session("s", log)
    reader = begin(one, one.post((1,)))
    for number in range(100):
        one.send([numbered(number)], may_wait=False)
    assert reader.is_cancelled
    assert log.stored_bytes <= 2_000
    assert isinstance(await one.resume(f"{reader.stream.name}_0"), Refusal)


async def test_stored_events_of_all_sessions_have_a_limit() -> None:
    message, limit = 1_000, 5_000
    log = MemoryLog(SessionLimits(total_replay_bytes=limit))
    for number in range(3):
        one = of_session(str(number), log)
        reader = begin(one, one.post((number,)))
        for _ in range(5):
            one.send([Outgoing(Notification("notifications/message", {"data": "x" * message}), number)])
            await taken(reader)
            # The last message of each had to wait for its reader, and so was stored.
            assert log.stored_bytes < limit + 4 * message
    assert log.stored_bytes > limit


@pytest.mark.parametrize("ended", ["answered", "cancelled", "open"])
@pytest.mark.parametrize("first", ["session", "reader"])
async def test_ending_a_session_releases_its_stored_events(ended: str, first: str) -> None:
    log = MemoryLog(SessionLimits())
    one = of_session("s", log)
    reader = begin(one, one.post((1,)))
    one.send([numbered(1)])
    await taken(reader)
    one.send([numbered(2)])
    if ended != "open":
        one.send([answer(1) if ended == "answered" else Outgoing(None, 1)])
    assert log.stored_bytes > 0
    leave, close = partial(one.leave, reader), partial(one.close, refuse(404, "the session has ended"))
    for act in (close, leave) if first == "session" else (leave, close):
        act()
    assert log.stored_bytes == 0


async def test_a_resume_that_fails_to_replicate_releases_its_room(monkeypatch: pytest.MonkeyPatch) -> None:
    log, room = MemoryLog(SessionLimits()), Room(1_000_000)
    session = Streams("s", log.session("s"), Stores().replica().sessions, room=room, client="a")
    reader = begin(session, session.post((1,)))
    session.leave(reader)

    async def lose_the_others() -> None:
        session.send([answer(1, "x" * LARGE_RESULT_BYTES)])
        assert room.used > LARGE_RESULT_BYTES
        raise Unavailable

    monkeypatch.setattr(MemoryStream, "pending_replication", lambda _: lose_the_others())
    with pytest.raises(Unavailable):
        await session.resume(f"{reader.stream.name}_0")
    assert room.used == 0


async def test_json_answers_leave_nothing_stored() -> None:
    log = MemoryLog(SessionLimits())
    one = of_session("s", log)
    reader = one.post((1,))
    assert reader is not None
    one.send([answer(1)])
    assert reader.stream.sole_answer is not None
    assert log.stored_bytes > 0
    one.leave(reader)
    assert log.stored_bytes == 0


@pytest.mark.slow
async def test_a_burst_does_not_cut_off_a_reader() -> None:
    async with served(wait_server()) as site:
        session = await site.initialize()
        async with site.stream(call(site, "flood"), session) as response:
            size = 0
            async for chunk in response.aiter_bytes():
                size += len(chunk)
        assert size > 20_000_000


def test_an_expired_stream_remembers_its_last_event() -> None:
    stream = MemoryStream(MemoryLog(SessionLimits(replay_events=2)).session("s"), (1,))
    for _ in range(5):
        stream.put(b"x")
    assert stream.has_all_after(3)
    assert stream.expire()
    assert stream.has(5)
    assert not stream.has(6)
    assert not stream.has_all_after(4)


# The stream of each message


def made_streams(limits: SessionLimits | None = None, sessions: SessionStore | None = None) -> Streams:
    events = MemoryLog(limits or SessionLimits(stream_bytes=1_000)).session("s")
    return Streams("s", events, sessions or Stores().replica().sessions)


def updated(number: int) -> Outgoing:
    return Outgoing(Notification("notifications/resources/updated", {"uri": f"memo://{number}"}))


async def take_all(reader: Reader | Refusal | None) -> list[Json]:
    assert isinstance(reader, Reader)
    with anyio.fail_after(30):
        await reader.wait()
        return [json.loads(event.data) for event in reader.stream.take()]


async def test_messages_waiting_for_a_get_stream_have_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    one = made_streams(SessionLimits(replay_events=50))
    for number in range(51):
        one.send([updated(number)])
    got = await take_all(await one.listen())
    assert [message["params"]["uri"] for message in got] == [f"memo://{number + 1}" for number in range(50)]
    assert "dropped" in caplog.text


async def test_repeated_updates_wait_once_for_a_get_stream() -> None:
    one = made_streams()
    for number in (0, 1, 0, 1):
        one.send([updated(number)])
    got = await take_all(await one.listen())
    assert [message["params"]["uri"] for message in got] == ["memo://0", "memo://1"]


async def test_a_slow_reader_is_waited_for_and_then_cut_off() -> None:
    one = made_streams()
    reader = await one.listen()
    assert isinstance(reader, Reader)
    for number in range(50):
        one.send(one.send([updated(number)]), may_wait=False)
    assert reader.is_cancelled
    one.leave(reader)
    again = await one.listen()
    assert [message["params"]["uri"] for message in await take_all(again)] == [
        f"memo://{number}" for number in range(50)
    ]


async def test_server_requests_move_from_a_lost_post_to_the_get_stream() -> None:
    sessions = Stores().replica().sessions
    await sessions.create(SessionRecord("s", None, "", 60, NEW))
    await sessions.enter("s", None, (1, 2))
    one = made_streams(sessions=sessions)
    lost, open_post = one.post((1,)), one.post((2,))
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
    assert [message["id"] for message in await take_all(open_post)] == [8]
    assert [message.get("id", message["method"]) for message in await take_all(await one.listen())] == [
        7,
        "notifications/cancelled",
    ]
    assert await sessions.serving_replica("s", 1) is None
    assert await sessions.serving_replica("s", 2) == 0


async def test_an_answer_is_sent_however_many_messages_wait() -> None:
    one = made_streams()
    feed = one.post((1,))
    one.send([Outgoing(Notification("notifications/progress", {"message": "x" * 900}), 1)])
    one.send([Outgoing(Response(1, {"text": "x" * 5_000}), 1)])
    assert [message.get("id") for message in await take_all(feed)] == [None, 1]
