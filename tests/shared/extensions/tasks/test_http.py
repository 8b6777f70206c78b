"""Tasks of the extension over HTTP: the headers of requests about them, statuses of refusals, and streams."""

from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from shared.protocol.types.tasks import TASKS
from tests.shared.extensions.tasks.app import CAPABILITIES, app
from tests.shared.transports.http.http_wire import Json, Site, events, served_meanwhile, visited

DECLARED = {"io.modelcontextprotocol/clientCapabilities": CAPABILITIES}
NEEDED = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
ABOUT_TASKS = pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])


@pytest.fixture(scope="module")
def standing() -> Iterator[Site]:
    """A server that these tests share."""
    with served_meanwhile(app=app()) as site:
        yield site


async def begin(site: Site) -> str:
    """The id of a new task."""
    answer = await site.call("tools/call", {"name": "ask", "arguments": {}}, **DECLARED)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    id_: str = answer.json()["result"]["taskId"]
    return id_


async def about(site: Site, method: str, id: str, name: str | None) -> httpx.Response:
    """What is answered to a request about a task with `name` in its header; None leaves that out."""
    message, headers = site.stateless(method, {"taskId": id, "inputResponses": {}}, **DECLARED)
    return await site.post(message, {**headers, "Mcp-Name": name})


def encoded(id: str) -> str:
    return f"=?base64?{b64encode(id.encode()).decode()}?="


@ABOUT_TASKS
async def test_the_header_repeats_the_id_or_is_left_out(standing: Site, method: str) -> None:
    async with visited(standing) as site:
        id_ = await begin(site)
        for name in (id_, encoded(id_), None):
            answer = await about(site, method, id_, name)
            assert (answer.status_code, answer.json()["result"]["resultType"]) == (200, "complete")


@ABOUT_TASKS
async def test_a_header_that_says_something_else_is_refused(standing: Site, method: str) -> None:
    async with visited(standing) as site:
        id_ = await begin(site)
        for name in ("other", "", encoded("other"), f"=?base64?{id_}?="):
            answer = await about(site, method, id_, name)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)
        assert (await about(site, "tasks/get", id_, id_)).json()["result"]["status"] != "cancelled"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "ask", "arguments": {}}),
        ("tasks/get", {"taskId": "a"}),
        ("tasks/update", {"taskId": "a", "inputResponses": {}}),
        ("tasks/cancel", {"taskId": "a"}),
        ("subscriptions/listen", {"notifications": {"taskIds": ["a"]}}),
    ],
)
async def test_a_client_without_tasks_is_told_what_it_lacks(standing: Site, method: str, params: Json) -> None:
    async with visited(standing) as site:
        answer = await site.call(method, params)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["data"]) == (400, -32021, NEEDED)


async def test_a_listen_stream_that_breaks_leaves_the_task_at_work(standing: Site) -> None:
    async with visited(standing) as site:
        id_ = await begin(site)
        async with listens(site, id_) as told:
            assert (await anext(told))["method"] == "notifications/subscriptions/acknowledged"
            assert (await anext(told))["params"]["taskId"] == id_
        await site.idle()
        status = (await about(site, "tasks/get", id_, id_)).json()["result"]["status"]
        assert status in ("working", "input_required")


async def test_a_listen_stream_tells_of_the_end(standing: Site) -> None:
    async with visited(standing) as site:
        id_ = await begin(site)
        async with listens(site, id_) as told:
            assert (await anext(told))["params"]["notifications"] == {"taskIds": [id_]}
            await about(site, "tasks/cancel", id_, id_)
            async for one in told:
                assert one["method"] == "notifications/tasks"
                if one["params"]["status"] == "cancelled":
                    break


@asynccontextmanager
async def listens(site: Site, id: str) -> AsyncIterator[AsyncIterator[Any]]:
    """What a listen stream says of a task."""
    message, headers = site.stateless("subscriptions/listen", {"notifications": {"taskIds": [id]}}, **DECLARED)
    async with site.stream(message, headers) as answer:
        assert answer.status_code == 200
        yield events(answer)
