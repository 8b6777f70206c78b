"""Tasks as they are a part of 2025-11-25 (2025-11-25, Utilities, Tasks), by messages in memory."""

import pytest

from shared import Server
from shared.extensions.tasks import runner
from shared.protocol.identity import Principal
from shared.protocol.types.tasks import RELATED_TASK, TASKS
from shared.protocol.versions import V2025_11_25, VERSIONS
from tests.clock import forward
from tests.shared.extensions.tasks.app import ACCEPTED, app, opened, status, until
from tests.shared.server.peer import NEWEST_HANDSHAKE, STATELESS, server, talking
from tests.shared.transports.http.http_wire import Json, Site, events, merged, served

ASKED = {"elicitation": {"form": {}}}
ADA, BOB = Principal("ada"), Principal("bob")
OLDER = ("2024-11-05", "2025-03-26", "2025-06-18")


def speaking(running, version=NEWEST_HANDSHAKE, capabilities=ASKED, **options):
    return talking(running, version, capabilities, **options)


async def run(peer, tool, task=None, /, meta=None, **arguments):
    """The answer to a call that asks for a task."""
    params = {"name": tool, "arguments": arguments, "task": task or {}}
    return await peer.request("tools/call", params, **(meta or {}))


async def begin(peer, tool, /, **arguments):
    return (await run(peer, tool, **arguments))["result"]["task"]["taskId"]


def of(id_):
    return {RELATED_TASK: {"taskId": id_}}


# Capabilities


CAN = {"cancel": {}, "requests": {"tools": {"call": {}}}}


async def test_tasks_are_declared_in_the_one_version_that_has_them_and_listed_for_principals_alone():
    async with opened() as running:
        declared = running.identity.capabilities_in
        assert declared(V2025_11_25)["tasks"] == CAN
        assert declared(V2025_11_25, ADA)["tasks"] == {**CAN, "list": {}}
        assert not any("tasks" in declared(version, ADA) for version in VERSIONS if version is not V2025_11_25)


@pytest.mark.parametrize("version", [*OLDER, NEWEST_HANDSHAKE, STATELESS])
async def test_a_tool_says_whether_it_has_tasks_in_the_one_version(version):
    async with opened() as running, speaking(running, version) as peer:
        running.state.opened.set()
        tools = (await peer.request("tools/list"))["result"]["tools"]
        if version in OLDER:  # which know no request for a task either
            assert "content" in (await run(peer, "wait", {"ttl": "a"}))["result"]
            assert (await peer.request("tasks/get", {"taskId": "a"}))["error"]["code"] == -32601
    said = {tool["name"]: tool["execution"]["taskSupport"] for tool in tools if "execution" in tool}
    has = version == NEWEST_HANDSHAKE
    assert said == ({"wait": "optional", "fail": "required", "ask": "required"} if has else {})


# Creating


async def test_a_call_becomes_a_task_where_that_is_asked_for():
    async with opened() as running, speaking(running) as peer:
        result = (await run(peer, "wait", {"ttl": 60_000}))["result"]
        assert result.keys() == {"task"}
        task = result["task"]
        assert (task["status"], task["ttl"], task["pollInterval"]) == ("working", 60_000, runner.POLL_MS)


async def test_a_call_that_does_not_ask_for_one_is_answered_as_ever():
    async with opened() as running, speaking(running) as peer:
        running.state.opened.set()
        assert (await peer.call("wait"))["result"] == {"content": [{"type": "text", "text": "done"}]}


async def test_its_time_is_the_servers_to_say():
    async with opened() as running, speaking(running) as peer:
        for asked, kept in (({}, 3_600_000), ({"ttl": 1e15}, 3_600_000), ({"ttl": 0}, 1_000)):
            assert (await run(peer, "wait", asked))["result"]["task"]["ttl"] == kept


async def test_what_can_not_be_a_task_is_refused():
    async with opened() as running, speaking(running) as peer:
        for task in (1, "a", [1], {"ttl": -1}, {"ttl": "a"}):
            assert (await run(peer, "wait", task))["error"]["code"] == -32602
        assert (await run(peer, "plain"))["error"]["code"] == -32601  # a tool without tasks
        assert (await peer.call("fail"))["error"]["code"] == -32601  # one that runs as a task only
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            assert (await peer.request(method, {"taskId": "forged"}))["error"]["code"] == -32602


async def test_a_server_that_declares_no_tasks_ignores_it():
    async with Server(server().implementation, extensions=app().extensions).open() as running:

        @running.features.tool()
        async def plain() -> str:
            """Answer."""
            return "plain"

        async with speaking(running) as peer:
            assert "content" in (await run(peer, "plain"))["result"]


# Following


async def test_its_result_is_that_of_the_call_and_says_whose_it_is():
    async with opened() as running, speaking(running) as peer:
        id_ = await begin(peer, "wait")
        waiting = await peer.begin("tasks/result", {"taskId": id_})
        assert (await status(peer, id_))["status"] == "working"
        running.state.opened.set()
        result = (await peer.answer(waiting))["result"]
        assert result == {"content": [{"type": "text", "text": "done"}], "_meta": of(id_)}
        # How it is says nothing of its result.
        task = await until(peer, id_, "completed")
        assert task.keys() == {"taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"}


async def test_what_fails_in_a_tool_is_a_failure_whose_result_is_one():
    async with opened() as running, speaking(running) as peer:
        running.state.opened.set()
        id_ = await begin(peer, "fail")
        assert (await until(peer, id_, "failed"))["statusMessage"] == "it can't be done"
        assert (await peer.request("tasks/result", {"taskId": id_}))["result"]["isError"] is True


async def test_an_error_of_the_protocol_is_what_its_result_ends_with():
    async with opened() as running, speaking(running) as peer:
        running.state.opened.set()
        id_ = await begin(peer, "fail", how="protocol")
        assert (await until(peer, id_, "failed"))["statusMessage"] == "it broke"
        error = (await peer.request("tasks/result", {"taskId": id_}))["error"]
        assert error == {"code": -31_000, "message": "it broke", "data": {"a": 1}}


async def test_a_task_belongs_to_its_principal():
    async with opened() as running, speaking(running, principal=ADA) as hers, speaking(running, principal=BOB) as his:
        ids = [await begin(hers, "wait") for _ in range(2)]
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            assert (await his.request(method, {"taskId": ids[0]}))["error"]["code"] == -32602
        assert (await status(hers, ids[0]))["status"] == "working"
        assert [one["taskId"] for one in (await hers.request("tasks/list"))["result"]["tasks"]] == ids
        assert (await his.request("tasks/list"))["result"] == {"tasks": []}


async def test_a_task_of_the_other_form_is_unknown():
    declared = {"extensions": {TASKS: {}}}
    async with opened() as running, speaking(running) as old, speaking(running, STATELESS, declared) as new:
        theirs = (await new.call("wait"))["result"]["taskId"]
        assert (await old.request("tasks/get", {"taskId": theirs}))["error"]["code"] == -32602
        ours = await begin(old, "wait")
        assert (await new.request("tasks/get", {"taskId": ours}))["error"]["code"] == -32602


async def test_cancelling_ends_the_work_and_says_so_at_once():
    async with opened() as running, speaking(running) as peer:
        id_ = await begin(peer, "wait")
        waiting = await peer.begin("tasks/result", {"taskId": id_})
        assert (await peer.request("tasks/cancel", {"taskId": id_}))["result"]["status"] == "cancelled"
        assert (await peer.answer(waiting))["error"] == {"code": -32603, "message": "the task was cancelled"}
        await running.state.stopped.wait()
        assert (await peer.request("tasks/cancel", {"taskId": id_}))["error"]["code"] == -32602  # it is over


async def test_waiting_for_a_result_takes_no_place_of_a_call():
    async with opened() as running, speaking(running) as peer:
        id_ = await begin(peer, "wait")
        waiting = await peer.begin("tasks/result", {"taskId": id_})
        await peer.cancel(waiting)
        assert (await status(peer, id_))["status"] == "working"


async def test_a_server_that_stops_says_so_to_who_waits():
    async with opened() as running, speaking(running) as peer:
        id_ = await begin(peer, "wait")
        waiting = await peer.begin("tasks/result", {"taskId": id_})
        await status(peer, id_)
        running.stop()
        assert (await peer.answer(waiting))["error"] == {"code": -32603, "message": runner.STOPPED}


async def test_who_waits_for_a_task_is_told_when_its_time_is_over():
    async with opened() as running, speaking(running) as peer:
        id_ = (await run(peer, "wait", {"ttl": 1_000}))["result"]["task"]["taskId"]
        waiting = await peer.begin("tasks/result", {"taskId": id_})
        await status(peer, id_)
        forward(2)
        assert (await peer.answer(waiting))["error"] == {"code": -32602, "message": "the task has expired"}
        assert (await peer.request("tasks/get", {"taskId": id_}))["error"]["code"] == -32602
        await running.state.stopped.wait()


# Listing


async def test_they_are_listed_in_pages():
    server = app()
    server.page_size = 2
    async with opened(server) as running, speaking(running, principal=ADA) as peer:
        ids = [await begin(peer, "wait") for _ in range(3)]
        first = (await peer.request("tasks/list"))["result"]
        second = (await peer.request("tasks/list", {"cursor": first["nextCursor"]}))["result"]
        assert [one["taskId"] for page in (first, second) for one in page["tasks"]] == ids
        assert (await peer.request("tasks/list", {"cursor": "forged"}))["error"]["code"] == -32602


async def test_nobody_in_particular_lists_none():
    async with opened() as running, speaking(running) as peer:
        assert (await peer.request("tasks/list"))["error"]["code"] == -32601


# Questions


async def test_what_it_asks_is_put_to_who_waits_for_its_result():
    async with opened() as running, speaking(running) as peer:
        id_ = await begin(peer, "ask")
        await until(peer, id_, "input_required")
        waiting = await peer.begin("tasks/result", {"taskId": id_})
        for question in ("Who?", "Who?", "a?", "b?"):
            asked = await peer.other("elicitation/create")
            assert (asked["params"]["message"], asked["params"]["_meta"]) == (question, of(id_))
            await peer.reply(asked["id"], ACCEPTED)
        text = (await peer.answer(waiting))["result"]["content"][0]["text"]
        assert text == "accept, accept, accept, accept"


async def test_who_goes_away_leaves_the_question_to_the_next():
    async with opened() as running:
        async with speaking(running) as first:
            id_ = await begin(first, "ask")
            await first.begin("tasks/result", {"taskId": id_})
            await first.other("elicitation/create")
        async with speaking(running) as second:
            await second.begin("tasks/result", {"taskId": id_})
            assert (await second.other("elicitation/create"))["params"]["message"] == "Who?"


async def test_of_two_who_are_asked_the_first_answer_counts():
    async with opened() as running, speaking(running) as first, speaking(running) as second:
        id_ = await begin(first, "ask")
        for peer in (first, second):
            await peer.begin("tasks/result", {"taskId": id_})
        asked = [await peer.other("elicitation/create") for peer in (first, second)]
        await first.reply(asked[0]["id"], ACCEPTED)
        taken_back = await second.other("notifications/cancelled")
        assert taken_back["params"]["requestId"] == asked[1]["id"]


async def test_a_client_that_can_not_be_asked_waits_for_one_that_can():
    async with opened() as running, speaking(running) as first, speaking(running, capabilities={}) as second:
        id_ = await begin(first, "ask")
        await second.begin("tasks/result", {"taskId": id_})
        await until(second, id_, "input_required")
        await first.begin("tasks/result", {"taskId": id_})
        await first.other("elicitation/create")


async def test_a_refusal_ends_the_task():
    async with opened() as running, speaking(running) as peer:
        id_ = await begin(peer, "ask")
        waiting = await peer.begin("tasks/result", {"taskId": id_})
        asked = await peer.other("elicitation/create")
        await peer.send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}})
        assert "no" in (await peer.answer(waiting))["error"]["message"]


AS_TASKS = {**ASKED, "tasks": {"cancel": {}, "requests": {"elicitation": {"create": {}}}}}


async def test_a_client_may_run_what_it_is_asked_as_a_task():
    async with opened() as running, speaking(running, capabilities=AS_TASKS) as peer:
        id_ = await begin(peer, "ask")
        await peer.begin("tasks/result", {"taskId": id_})
        asked = await peer.other("elicitation/create")
        assert asked["params"]["task"] == {}
        await peer.reply(asked["id"], {"task": {"taskId": "theirs", "status": "working"}})
        wanted = await peer.other("tasks/result")
        assert wanted["params"] == {"taskId": "theirs"}
        await peer.reply(wanted["id"], ACCEPTED)
        assert (await peer.other("elicitation/create"))["params"]["message"] == "Who?"


async def test_a_task_of_the_clients_that_nobody_wants_is_cancelled():
    async with opened() as running, speaking(running, capabilities=AS_TASKS) as peer:
        id_ = await begin(peer, "ask")
        await peer.begin("tasks/result", {"taskId": id_})
        asked = await peer.other("elicitation/create")
        await peer.reply(asked["id"], {"task": {"taskId": "theirs", "status": "working"}})
        await peer.other("tasks/result")
        running.stop()
        assert (await peer.other("tasks/cancel"))["params"] == {"taskId": "theirs"}


# What the client is told


async def test_the_client_that_began_it_is_told_how_it_is():
    async with opened() as running, speaking(running) as peer:
        id_ = await begin(peer, "wait")
        running.state.opened.set()
        told = (await peer.other("notifications/tasks/status"))["params"]
        assert told == await status(peer, id_)
        assert told["status"] == "completed"


async def test_its_progress_goes_on_with_the_token_of_the_call():
    async with opened() as running, speaking(running) as peer:
        answer = await run(peer, "wait", meta={"progressToken": "token"})
        id_ = answer["result"]["task"]["taskId"]
        running.state.opened.set()
        await until(peer, id_, "completed")
        reports = [message["params"] for message in peer.others if message["method"] == "notifications/progress"]
        assert reports[-1] == {
            "progressToken": "token",
            "progress": 2,
            "total": 4,
            "message": "going on",
            "_meta": of(id_),
        }


async def test_nobody_is_told_who_is_gone():
    async with opened() as running:
        async with speaking(running) as first:
            id_ = await begin(first, "wait")
        running.state.opened.set()
        async with speaking(running) as second:
            await until(second, id_, "completed")
            assert second.others == []


# Over HTTP


def bearing(token: str) -> Json:
    return {"Authorization": f"Bearer {token}"}


async def ask(site: Site, session: Json, method: str, **params: object) -> Json:
    """The answer to a request, which is no stream."""
    answer = await site.post(site.message(method, params), session)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    found: Json = answer.json()
    return found


async def begin_at(site: Site, session: Json, tool: str) -> str:
    """The id of a new task."""
    id_: str = (await ask(site, session, "tools/call", name=tool, task={}))["result"]["task"]["taskId"]
    return id_


async def reply(site: Site, session: Json, asked: Json) -> None:
    answer = await site.post({"jsonrpc": "2.0", "id": asked["id"], "result": ACCEPTED}, session)
    assert answer.status_code == 202


async def status_at(site: Site, session: Json, id: str) -> str:
    found: str = (await ask(site, session, "tasks/get", taskId=id))["result"]["status"]
    return found


async def test_a_question_comes_on_the_stream_of_who_waits() -> None:
    async with served(app()) as site:
        session = await site.initialize(capabilities=ASKED)
        id_ = await begin_at(site, session, "ask")
        async with site.stream(site.message("tasks/result", {"taskId": id_}), session) as response:
            said = [event async for event in answering(site, session, response)]
        assert [one.get("method") for one in said] == ["elicitation/create"] * 4 + [None]
        assert {one["params"]["_meta"][RELATED_TASK]["taskId"] for one in said[:-1]} == {id_}
        assert said[-1]["result"]["_meta"] == {RELATED_TASK: {"taskId": id_}}


async def answering(site: Site, session: Json, response):
    """What comes on a stream; what it asks is answered."""
    async for event in events(response):
        if "id" in event and "method" in event:
            await reply(site, session, event)
        if event.get("method") != "notifications/tasks/status":
            yield event


async def test_a_question_whose_stream_is_lost_is_put_in_another_session() -> None:
    async with served(app()) as site:
        first = await site.initialize(capabilities=ASKED)
        id_ = await begin_at(site, first, "ask")
        waiting = site.message("tasks/result", {"taskId": id_})
        async with site.stream(waiting, first) as response:
            lost = [event async for event in _until_asked(response)]
        second = await site.initialize(capabilities=ASKED)
        async with site.stream(site.message("tasks/result", {"taskId": id_}), second) as response:
            said = [event async for event in answering(site, second, response)]
        assert said[0]["params"]["message"] == lost[-1]["params"]["message"]
        assert said[-1]["result"]["content"][0]["text"] == "accept, accept, accept, accept"


async def _until_asked(response):
    async for event in events(response):
        yield event
        if event.get("method") == "elicitation/create":
            return


async def test_a_task_outlives_its_session() -> None:
    async with served(app()) as site:
        first = await site.initialize()
        id_ = await begin_at(site, first, "wait")
        await site.client.delete("/mcp", headers=merged(first))
        second = await site.initialize()
        assert await status_at(site, second, id_) == "working"
        site.running.state.opened.set()
        result = (await ask(site, second, "tasks/result", taskId=id_))["result"]
        assert result["content"] == [{"type": "text", "text": "done"}]


async def test_a_stream_of_the_session_tells_how_a_task_is() -> None:
    async with served(app()) as site:
        session = await site.initialize()
        async with site.client.stream("GET", "/mcp", headers=merged(session)) as response:
            id_ = await begin_at(site, session, "wait")
            site.running.state.opened.set()
            told = await anext(events(response))
        assert (told["method"], told["params"]["taskId"]) == ("notifications/tasks/status", id_)


async def test_a_task_belongs_to_who_has_the_token() -> None:
    async with served(app(), tokens=("one", "two")) as site:
        hers = await site.initialize(headers=bearing("one"))
        his = await site.initialize(headers=bearing("two"))
        id_ = await begin_at(site, hers, "wait")
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            assert (await ask(site, his, method, taskId=id_))["error"]["code"] == -32602
        assert (await ask(site, his, "tasks/list"))["result"] == {"tasks": []}
        assert [one["taskId"] for one in (await ask(site, hers, "tasks/list"))["result"]["tasks"]] == [id_]
