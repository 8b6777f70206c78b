"""The loop between a transport and a session: cancellation, draining, slow peers, and the release of memory."""

import asyncio
import json
from contextlib import asynccontextmanager

import anyio
import pytest

from shared import Context
from shared.protocol.wire.codec import decode
from shared.protocol.wire.jsonrpc import Failure, Notification, Request, Response
from shared.server.dispatch.connection import MANY_CHANGES, serve
from shared.server.dispatch.limits import Limits
from shared.testing import connected
from shared.transports.memory import memory_pair
from tests.quiet import quiet
from tests.shared.server.peer import ERAS, PATIENCE, server, talking
from tests.wire import with_envelope


class Work:
    """A server with calls that wait; records their outcomes."""

    def __init__(self, **limits):
        self.log = []
        self.go = anyio.Event()
        self.app = server()
        self.app.limits = Limits(**limits)
        for tool in (self.wait, self.stubborn, self.quick, self.many):
            self.app.tool()(tool)

    async def wait(self, name: str = "") -> str:
        """Waits until it may go."""
        self.log.append(f"+{name}")
        try:
            await self.go.wait()
        finally:
            self.log.append(f"-{name}")
        return name

    async def stubborn(self) -> str:
        """Ends late, even if it is cancelled."""
        with anyio.CancelScope(shield=True):
            await self.go.wait()
        return "late"

    async def quick(self) -> str:
        """Is quick."""
        return "done"

    async def many(self, ctx: Context[None], reports: int) -> str:
        """Reports progress many times."""
        for number in range(reports):
            await ctx.progress(number)
            self.log.append(number)
        return "done"


# Cancelling


@pytest.mark.parametrize("version", ERAS)
async def test_a_cancelled_call_is_stopped_and_not_answered(version):
    work = Work()
    async with talking(work.app, version) as peer:
        id_ = await peer.start("wait", name="a")
        await quiet()
        await peer.cancel(id_)
        await quiet()
        assert work.log == ["+a", "-a"]
        assert await peer.text("quick") == "done"
        assert peer.unclaimed == []


async def test_a_late_result_of_a_cancelled_call_does_not_answer_a_call_with_its_id():
    work = Work()
    async with talking(work.app) as peer:
        await peer.begin("tools/call", {"name": "stubborn"}, id=7)
        await quiet()
        await peer.cancel(7)
        await peer.begin("tools/call", {"name": "wait", "arguments": {"name": "new"}}, id=7)
        await quiet()
        work.go.set()
        assert (await peer.answer(7))["result"]["content"][0]["text"] == "new"
        assert await peer.text("quick") == "done"
        assert peer.unclaimed == []


class Bursts:
    """A transport that delivers several messages at once, as a pipe may."""

    def __init__(self, *bursts):
        self.bursts = list(bursts)
        self.sent = []

    async def receive(self):
        await quiet()
        if not self.bursts:
            raise anyio.EndOfStream
        return self.bursts.pop(0)

    async def send(self, outgoing):
        self.sent += [one.message for one in outgoing if one.message is not None]


def listen(id, *lists):
    wanted = {f"{name}ListChanged": True for name in lists}
    return Request(id, "subscriptions/listen", with_envelope({"notifications": wanted}))


def cancelled(id):
    return Notification("notifications/cancelled", {"requestId": id})


async def served(app, *bursts):
    transport = Bursts(*bursts)
    with anyio.fail_after(PATIENCE):
        async with app.open() as running:
            await serve(running, transport)
    return transport.sent


async def test_the_id_of_a_cancelled_stream_can_be_reused_at_once():
    sent = await served(Work().app, [listen("s", "tools")], [cancelled("s"), listen("s", "tools")])
    assert [type(message).__name__ for message in sent].count("Response") == 1
    assert not any(getattr(message, "code", None) for message in sent)


async def test_the_id_of_a_cancelled_call_can_be_reused_at_once():
    call = Request(1, "tools/call", with_envelope({"name": "wait"}))
    quick = Request(1, "tools/call", with_envelope({"name": "quick"}))
    (answer,) = await served(Work().app, [call], [cancelled(1), quick])
    assert isinstance(answer, Response)
    assert answer.result["content"][0]["text"] == "done"


async def test_a_call_cancelled_before_it_began_never_runs():
    work = Work()
    call = Request(1, "tools/call", with_envelope({"name": "wait"}))
    assert await served(work.app, [call, cancelled(1)]) == []
    assert work.log == []


@pytest.mark.slow
async def test_ten_thousand_cancellations_leave_no_state():
    work = Work(concurrent_calls=10)
    async with talking(work.app) as peer:
        for number in range(10_000):
            await peer.begin("tools/call", {"name": "wait"}, id=number)
            await peer.cancel(number)
        assert await peer.text("quick") == "done"
        assert len(asyncio.all_tasks()) <= 4


# The end


@pytest.mark.parametrize("at_once", [3, 1])
async def test_running_and_queued_calls_finish_after_the_client_closes_its_side(at_once):
    work = Work(concurrent_calls=at_once)
    async with talking(work.app) as peer:
        ids = [await peer.start("wait", name=str(number)) for number in range(3)]
        peer.end.close_sending()
        await quiet()
        work.go.set()
        texts = [(await peer.answer(id_))["result"]["content"][0]["text"] for id_ in ids]
        assert texts == ["0", "1", "2"]
        with pytest.raises(anyio.EndOfStream):
            await peer.receive()


async def test_a_call_that_does_not_end_is_abandoned():
    work = Work(drain_seconds=0.01)
    async with talking(work.app) as peer:
        await peer.start("wait", name="a")
        await quiet()
        peer.end.close_sending()
        with pytest.raises(anyio.EndOfStream):
            await peer.receive()
    assert work.log == ["+a", "-a"]


async def test_the_calls_of_a_disconnected_client_are_cancelled():
    work = Work()
    async with work.app.open() as running:
        async with talking(running) as peer:
            await peer.start("wait", name="a")
            await quiet()
            peer.end.close()
            await quiet()
            assert running.changes._listeners  # nobody but the bus itself knows whom it still tells
            work.go.set()
        assert work.log == ["+a", "-a"]
        assert not running.changes._listeners


async def test_messages_that_can_not_be_written_at_once_are_sent():
    class Full(Bursts):
        def try_send(self, _outgoing):
            return False

    work = Work()
    transport = Full([Request(1, "ping", with_envelope({}))], [Request(2, "ping", with_envelope({}))])
    with anyio.fail_after(PATIENCE):
        async with work.app.open() as running:
            await serve(running, transport)
    assert [message.id for message in transport.sent] == [1, 2]


async def test_a_broken_connection_cancels_running_calls():
    class Broken(Bursts):
        async def receive(self):
            await quiet()
            if self.bursts:
                return self.bursts.pop(0)
            raise anyio.BrokenResourceError

    work = Work()
    call = Request(1, "tools/call", with_envelope({"name": "wait", "arguments": {"name": "a"}}))
    with anyio.fail_after(PATIENCE):
        async with work.app.open() as running:
            await serve(running, Broken([call]))
    assert work.log == ["+a", "-a"]


@pytest.mark.slow
async def test_a_thousand_connections_leave_no_state():
    work, before = Work(), len(asyncio.all_tasks())
    work.go.set()
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": with_envelope({"name": "quick"})}
    async with work.app.open() as running:
        for _ in range(1_000):
            async with connected(running) as end:
                await end.send_bytes(json.dumps(call).encode())
                assert isinstance(decode(await end.receive_bytes()), Response)
        assert len(asyncio.all_tasks()) == before
        assert not running.changes._listeners
        assert running.changes.subscribed_resources == 0


# Slow peers


class Slow:
    """A client's end that reads nothing until the test lets it."""

    def __init__(self, end, running):
        self.end = end
        self.running = running

    async def push(self, message):
        await self.end.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def take(self, count):
        return [decode(await self.end.receive_bytes()) for _ in range(count)]


@asynccontextmanager
async def slowly(app):
    ours, theirs = memory_pair(0)
    with anyio.fail_after(PATIENCE):
        async with app.open() as running, anyio.create_task_group() as tasks:
            tasks.start_soon(serve, running, theirs)
            yield Slow(ours, running)
            ours.close()
    theirs.close()


def ping(number):
    return {"id": number, "method": "tools/call", "params": with_envelope({"name": "quick"})}


async def test_reading_pauses_while_a_peer_does_not_read():
    pushed = []

    async def push_all(slow):
        for number in range(100):
            await slow.push(ping(number))
            pushed.append(number)

    async with slowly(Work(waiting_messages=10).app) as slow, anyio.create_task_group() as tasks:
        tasks.start_soon(push_all, slow)
        await quiet()
        assert len(pushed) < 40
        answers = await slow.take(100)
    assert sorted(answer.id for answer in answers) == list(range(100))


async def test_progress_waits_for_a_slow_peer():
    work = Work(waiting_messages=10)
    async with slowly(work.app) as slow:
        call = {"name": "many", "arguments": {"reports": 1_000}}
        await slow.push({"id": 1, "method": "tools/call", "params": with_envelope(call, progressToken=1)})
        await quiet()
        assert len(work.log) < 30
        *reports, answer = await slow.take(1_001)
    assert [report.params["progress"] for report in reports] == list(range(1_000))
    assert isinstance(answer, Response)


async def test_large_progress_waits_for_a_slow_peer():
    app, log = server(), []
    app.limits = Limits(waiting_bytes=1_000_000)

    @app.tool()
    async def many(ctx: Context[None]) -> str:
        """Reports at length."""
        for number in range(50):
            await ctx.progress(number, None, "x" * 100_000)
            log.append(number)
        return "done"

    async with slowly(app) as slow:
        call = {"name": "many", "arguments": {}}
        await slow.push({"id": 1, "method": "tools/call", "params": with_envelope(call, progressToken=1)})
        await quiet()
        assert len(log) < 15
        *reports, answer = await slow.take(51)
    assert [report.params["progress"] for report in reports] == list(range(50))
    assert isinstance(answer, Response)


def large_work(**limits):
    """A server with a tool that returns 100,000 bytes, and the number of its calls."""
    app, log = server(), []
    app.limits = Limits(**limits)

    @app.tool()
    async def large() -> str:
        """Returns much."""
        log.append(len(log))
        return "x" * 100_000

    return app, log


def large(number):
    return {"id": number, "method": "tools/call", "params": with_envelope({"name": "large", "arguments": {}})}


async def test_calls_wait_while_large_results_are_unread():
    app, log = large_work(result_bytes=1_000_000, concurrent_calls=2)
    async with slowly(app) as slow, anyio.create_task_group() as tasks:

        async def push_all():
            for number in range(50):
                await slow.push(large(number))

        tasks.start_soon(push_all)
        await quiet()
        assert len(log) < 20
        answers = await slow.take(50)
    assert sorted(answer.id for answer in answers) == list(range(50))
    assert all(isinstance(answer, Response) for answer in answers)


async def test_unread_results_are_limited_by_bytes():
    app, _ = large_work(call_bytes=1_000_000)
    async with slowly(app) as slow:
        for round_ in (0, 100):  # what was taken is given back
            for number in range(round_, round_ + 20):
                await slow.push(large(number))
            await quiet()
            answers = await slow.take(20)
            refused = [answer for answer in answers if isinstance(answer, Failure)]
            assert 5 < len(refused) < 16
            assert (
                refused[0].message == "the call was made, but too many results are waiting for you: read those first"
            )


def called(number, name):
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name}}


async def test_results_of_a_pending_batch_count_as_memory():
    app, _ = large_work(call_bytes=1_000_000)
    go = anyio.Event()

    @app.tool()
    async def last() -> str:
        """Returns when it may."""
        await go.wait()
        return "done"

    async with app.open() as running, talking(running, "2025-03-26") as peer:
        await peer.send([*[called(number, "large") for number in range(20)], called(20, "last")])
        await quiet()
        assert not running.calls.reserve_memory("", 900_000)
        go.set()
        answers = json.loads(await peer.end.receive_bytes())
        assert 5 < sum("error" in answer for answer in answers) < 16
        await peer.text("large")
        assert running.calls.reserve_memory("", 900_000)


async def test_calls_of_a_batch_run_in_several_turns():
    app, turns = server(), set()

    def small() -> str:
        turns.add(asyncio.current_task())
        return "done"

    @app.tool(read_only=True, at_once=small)
    async def glance() -> str:
        """Looks."""
        return small()

    async with talking(app, "2025-03-26") as peer:
        await peer.send([called(number, "glance") for number in range(200)])
        assert len(json.loads(await peer.end.receive_bytes())) == 200
    assert len(turns) == 176  # 25 are answered at once, and each of the others in a task


async def test_unread_results_of_a_disconnected_peer_are_freed():
    app, _ = large_work(call_bytes=1_000_000)
    async with app.open() as running:
        for _ in range(3):
            ours, theirs = memory_pair(0)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve, running, theirs)
                slow = Slow(ours, running)
                for number in range(20):
                    await slow.push(large(number))
                await quiet()
                ours.close()
            theirs.close()
        assert running.calls.reserve_memory("", 900_000)


async def test_a_cancellation_is_read_from_a_peer_that_does_not_read():
    work = Work()
    async with slowly(work.app) as slow:
        await slow.push({"id": 1, "method": "tools/call", "params": with_envelope({"name": "wait"})})
        for number in range(2, 5):
            await slow.push(ping(number))
        await slow.push({"method": "notifications/cancelled", "params": {"requestId": 1}})
        await quiet()
        assert work.log == ["+", "-"]


async def test_a_change_is_announced_once_a_slow_peer_reads_again():
    work = Work(waiting_messages=1)
    async with slowly(work.app) as slow:
        params = with_envelope({"notifications": {"toolsListChanged": True}})
        await slow.push({"id": "s", "method": "subscriptions/listen", "params": params})
        await slow.take(1)
        for number in range(3):
            await slow.push(ping(number))
        await quiet()
        for _ in range(100):
            slow.running.changes.tools()
        messages = await slow.take(4)
    methods = [getattr(message, "method", None) for message in messages]
    assert methods.count("notifications/tools/list_changed") == 1


# Changes


async def test_many_pending_updates_of_parts_become_one_of_their_whole():
    app = server()
    app.on_subscribe(lambda _ctx, uri: _key(uri))
    async with app.open() as running:
        connection = running.connect(None, lambda: None)
        await running.changes.subscribe(None, "memo://all")
        connection.session.subscriptions.subscribe("memo://all", "memo://all")
        for number in range(MANY_CHANGES + 10):
            running.changes.resource("memo://all", f"memo://all/{number}")
        told = [one.message.params["uri"] for one in connection.outgoing()]
        assert told == [*(f"memo://all/{number}" for number in range(MANY_CHANGES)), "memo://all"]
        await connection.close()


async def _key(uri):
    return uri
