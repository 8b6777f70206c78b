"""A server over HTTP behind a bridge, where each message comes on the stream of the request that it belongs to."""

from typing import Any

import anyio
import pytest

from shared.gateway.bridge import bridge
from shared.server.context import Context
from tests.client.small import Small, text_of
from tests.gateway.bridge.upstreams import NEW, OLD, over_http
from tests.server.peer import PATIENCE, Json, talking

FORMS: Json = {"elicitation": {"form": {}}, "roots": {}}
pytestmark = pytest.mark.slow


class Asking(Small):
    """Asks for roots until the call is over."""

    def __init__(self) -> None:
        super().__init__()
        self.app.tool()(self.ask)
        self.app.tool()(self.shift)

    async def ask(self, ctx: Context[None]) -> str:
        """Ask."""
        self.started.set()
        try:
            return " ".join(root.uri for root in await ctx.roots())
        finally:
            self.cancelled.set()

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
