"""Tasks of servers that are joined: the outermost server has them, whichever works on them."""

import pytest

from shared.gateway.rules.extension import rules
from shared.gateway.rules.names import Rules
from shared.protocol.types.tasks import TASKS
from tests.shared.gateway.joined.members import Door, joined, small
from tests.shared.gateway.joined.test_tools import with_tools
from tests.shared.gateway.tasks import FORMS, OURS, Working, outcome, started, text_in, until
from tests.shared.server.peer import NEWEST_HANDSHAKE, STATELESS, talking

both_forms = pytest.mark.parametrize("version", FORMS)


@both_forms
async def test_a_task_of_one_of_them_comes_to_its_result(version: str) -> None:
    work, other = Working(), with_tools("other", "add")
    async with joined(other, Door("working", work.app)) as running, talking(running, version, OURS) as peer:
        id_ = await started(peer, "work")
        await work.began.wait()
        assert (await until(peer, id_, "working"))["statusMessage"] == "working, 25%"
        work.go_on.set()
        assert text_in(await outcome(peer, id_)) == "done"


@both_forms
async def test_one_that_is_known_by_its_full_name_only(version: str) -> None:
    a, b = Working("a"), Working("b")
    b.go_on.set()
    async with joined(Door("a", a.app), Door("b", b.app)) as running, talking(running, version, OURS) as peer:
        assert text_in(await outcome(peer, await started(peer, "b__work"))) == "done"
        assert not a.began.is_set()


async def test_one_that_was_renamed() -> None:
    work = Working("working", rules(Rules(rename={"work": "toil"})))
    work.go_on.set()
    async with joined(Door("working", work.app)) as running, talking(running, STATELESS, OURS) as peer:
        assert text_in(await outcome(peer, await started(peer, "toil"))) == "done"


async def test_a_question_of_a_task_is_asked_of_its_client() -> None:
    door, can = Door("working", Working().app), {**OURS, "elicitation": {"form": {}}}
    async with joined(door) as running, talking(running, STATELESS, can) as peer:
        id_ = await started(peer, "paint")
        asked = (await until(peer, id_, "input_required"))["inputRequests"]
        answers = {key: {"action": "accept", "content": {"colour": "red"}} for key in asked}
        await peer.request("tasks/update", {"taskId": id_, "inputResponses": answers})
        assert text_in(await outcome(peer, id_)) == "painted red"


@both_forms
async def test_one_is_cancelled(version: str) -> None:
    work = Working()
    async with joined(Door("working", work.app)) as running, talking(running, version, OURS) as peer:
        id_ = await started(peer, "work")
        await work.began.wait()
        await peer.request("tasks/cancel", {"taskId": id_})
        await work.was_cancelled.wait()
        assert (await until(peer, id_, "cancelled"))["taskId"] == id_


async def test_one_whose_server_closes_ends_and_says_so() -> None:
    work = Working()
    door = Door("working", work.app)
    async with joined(door) as running, talking(running, STATELESS, OURS) as peer:
        id_ = await started(peer, "work")
        await work.began.wait()
        await door.close()
        result = await outcome(peer, id_)
        assert (result["isError"], text_in(result)) == (True, "the server working is not available: it was closed")


async def test_they_are_declared_where_one_of_them_has_tasks() -> None:
    async with joined(with_tools("other", "add"), Door("working", Working().app)) as running:
        assert TASKS in running.identity.capabilities["extensions"]
        async with talking(running, STATELESS) as peer:
            told = (await peer.request("server/discover"))["result"]["capabilities"]
            assert (TASKS in told["extensions"], "tasks" in told) == (True, False)


async def test_where_none_of_them_has_tasks_none_are_declared_and_none_made() -> None:
    async with joined(with_tools("other", "say")) as running, talking(running, NEWEST_HANDSHAKE) as peer:
        assert "tasks" not in running.identity.capabilities
        answer = await peer.request("tools/call", {"name": "say", "arguments": {}, "task": {}})
        assert text_in(answer["result"]) == "other say"
        assert (await peer.request("tasks/get", {"taskId": "1"}))["error"]["code"] == -32601


async def test_a_server_that_comes_brings_its_tasks_along() -> None:
    work = Door("working", Working().app)
    async with joined(Door("other", small("other")), closed=(work,)) as running:
        await work.open()
        assert TASKS in running.identity.capabilities["extensions"]


async def test_a_client_without_tasks_is_told_what_a_tool_needs() -> None:
    async with joined(Door("working", Working().app)) as running, talking(running, STATELESS) as peer:
        error = (await peer.call("work"))["error"]
        assert error["data"] == {"requiredCapabilities": OURS}
