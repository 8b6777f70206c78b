"""Notifications and questions of one call: invalid ones are dropped, the others stay on the stream of the call."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest

from servers.gateway.bridge import Upstream, bridge
from shared import list_roots
from shared.client.connect import connect_http
from shared.server.dispatch.context import Context
from tests.servers.gateway.bridge.recording import Recording
from tests.servers.gateway.bridge.telling import until
from tests.servers.gateway.bridge.upstreams import EVERY_PAIR, NEW, OLD, Behind, bridged, over_http
from tests.shared.client.small import Small, listening, text_of
from tests.shared.server.peer import PATIENCE, Json, Peer, talking
from tests.wire import NEWEST_HANDSHAKE, STATELESS


def params_of(peer: Peer, method: str) -> list[Json]:
    """The params of all notifications of that method so far."""
    return [one["params"] for one in peer.others if one["method"] == method]


@pytest.mark.slow
@pytest.mark.parametrize(("version", "mode"), [(NEWEST_HANDSHAKE, OLD), (STATELESS, NEW)])
async def test_progress_does_not_pile_up_for_a_client_that_stops_reading(version: str, mode: str) -> None:
    async def flood(context: Context[None]) -> Json:
        for number in range(3_000):
            context.link.session.progress(context.call, number, None, "x" * 100)
            await context.link.flush()
        return {"content": []}

    recording = Recording()
    recording.answers["tools/call"] = flood
    async with bridged(Behind(recording.app, mode), version) as peer:
        call = await peer.begin("tools/call", {"name": "any"}, progressToken=1)
        await recording.came.wait()
        await until(lambda: recording.seen[0].call.is_over)
        assert (await peer.answer(call))["result"]["content"] == []
        assert 0 < len(params_of(peer, "notifications/progress")) < 3_000


REPORTS: list[Json] = [
    *({"progress": "much"}, {"progress": True}, {"progress": 10**400}, {}),
    {"progress": 1, "total": "all", "message": 5},
]


@EVERY_PAIR
async def test_invalid_progress_and_log_notifications_are_dropped(version: str, mode: str) -> None:
    async def tell(context: Context[None]) -> Json:
        for said in REPORTS:
            params: Json = {"progressToken": context.call.token, **said}
            context.link.session.notify(context.call, "notifications/progress", params)
        for level in ("loud", 5, ["info"], None):
            context.link.session.notify(context.call, "notifications/message", {"level": level, "data": "x"})
        return {"content": []}

    recording = Recording()
    recording.answers["tools/call"] = tell
    async with bridged(Behind(recording.app, mode), version) as peer:
        level: Json = {"io.modelcontextprotocol/logLevel": "debug"} if version == STATELESS else {}
        await peer.request("tools/call", {"name": "any"}, progressToken=1, **level)
        assert [one["params"] for one in peer.others] == [{"progressToken": 1, "progress": 1}]


# Over HTTP


class Asking(Small):
    """Asks for roots until the call ends."""

    def __init__(self) -> None:
        super().__init__()
        self.app.tool()(self.ask)
        self.app.tool()(self.ask_and_go)
        self.app.tool()(self.shift)

    async def ask(self, ctx: Context[None]) -> str:
        """Ask."""
        self.started.set()
        try:
            return " ".join(root.uri for root in await ctx.roots())
        finally:
            self.cancelled.set()

    async def ask_and_go(self, ctx: Context[None]) -> str:
        """Ask without waiting for the answer."""
        ctx.link.session.ask(ctx.call, {"roots": list_roots()})
        return "gone"

    async def shift(self, ctx: Context[None]) -> str:
        """Announce a changed list on the stream of the call."""
        ctx.link.session.notify(ctx.call, "notifications/tools/list_changed", {})
        return "shifted"


@asynccontextmanager
async def asked_over_http(asking: Asking, version: str = NEWEST_HANDSHAKE) -> AsyncIterator[Peer]:
    """A client with roots, of a bridge to that server."""
    with anyio.fail_after(3 * PATIENCE):
        async with over_http(OLD, asking.app) as upstream, talking(bridge(upstream), version, {"roots": {}}) as peer:
            yield peer


@pytest.mark.slow
async def test_a_question_is_cancelled_when_its_call_is_cancelled_or_ends() -> None:
    asking = Asking()
    async with asked_over_http(asking) as peer:
        call = await peer.start("ask")
        question = await peer.other("roots/list")
        await peer.cancel(call)
        assert (await peer.other("notifications/cancelled"))["params"]["requestId"] == question["id"]
        await asking.cancelled.wait()
        call = await peer.start("ask_and_go")
        question = await peer.other("roots/list")
        assert (await peer.other("notifications/cancelled"))["params"]["requestId"] == question["id"]
        assert text_of((await peer.answer(call))["result"]) == "gone"


@pytest.mark.slow
async def test_concurrent_questions_get_their_own_answers() -> None:
    async with asked_over_http(Asking()) as peer:
        calls = {await peer.start("ask"): "file:///one", await peer.start("ask"): "file:///two"}
        asked = [await peer.other("roots/list") for _ in calls]
        for question, uri in zip(asked, calls.values(), strict=True):
            await peer.reply(question["id"], {"roots": [{"uri": uri}]})
        assert {text_of((await peer.answer(call))["result"]) for call in calls} == set(calls.values())


@pytest.mark.slow
async def test_list_changed_on_a_call_stream_reaches_clients_with_a_session_only() -> None:
    async with asked_over_http(Asking()) as peer:
        await peer.call("shift")
        assert await peer.other("notifications/tools/list_changed")
    async with asked_over_http(Asking(), STATELESS) as peer:
        for _ in range(2):
            assert text_of((await peer.call("shift"))["result"]) == "shifted"
        assert peer.others == []


@pytest.mark.slow
async def test_a_failed_call_marks_the_upstream_as_down() -> None:
    async with listening(Small()) as (host, stop):
        upstream = Upstream("remote", partial(connect_http, f"http://{host}/mcp"))
        async with bridge(upstream).open() as running, talking(running) as peer:
            assert await peer.text("add", a=1, b=2) == "3"
            stop.set()
            assert "error" in await peer.call("add", a=1, b=2)
            await until(lambda: not running.state.connection.up)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [OLD, NEW])
async def test_progress_and_logs_arrive_on_the_stream_of_their_call(mode: str) -> None:
    with anyio.fail_after(3 * PATIENCE):
        async with over_http(mode, Small().app) as upstream, talking(bridge(upstream)) as peer:
            call: Any = await peer.begin("tools/call", {"name": "count", "arguments": {"to": 2}}, progressToken="t")
            assert text_of((await peer.answer(call))["result"]) == "done"
            reports = [one["params"] for one in peer.others if one["method"] == "notifications/progress"]
            assert reports == [
                {"progressToken": "t", "progress": number, "total": 2, "message": f"at {number}"} for number in (1, 2)
            ]
            assert [one["params"] for one in peer.others if one["method"] == "notifications/message"] == [
                {"level": "warning", "data": "counted"}
            ]
