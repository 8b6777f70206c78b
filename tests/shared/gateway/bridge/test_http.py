"""A server over HTTP behind a bridge, where each message comes on the stream of the request that it belongs to."""

from functools import partial
from typing import Any

import anyio
import pytest

from shared import list_roots
from shared.client.connect import connect_http
from shared.gateway.bridge import Upstream, bridge
from shared.server.context import Context
from tests.shared.client.small import Small, listening, text_of
from tests.shared.gateway.bridge.telling import until
from tests.shared.gateway.bridge.upstreams import NEW, OLD, over_http
from tests.shared.server.peer import PATIENCE, Json, talking
from tests.wire import STATELESS

FORMS: Json = {"elicitation": {"form": {}}, "roots": {}}
pytestmark = pytest.mark.slow


class Asking(Small):
    """Asks for roots until the call is over."""

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
        """Ask, and wait for nothing."""
        ctx.link.session.ask(ctx.call, {"roots": list_roots()})
        return "gone"

    async def shift(self, ctx: Context[None]) -> str:
        """Say on the stream of the call that a list has changed."""
        ctx.link.session.notify(ctx.call, "notifications/tools/list_changed", {})
        return "shifted"


async def test_a_question_is_taken_back_with_its_call() -> None:
    asking = Asking()
    with anyio.fail_after(3 * PATIENCE):
        async with over_http(OLD, asking.app) as upstream, talking(bridge(upstream), capabilities=FORMS) as peer:
            call = await peer.start("ask")
            question = await peer.other("roots/list")
            await peer.cancel(call)
            taken_back = await peer.other("notifications/cancelled")
            assert taken_back["params"]["requestId"] == question["id"]
            await asking.cancelled.wait()


async def test_a_question_that_a_server_leaves_behind_is_taken_back() -> None:
    with anyio.fail_after(3 * PATIENCE):
        async with over_http(OLD, Asking().app) as upstream, talking(bridge(upstream), capabilities=FORMS) as peer:
            call = await peer.start("ask_and_go")
            question = await peer.other("roots/list")
            taken_back = await peer.other("notifications/cancelled")
            assert taken_back["params"]["requestId"] == question["id"]
            assert text_of((await peer.answer(call))["result"]) == "gone"


async def test_calls_that_ask_at_the_same_time_have_each_its_own_answers() -> None:
    with anyio.fail_after(3 * PATIENCE):
        async with over_http(OLD, Asking().app) as upstream, talking(bridge(upstream), capabilities=FORMS) as peer:
            calls = {await peer.start("ask"): "file:///one", await peer.start("ask"): "file:///two"}
            asked = [await peer.other("roots/list") for _ in calls]
            for question, uri in zip(asked, calls.values(), strict=True):
                await peer.reply(question["id"], {"roots": [{"uri": uri}]})
            answers = {text_of((await peer.answer(call))["result"]) for call in calls}
            assert answers == set(calls.values())


async def test_a_change_on_the_stream_of_a_call_is_one_of_the_list() -> None:
    with anyio.fail_after(3 * PATIENCE):
        async with over_http(OLD, Asking().app) as upstream, talking(bridge(upstream), capabilities=FORMS) as peer:
            await peer.call("shift")
            assert await peer.other("notifications/tools/list_changed")


async def test_a_change_on_the_stream_of_a_call_is_not_told_there_to_a_stateless_client() -> None:
    with anyio.fail_after(3 * PATIENCE):
        async with over_http(OLD, Asking().app) as upstream, talking(bridge(upstream), STATELESS) as peer:
            for _ in range(2):
                assert text_of((await peer.call("shift"))["result"]) == "shifted"
            assert peer.others == []


@pytest.mark.slow
async def test_a_server_that_gives_no_answer_is_doubted() -> None:
    async with listening(Small()) as (host, stop):
        upstream = Upstream("remote", partial(connect_http, f"http://{host}/mcp"))
        async with bridge(upstream).open() as running, talking(running) as peer:
            assert await peer.text("add", a=1, b=2) == "3"
            stop.set()
            assert "error" in await peer.call("add", a=1, b=2)
            await until(lambda: not running.state.base.up)


@pytest.mark.parametrize("mode", [OLD, NEW])
async def test_progress_and_logs_come_on_the_stream_of_their_call(mode: str) -> None:
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
