"""What goes wrong at one server costs its own calls one clear error each, and leaves nothing behind."""

import gc
from collections import Counter
from typing import Any

import anyio
import pytest

from shared import Context
from shared.protocol.session.events import Call
from shared.server.connection import Connection
from tests.shared.gateway.joined.members import Door, joined, small
from tests.shared.server.peer import ERAS, PATIENCE, Peer, talking

both_eras = pytest.mark.parametrize("version", ERAS)


class Bench:
    """A member whose tools hang, fail or answer, and whose resource can be subscribed to."""

    def __init__(self, name: str) -> None:
        server = small(name)
        self.begun = anyio.Event()
        self.door = Door(name, server)

        @server.tool(name=f"{name}_hang")
        async def hang() -> str:
            """Hang."""
            self.begun.set()
            await anyio.sleep_forever()
            return "never"

        @server.tool(name=f"{name}_fail")
        async def fail() -> str:
            """Fail."""
            raise RuntimeError("nobody is told this")

        @server.tool(name=f"{name}_report")
        async def report(ctx: Context[Any]) -> str:
            """Report progress."""
            for step in range(10):
                await ctx.progress(step)
            return "done"

        @server.resource(f"{name}://1")
        async def read() -> str:
            """Read."""
            return name

        @server.on_subscribe
        async def subscribe(_ctx: Any, uri: str) -> str:
            return uri


async def subscribe(peer: Peer, uri: str) -> None:
    if peer.version == ERAS[0]:
        await peer.request("resources/subscribe", {"uri": uri})
    else:
        await peer.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}})
        await peer.other("notifications/subscriptions/acknowledged")


@both_eras
async def test_a_member_that_hangs_keeps_nobody_from_the_others(version: str) -> None:
    a, b = Bench("a"), Bench("b")
    async with joined(a.door, b.door) as running, talking(running, version) as peer:
        id_ = await peer.start("a_hang")
        with anyio.fail_after(PATIENCE):
            await a.begun.wait()
        assert await peer.text("b_report") == "done"
        await peer.cancel(id_)


@both_eras
async def test_tools_that_change_in_mid_call_leave_the_call(version: str) -> None:
    server, begun, go_on = small("a"), anyio.Event(), anyio.Event()

    @server.tool()
    async def work() -> str:
        """Work."""
        begun.set()
        await go_on.wait()
        return "done"

    door = Door("a", server)
    async with joined(door) as running, talking(running, version) as peer:
        id_ = await peer.start("work")
        with anyio.fail_after(PATIENCE):
            await begun.wait()
        assert door.running is not None
        door.running.features.tools.remove("work")
        door.running.changes.tools()
        go_on.set()
        assert (await peer.answer(id_))["result"]["content"][0]["text"] == "done"
        assert (await peer.call("work"))["error"]["message"] == "unknown tool: work"


@both_eras
async def test_a_member_that_announces_without_end_is_heard_once_at_a_time(version: str) -> None:
    a, b = Bench("a"), Bench("b")
    async with joined(a.door, b.door) as running, talking(running, version) as peer:
        await subscribe(peer, "a://1")
        assert a.door.running is not None
        for _ in range(1_000):
            a.door.running.changes.resource("a://1")
            a.door.running.changes.tools()
        assert await peer.text("b_report") == "done"
        await peer.request("resources/read", {"uri": "b://1"})
        told = [one for one in peer.others if one["method"] == "notifications/resources/updated"]
        assert len(told) == 1


@pytest.mark.slow
@pytest.mark.parametrize("lives", [10, pytest.param(40, marks=pytest.mark.slow)])
@both_eras
async def test_nothing_is_left_of_many_clients_and_lives(version: str, lives: int) -> None:
    bench = Bench("a")
    async with joined(bench.door, Bench("b").door) as running:

        async def come_and_go() -> None:
            async with talking(running, version) as peer:
                await subscribe(peer, "a://1")
                await subscribe(peer, "b://1")
                await peer.request("tools/call", {"name": "a_report"}, progressToken=1)
                await peer.call("a_fail")
                for name in ("a_hang", "b_hang"):
                    await peer.cancel(await peer.start(name))

        await come_and_go()
        before = counted()
        for _ in range(lives):
            for _ in range(5):
                await come_and_go()
            await bench.door.close()
            await bench.door.open()
        assert len(running.calls) == 0
        assert running.changes.held == 0
        assert bench.door.running is not None
        assert bench.door.running.changes.held == 0
        assert counted() <= before


def counted() -> Counter[str]:
    """How many there are of what a client takes."""
    gc.collect()
    return Counter(type(one).__name__ for one in gc.get_objects() if type(one) in (Call, Connection, Context))
