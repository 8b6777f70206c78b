"""Tasks of the server behind a bridge, in every form of client and server."""

from typing import Any

import anyio
import pytest

from servers.gateway.bridge import bridge
from servers.gateway.rules.extension import rules
from servers.gateway.rules.names import Rules
from shared import Context
from shared.protocol.types.tasks import TASKS
from shared.protocol.versions import find_version
from tests.quiet import quiet
from tests.servers.gateway.bridge.upstreams import EVERY_PAIR, NEW, OLD, Behind, bridged, opened
from tests.servers.gateway.joined.members import Door, joined, small
from tests.servers.gateway.tasks import OURS, Working, looked_at, outcome, started, text_in, until
from tests.shared.server.peer import NEWEST_HANDSHAKE, PATIENCE, STATELESS, Json, Peer, talking

FORMS_TOO = {**OURS, "elicitation": {"form": {}}}
RED: Json = {"action": "accept", "content": {"colour": "red"}}
PLAIN = ["2025-06-18", STATELESS]
"""The versions of clients without tasks."""


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll without a pause."""
    for module in ("extension", "experimental"):
        monkeypatch.setattr(f"shared.extensions.tasks.{module}.POLL_MS", 20)


async def answered(peer: Peer, id: str, answer: Json) -> Json:
    """The outcome of a task whose only question gets this answer."""
    if peer.version != STATELESS:
        asking = await peer.begin("tasks/result", {"taskId": id})
        await peer.reply((await peer.other("elicitation/create"))["id"], answer)
        result: Json = (await peer.answer(asking))["result"]
        return result
    asked = (await until(peer, id, "input_required"))["inputRequests"]
    await peer.request("tasks/update", {"taskId": id, "inputResponses": dict.fromkeys(asked, answer)})
    return await outcome(peer, id)


async def declared(behind: Behind, version: str) -> Json:
    """The capabilities that a bridge declares to clients of that version."""
    spoken = find_version(version)
    assert spoken is not None
    async with opened(behind) as running:
        return running.identity.capabilities_for(spoken)


@EVERY_PAIR
async def test_a_task_completes_or_is_cancelled(version: str, mode: str) -> None:
    work = Working()
    async with bridged(Behind(work.app, mode), version, OURS) as peer:
        assert await peer.text("add", a=1, b=2) == "3"
        id_ = await started(peer, "work")
        await work.began.wait()
        while (task := await looked_at(peer, id_)).get("statusMessage") != "working, 25%":
            assert task["status"] == "working"
        work.go_on.set()
        assert text_in(await outcome(peer, id_)) == "done"
        # To cancel one is to cancel the work.
        work.began, work.go_on = anyio.Event(), anyio.Event()
        id_ = await started(peer, "work")
        await work.began.wait()
        await peer.request("tasks/cancel", {"taskId": id_})
        await work.was_cancelled.wait()
        assert (await looked_at(peer, id_))["status"] == "cancelled"


@EVERY_PAIR
async def test_a_question_of_a_task_reaches_its_client(version: str, mode: str) -> None:
    async with bridged(Behind(Working().app, mode), version, FORMS_TOO) as peer:
        assert text_in(await answered(peer, await started(peer, "paint"), RED)) == "painted red"


@pytest.mark.parametrize("version", [NEWEST_HANDSHAKE, STATELESS])
async def test_a_question_of_a_task_reaches_only_its_own_client(version: str) -> None:
    work = Working()
    async with (
        Behind(work.app, OLD).serving(shared=True) as way,
        bridge(way).open() as running,
        talking(running, version, FORMS_TOO) as holding,
        talking(running, version, FORMS_TOO) as asking,
    ):
        await started(holding, "work")
        await work.began.wait()
        assert text_in(await answered(asking, await started(asking, "paint"), RED)) == "painted red"
        assert not [message for message in holding.others if message["method"] == "elicitation/create"]


async def test_task_params_of_a_question_are_not_forwarded() -> None:
    app = small("small")

    @app.tool()
    async def ask(ctx: Context[Any]) -> str:
        """Ask as if the client had tasks."""
        question: Json = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        asked = {"q": ("elicitation/create", {**question, "task": {"ttl": 1_000}})}
        return str((await ctx.forward_questions(asked, None))["q"]["action"])

    async with bridged(Behind(app, OLD), NEWEST_HANDSHAKE, {"elicitation": {"form": {}}}) as peer:
        calling = await peer.start("ask")
        question = await peer.other("elicitation/create")
        assert "task" not in question["params"]
        await peer.reply(question["id"], {"action": "decline"})
        assert text_in((await peer.answer(calling))["result"]) == "decline"


@pytest.mark.parametrize("capabilities", [FORMS_TOO, {"elicitation": {"form": {}}}])
async def test_concurrent_questions_of_a_task_are_asked_together(capabilities: Json) -> None:
    async with bridged(Behind(Working().app, NEW), STATELESS, capabilities) as peer:
        result = (await peer.call("ask_twice"))["result"]
        if "taskId" in result:
            result = await until(peer, result["taskId"], "input_required")
        assert len(result["inputRequests"]) == 2


@EVERY_PAIR
async def test_a_task_fails_when_its_server_is_lost(version: str, mode: str) -> None:
    work = Working()
    behind = Behind(work.app, mode)
    async with bridged(behind, version, OURS) as peer:
        id_ = await started(peer, "work")
        await work.began.wait()
        behind.is_away = True
        await behind.lose()
        assert "the server behind" in (await until(peer, id_, "failed"))["statusMessage"]


@EVERY_PAIR
async def test_a_task_continues_after_its_client_has_left(version: str, mode: str) -> None:
    work = Working()
    async with opened(Behind(work.app, mode)) as running:
        async with talking(running, version, OURS) as peer:
            id_ = await started(peer, "work")
            await work.began.wait()
        work.go_on.set()
        async with talking(running, version, OURS) as peer:
            assert text_in(await outcome(peer, id_)) == "done"


async def test_a_session_ends_after_the_task_of_a_client_that_has_left() -> None:
    work = Working()
    behind = Behind(work.app)
    async with opened(behind) as running:
        async with talking(running, NEWEST_HANDSHAKE, OURS) as peer:
            await started(peer, "work")
            await work.began.wait()
        await quiet()
        sessions = behind.running.changes.listeners
        assert len(sessions) == 2  # with that of the bridge itself
        work.go_on.set()
        with anyio.fail_after(PATIENCE):
            while len(behind.running.changes.listeners) == len(sessions):
                await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("mode", [OLD, NEW])
async def test_closing_the_bridge_cancels_its_tasks(mode: str) -> None:
    work = Working()
    async with Behind(work.app, mode).serving() as way:
        async with bridge(way).open() as running, talking(running, STATELESS, OURS) as peer:
            await started(peer, "work")
            await work.began.wait()
        with anyio.fail_after(PATIENCE):
            await work.was_cancelled.wait()


@pytest.mark.parametrize("version", PLAIN)
@pytest.mark.parametrize("mode", [OLD, NEW])
async def test_a_client_without_tasks_gets_the_result(version: str, mode: str) -> None:
    work = Working()
    work.go_on.set()
    async with bridged(Behind(work.app, mode), version) as peer:
        assert await peer.text("work") == "done"


@pytest.mark.parametrize("mode", [OLD, NEW])
async def test_a_stateless_client_without_tasks_answers_in_rounds(mode: str) -> None:
    async with bridged(Behind(Working().app, mode), STATELESS, {"elicitation": {"form": {}}}) as peer:
        asked = (await peer.call("paint"))["result"]
        again = {
            "name": "paint",
            "arguments": {},
            "requestState": asked["requestState"],
            "inputResponses": dict.fromkeys(asked["inputRequests"], RED),
        }
        assert text_in((await peer.request("tools/call", again))["result"]) == "painted red"


@pytest.mark.parametrize("mode", [OLD, NEW])
async def test_a_client_with_a_session_and_without_tasks_is_asked_during_the_call(mode: str) -> None:
    async with bridged(Behind(Working().app, mode), "2025-06-18", {"elicitation": {}}) as peer:
        calling = await peer.start("paint")
        await peer.reply((await peer.other("elicitation/create"))["id"], RED)
        assert text_in((await peer.answer(calling))["result"]) == "painted red"


async def test_the_ttl_of_a_task_is_forwarded() -> None:
    work = Working()
    behind = Behind(work.app, OLD)
    async with bridged(behind, NEWEST_HANDSHAKE) as peer:
        await peer.request("tools/call", {"name": "work", "arguments": {}, "task": {"ttl": 90_000}})
        await work.began.wait()
        there = behind.running.opened[TASKS]
        [task] = [await there.store.get(id_) for id_ in there.local_tasks]
        assert task.seconds == 90


@pytest.mark.parametrize(("mode", "support"), [(NEW, "optional"), (OLD, None)])
async def test_task_support_of_tools_is_listed_for_2025_11_25(mode: str, support: str | None) -> None:
    async with bridged(Behind(Working().app, mode), NEWEST_HANDSHAKE) as peer:
        listed = {tool["name"]: tool for tool in (await peer.request("tools/list"))["result"]["tools"]}
        assert listed["add"].get("execution", {}).get("taskSupport") == support
        if mode == OLD:
            assert listed["work"]["execution"] == {"taskSupport": "required"}


@EVERY_PAIR
async def test_tasks_are_declared_if_the_server_has_them(version: str, mode: str) -> None:
    told = await declared(Behind(Working().app, mode), version)
    assert TASKS in told["extensions"] if version == STATELESS else "requests" in told["tasks"]
    assert not {"tasks", "extensions"} & (await declared(Behind(small("small"), mode), version)).keys()


async def test_rules_for_tools_apply_to_tasks() -> None:
    work = Working()
    work.go_on.set()
    kept = rules(Rules(deny=("paint",), rename={"work": "toil"}))
    async with bridged(Behind(work.app, NEW), STATELESS, OURS, extensions=[kept]) as peer:
        assert (await peer.call("paint"))["error"]["code"] == -32602
        assert text_in(await outcome(peer, await started(peer, "toil"))) == "done"
    async with bridged(Behind(work.app, NEW), STATELESS, OURS, extensions=[rules(Rules(result_bytes=20))]) as peer:
        assert (await outcome(peer, await started(peer, "work")))["isError"]


async def test_a_task_of_a_bridged_server_works_in_a_joined_gateway() -> None:
    work = Working()
    work.go_on.set()
    behind = Behind(work.app, OLD)
    async with (
        behind.serving() as way,
        joined(Door("far", bridge(way))) as running,
        talking(running, STATELESS, OURS) as peer,
    ):
        assert text_in(await outcome(peer, await started(peer, "work"))) == "done"
