"""Tasks of the extension io.modelcontextprotocol/tasks (SEP-2663): owners, input, limits, and HTTP.

The messages are in tests/transcripts/tasks-extension.
"""

from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from shared import Context, Server, elicit_form
from shared.errors import DeclarationError
from shared.extensions.tasks import runner
from shared.protocol.identity import Principal
from shared.protocol.types.tasks import TASKS
from tests.shared.extensions.tasks.app import ACCEPTED, CAPABILITIES, FORM, app, begin, opened, status, until
from tests.shared.server.peer import NEWEST_HANDSHAKE, STATELESS, server, talking
from tests.shared.transports.http.http_wire import Json, Site, events, served_meanwhile, visited

NEEDED = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
ACK = {"resultType", "_meta"}
ABOUT_TASKS = pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])


def speaking(running, capabilities=CAPABILITIES, **options):
    return talking(running, STATELESS, capabilities, **options)


async def test_a_slow_call_becomes_a_task():
    async with opened() as running, speaking(running) as peer:
        task = (await peer.call("wait"))["result"]
        assert task["resultType"] == "task"
        assert task["status"] == "working"
        assert task["statusMessage"] == "waiting, 25%"
        assert {"taskId", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"} < task.keys()
        assert task.keys().isdisjoint(
            {"task", "ttl", "pollInterval", "requestState", "result", "error", "inputRequests"}
        )


async def test_a_completed_task_contains_its_result():
    async with opened() as running, speaking(running) as peer:
        id_ = await begin(peer, "wait")
        task = await status(peer, id_)
        assert (task["resultType"], task["taskId"], task["status"]) == ("complete", id_, "working")
        running.state.opened.set()
        task = await until(peer, id_, "completed")
        assert task["result"] == {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}


async def test_a_call_that_ends_in_time_returns_a_normal_result():
    async with opened(app(after_seconds=60)) as running, speaking(running) as peer:
        running.state.opened.set()
        assert (await peer.call("wait"))["result"]["content"][0]["text"] == "done"


async def test_the_tasks_capability_of_2025_11_25_does_not_declare_the_extension():
    for tasks in ({}, {"requests": {"tools": {"call": {}}}}):
        async with opened() as running, speaking(running, {"tasks": tasks}) as peer:
            running.state.opened.set()
            assert (await peer.call("wait"))["result"]["resultType"] == "complete"
            assert (await peer.call("fail"))["error"]["code"] == -32021


async def test_the_extension_is_ignored_in_versions_with_a_handshake():
    async with opened() as running, talking(running, NEWEST_HANDSHAKE, CAPABILITIES) as peer:
        running.state.opened.set()
        assert "content" in (await peer.call("wait"))["result"]


async def test_a_task_belongs_to_its_principal():
    ada, bob = Principal("ada"), Principal("bob")
    async with opened() as running, speaking(running, principal=ada) as hers, speaking(running, principal=bob) as his:
        id_ = await begin(hers, "wait")
        assert (await his.request("tasks/get", {"taskId": id_}))["error"]["code"] == -32602
        assert (await his.request("tasks/cancel", {"taskId": id_}))["error"]["code"] == -32602
        assert (await status(hers, id_))["status"] == "working"


async def test_a_listen_stream_does_not_follow_tasks_of_other_principals():
    ada, bob = Principal("ada"), Principal("bob")
    async with opened() as running, speaking(running, principal=ada) as hers, speaking(running, principal=bob) as his:
        ids = [await begin(hers, "wait"), await begin(his, "wait")]
        await his.begin("subscriptions/listen", {"notifications": {"taskIds": ids}})
        acknowledged = await his.other("notifications/subscriptions/acknowledged")
        assert acknowledged["params"]["notifications"] == {"taskIds": ids[1:]}
        assert (await his.other("notifications/tasks"))["params"]["taskId"] == ids[1]


async def test_another_connection_of_the_owner_can_get_the_task():
    async with opened() as running:
        async with speaking(running) as first:
            id_ = await begin(first, "wait")
        running.state.opened.set()
        async with speaking(running) as second:
            assert (await until(second, id_, "completed"))["result"]["content"][0]["text"] == "done"


async def test_cancelling_a_task_stops_the_call():
    async with opened() as running, speaking(running) as peer:
        id_ = await begin(peer, "wait")
        assert (await peer.request("tasks/cancel", {"taskId": id_}))["result"].keys() == ACK
        assert (await status(peer, id_))["status"] == "cancelled"
        await running.state.stopped.wait()


# Input


async def test_a_server_request_without_the_capability_fails_the_task():
    async with opened() as running, speaking(running, {"extensions": {TASKS: {}}}) as peer:
        task = await until(peer, await begin(peer, "ask"), "failed")
        assert task["error"]["code"] == -32021
        assert task["error"]["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
        assert "elicitation" in task["statusMessage"]


async def test_input_requested_before_the_task_returns_input_required():
    async with opened(asking_first()) as running, speaking(running) as peer:
        round_ = (await peer.call("ask_first"))["result"]
        assert round_["resultType"] == "input_required"
        brought = {"inputResponses": {"a": ACCEPTED}, "requestState": round_["requestState"]}
        task = (await peer.request("tools/call", {"name": "ask_first", "arguments": {}, **brought}))["result"]
        assert task["resultType"] == "task"


def asking_first():
    bench = app(after_seconds=0)

    @bench.tool(task="optional")
    async def ask_first(ctx: Context) -> str:
        """Ask at once, then wait."""
        await ctx.inputs({"a": elicit_form("a?", FORM)})
        await ctx.state.opened.wait()
        return "done"

    return bench


# Listening


async def test_a_stopping_server_notifies_listeners_of_failed_tasks():
    async with opened() as running, speaking(running) as peer:
        id_ = await begin(peer, "wait")
        await peer.begin("subscriptions/listen", {"notifications": {"taskIds": [id_]}})
        await peer.other("notifications/tasks")
        running.stop()
        last = (await peer.other("notifications/tasks"))["params"]
        assert (last["status"], last["statusMessage"]) == ("failed", runner.STOPPED)
        assert last["error"] == {"code": -32603, "message": runner.STOPPED}
        await running.state.stopped.wait()


# Limits


async def test_tasks_of_each_client_are_limited():
    ada, bob = Principal("ada"), Principal("bob")
    async with (
        opened(app(of_one_client=1)) as running,
        speaking(running, principal=ada) as hers,
        speaking(running, principal=bob) as his,
    ):
        await begin(hers, "wait")
        assert "error" in await hers.call("ask")
        await begin(his, "ask")


async def test_a_result_beyond_the_total_size_limit_fails_the_task():
    async with opened(app(result_bytes=200)) as running, speaking(running) as peer:
        running.state.answer = "a" * 150
        first, second = [await begin(peer, "wait") for _ in range(2)]
        running.state.opened.set()
        await until(peer, first, "completed")
        task = await until(peer, second, "failed")
        assert "the limit of 200 bytes" in task["error"]["message"]


async def test_finished_tasks_leave_no_listeners():
    async with opened() as running, speaking(running) as peer:
        running.state.opened.set()
        for _ in range(10):
            await until(peer, await begin(peer, "fail"), "completed")
        tasks = running.opened[TASKS]
        # Only the store itself knows its listeners.
        assert (tasks.local_tasks, tasks.store._listeners) == ({}, {})


# Declaring


async def test_a_tool_with_tasks_requires_the_extension():
    bench = server()

    @bench.tool(task="optional")
    async def wait() -> str:
        """Wait."""
        return ""

    with pytest.raises(DeclarationError, match="extension `tasks"):
        async with bench.open():
            pass


async def test_a_server_without_such_tools_declares_no_tasks():
    async with Server(server().implementation, extensions=app().extensions).open() as running:
        assert not running.identity.has(("extensions", TASKS))


# Over HTTP

DECLARED = {"io.modelcontextprotocol/clientCapabilities": CAPABILITIES}


@pytest.fixture(scope="module")
def standing() -> Iterator[Site]:
    """A server that these tests share."""
    with served_meanwhile(app=app()) as site:
        yield site


async def begin_at(site: Site) -> str:
    """The id of a new task."""
    answer = await site.call("tools/call", {"name": "ask", "arguments": {}}, **DECLARED)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    id_: str = answer.json()["result"]["taskId"]
    return id_


async def about(site: Site, method: str, id: str, name: str | None) -> httpx.Response:
    """The answer to a request about a task with `name` in its header; None omits the header."""
    message, headers = site.stateless(method, {"taskId": id, "inputResponses": {}}, **DECLARED)
    return await site.post(message, {**headers, "Mcp-Name": name})


def encoded(id: str) -> str:
    return f"=?base64?{b64encode(id.encode()).decode()}?="


@ABOUT_TASKS
async def test_the_name_header_must_match_the_task_id_or_be_absent(standing: Site, method: str) -> None:
    async with visited(standing) as site:
        id_ = await begin_at(site)
        for name in ("other", "", encoded("other"), f"=?base64?{id_}?="):
            answer = await about(site, method, id_, name)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)
        assert (await about(site, "tasks/get", id_, id_)).json()["result"]["status"] != "cancelled"
        for name in (id_, encoded(id_), None):
            answer = await about(site, method, id_, name)
            assert (answer.status_code, answer.json()["result"]["resultType"]) == (200, "complete")


async def test_a_client_without_tasks_gets_the_missing_capability(standing: Site) -> None:
    requests: list[tuple[str, Json]] = [
        ("tools/call", {"name": "ask", "arguments": {}}),
        ("tasks/get", {"taskId": "a"}),
        ("tasks/update", {"taskId": "a", "inputResponses": {}}),
        ("tasks/cancel", {"taskId": "a"}),
        ("subscriptions/listen", {"notifications": {"taskIds": ["a"]}}),
    ]
    async with visited(standing) as site:
        for method, params in requests:
            answer = await site.call(method, params)
            error = answer.json()["error"]
            assert (answer.status_code, error["code"], error["data"]) == (400, -32021, NEEDED)


async def test_a_broken_listen_stream_does_not_stop_the_task(standing: Site) -> None:
    async with visited(standing) as site:
        id_ = await begin_at(site)
        async with listens(site, id_) as messages:
            assert (await anext(messages))["method"] == "notifications/subscriptions/acknowledged"
            assert (await anext(messages))["params"]["taskId"] == id_
        await site.idle()
        status = (await about(site, "tasks/get", id_, id_)).json()["result"]["status"]
        assert status in ("working", "input_required")


async def test_a_listen_stream_reports_the_end_of_a_task(standing: Site) -> None:
    async with visited(standing) as site:
        id_ = await begin_at(site)
        async with listens(site, id_) as messages:
            assert (await anext(messages))["params"]["notifications"] == {"taskIds": [id_]}
            await about(site, "tasks/cancel", id_, id_)
            async for one in messages:
                assert one["method"] == "notifications/tasks"
                if one["params"]["status"] == "cancelled":
                    break


@asynccontextmanager
async def listens(site: Site, id: str) -> AsyncIterator[AsyncIterator[Any]]:
    """The messages of a listen stream about a task."""
    message, headers = site.stateless("subscriptions/listen", {"notifications": {"taskIds": [id]}}, **DECLARED)
    async with site.stream(message, headers) as answer:
        assert answer.status_code == 200
        yield events(answer)
