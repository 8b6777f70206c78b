"""Tasks of 2025-11-25 (2025-11-25, Utilities, Tasks): owners, expiry, server requests, and HTTP.

The messages are in tests/transcripts/tasks-experimental.
"""

import pytest

from shared.extensions.tasks import runner
from shared.protocol.identity import Principal
from shared.protocol.types.tasks import RELATED_TASK, TASKS
from shared.protocol.versions import V2025_11_25, VERSIONS
from tests.clock import forward
from tests.shared.extensions.tasks.app import ACCEPTED, app, opened, status, until
from tests.shared.server.peer import NEWEST_HANDSHAKE, STATELESS, talking
from tests.shared.transports.http.http_wire import Json, Site, events, merged, served

ASKED = {"elicitation": {"form": {}}}
ADA, BOB = Principal("ada"), Principal("bob")
OLDER = ("2024-11-05", "2025-03-26", "2025-06-18")


def speaking(running, version=NEWEST_HANDSHAKE, capabilities=ASKED, **options):
    return talking(running, version, capabilities, **options)


async def run(peer, tool, task=None, /, meta=None, **arguments):
    """The answer to a call with `task`."""
    params = {"name": tool, "arguments": arguments, "task": task or {}}
    return await peer.request("tools/call", params, **(meta or {}))


async def begin(peer, tool, /, **arguments):
    return (await run(peer, tool, **arguments))["result"]["task"]["taskId"]


def of(id_):
    return {RELATED_TASK: {"taskId": id_}}


# Capabilities


CAN = {"cancel": {}, "requests": {"tools": {"call": {}}}}


async def test_tasks_are_declared_only_in_2025_11_25_and_listed_only_for_principals():
    async with opened() as running:
        declared = running.identity.capabilities_for
        assert declared(V2025_11_25)["tasks"] == CAN
        assert declared(V2025_11_25, ADA)["tasks"] == {**CAN, "list": {}}
        assert not any("tasks" in declared(version, ADA) for version in VERSIONS if version is not V2025_11_25)


@pytest.mark.parametrize("version", [*OLDER, NEWEST_HANDSHAKE, STATELESS])
async def test_tools_declare_task_support_only_in_2025_11_25(version):
    async with opened() as running, speaking(running, version) as peer:
        running.state.opened.set()
        tools = (await peer.request("tools/list"))["result"]["tools"]
        if version in OLDER:  # these ignore `task`, too
            assert "content" in (await run(peer, "wait", {"ttl": "a"}))["result"]
            assert (await peer.request("tasks/get", {"taskId": "a"}))["error"]["code"] == -32601
    support = {tool["name"]: tool["execution"]["taskSupport"] for tool in tools if "execution" in tool}
    has = version == NEWEST_HANDSHAKE
    assert support == ({"wait": "optional", "fail": "required", "ask": "required"} if has else {})


# Creating


# Following


async def test_tasks_result_returns_the_result_of_the_call_with_the_task_id():
    async with opened() as running, speaking(running) as peer:
        id_ = await begin(peer, "wait")
        waiting = await peer.begin("tasks/result", {"taskId": id_})
        assert (await status(peer, id_))["status"] == "working"
        running.state.opened.set()
        result = (await peer.answer(waiting))["result"]
        assert result == {"content": [{"type": "text", "text": "done"}], "_meta": of(id_)}
        # tasks/get does not contain the result.
        task = await until(peer, id_, "completed")
        assert task.keys() == {"taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"}


async def test_a_task_belongs_to_its_principal():
    async with opened() as running, speaking(running, principal=ADA) as hers, speaking(running, principal=BOB) as his:
        ids = [await begin(hers, "wait") for _ in range(2)]
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            assert (await his.request(method, {"taskId": ids[0]}))["error"]["code"] == -32602
        assert (await status(hers, ids[0]))["status"] == "working"
        assert [one["taskId"] for one in (await hers.request("tasks/list"))["result"]["tasks"]] == ids
        assert (await his.request("tasks/list"))["result"] == {"tasks": []}


async def test_a_task_of_the_other_form_of_tasks_is_unknown():
    declared = {"extensions": {TASKS: {}}}
    async with opened() as running, speaking(running) as old, speaking(running, STATELESS, declared) as new:
        theirs = (await new.call("wait"))["result"]["taskId"]
        assert (await old.request("tasks/get", {"taskId": theirs}))["error"]["code"] == -32602
        ours = await begin(old, "wait")
        assert (await new.request("tasks/get", {"taskId": ours}))["error"]["code"] == -32602


async def test_cancelling_a_task_stops_the_call_and_answers_tasks_result():
    async with opened() as running, speaking(running) as peer:
        id_ = await begin(peer, "wait")
        waiting = await peer.begin("tasks/result", {"taskId": id_})
        assert (await peer.request("tasks/cancel", {"taskId": id_}))["result"]["status"] == "cancelled"
        assert (await peer.answer(waiting))["error"] == {"code": -32603, "message": "the task was cancelled"}
        await running.state.stopped.wait()
        assert (await peer.request("tasks/cancel", {"taskId": id_}))["error"]["code"] == -32602  # it is over


async def test_a_stopping_server_answers_waiting_tasks_result():
    async with opened() as running, speaking(running) as peer:
        id_ = await begin(peer, "wait")
        waiting = await peer.begin("tasks/result", {"taskId": id_})
        await status(peer, id_)
        running.stop()
        assert (await peer.answer(waiting))["error"] == {"code": -32603, "message": runner.STOPPED}


async def test_an_expired_task_answers_waiting_tasks_result():
    async with opened() as running, speaking(running) as peer:
        id_ = (await run(peer, "wait", {"ttl": 1_000}))["result"]["task"]["taskId"]
        waiting = await peer.begin("tasks/result", {"taskId": id_})
        await status(peer, id_)
        forward(2)
        assert (await peer.answer(waiting))["error"] == {"code": -32602, "message": "the task has expired"}
        assert (await peer.request("tasks/get", {"taskId": id_}))["error"]["code"] == -32602
        await running.state.stopped.wait()


# Listing


async def test_tasks_are_listed_in_pages():
    server = app()
    server.page_size = 2
    async with (
        opened(server) as running,
        speaking(running, principal=ADA) as peer,
        speaking(running, principal=BOB) as other,
    ):
        ids = [await begin(peer, "wait") for _ in range(3)]
        first = (await peer.request("tasks/list"))["result"]
        second = (await peer.request("tasks/list", {"cursor": first["nextCursor"]}))["result"]
        assert [one["taskId"] for page in (first, second) for one in page["tasks"]] == ids
        for reader, cursor in ((peer, "forged"), (other, first["nextCursor"])):
            assert (await reader.request("tasks/list", {"cursor": cursor}))["error"]["code"] == -32602


# Server requests


async def test_a_server_request_of_a_task_waits_for_a_capable_client():
    async with opened() as running, speaking(running) as first, speaking(running, capabilities={}) as second:
        id_ = await begin(first, "ask")
        await second.begin("tasks/result", {"taskId": id_})
        await until(second, id_, "input_required")
        await first.begin("tasks/result", {"taskId": id_})
        await first.other("elicitation/create")


async def test_a_request_without_an_answer_is_sent_to_the_next_client():
    async with opened() as running, speaking(running) as second:
        async with speaking(running) as first:
            id_ = await begin(first, "ask")
            await first.begin("tasks/result", {"taskId": id_})
            await first.other("elicitation/create")
        assert (await status(second, id_))["status"] == "input_required"
        await second.begin("tasks/result", {"taskId": id_})
        await second.other("elicitation/create")


AS_TASKS = {**ASKED, "tasks": {"cancel": {}, "requests": {"elicitation": {"create": {}}}}}


async def test_a_task_of_the_client_is_cancelled_when_the_server_stops():
    async with opened() as running, speaking(running, capabilities=AS_TASKS) as peer:
        id_ = await begin(peer, "ask")
        await peer.begin("tasks/result", {"taskId": id_})
        asked = await peer.other("elicitation/create")
        await peer.reply(asked["id"], {"task": {"taskId": "theirs", "status": "working"}})
        await peer.other("tasks/result")
        running.stop()
        assert (await peer.other("tasks/cancel"))["params"] == {"taskId": "theirs"}


# Status notifications


async def test_a_disconnected_client_gets_no_status_notification():
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
    """The answer to a request, as JSON instead of a stream."""
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


async def test_server_requests_of_a_task_use_the_stream_of_tasks_result() -> None:
    async with served(app()) as site:
        session = await site.initialize(capabilities=ASKED)
        id_ = await begin_at(site, session, "ask")
        async with site.stream(site.message("tasks/result", {"taskId": id_}), session) as response:
            messages = [event async for event in answering(site, session, response)]
        assert [one.get("method") for one in messages] == ["elicitation/create"] * 4 + [None]
        assert {one["params"]["_meta"][RELATED_TASK]["taskId"] for one in messages[:-1]} == {id_}
        assert messages[-1]["result"]["_meta"] == {RELATED_TASK: {"taskId": id_}}


async def answering(site: Site, session: Json, response):
    """The messages of a stream, whose server requests are answered."""
    async for event in events(response):
        if "id" in event and "method" in event:
            await reply(site, session, event)
        if event.get("method") != "notifications/tasks/status":
            yield event


async def test_a_server_request_on_a_lost_stream_is_repeated_in_another_session() -> None:
    async with served(app()) as site:
        first = await site.initialize(capabilities=ASKED)
        id_ = await begin_at(site, first, "ask")
        waiting = site.message("tasks/result", {"taskId": id_})
        async with site.stream(waiting, first) as response:
            lost = [event async for event in _until_asked(response)]
        second = await site.initialize(capabilities=ASKED)
        async with site.stream(site.message("tasks/result", {"taskId": id_}), second) as response:
            messages = [event async for event in answering(site, second, response)]
        assert messages[0]["params"]["message"] == lost[-1]["params"]["message"]
        assert messages[-1]["result"]["content"][0]["text"] == "accept, accept, accept, accept"


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


async def test_the_session_stream_gets_status_notifications_of_tasks() -> None:
    async with served(app()) as site:
        session = await site.initialize()
        async with site.client.stream("GET", "/mcp", headers=merged(session)) as response:
            id_ = await begin_at(site, session, "wait")
            site.running.state.opened.set()
            notification = await anext(events(response))
        assert (notification["method"], notification["params"]["taskId"]) == ("notifications/tasks/status", id_)


async def test_a_task_belongs_to_the_owner_of_the_token() -> None:
    async with served(app(), tokens=("one", "two")) as site:
        hers = await site.initialize(headers=bearing("one"))
        his = await site.initialize(headers=bearing("two"))
        id_ = await begin_at(site, hers, "wait")
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            assert (await ask(site, his, method, taskId=id_))["error"]["code"] == -32602
        assert (await ask(site, his, "tasks/list"))["result"] == {"tasks": []}
        assert [one["taskId"] for one in (await ask(site, hers, "tasks/list"))["result"]["tasks"]] == [id_]
