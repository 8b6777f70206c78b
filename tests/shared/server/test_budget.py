"""What one call may cost."""

import anyio
import pytest

from shared import Context
from shared.server.limits import CallLimits
from tests.clock import forward
from tests.quiet import quiet
from tests.shared.server.peer import ERAS, NEWEST_HANDSHAKE, server, talking

BRIEF = CallLimits(seconds=0.02)
LONG = CallLimits(seconds=60)
"""More than anything here takes; see `forward`."""


def app_with_brief(function, budget=BRIEF):
    app = server()
    app.tool()(function)
    app.budget = budget
    return app


@pytest.mark.parametrize(("asked", "given"), [(None, 100), (5, 5), (100, 100), (101, 100)])
def test_arguments_can_only_tighten_the_caps(asked, given):
    assert CallLimits(entries=100).entries_within(asked) == given


async def slow() -> str:
    """Takes for ever."""
    await anyio.sleep_forever()
    return ""


@pytest.mark.parametrize("version", ERAS)
async def test_a_tool_that_takes_too_long_is_a_result_that_says_so(version):
    async with talking(app_with_brief(slow), version) as peer:
        result = (await peer.call("slow"))["result"]
    assert result["isError"]
    assert "stopped after 0.02 s" in result["content"][0]["text"]


async def test_a_resource_that_takes_too_long_is_an_error():
    app = server()
    app.resource("a:slow")(slow)
    app.budget = BRIEF
    async with talking(app) as peer:
        error = (await peer.request("resources/read", {"uri": "a:slow"}))["error"]
    assert error["code"] == -32603


async def test_the_call_is_stopped_and_may_clean_up():
    log = []

    async def tidy() -> str:
        """Tidies up."""
        try:
            await anyio.sleep_forever()
        finally:
            log.append("tidied")
        return ""

    async with talking(app_with_brief(tidy)) as peer:
        await peer.call("tidy")
    assert log == ["tidied"]


async def test_other_calls_go_on():
    app = app_with_brief(slow)

    @app.tool()
    async def quick() -> str:
        """Is quick."""
        return "done"

    async with talking(app) as peer:
        id_ = await peer.start("slow")
        assert await peer.text("quick") == "done"
        assert (await peer.answer(id_))["result"]["isError"]


async def test_the_time_a_user_takes_does_not_count():
    async def ask(ctx: Context[None]) -> str:
        """Asks."""
        return str(await ctx.roots())

    async with talking(app_with_brief(ask, LONG), NEWEST_HANDSHAKE, {"roots": {}}) as peer:
        id_ = await peer.start("ask")
        question = await peer.receive()
        forward(5 * LONG.seconds)
        await quiet()
        await peer.reply(question["id"], {"roots": []})
        assert (await peer.answer(id_))["result"]["content"][0]["text"] == "[]"


async def test_after_the_answer_the_clock_goes_on():
    async def ask(ctx: Context[None]) -> str:
        """Asks, and then takes for ever."""
        await ctx.roots()
        await anyio.sleep_forever()
        return ""

    async with talking(app_with_brief(ask, LONG), NEWEST_HANDSHAKE, {"roots": {}}) as peer:
        id_ = await peer.start("ask")
        await peer.reply((await peer.receive())["id"], {"roots": []})
        await quiet()
        forward(LONG.seconds)
        assert (await peer.answer(id_))["result"]["isError"]


async def test_the_time_in_the_queue_does_not_count():
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


async def test_questions_asked_at_the_same_time_stop_the_clock_and_start_it_again():
    async def ask(ctx: Context[None]) -> str:
        """Asks twice at the same time, and then takes for ever."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ctx.roots, "one")
            tasks.start_soon(ctx.roots, "two")
        await anyio.sleep_forever()
        return ""

    async with talking(app_with_brief(ask, LONG), NEWEST_HANDSHAKE, {"roots": {}}) as peer:
        id_ = await peer.start("ask")
        questions = [await peer.receive(), await peer.receive()]
        forward(5 * LONG.seconds)
        await quiet()
        for question in questions:
            await peer.reply(question["id"], {"roots": []})
        await quiet()
        forward(LONG.seconds)
        assert (await peer.answer(id_))["result"]["isError"]


async def test_the_clock_stands_until_the_last_of_several_questions_is_answered():
    async def ask(ctx: Context[None]) -> str:
        """Asks twice at the same time."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ctx.roots, "one")
            tasks.start_soon(ctx.roots, "two")
        return "both"

    async with talking(app_with_brief(ask, LONG), NEWEST_HANDSHAKE, {"roots": {}}) as peer:
        id_ = await peer.start("ask")
        first, second = [await peer.receive(), await peer.receive()]
        await peer.reply(first["id"], {"roots": []})
        await quiet()
        forward(5 * LONG.seconds)
        await quiet()
        await peer.reply(second["id"], {"roots": []})
        assert (await peer.answer(id_))["result"]["content"][0]["text"] == "both"


def app_with_less(seconds, body):
    """A tool that does `body` within that many seconds."""
    app = server()

    @app.tool()
    async def narrowed(ctx: Context[None]) -> str:
        """Has less time than others."""
        with ctx.link.calls.within(ctx.call, seconds):
            await body(ctx)
        return "done"

    app.budget = LONG
    return app


async def test_part_of_a_call_may_have_less_time_and_says_how_much():
    async with talking(app_with_less(0.02, lambda ctx: anyio.sleep_forever())) as peer:
        assert "stopped after 0.02 s" in await peer.text("narrowed")


async def test_what_keeps_within_its_time_goes_on():
    async with talking(app_with_less(50, lambda ctx: anyio.lowlevel.checkpoint())) as peer:
        assert await peer.text("narrowed") == "done"


async def test_the_time_a_user_takes_does_not_count_for_the_part_either():
    async with talking(app_with_less(50, lambda ctx: ctx.roots()), NEWEST_HANDSHAKE, {"roots": {}}) as peer:
        id_ = await peer.start("narrowed")
        question = await peer.receive()
        forward(5 * LONG.seconds)
        await quiet()
        await peer.reply(question["id"], {"roots": []})
        assert (await peer.answer(id_))["result"]["content"][0]["text"] == "done"


async def test_after_the_answer_the_clock_of_the_part_goes_on():
    async def ask_and_wait(ctx):
        await ctx.roots()
        await anyio.sleep_forever()

    async with talking(app_with_less(50, ask_and_wait), NEWEST_HANDSHAKE, {"roots": {}}) as peer:
        id_ = await peer.start("narrowed")
        await peer.reply((await peer.receive())["id"], {"roots": []})
        await quiet()
        forward(50)
        assert "stopped after 50 s" in (await peer.answer(id_))["result"]["content"][0]["text"]
