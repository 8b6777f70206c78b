"""What servers behind a bridge do wrong: their clients get one clear error, and the others go on."""

import sys
from typing import Any

import anyio
import pytest

from shared import Question
from shared.gateway.bridge import bridge
from shared.server.context import Context
from shared.server.limits import CallLimits
from tests.shared.client.small import Small, text_of
from tests.shared.gateway.bridge.recording import Recording
from tests.shared.gateway.bridge.telling import until
from tests.shared.gateway.bridge.upstreams import EVERY_PAIR, Behind, bridged, child
from tests.shared.server.peer import PATIENCE, Json, Peer, talking
from tests.wire import STATELESS

DYING = [sys.executable, "-m", "tests.shared.gateway.bridge.dying"]
LOST = "the server child was lost while it answered; whether it did what was asked is not known"


def params_of(peer: Peer, method: str) -> list[Json]:
    """What was told so far by notifications of that method."""
    return [one["params"] for one in peer.others if one["method"] == method]


@pytest.mark.slow
@EVERY_PAIR
async def test_a_server_that_dies_is_one_error_and_is_started_again(version: str, mode: str) -> None:
    with anyio.fail_after(3 * PATIENCE):
        async with bridge(child(mode, DYING)).open() as running, talking(running, version) as peer:
            base, before = running.state.base, await peer.text("live")
            used = base.client
            assert (await peer.call("die"))["error"] == {"code": -32603, "message": LOST}
            if base.stateless:
                await until(lambda: base.up and base.client is not used)
            assert await peer.text("live") != before


@EVERY_PAIR
async def test_a_call_that_takes_too_long_is_stopped_here_and_there(version: str, mode: str) -> None:
    small = Small()
    behind = Behind(small.app, mode)
    with anyio.fail_after(3 * PATIENCE):
        async with (
            behind.serving() as upstream,
            bridge(upstream).open(budget=CallLimits(seconds=1_000)) as running,
            talking(running, version) as peer,
        ):
            id_ = await peer.start("wait")
            await small.started.wait()
            (call,) = running.calls._tasks
            call.scope.deadline = 0
            result = (await peer.answer(id_))["result"]
            assert result["isError"]
            assert text_of(result).startswith("stopped after 1000 s")
            await small.cancelled.wait()


@pytest.mark.slow
@EVERY_PAIR
async def test_reports_without_end_do_not_pile_up_for_a_client_that_reads_none(version: str, mode: str) -> None:
    async def flood(context: Context[None]) -> Json:
        for number in range(3_000):
            context.link.session.progress(context.call, number, None, "x" * 100)
            await context.link.flush()
        return {"content": []}

    recording = Recording()
    recording.answers["tools/call"] = flood
    async with bridged(Behind(recording.app, mode), version) as peer:
        call = await peer.begin("tools/call", {"name": "any"}, progressToken=1)
        await recording.came.wait()
        await until(lambda: recording.seen[0].call.is_over)
        assert (await peer.answer(call))["result"]["content"] == []
        assert 0 < len(params_of(peer, "notifications/progress")) < 3_000


@EVERY_PAIR
@pytest.mark.parametrize(
    "said",
    [
        {"progress": "much"},
        {"progress": True},
        {"progress": 10**400},
        {"progress": 1, "total": "all", "message": 5},
        {},
    ],
    ids=["text", "boolean", "too large", "odd total", "nothing"],
)
async def test_reports_that_are_none_are_dropped(version: str, mode: str, said: Json) -> None:
    async def report(context: Context[None]) -> Json:
        params: dict[str, Any] = {"progressToken": context.call.token, **said}
        context.link.session.notify(context.call, "notifications/progress", params)
        return {"content": []}

    recording = Recording()
    recording.answers["tools/call"] = report
    async with bridged(Behind(recording.app, mode), version) as peer:
        await peer.request("tools/call", {"name": "any"}, progressToken=1)
        told = [{"progressToken": 1, "progress": 1}] if said.get("progress") == 1 and "total" in said else []
        assert params_of(peer, "notifications/progress") == told


async def test_a_question_in_a_form_that_is_none_is_refused_and_the_session_goes_on() -> None:
    async def ask(context: Context[None]) -> Json:
        answers = await context.inputs({"thought": Question("sampling/createMessage", {"messages": 5})})
        return {"content": answers}

    recording = Recording()
    recording.answers["tools/call"] = ask
    async with bridged(Behind(recording.app), "2025-06-18", {"sampling": {}}) as peer:
        for _ in range(2):
            error = (await peer.call("any"))["error"]
            assert error["message"] == "the client refused sampling/createMessage"


@EVERY_PAIR
async def test_log_messages_of_no_known_level_are_dropped(version: str, mode: str) -> None:
    async def log(context: Context[None]) -> Json:
        for level in ("loud", 5, ["info"], None):
            context.link.session.notify(context.call, "notifications/message", {"level": level, "data": "x"})
        return {"content": []}

    recording = Recording()
    recording.answers["tools/call"] = log
    async with bridged(Behind(recording.app, mode), version) as peer:
        level: Json = {"io.modelcontextprotocol/logLevel": "debug"} if version == STATELESS else {}
        await peer.request("tools/call", {"name": "any"}, **level)
        assert params_of(peer, "notifications/message") == []
