"""Limits for one peer."""

from contextlib import nullcontext
from types import SimpleNamespace

import anyio
import pytest

from shared import Context
from shared.server.dispatch.limits import CallLimits, Limits
from tests.clock import forward
from tests.quiet import quiet
from tests.shared.server.peer import ERAS, NEWEST_HANDSHAKE, STATELESS, server, talking


class Gate:
    """A server whose calls wait at a gate; records their arrival."""

    def __init__(self, **limits):
        self.open = anyio.Event()
        self.came = []
        self.app = server()
        self.app.limits = Limits(drain_seconds=0.01, **limits)
        self.app.tool()(self.enter)

    async def enter(self, number: int) -> int:
        """Waits at the gate."""
        self.came.append(number)
        await self.open.wait()
        return number

    async def keep(self, text: str) -> int:
        """Returns the length of a text."""
        return len(text)


async def test_calls_over_the_limit_wait_in_order():
    gate = Gate(concurrent_calls=2)
    async with talking(gate.app) as peer:
        ids = [await peer.start("enter", number=number) for number in range(5)]
        await quiet()
        assert gate.came == [0, 1]
        assert (await peer.request("ping"))["result"] == {}  # what the protocol answers itself does not queue
        await peer.cancel(ids.pop(0))  # each call that ends lets one in
        await quiet()
        assert gate.came == [0, 1, 2]
        gate.open.set()
        texts = [(await peer.answer(id_))["result"]["content"][0]["text"] for id_ in ids]
    assert gate.came == [0, 1, 2, 3, 4]
    assert texts == ["1", "2", "3", "4"]


async def test_a_call_cancelled_in_the_queue_never_runs():
    gate = Gate(concurrent_calls=1)
    async with talking(gate.app) as peer:
        await peer.start("enter", number=0)
        queued = await peer.start("enter", number=1)
        last = await peer.start("enter", number=2)
        await peer.cancel(queued)
        gate.open.set()
        await peer.answer(last)
    assert gate.came == [0, 2]


async def test_a_full_queue_refuses_calls():
    gate = Gate(concurrent_calls=1, waiting_calls=1)
    async with talking(gate.app) as peer:
        for number in range(2):
            await peer.start("enter", number=number)
        error = (await peer.call("enter", number=2))["error"]
    assert error["code"] == -32603
    assert "too many calls" in error["message"]


async def test_calls_over_the_memory_limit_are_refused_until_others_end():
    gate = Gate(concurrent_calls=1, call_bytes=300_000)
    gate.app.tool()(gate.keep)
    async with talking(gate.app) as peer:
        first = await peer.start("enter", number=0)
        kept = [await peer.start("keep", text="x" * 100_000) for _ in range(2)]
        error = (await peer.answer(kept.pop()))["error"]
        assert "too much memory" in error["message"]
        assert error["data"] == {"limit": "memory", "retryAfter": 1}
        await peer.cancel(kept.pop())
        last = await peer.start("keep", text="x" * 100_000)
        gate.open.set()
        assert (await peer.answer(first))["result"]
        assert (await peer.answer(last))["result"]["content"][0]["text"] == "100000"


async def test_small_waiting_calls_count_as_memory():
    gate = Gate(concurrent_calls=1, call_bytes=100_000)
    gate.app.tool()(gate.keep)
    async with talking(gate.app) as peer:
        await peer.start("enter", number=0)
        waiting = [await peer.start("keep", text="x" * 8_000) for _ in range(10)]
        gate.open.set()
        answers = [await peer.answer(id_) for id_ in waiting]
    assert 2 < sum("error" in answer for answer in answers) < 8


async def test_a_call_cancelled_in_its_own_batch_takes_no_memory():
    gate = Gate(call_bytes=300_000)
    gate.app.tool()(gate.keep)
    call = {"method": "tools/call", "params": {"name": "keep", "arguments": {"text": "x" * 100_000}}}
    async with talking(gate.app, "2025-03-26") as peer:
        for number in range(4):
            cancelled = {"method": "notifications/cancelled", "params": {"requestId": number}}
            await peer.send([{"jsonrpc": "2.0", **part} for part in ({"id": number, **call}, cancelled)])
        assert (await peer.call("keep", text="x" * 100_000))["result"]["content"][0]["text"] == "100000"


async def open_stream(peer):
    return await peer.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})


async def test_streams_over_the_limit_are_refused():
    gate = Gate(streams=2)
    async with talking(gate.app, STATELESS) as peer:
        streams = [await open_stream(peer) for _ in range(2)]
        assert (await peer.answer(await open_stream(peer)))["error"]["code"] == -32603
        await peer.cancel(streams[0])
        await quiet()
        await open_stream(peer)
        for _ in range(3):
            await peer.other("notifications/subscriptions/acknowledged")


async def test_streams_do_not_count_as_calls():
    gate = Gate(concurrent_calls=1)
    async with talking(gate.app, STATELESS) as peer:
        for _ in range(3):
            await open_stream(peer)
        await peer.start("enter", number=1)
        await quiet()
        assert gate.came == [1]


@pytest.mark.parametrize(("uris", "refused"), [(2, False), (3, True)])
async def test_the_resources_of_a_stream_are_limited(uris, refused):
    gate = Gate(subscriptions=2)
    async with talking(gate.app, STATELESS) as peer:
        params = {"notifications": {"resourceSubscriptions": [f"a:{number}" for number in range(uris)]}}
        id_ = await peer.begin("subscriptions/listen", params)
        message = await peer.receive()
    assert (message.get("id") == id_) is refused


async def test_the_subscriptions_of_a_session_are_limited():
    gate = Gate(subscriptions=2)
    gate.app.resource("a:b")(gate_resource)

    @gate.app.on_subscribe
    async def key(_ctx: object, uri: str) -> str:
        return uri

    async with talking(gate.app) as peer:
        answers = [await peer.request("resources/subscribe", {"uri": f"a:{number}"}) for number in (1, 2, 2, 3)]
    assert ["error" in answer for answer in answers] == [False, False, False, True]


async def gate_resource() -> str:
    return ""


# What one call may cost

BRIEF = CallLimits(seconds=0.02)
LONG = CallLimits(seconds=60)
"""More than anything here takes; see `forward`."""


def app_with_brief(function, budget=BRIEF):
    app = server()
    app.tool()(function)
    app.budget = budget
    return app


def test_arguments_can_only_tighten_the_limits():
    within = {None: 100, 5: 5, 100: 100, 101: 100}
    assert {asked: CallLimits(entries=100).limit_entries(asked) for asked in within} == within


async def slow() -> str:
    """Never ends."""
    await anyio.sleep_forever()
    return ""


@pytest.mark.parametrize("version", ERAS)
async def test_a_tool_over_its_time_limit_returns_an_error_result(version):
    async with talking(app_with_brief(slow), version) as peer:
        result = (await peer.call("slow"))["result"]
    assert result["isError"]
    assert "stopped after 0.02 s" in result["content"][0]["text"]


async def test_a_resource_over_its_time_limit_is_an_error():
    app = server()
    app.resource("a:slow")(slow)
    app.budget = BRIEF
    async with talking(app) as peer:
        error = (await peer.request("resources/read", {"uri": "a:slow"}))["error"]
    assert error["code"] == -32603


async def test_a_stopped_call_may_clean_up_while_others_continue():
    log = []

    async def tidy() -> str:
        """Tidies up."""
        try:
            await anyio.sleep_forever()
        finally:
            log.append("tidied")
        return ""

    app = app_with_brief(tidy)

    @app.tool()
    async def quick() -> str:
        """Is quick."""
        return "done"

    async with talking(app) as peer:
        id_ = await peer.start("tidy")
        assert await peer.text("quick") == "done"
        assert (await peer.answer(id_))["result"]["isError"]
    assert log == ["tidied"]


def asking(body, part=None):
    """A server with a tool that runs `body`, within a limit of seconds if one is given."""
    app = server()

    @app.tool()
    async def ask(ctx: Context[None]) -> str:
        """Asks."""
        with nullcontext() if part is None else ctx.link.calls.limit_time(ctx.call, part):
            await body(ctx)
        return "done"

    app.budget = LONG
    return app


async def roots_and_wait(ctx):
    await ctx.roots()
    await anyio.sleep_forever()


async def roots_twice(ctx):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ctx.roots, "one")
        tasks.start_soon(ctx.roots, "two")


async def roots_twice_and_wait(ctx):
    await roots_twice(ctx)
    await anyio.sleep_forever()


ROOTS = {"roots": []}
PART = pytest.mark.parametrize("part", [None, 50], ids=["the call", "a part of it"])


@PART
async def test_the_time_limit_pauses_during_a_question(part):
    async with talking(asking(lambda ctx: ctx.roots(), part), NEWEST_HANDSHAKE, {"roots": {}}) as peer:
        id_ = await peer.start("ask")
        question = await peer.receive()
        forward(5 * LONG.seconds)
        await quiet()
        await peer.reply(question["id"], ROOTS)
        assert (await peer.answer(id_))["result"]["content"][0]["text"] == "done"


@PART
async def test_the_time_limit_resumes_after_the_answer(part):
    async with talking(asking(roots_and_wait, part), NEWEST_HANDSHAKE, {"roots": {}}) as peer:
        id_ = await peer.start("ask")
        await peer.reply((await peer.receive())["id"], ROOTS)
        await quiet()
        forward(part or LONG.seconds)
        assert f"stopped after {part or 60} s" in (await peer.answer(id_))["result"]["content"][0]["text"]


@PART
async def test_a_call_detached_during_a_question_has_no_time_limit(part):
    app, outcomes = asking(roots_and_wait, part), []
    async with app.open() as running, talking(running, NEWEST_HANDSHAKE, {"roots": {}}) as peer:
        id_ = await peer.start("ask")
        question = await peer.receive()
        (call,) = running.calls
        call.link.session.finish(call, {"content": []})
        running.calls.detach(call, SimpleNamespace(finish=lambda _, outcome: outcomes.append(outcome)))
        await peer.reply(question["id"], ROOTS)
        await peer.answer(id_)
        await quiet()
        forward(5 * LONG.seconds)
        await quiet()
        assert outcomes == []


async def test_the_time_limit_starts_after_the_queue():
    begun = anyio.Event()

    async def second() -> str:
        """Says that it began."""
        begun.set()
        return "done"

    app = app_with_brief(slow, LONG)
    app.tool()(second)
    app.limits = type(app.limits)(concurrent_calls=1)
    async with talking(app) as peer:
        await peer.start("slow")
        id_ = await peer.start("second")
        await quiet()
        assert not begun.is_set()
        forward(LONG.seconds)
        assert (await peer.answer(id_))["result"]["content"][0]["text"] == "done"


async def test_concurrent_questions_pause_and_resume_the_time_limit():
    async with talking(asking(roots_twice_and_wait), NEWEST_HANDSHAKE, {"roots": {}}) as peer:
        id_ = await peer.start("ask")
        questions = [await peer.receive(), await peer.receive()]
        forward(5 * LONG.seconds)
        await quiet()
        for question in questions:
            await peer.reply(question["id"], ROOTS)
        await quiet()
        forward(LONG.seconds)
        assert (await peer.answer(id_))["result"]["isError"]


async def test_the_time_limit_pauses_until_the_last_answer():
    async with talking(asking(roots_twice), NEWEST_HANDSHAKE, {"roots": {}}) as peer:
        id_ = await peer.start("ask")
        first, second = [await peer.receive(), await peer.receive()]
        await peer.reply(first["id"], ROOTS)
        await quiet()
        forward(5 * LONG.seconds)
        await quiet()
        await peer.reply(second["id"], ROOTS)
        assert (await peer.answer(id_))["result"]["content"][0]["text"] == "done"


async def test_a_part_of_a_call_may_have_a_shorter_time_limit():
    async with talking(asking(lambda ctx: anyio.sleep_forever(), 0.02)) as peer:
        assert "stopped after 0.02 s" in await peer.text("ask")
    async with talking(asking(lambda ctx: anyio.lowlevel.checkpoint(), 50)) as peer:
        assert await peer.text("ask") == "done"
