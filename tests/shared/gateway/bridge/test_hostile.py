"""Servers behind a bridge that break the protocol, flood, or change while they are asked."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.gateway.bridge import Bridge, Upstream, bridge
from shared.protocol.session.events import Outgoing
from shared.protocol.wire.jsonrpc import Failure, Message, Request, Response
from shared.server.context import Context
from shared.server.running import Running
from tests.descriptors import descriptors
from tests.quiet import quiet
from tests.shared.client.small import Small, text_of
from tests.shared.client.test_link import OPENING, Play, Played
from tests.shared.gateway.bridge.upstreams import EVERY_PAIR, NEW, OLD, Behind, bridged, child
from tests.shared.server.peer import ERAS, PATIENCE, Json, Peer, talking
from tests.wire import NEWEST_HANDSHAKE, STATELESS

CLIENTS = pytest.mark.parametrize("version", ERAS)
DISCOVERED: Json = {
    "supportedVersions": [STATELESS],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
}


class Scripted(Played):
    """A server that is asked what it is like any other thing."""

    def _sent(self, one: Outgoing) -> None:
        if isinstance(one.message, Request) and (answer := self.play(one.message)) is not None:
            self._answers.send_nowait(answer)


def scripted(mode: str, play: Play) -> Upstream:
    """A server whose answers `play` gives, in each of its sessions."""

    @asynccontextmanager
    async def connect(options: ClientOptions) -> AsyncIterator[Client]:
        given = replace(options, mode=mode if options.mode == "auto" else options.mode)
        async with Client(Scripted(play), given) as client:
            yield client

    return Upstream("odd", connect)


def described(request: Request) -> Message:
    """The answer to what opens a session; nothing else is known."""
    match request.method:
        case "initialize":
            return Response(request.id, {**OPENING, "capabilities": {"tools": {}}})
        case "server/discover":
            return Response(request.id, DISCOVERED)
    return Failure(request.id, -32601, "method not found")


@EVERY_PAIR
async def test_an_answer_for_another_id_is_nobodys(version: str, mode: str) -> None:
    asked = anyio.Event()

    def play(request: Request) -> Message:
        if request.method != "tools/call":
            return described(request)
        is_odd = request.params["name"] == "odd"
        if is_odd:
            asked.set()
        said = {"content": [{"type": "text", "text": request.params["name"]}]}
        return Response(f"not {request.id}" if is_odd else request.id, said)

    with anyio.fail_after(3 * PATIENCE):
        async with bridge(scripted(mode, play)).open() as running, talking(running, version) as peer:
            odd = await peer.start("odd")
            await asked.wait()
            assert await peer.text("even") == "even"
            (call,) = running.calls._tasks
            call.scope.deadline = 0
            assert (await peer.answer(odd))["result"]["isError"]
            assert await peer.text("even") == "even"


@CLIENTS
@pytest.mark.parametrize("mode", ["auto", OLD, NEW])
async def test_a_server_of_a_newer_version_is_refused_by_name(version: str, mode: str) -> None:
    def play(request: Request) -> Message:
        if request.method == "initialize":
            return Response(request.id, {**OPENING, "protocolVersion": "2099-01-01"})
        return Response(request.id, {**DISCOVERED, "supportedVersions": ["2099-01-01"]})

    with anyio.fail_after(3 * PATIENCE):
        async with talking(bridge(scripted(mode, play)), version) as peer:
            error = (await peer.call("any"))["error"]
            assert error["code"] == -32603
            why = "the server odd is not available: no protocol version in common: the server speaks 2099-01-01"
            assert error["message"].startswith(why)


RUBBISH = """
print("Welcome!", flush=True)
print('{"jsonrpc": "2.0", "id": 1]', "[]", "\\x00\\xff", sep="\\n", flush=True)
from shared.program.run import run
from tests.shared.gateway.bridge.dying import app
run(app)
"""


@pytest.mark.slow
@EVERY_PAIR
async def test_a_server_that_prints_rubbish_is_served(version: str, mode: str) -> None:
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
            ctx.link.session.tell("notifications/message", {"level": "warning", "data": "x" * 100})
            ctx.link.session.tell("notifications/tools/list_changed", {})
            await ctx.link.flush()
        self.released.set()
        return "told"

    async def vanish(self, ctx: Context[None]) -> str:
        """Be there no more."""
        ctx.running.features.tools.remove("vanish")
        ctx.changes.tools()
        return "I was here."


@pytest.mark.slow
async def test_notices_without_end_do_not_pile_up_for_a_client_that_reads_none() -> None:
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
async def test_tools_may_change_while_one_is_called(version: str, mode: str) -> None:
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


async def held(behind: Behind, running: Running[Bridge]) -> Json:
    """What there is of all that a call may leave behind."""
    await quiet()
    bridge_, client = running.state, running.state.base.client
    return {
        "tasks": len(asyncio.all_tasks()),
        "calls": (len(running.calls), len(behind.running.calls)),
        "waiters": len(client._link.connection._waiting),
        "asked": client._link.connection.session.asked,
        "tasks of the bridge": len(bridge_.tasks),
        "sessions": len(bridge_.own._by_link),
        "connections": len(behind.running.changes._listeners),
        "descriptors": len(descriptors()),
    }


async def rounds(count: int, version: str, mode: str) -> None:
    """So many rounds, after which nothing is left of them."""
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
            for _ in range(count):
                await go_round(small, peer)
            assert await held(behind, running) == before


@pytest.mark.slow
@EVERY_PAIR
async def test_calls_that_fail_leave_nothing_behind(version: str, mode: str) -> None:
    await rounds(20, version, mode)


@pytest.mark.slow
@pytest.mark.timeout(600)
@EVERY_PAIR
async def test_a_thousand_rounds_of_calls_that_fail_leave_nothing_behind(version: str, mode: str) -> None:
    await rounds(1_000, version, mode)
