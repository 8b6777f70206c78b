"""The work in flight of a server: what belongs to a link and what outlives it."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from shared import Context, ToolError
from shared.errors import CallTimeout
from shared.protocol.wire.codec import decode
from shared.server.dispatch.connection import serve
from shared.server.dispatch.limits import CallLimits
from shared.server.extension import Extension
from shared.transports.memory import memory_pair
from tests.clock import forward
from tests.quiet import quiet
from tests.shared.server.peer import ERAS, PATIENCE, STATELESS, Peer, server, talking
from tests.wire import with_envelope


class Later:
    """A server whose tool `later` answers at once and goes on, and what came of that."""

    def __init__(self, **limits):
        self.go = anyio.Event()
        self.calls = []
        self.log = []
        self.told = []
        self.fails = False
        self.app = server()
        self.app.limits = replace(self.app.limits, **limits)
        for tool in (self.later, self.ready, self.hold):
            self.app.tool()(tool)

    async def later(self, ctx: Context[None]) -> str:
        """Answers at once and goes on."""
        ctx.link.session.finish(ctx.call, {"content": []})
        ctx.running.calls.detach(ctx.call, self)
        self.calls.append(ctx.call)
        await ctx.progress(1)
        try:
            await self.go.wait()
        finally:
            self.log.append("over")
        if self.fails:
            raise ToolError("no")
        return "done"

    async def ready(self) -> str:
        """Is quick."""
        return "ready"

    async def hold(self) -> str:
        """Waits for ever."""
        self.log.append("held")
        await anyio.sleep_forever()
        return ""

    def finish(self, call, outcome):
        self.told.append((call, outcome))

    @asynccontextmanager
    async def open(self):
        with anyio.fail_after(PATIENCE):
            async with self.app.open() as self.running:
                yield

    @asynccontextmanager
    async def connected(self):
        """A connection to the open server. Its end is that of the connection, not of the server."""
        ours, theirs = memory_pair()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, self.running, theirs)
            yield Peer(ours, STATELESS, {})
            ours.close()
        theirs.close()

    async def begin(self):
        """Has a call outlive its connection."""
        async with self.connected() as peer:
            id_ = await peer.begin("tools/call", {"name": "later"}, progressToken=1)
            assert (await peer.answer(id_))["result"]["content"] == []
            await quiet()
            assert peer.others == []
        assert self.log == []


async def test_a_detached_call_outlives_its_request_and_its_connection():
    later = Later()
    async with later.open():
        await later.begin()
        assert later.told == []
        later.go.set()
        await later.running.calls.drain()
    ((call, result),) = later.told
    assert call is later.calls[0]
    assert result["content"] == [{"type": "text", "text": "done"}]


async def test_a_failure_of_a_detached_call_reaches_its_listener():
    later = Later()
    later.fails = True
    async with later.open():
        await later.begin()
        later.go.set()
        await later.running.calls.drain()
    ((_, error),) = later.told
    assert (type(error), str(error)) == (ToolError, "no")


async def test_cancelling_a_detached_call_notifies_nobody():
    later = Later()
    async with later.open():
        await later.begin()
        later.running.calls.cancel(later.calls[0])
        await later.running.calls.drain()
        assert later.log == ["over"]
    assert later.told == []


async def test_a_detached_call_ends_with_the_server():
    later = Later()
    async with later.open():
        await later.begin()
    assert later.log == ["over"]
    assert (later.told, len(later.running.calls)) == ([], 0)


async def test_a_detached_call_has_no_deadline():
    later = Later()
    later.app.budget = CallLimits(seconds=5)
    async with later.open():
        await later.begin()
        forward(10)
        await quiet()
        assert later.log == []
        later.go.set()
        await later.running.calls.drain()
    ((_, outcome),) = later.told
    assert not isinstance(outcome, CallTimeout)


async def test_a_detached_call_has_no_deadline_of_an_inner_limit():
    later = Later()

    async def narrowed(ctx: Context[None]) -> str:
        """Goes on within a limit that an operator has set for it."""
        with ctx.running.calls.limit_time(ctx.call, 5):
            return await later.later(ctx)

    later.app.tool()(narrowed)
    async with later.open(), later.connected() as peer:
        await peer.answer(await peer.start("narrowed"))
        forward(10)
        await quiet()
        assert later.log == []
        later.go.set()
        await later.running.calls.drain()
    ((_, outcome),) = later.told
    assert outcome["content"] == [{"type": "text", "text": "done"}]


@pytest.mark.parametrize("waiting", [False, True])
async def test_a_detached_call_does_not_count_as_a_concurrent_call(waiting):
    later = Later(concurrent_calls=1)
    async with later.open(), later.connected() as peer:
        id_ = await peer.start("later")
        if not waiting:
            await peer.answer(id_)
        assert await peer.text("ready") == "ready"
        assert len(later.running.calls) == 1


async def test_the_end_of_a_detached_call_frees_no_second_slot():
    later = Later(concurrent_calls=1)
    async with later.open(), later.connected() as peer:
        await peer.answer(await peer.start("later"))
        later.go.set()
        await later.running.calls.drain()
        held = [await peer.start("hold") for _ in range(2)]
        await quiet()
        assert later.log == ["over", "held"]
        for id_ in held:
            await peer.cancel(id_)


async def test_the_id_of_a_detached_call_can_be_reused():
    later = Later()
    async with later.open(), later.connected() as peer:
        for _ in range(2):
            await peer.answer(await peer.begin("tools/call", {"name": "later"}, id=7))
        await peer.cancel(7)
        await quiet()
        assert (later.log, len(later.running.calls)) == ([], 2)


async def test_a_queued_call_does_not_begin_while_the_server_closes():
    later = Later(concurrent_calls=1)
    async with anyio.create_task_group() as tasks:
        ours, theirs = memory_pair()
        async with later.open():
            tasks.start_soon(serve, later.running, theirs)
            peer = Peer(ours, STATELESS, {})
            await peer.start("hold")
            await peer.start("hold")
            await quiet()
            assert later.log == ["held"]
        assert later.log == ["held"]
        ours.close()
    theirs.close()


async def test_a_new_call_gets_no_freed_slot_while_the_server_closes():
    later, end = Later(concurrent_calls=1), anyio.Event()

    async def stubborn() -> str:
        """Ends when it is told to."""
        with anyio.CancelScope(shield=True):
            await end.wait()
        return ""

    async def come(peer):
        await quiet()
        await peer.start("hold")
        await quiet()
        end.set()

    later.app.tool()(stubborn)
    async with anyio.create_task_group() as tasks:
        ours, theirs = memory_pair()
        async with later.open():
            tasks.start_soon(serve, later.running, theirs)
            peer = Peer(ours, STATELESS, {})
            await peer.start("stubborn")
            await quiet()
            tasks.start_soon(come, peer)
        assert later.log == []
        ours.close()
    theirs.close()


async def test_a_call_cancelled_as_it_may_begin_does_not_begin(caplog):
    later = Later()
    async with later.open():
        link, room = later.running.connect(None, lambda: None), later.running.calls.room
        params = with_envelope({"name": "hold", "arguments": {}}, capabilities={})
        size = later.app.limits.call_bytes
        room.add("", size)
        link.receive(
            decode(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode())
        )
        await quiet()
        room.remove("", size)
        assert not link.begin_close()  # in the same turn of the loop
        await later.running.calls.drain()
    assert later.log == []
    assert not caplog.records


async def test_a_detached_call_does_not_wait_for_a_slow_peer():
    later = Later(waiting_messages=2)

    async def more(ctx: Context[None]) -> str:
        """Answers, and has more to say than its peer takes."""
        for done in range(3):
            ctx.link.session.progress(ctx.call, done, None, None)
        ctx.link.session.finish(ctx.call, {"content": []})
        ctx.running.calls.detach(ctx.call, later)
        ctx.running.calls.detach(ctx.call, later)
        await ctx.progress(9)
        return "done"

    later.app.tool()(more)
    async with later.open():
        link = later.running.connect(None, lambda: None)
        params = with_envelope({"name": "more", "arguments": {}}, capabilities={}, progressToken=1)
        link.receive(
            decode(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode())
        )
        await later.running.calls.drain()
        await link.close()
    ((_, outcome),) = later.told
    assert outcome["content"] == [{"type": "text", "text": "done"}]


@pytest.mark.parametrize("result", [None, [1], {"content": 5}], ids=["nothing", "no object", "what no version has"])
async def test_a_result_that_can_not_be_sent_is_an_internal_error_and_frees_its_slot(result):
    async def odd(_running, _context, _params):
        return result

    extension = Extension("odd", around=lambda row, handler: odd if row.name == "tools/call" else handler)
    app = server(extensions=[extension])
    app.tool()(Later().ready)
    app.limits = replace(app.limits, concurrent_calls=1)
    async with talking(app, "2024-11-05") as peer:
        for _ in range(2):
            answer = await peer.request("tools/call", {"name": "ready", "arguments": {}})
            assert answer["error"] == {"code": -32603, "message": "internal error"}


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("kind", [SystemExit, asyncio.CancelledError, BaseException])
@pytest.mark.parametrize("way", ["def", "async def", "group"])
async def test_a_tool_that_exits_or_raises_a_cancellation_is_an_internal_error(version, kind, way, caplog):
    app = server()

    async def fail() -> None:
        """Fails."""
        raise kind

    async def fail_in_group() -> None:
        """Fails."""
        raise BaseExceptionGroup("several", [kind()])

    def fail_in_thread() -> None:
        """Fails."""
        raise kind

    app.tool(name="fail")({"def": fail_in_thread, "async def": fail, "group": fail_in_group}[way])
    async with talking(app, version) as peer:
        for _ in range(2):
            answer = await peer.request("tools/call", {"name": "fail", "arguments": {}})
            assert answer["error"] == {"code": -32603, "message": "internal error"}
    assert caplog.records[-1].exc_info[0] is kind


async def test_a_resource_that_waits_for_a_cancelled_task_is_an_internal_error():
    app = server()

    @app.resource("x:y")
    async def read() -> str:
        task = asyncio.ensure_future(anyio.sleep_forever())
        task.cancel()
        await task
        return ""

    async with talking(app, STATELESS) as peer:
        answer = await peer.request("resources/read", {"uri": "x:y"})
        assert answer["error"]["message"] == "internal error"
