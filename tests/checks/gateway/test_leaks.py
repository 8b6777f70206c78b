"""Clients and servers that come and go many times leak nothing."""

import gc
from collections import Counter
from typing import Any

import anyio
import pytest

from shared import Context
from shared.protocol.session.events import Call
from shared.server.dispatch.connection import Connection
from tests.servers.gateway.changes import subscribed
from tests.servers.gateway.joined.members import Door, joined, small
from tests.shared.server.peer import ERAS, talking


class Bench:
    """A member whose tools hang, fail or answer, and whose resource can be subscribed to."""

    def __init__(self, name: str) -> None:
        server = small(name)
        self.door = Door(name, server)

        @server.tool(name=f"{name}_hang")
        async def hang() -> str:
            """Hang."""
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


@pytest.mark.parametrize("version", ERAS)
async def test_many_clients_and_restarts_leak_nothing(version: str) -> None:
    bench = Bench("a")
    async with joined(bench.door, Bench("b").door) as running:

        async def come_and_go() -> None:
            async with talking(running, version) as peer:
                await subscribed(peer, "a://1")
                await subscribed(peer, "b://1")
                await peer.request("tools/call", {"name": "a_report"}, progressToken=1)
                await peer.call("a_fail")
                for name in ("a_hang", "b_hang"):
                    await peer.cancel(await peer.start(name))

        await come_and_go()
        before = counted()
        for _ in range(40):
            for _ in range(5):
                await come_and_go()
            await bench.door.close()
            await bench.door.open()
        assert len(running.calls) == 0
        assert running.changes.subscribed_resources == 0
        assert bench.door.running is not None
        assert bench.door.running.changes.subscribed_resources == 0
        assert counted() <= before


def counted() -> Counter[str]:
    """How many there are of what a client takes."""
    gc.collect()
    return Counter(type(one).__name__ for one in gc.get_objects() if type(one) in (Call, Connection, Context))
