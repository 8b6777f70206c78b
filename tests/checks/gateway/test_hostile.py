"""Servers behind a bridge that break the protocol, flood, change during requests, or fail a thousand times."""

import asyncio
import sys

import anyio
import pytest

from servers.gateway.bridge import Bridge, bridge
from shared.server.dispatch.context import Context
from shared.server.run import Run
from tests.descriptors import descriptors
from tests.quiet import quiet
from tests.servers.gateway.bridge.upstreams import EVERY_PAIR, Behind, bridged, child
from tests.shared.client.small import Small, text_of
from tests.shared.server.peer import PATIENCE, Json, Peer, talking
from tests.wire import NEWEST_HANDSHAKE, STATELESS

RUBBISH = """
print("Welcome!", flush=True)
print('{"jsonrpc": "2.0", "id": 1]', "[]", "\\x00\\xff", sep="\\n", flush=True)
from shared.program.run import run
from tests.servers.gateway.bridge.dying import app
run(app)
"""


@EVERY_PAIR
async def test_a_server_that_prints_garbage_is_served(version: str, mode: str) -> None:
    with anyio.fail_after(3 * PATIENCE):
        async with talking(bridge(child(mode, [sys.executable, "-c", RUBBISH])), version) as peer:
            assert (await peer.text("live")).isdecimal()


class Restless(Small):
    """Tells without end, and changes while it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.app.tool()(self.flood)
        self.app.tool()(self.vanish)

    async def flood(self, ctx: Context[None]) -> str:
        """Tell what belongs to no call, and more of it than anybody takes."""
        for _ in range(3_000):
            ctx.link.session.notify_session("notifications/message", {"level": "warning", "data": "x" * 100})
            ctx.link.session.notify_session("notifications/tools/list_changed", {})
            await ctx.link.flush()
        self.released.set()
        return "told"

    async def vanish(self, ctx: Context[None]) -> str:
        """Be there no more."""
        ctx.running.features.tools.remove("vanish")
        ctx.changes.tools()
        return "I was here."


async def test_endless_notifications_do_not_accumulate_for_an_idle_client() -> None:
    restless = Restless()
    async with bridged(Behind(restless.app), NEWEST_HANDSHAKE) as peer:
        call = await peer.start("flood")
        await restless.released.wait()
        await quiet()
        assert text_of((await peer.answer(call))["result"]) == "told"
        told = [one["method"] for one in peer.others]
        assert 0 < told.count("notifications/message") < 3_000
        assert told.count("notifications/tools/list_changed") < 3_000


@EVERY_PAIR
async def test_tools_may_change_during_a_call(version: str, mode: str) -> None:
    async with bridged(Behind(Restless().app, mode), version) as peer:
        assert await peer.text("vanish") == "I was here."
        error = (await peer.call("vanish"))["error"]
        assert error["code"] == -32602
        listed = (await peer.request("tools/list"))["result"]["tools"]
        assert "vanish" not in [tool["name"] for tool in listed]


async def go_round(small: Small, peer: Peer) -> None:
    """One call that fails, one that is refused what it asks, and one that is cancelled."""
    assert (await peer.call("fail"))["result"]["isError"]
    asking = await peer.start("greet")
    if peer.version == STATELESS:
        first = (await peer.answer(asking))["result"]
        refused = {"requestState": first["requestState"], "inputResponses": {_only(first): {"action": "decline"}}}
        params: Json = {"name": "greet", "arguments": {}, **refused}
        assert text_of((await peer.request("tools/call", params))["result"]) == "decline"
    else:
        question = await peer.other("elicitation/create")
        await peer.reply(question["id"], {"action": "decline"})
        assert text_of((await peer.answer(asking))["result"]) == "decline"
    waiting = await peer.start("wait")
    await small.started.wait()
    await peer.cancel(waiting)
    await small.cancelled.wait()
    small.started, small.cancelled = anyio.Event(), anyio.Event()
    peer.others.clear()


def _only(result: Json) -> str:
    (key,) = result["inputRequests"]
    return str(key)


async def held(behind: Behind, running: Run[Bridge]) -> Json:
    """What there is of all that a call may leave behind, which nothing but the objects themselves can tell."""
    await quiet()
    bridge_, client = running.state, running.state.connection.client
    return {
        "tasks": len(asyncio.all_tasks()),
        "calls": (len(running.calls), len(behind.running.calls)),
        "waiters": len(client._link.connection._waiting),
        "asked": client._link.connection.session.server_request_count,
        "tasks of the bridge": len(bridge_.tasks),
        "sessions": len(bridge_.dedicated_sessions._by_link),
        "connections": len(behind.running.changes._listeners),
        "descriptors": len(descriptors()),
    }


@pytest.mark.timeout(600)
@EVERY_PAIR
async def test_rounds_of_failing_calls_leak_nothing(version: str, mode: str) -> None:
    small = Small()
    behind = Behind(small.app, mode)
    with anyio.fail_after(500):
        async with (
            behind.serving() as upstream,
            bridge(upstream).open() as running,
            talking(running, version, {"elicitation": {"form": {}}}) as peer,
        ):
            await go_round(small, peer)
            before = await held(behind, running)
            for _ in range(200):
                await go_round(small, peer)
            assert await held(behind, running) == before
