"""Messages of document 002 over real sockets: in POSTs, each by itself, over HTTP+SSE and in WebSockets."""

from typing import Any

import pytest

from shared.extensions.dialects import DIALECTS
from shared.transports.http.limits import EndpointLimits
from tests.document_apps import document_002
from tests.shared.transports.http.http_wire import Json, events, listening
from tests.shared.transports.http.sse_wire import streaming
from tests.shared.transports.http.web_socket import web_socket

JSON, STREAM = {"Accept": "application/json"}, {"Accept": "text/event-stream"}
LIMITS = EndpointLimits(dialects=True)
INITIALIZE: Json = {"jsonrpc": "2.0", "method": "initialize", "params": {}, "id": "1"}
READ: Json = {"method": "read_resource", "params": {"uri": "data://users/123"}, "id": "req-1"}


async def test_each_post_stands_for_itself() -> None:
    async with document_002().open(extensions=[DIALECTS]) as running, listening(running, limits=LIMITS) as site:
        greeted = await site.post(INITIALIZE, JSON)
        read = await site.post(READ, JSON)
        assert (await site.health())["sessions"] == 0
    assert "mcp-session-id" not in greeted.headers
    assert greeted.json()["result"]["version"] == "0.7.0"
    assert read.json()["result"]["content"] == [{"type": "text", "text": "用户资料内容..."}]
    assert read.json().keys() == {"id", "result"}


async def test_an_answer_may_be_an_event() -> None:
    async with (
        document_002().open(extensions=[DIALECTS]) as running,
        listening(running, limits=LIMITS) as site,
        site.stream(INITIALIZE, STREAM) as answer,
    ):
        (only,) = [one async for one in events(answer)]
    assert only["result"]["version"] == "0.7.0"


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        ({**READ, "params": {"uri": "data://users/999"}}, 200, 3001),
        ({**READ, "id": None}, 400, -32600),
        ({**READ, "params": []}, 400, -32602),
        ({**INITIALIZE, "params": {"version": "1.0.0"}}, 400, 1001),
    ],
)
async def test_errors_are_those_of_the_document(message: Json, status: int, code: int) -> None:
    async with document_002().open(extensions=[DIALECTS]) as running, listening(running, limits=LIMITS) as site:
        answer: Any = await site.post(message, JSON)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


# HTTP+SSE


async def test_its_example_of_sse_is_answered_as_printed() -> None:
    async with (
        document_002().open(extensions=[DIALECTS]) as running,
        listening(running, limits=LIMITS) as site,
        streaming(site) as client,
    ):
        await client.send(INITIALIZE)
        assert (await client.next())["result"]["version"] == "0.7.0"
        await client.send(READ)
        assert (await client.next()).keys() == {"id", "result"}
        assert (await client.ask("tools/list"))["error"]["code"] == -32600


# WebSockets


async def test_the_first_message_settles_what_a_web_socket_speaks() -> None:
    async with (
        document_002().open(extensions=[DIALECTS]) as running,
        listening(running, limits=LIMITS) as site,
        web_socket(site) as socket,
    ):
        await socket.send(INITIALIZE)
        assert (await socket.receive())["result"]["version"] == "0.7.0"
        await socket.send({"method": "notifications/initialized"})
        await socket.send(READ)
        assert (await socket.receive()).keys() == {"id", "result"}
        assert (await socket.request("tools/list"))["error"]["code"] == -32600


async def test_without_dialects_a_web_socket_speaks_the_specification_alone() -> None:
    async with document_002().open() as running, listening(running) as site, web_socket(site) as socket:
        await socket.send(INITIALIZE)
        assert (await socket.receive())["error"]["message"] == "protocolVersion: Field required"
