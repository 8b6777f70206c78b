"""Sessions of replicas: any replica serves a session, and each call runs at one of them."""

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx
import pytest

from shared.contracts import SessionRecord
from shared.errors import ResourceNotFound
from shared.protocol.http.rules import Refusal
from shared.protocol.session.handshake import NEW
from shared.protocol.wire.codec import decode
from shared.protocol.wire.framing import ServerSentEvent
from shared.server.dispatch.context import Context
from shared.server.dispatch.limits import Limits
from shared.server.server import Server
from shared.testing import replicas
from shared.transports.http.limits import client_shares
from shared.transports.http.limits.endpoint_limits import EndpointLimits, SessionLimits
from shared.transports.http.streamable import streams
from shared.transports.http.streamable.sessions import Sessions
from tests.clock import forward
from tests.quiet import quiet
from tests.redis_server import RedisServer
from tests.redis_stores import InRedis
from tests.shared.transports.http.http_wire import (
    IN_BOTH,
    PATIENCE,
    Json,
    Probe,
    Site,
    Two,
    calling,
    events,
    first_events,
    listening,
    make_server,
    merged,
    read_events,
    stopped,
)

FORMS = {"elicitation": {}}


def app() -> Server[Probe]:
    """Makes the usual server with tools that log, wait, or lose the replica."""
    made = make_server()

    @made.tool()
    async def part(ctx: Context[Probe]) -> str:
        """Log, wait until released, log again."""
        await ctx.log("error", "before")
        ctx.state.started.set()
        await ctx.state.release.wait()
        await ctx.log("error", "after")
        return "released"

    @made.tool()
    async def flood_later(ctx: Context[Probe]) -> str:
        """Wait until released, then log 20 MB."""
        await ctx.state.release.wait()
        for _ in range(2_000):
            await ctx.log("error", "x" * 10_000)
        return "done"

    @made.tool()
    async def be_lost(ctx: Context[Probe]) -> None:
        """Log, and before that can leave have the replica be lost."""
        replica: Any = ctx.running.replication.replica
        ctx.link.session.log(ctx.call, "error", "before", None)
        ctx.link.send_soon()
        replica.link.give_up_lease("for the test")
        await anyio.sleep_forever()

    return made


@pytest.fixture
def two(two: Two) -> Two:
    return partial(two, app())


def call(site: Site, name: str, id: Any, **arguments: Any) -> Json:
    return site.message("tools/call", {"name": name, "arguments": arguments}, id)


async def resume(site: Site, session: Json, event_id: str | None) -> list[ServerSentEvent]:
    """Resumes a stream; returns the events after `Last-Event-ID`."""
    headers = merged({**session, "Last-Event-ID": event_id})
    async with site.client.stream("GET", "/mcp", headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        return [one async for one in read_events(response)]


def text_of(event: ServerSentEvent) -> Any:
    message: Any = decode(event.data)
    return message.params["data"] if hasattr(message, "params") else message.result["content"][0]["text"]


async def test_a_session_continues_at_another_replica(two: Two) -> None:
    async with two() as (here, there):
        session = await here.initialize()
        for site in (there, here, there):
            answer = await site.post(call(site, "echo", "a", text="hi"), session)
            assert answer.json()["result"] == {"content": [{"type": "text", "text": "hi"}]}
        assert [(await site.health())["sessions"] for site in (here, there)] == [1, 1]


async def test_a_paged_list_continues_at_another_replica() -> None:
    server = app()
    server.page_size = 2
    async with replicas(server, 2) as (one, other), listening(one) as here, listening(other) as there:
        session = await here.initialize()
        first = (await here.post(here.message("tools/list"), session)).json()["result"]
        following = there.message("tools/list", {"cursor": first["nextCursor"]})
        second = (await there.post(following, session)).json()["result"]
        names = [tool["name"] for tool in (*first["tools"], *second["tools"])]
        assert (len(names), len(set(names))) == (4, 4)


async def test_the_log_level_of_a_session_is_shared_between_replicas(two: Two) -> None:
    async with two() as (here, there):
        session = await here.initialize()
        assert await log_errors(there, session) == ["before", "after", "released"]
        for setting, at, silent in (("emergency", here, there), ("debug", there, here), ("alert", there, here)):
            level = at.message("logging/setLevel", {"level": setting})
            assert (await at.post(level, session)).json()["result"] == {}
            expected = ["released"] if setting in ("emergency", "alert") else ["before", "after", "released"]
            assert await log_errors(silent, session) == expected


async def log_errors(site: Site, session: Json) -> list[Any]:
    site.probe.release.set()
    answer = await site.post(call(site, "part", "logged"), session)
    if answer.headers["content-type"] == "application/json":
        return [answer.json()["result"]["content"][0]["text"]]
    return [
        text_of(ServerSentEvent(line.removeprefix("data: ").encode()))
        for line in answer.text.splitlines()
        if line.startswith("data: {")
    ]


async def test_a_request_id_in_use_is_refused_by_every_replica(two: Two) -> None:
    async with two() as (here, there), anyio.create_task_group() as tasks:
        session = await here.initialize()
        tasks.start_soon(here.post, call(here, "wait", "w"), session)
        await here.probe.started.wait()
        refused = await there.post(there.message("ping", id="w"), session)
        assert (refused.status_code, "in use" in refused.text) == (400, True)
        here.probe.release.set()


@pytest.mark.slow
@pytest.mark.parametrize("two", ["redis"], indirect=True)
async def test_an_oversized_batch_is_refused_without_affecting_other_sessions(two: Two) -> None:
    async with two() as (here, there):
        session, another = await here.initialize(), await there.initialize()
        body = [there.message("ping", id=number) for number in range(10_000)]
        assert (await there.post(body, session)).status_code == 400
        assert (await there.post(there.message("ping"), another)).status_code == 200


async def test_a_refused_request_releases_its_id(two: Two) -> None:
    async with two() as (here, there):
        session = await here.initialize()
        wrong = {**session, "MCP-Protocol-Version": "2025-06-18"}
        assert (await here.post(here.message("ping", id="p"), wrong)).status_code == 400
        assert (await there.post(there.message("ping", id="p"), session)).status_code == 200


@IN_BOTH
async def test_a_stream_is_resumed_at_another_replica(two: Two) -> None:
    async with two() as (here, there):
        session = await here.initialize()
        async with here.stream(call(here, "part", "p"), session) as response:
            lost = await first_events(response, 2)
        assert [text_of(one) for one in lost if one.data] == ["before"]
        await here.idle()
        rest: list[ServerSentEvent] = []

        async def read() -> None:
            rest.extend(await resume(there, session, lost[-1].id))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            while not (await there.health())["streams"]:
                await anyio.lowlevel.checkpoint()
            here.probe.release.set()
        assert [text_of(one) for one in rest] == ["after", "released"]
        assert [text_of(one) for one in await resume(there, session, lost[0].id)] == ["before", "after", "released"]
        numbers = [int(str(one.id).partition("_")[2]) for one in (*lost, *rest)]
        assert numbers == [0, 1, 2, 3]


@IN_BOTH
@pytest.mark.slow
async def test_a_flood_waits_for_its_reader_at_another_replica(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    # Longer than the test may take: it continues only when the reader is reported to have caught up.
    monkeypatch.setattr("shared.transports.http.streamable.session.CATCH_UP_SECONDS", 600.0)
    async with two(limits=EndpointLimits(keep_alive_seconds=0.02)) as (here, there):
        session = await here.initialize()
        async with here.stream(call(here, "flood_later", "f"), session) as response:
            first = await first_events(response, 1)
        await here.idle()
        headers = merged({**session, "Last-Event-ID": first[0].id})
        async with there.client.stream("GET", "/mcp", headers=headers) as response:
            here.probe.release.set()
            sizes = [len(one.data) async for one in read_events(response)]
        assert (len(sizes), sum(sizes) > 20_000_000) == (2_001, True)


async def test_a_session_has_one_get_stream_across_replicas(two: Two) -> None:
    async with two() as (here, there):
        session = await here.initialize()
        async with here.client.stream("GET", "/mcp", headers=merged(session)) as stream:
            assert stream.status_code == 200
            assert (await there.client.get("/mcp", headers=merged(session))).status_code == 409
        await here.idle()
        async with there.client.stream("GET", "/mcp", headers=merged(session)) as stream:
            messages = events(stream)
            here.running.changes.tools()
            assert (await anext(messages))["method"] == "notifications/tools/list_changed"


@IN_BOTH
async def test_an_elicitation_is_answered_through_another_replica(two: Two) -> None:
    async with two() as (here, there):
        session = await here.initialize(capabilities=FORMS)
        ids = []
        for asking, answering, form in ((here, there, int), (there, here, str)):
            async with asking.stream(call(asking, "favourite", "f"), session) as response:
                messages = events(response)
                question = await anext(messages)
                ids.append(question["id"])
                given = {"action": "accept", "content": {"colour": "red"}}
                # Some clients write each id as a string.
                reply = {"jsonrpc": "2.0", "id": form(question["id"]), "result": given}
                assert (await answering.post(reply, session)).status_code == 202
                assert (await anext(messages))["result"]["content"] == [{"type": "text", "text": "red"}]
        assert ids == [site.running.replication.replica.number << 32 | 1 for site in (here, there)]


async def test_an_elicitation_of_a_stopping_replica_is_answered_through_another(two: Two) -> None:
    async with two() as (here, there):
        session, stopping = await here.initialize(capabilities=FORMS), anyio.Event()
        here.running.hooks.stoppers.append(stopping.set)
        async with here.stream(call(here, "favourite", "f"), session) as response:
            messages = events(response)
            question = await anext(messages)
            await stopped(here)
            await stopping.wait()
            given = {"action": "accept", "content": {"colour": "red"}}
            reply = {"jsonrpc": "2.0", "id": question["id"], "result": given}
            assert (await there.post(reply, session)).status_code == 202
            assert (await anext(messages))["result"]["content"] == [{"type": "text", "text": "red"}]


async def test_a_stopping_replica_serves_its_open_connections(two: Two) -> None:
    async with two() as (here, there):
        session = await here.initialize()
        async with here.stream(call(here, "part", "p"), session) as response:
            await first_events(response, 1)
            assert (await here.post(here.message("ping"), session)).status_code == 200  # on a new connection
            here.stop.set()
            await quiet()
            assert (await here.post(here.message("ping"), session)).status_code == 200
            here.probe.release.set()
        assert (await there.post(there.message("ping"), session)).status_code == 200


async def test_request_ids_of_a_replica_are_unique_across_sessions(two: Two) -> None:
    # An evicted session that returns is a session like any other: its request ids are never reused.
    async with two() as (_, there):
        ids = []
        for _ in range(2):
            session = await there.initialize(capabilities=FORMS)
            async with there.stream(call(there, "favourite", "f"), session) as response:
                ids.append((await anext(events(response)))["id"])
        first = there.running.replication.replica.number << 32 | 1
        assert ids == [first, first + 1]


@IN_BOTH
async def test_a_cancellation_reaches_the_call_at_another_replica(two: Two) -> None:
    async with two() as (here, there):
        session = await here.initialize()
        async with calling(here, (call(here, "wait", "w"), session)) as answers:
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "w"}}
            assert (await there.post(cancel, session)).status_code == 202
            await here.probe.cancelled.wait()
        assert (answers[0].status_code, answers[0].content) == (200, b"")


async def test_a_list_change_is_notified_once_across_replicas(two: Two) -> None:
    async with two() as (here, there):
        session = await here.initialize()
        assert (await there.post(there.message("ping"), session)).status_code == 200
        for site, other in ((here, there), (there, here)):
            async with site.client.stream("GET", "/mcp", headers=merged(session)) as stream:
                messages = events(stream)
                for kind in ("tools", "prompts", "resources"):
                    getattr(other.running.changes, kind)()
                    assert (await anext(messages))["method"] == f"notifications/{kind}/list_changed"
                    await quiet()
            await site.idle()


async def test_a_subscription_moves_to_the_replica_of_its_latest_request(two: Two) -> None:
    async with two() as (here, there):
        session = await here.initialize()
        uri = {"uri": "memo://one"}
        for site in (here, there):
            assert "result" in (await site.post(site.message("resources/subscribe", uri), session)).json()
        await until(lambda: not here.running.changes.subscribed_resources)
        async with here.client.stream("GET", "/mcp", headers=merged(session)) as stream:
            messages = events(stream)
            there.running.changes.resource("memo://one")
            updated = await anext(messages)
            assert (updated["method"], updated["params"]["uri"]) == ("notifications/resources/updated", "memo://one")
        assert "result" in (await here.post(here.message("resources/unsubscribe", uri), session)).json()
        await until(lambda: not there.running.changes.subscribed_resources)


async def test_a_failed_subscription_keeps_that_of_another_replica() -> None:
    server, refuses = app(), []

    async def begin(_ctx: object, uri: str) -> str:
        if refuses:
            raise ResourceNotFound(uri)
        return uri

    server.subscribe = begin
    async with replicas(server, 2) as (one, other), listening(one) as here, listening(other) as there:
        session, uri = await here.initialize(), {"uri": "memo://one"}
        assert "result" in (await here.post(here.message("resources/subscribe", uri), session)).json()
        refuses.append(True)
        assert "error" in (await there.post(there.message("resources/subscribe", uri, "s"), session)).json()
        assert "result" in (await here.post(here.message("ping", id="s"), session)).json()
        await quiet()
        assert (here.running.changes.subscribed_resources, there.running.changes.subscribed_resources) == (1, 0)


async def until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not is_so():
            await anyio.lowlevel.checkpoint()


@IN_BOTH
async def test_deleting_a_session_ends_it_on_every_replica(two: Two) -> None:
    async with two() as (here, there):
        session = await here.initialize()
        async with calling(here, (call(here, "wait", "w"), session)) as answers:
            assert (await there.client.delete("/mcp", headers=merged(session))).status_code == 200
            await here.probe.cancelled.wait()
        assert answers[0].status_code == 404
        for site in (here, there):
            assert (await site.post(site.message("ping"), session)).status_code == 404
            assert (await site.health())["sessions"] == 0


async def test_a_session_outlives_the_replica_that_opened_it() -> None:
    async with replicas(app(), 2) as (one, other), listening(other) as there:
        async with listening(one) as here:
            session = await here.initialize()
            async with here.stream(call(here, "part", "p"), session) as response:
                lost = await first_events(response, 2)
            here.stop.set()
        rest = await resume(there, session, lost[-1].id)
        failed: Any = decode(rest[-1].data)
        assert (failed.id, failed.code, failed.message) == ("p", -32603, "the server is stopping")
        assert (await there.post(there.message("ping", id="p"), session)).status_code == 200


async def test_a_stopping_replica_refuses_calls_after_the_drain_time() -> None:
    server = app()
    server.limits = Limits(drain_seconds=0.02)
    async with replicas(server, 2) as (one, other), listening(other) as there:
        async with listening(one) as here:
            session = await here.initialize()
            async with calling(here, (call(here, "wait", "w"), session)) as answers:
                await stopped(here)
        assert answers[0].status_code == 503
        assert (await there.post(there.message("ping", id="w"), session)).status_code == 200


async def test_a_stopped_replica_accepts_no_requests() -> None:
    async with replicas(app(), 2) as (one, other), listening(other) as there, anyio.create_task_group() as tasks:
        session = await there.initialize()
        stopped = Sessions(one, tasks, SessionLimits())
        stopped.end_all(orderly=True)
        found = await stopped.enter(session["Mcp-Session-Id"], None, (1,))
        assert isinstance(found, Refusal)
        assert (found.status, len(stopped)) == (503, 0)
        assert ("retry-after", "1") in found.headers  # to be retried at another replica
        assert (await there.post(there.message("ping", id=1), session)).status_code == 200


async def test_a_reader_at_a_stopping_replica_resumes_at_another() -> None:
    async with replicas(app(), 2) as (one, other), listening(other) as there:
        async with listening(one) as here:
            session = await here.initialize()
            async with here.client.stream("GET", "/mcp", headers=merged(session)) as response:
                messages = read_events(response)
                seen = [await anext(messages)]
                await stopped(here)
                seen += [one async for one in messages]
        assert [(one.data, one.retry) for one in seen] == [(b"", 1_000)] * 2
        there.running.changes.tools()
        headers = merged({**session, "Last-Event-ID": seen[-1].id})
        async with there.client.stream("GET", "/mcp", headers=headers) as response:
            assert response.status_code == 200


async def test_a_full_replica_leaves_a_session_to_the_others() -> None:
    async with (
        replicas(app(), 2) as (one, other),
        listening(one) as here,
        listening(other, limits=EndpointLimits(sessions=SessionLimits(sessions=1))) as there,
    ):
        session, blocking = await here.initialize(), await there.initialize()
        async with there.client.stream("GET", "/mcp", headers=merged(blocking)):
            refused = await there.post(there.message("ping", id="p"), session)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "60")
            assert (await here.post(here.message("ping", id="p"), session)).status_code == 200
        # The full replica has no copy of it.
        assert await one.replication.replica.sessions.lapse(session["Mcp-Session-Id"], is_busy=False)


async def test_a_session_evicted_from_one_replica_continues_at_another() -> None:
    async with replicas(app(), 2) as (one, other), listening(one) as here, anyio.create_task_group() as tasks:
        there = Sessions(other, tasks, SessionLimits(sessions=2))
        session, another = await here.initialize(), await here.initialize()
        for each in (session, another):
            assert not isinstance(await there.enter(each["Mcp-Session-Id"], None), Refusal)
        async with here.client.stream("GET", "/mcp", headers=merged(session)) as stream:
            messages = events(stream)
            assert there.open(None, "another client") is not None
            await quiet()
            assert len(there) == 1
            here.running.changes.tools()
            assert (await anext(messages))["method"] == "notifications/tools/list_changed"
            assert (await here.post(here.message("ping"), session)).status_code == 200


async def test_a_session_entered_from_another_replica_counts_as_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_shares, "UNUSED_SECONDS", 0.0)
    async with replicas(app(), 2) as (one, other), listening(one) as here, anyio.create_task_group() as tasks:
        there, session = Sessions(other, tasks, SessionLimits(sessions=1)), await here.initialize()
        entered = await there.enter(session["Mcp-Session-Id"], None)
        assert not isinstance(entered, Refusal)
        assert isinstance(there.open(None, entered[0].client), Refusal)
        assert len(there) == 1


async def test_a_full_replica_does_not_lose_a_session_held_by_no_replica() -> None:
    limits = EndpointLimits(sessions=SessionLimits(sessions=1))
    async with replicas(app(), 2) as (one, other), listening(other, limits=limits) as there:
        async with listening(one) as here:
            session = await here.initialize()
            here.stop.set()
        one.replication.replica.sessions.release(session["Mcp-Session-Id"])
        blocking = await there.initialize()
        async with there.client.stream("GET", "/mcp", headers=merged(blocking)):
            assert (await there.post(there.message("ping", id="p"), session)).status_code == 503
        assert (await there.client.delete("/mcp", headers=merged(blocking))).status_code == 200
        assert (await there.post(there.message("ping", id="p"), session)).status_code == 200


@IN_BOTH
@pytest.mark.slow
async def test_an_idle_replica_drops_its_copy_but_the_session_stays(two: Two) -> None:
    limits = EndpointLimits(keep_alive_seconds=0.1, sessions=SessionLimits(idle_seconds=0.5))
    async with two(limits=limits) as (here, there):
        session = await here.initialize()
        async with there.client.stream("GET", "/mcp", headers=merged(session)):
            while (await here.health())["sessions"]:
                await anyio.lowlevel.checkpoint()
            assert (await here.post(here.message("ping"), session)).status_code == 200
        for site in (here, there):
            while (await site.health())["sessions"]:
                await anyio.lowlevel.checkpoint()
        assert (await here.post(here.message("ping"), session)).status_code == 404


class RemoteStore:
    """A remote session store: the method named `slow` answers when `answer` is set; the method named `lost` fails."""

    def __init__(self, running: Any) -> None:
        self.near = running.replication.replica.sessions
        self.slow = self.lost = ""
        self.answer = anyio.Event()
        running.replication.replica.sessions = self

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.near, name)

        async def call(*args: Any, **options: Any) -> Any:
            if name == self.lost:
                raise ConnectionError("the store is gone")
            found = await method(*args, **options)
            if name == self.slow:
                await self.answer.wait()
            return found

        return method if name in ("leave", "delete", "release") else call


@asynccontextmanager
async def remote_store() -> AsyncIterator[tuple[Any, RemoteStore, Sessions]]:
    """Yields the store of a replica with a session, the remote store of another replica, and its sessions."""
    async with replicas(app(), 2) as (one, other), anyio.create_task_group() as tasks:
        near: Any = one.replication.replica
        await near.sessions.create(SessionRecord("s", None, "c", 60, NEW))
        far = RemoteStore(other)
        yield near.sessions, far, Sessions(other, tasks, SessionLimits(idle_seconds=60))


async def test_a_session_that_ends_while_being_entered_is_unknown() -> None:
    async with remote_store() as (near, far, there), anyio.create_task_group() as tasks:
        found: list[Any] = []

        async def enter() -> None:
            found.append(await there.enter("s", None, (1,)))

        far.slow = "enter"
        tasks.start_soon(enter)
        await quiet()
        near.delete("s")
        await quiet()
        far.answer.set()
        await quiet()
        assert (found[0].status, len(there)) == (404, 0)


async def test_a_session_that_returns_while_its_former_copy_ends_stays() -> None:
    async with replicas(app(), 2) as (one, _), anyio.create_task_group() as tasks:
        sessions = Sessions(one, tasks, SessionLimits(sessions=3))
        opened: list[Any] = [sessions.open(None, "a") for _ in range(3)]
        for session in opened:
            await sessions.confirm(session)
        sessions.open(None, "b")  # evicts the first session
        sessions.end(opened[1])
        back: Any = await sessions.enter(opened[0].id, None)
        assert back[0] is not opened[0]
        await quiet()
        assert await sessions.enter(opened[0].id, None) == back
        tasks.cancel_scope.cancel()


async def test_an_eviction_during_an_outage_of_the_store_ends_the_session_here_only() -> None:
    async with replicas(app(), 2) as (one, other), anyio.create_task_group() as tasks:
        far, there = RemoteStore(one), Sessions(other, tasks, SessionLimits(sessions=2))
        sessions = Sessions(one, tasks, SessionLimits(sessions=2))
        opened: list[Any] = [sessions.open(None, "a") for _ in range(2)]
        for session in opened:
            await sessions.confirm(session)
        far.lost = "lapse"
        sessions.open(None, "b")  # evicts the first session
        await quiet()
        assert len(sessions) == 1
        assert not isinstance(await there.enter(opened[0].id, None), Refusal)


async def test_an_initialize_that_could_not_be_stored_opens_no_session() -> None:
    async with replicas(app(), 2) as (one, _):
        far = RemoteStore(one)
        async with listening(one) as here:
            far.lost = "create"
            params = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            }
            assert (await here.post(here.message("initialize", params))).status_code == 503
            assert (await here.health())["sessions"] == 0


async def test_a_session_used_while_it_expires_stays() -> None:
    async with remote_store() as (near, far, there):
        await there.enter("s", None)
        far.slow = "lapse"
        forward(61)
        await quiet()
        await there.enter("s", None)
        far.answer.set()
        await quiet()
        assert len(there) == 1
        assert not await near.lapse("s", is_busy=False)  # the other replica still has it


async def test_a_session_used_while_another_expires_stays() -> None:
    async with remote_store() as (near, far, there):
        await near.create(SessionRecord("t", None, "c", 60, NEW))
        for id_ in "st":
            await there.enter(id_, None)
        far.slow = "lapse"
        forward(61)
        await quiet()
        entered: Any = await there.enter("t", None)
        entered[0].mark_idle()
        far.answer.set()
        await quiet()
        assert [session.id for session in there] == ["t"]


async def test_a_session_entered_while_it_expires_stays() -> None:
    async with remote_store() as (_, far, there), anyio.create_task_group() as tasks:
        await there.enter("s", None)
        far.slow = "enter"
        tasks.start_soon(there.enter, "s", None)
        await quiet()
        forward(61)
        await quiet()
        assert len(there) == 1
        far.answer.set()
        await quiet()
        assert len(there) == 1


async def test_a_session_with_subscriptions_does_not_expire() -> None:
    async with remote_store() as (_, _far, there):
        entered: Any = await there.enter("s", None)
        entered[0].connection.session.subscriptions.subscribe("memo://a", "memo://a")
        forward(61)
        await quiet()
        assert len(there) == 1
        entered[0].connection.session.subscriptions.unsubscribe("memo://a")
        forward(61)
        await quiet()
        assert len(there) == 0


async def test_ending_a_session_drops_its_streams() -> None:
    async with remote_store() as (_, _far, there):
        entered: Any = await there.enter("s", None)
        there.end(entered[0])
        # Only the private state shows that the memory is freed.
        assert there._shared_state.event_log._sessions == {}


async def test_a_failed_session_expiry_is_retried(caplog: pytest.LogCaptureFixture) -> None:
    async with remote_store() as (_, far, there):
        await there.enter("s", None)
        far.lost = "lapse"
        forward(61)
        await quiet()
        assert len(there) == 1
        assert [one.exc_info for one in caplog.records] == [None]
        far.lost = ""
        forward(61)
        await quiet()
        assert len(there) == 0


async def test_a_change_that_could_not_be_stored_is_refused_and_stored_later() -> None:
    async with replicas(app(), 2) as (one, other), listening(one) as here:
        far = RemoteStore(other)
        async with listening(other) as there:
            session = await there.initialize()
            far.lost = "update"
            refused = await there.post(there.message("logging/setLevel", {"level": "emergency"}), session)
            assert (refused.status_code, refused.json()["error"]["data"]["mayHaveRun"]) == (503, True)
            assert (await there.health())["streams"] == 0
            far.lost = ""
            assert (await there.post(there.message("ping"), session)).status_code == 200
            assert await log_errors(here, session) == ["released"]


async def test_a_call_that_loses_the_replica_before_its_stream_gets_503(
    redis_server: RedisServer,
) -> None:
    async with replicas(app(), 1, InRedis(redis_server)) as (one,), listening(one) as here:
        refused = await here.post(call(here, "be_lost", "b"), await here.initialize())
        assert refused.status_code == 503
        assert refused.json()["error"]["data"]["mayHaveRun"] is True


async def test_subscriptions_on_a_lost_replica_are_taken_over_once_the_client_listens(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening_at = list[bool]()
    monkeypatch.setattr(Sessions, "adopt", lambda _, session: listening_at.append(session.is_listening))
    async with two() as (here, there):
        session = await here.initialize()
        async with there.client.stream("GET", "/mcp", headers=merged(session)) as stream:
            assert stream.status_code == 200
    assert listening_at == [True]


async def test_a_large_answer_that_is_never_sent_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LARGE_RESULT_BYTES", 1)
    async with replicas(app(), 1) as (one,):
        store = RemoteStore(one)
        async with listening(one) as here:
            session = await here.initialize("2025-03-26")
            store.lost = "update"
            # Both are answered at once, before the store is asked.
            batch = [here.message("logging/setLevel", {"level": "error"}), here.message("tools/list")]
            assert (await here.post(batch, session)).status_code == 503
            assert one.calls.room.used == 0


@pytest.mark.parametrize(("is_lost", "status"), [(False, 200), (True, 503)])
async def test_a_delete_is_answered_when_the_other_replicas_know(
    redis_server: RedisServer, is_lost: bool, status: int
) -> None:
    async with replicas(app(), 1, InRedis(redis_server)) as (one,), listening(one) as here:
        session = await here.initialize()
        answers: list[httpx.Response] = []

        async def end() -> None:
            answers.append(await here.client.delete("/mcp", headers=merged(session)))

        redis_server.send(signal.SIGSTOP)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(end)
                await here.health()
                await quiet()
                assert not answers
                if is_lost:
                    one.replication.replica.link.give_up_lease("for the test")
                redis_server.send(signal.SIGCONT)
        finally:
            redis_server.send(signal.SIGCONT)
    assert answers[0].status_code == status
