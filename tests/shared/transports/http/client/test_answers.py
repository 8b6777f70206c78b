"""How a client handles unusual, oversized and missing answers."""

import gzip
import socket
from typing import Any

import pytest

from shared.protocol.wire.jsonrpc import Failure, Gap, Malformed, Response, Unanswered
from shared.transports.http.client.client import open_http
from shared.transports.http.client.pool import open_pool
from tests.shared.transports.http.scripted import (
    CALL,
    OPENED,
    SESSION,
    Answer,
    Script,
    answer_to,
    json_answer,
    say,
    shake_hands,
    stream,
    transport_to,
)


async def test_a_refused_connection_leaves_the_request_unreached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/"
    async with open_pool(None, url) as http, open_http(url, {}, http) as transport:
        await say(transport, CALL)
        (lost,) = await transport.receive()
    assert isinstance(lost, Unanswered)
    assert (lost.id, lost.cause) == (2, "unreached")
    assert lost.reason.endswith(": Connection refused")


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
NO_HTTP = [
    b"",
    b"HTTP/1.1 200",
    b"rubbish\r\n\r\n",
    HEAD,
    HEAD + b"\r\n",
    HEAD + b"content-length: 9\r\n\r\n{",
    HEAD + b"content-length: 9\r\ncontent-length: 8\r\n\r\n{}",
    HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
    HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\n{}",
    HEAD + b"content-encoding: gzip\r\ncontent-length: 4\r\n\r\nabcd",
    HEAD + b"x: " + b"a" * 100_000,
    HEAD + b"".join(b"x%d: y\r\n" % n for n in range(10_000)) + b"\r\n",
]


async def test_a_non_http_answer_leaves_the_fate_unknown() -> None:
    for answer in NO_HTTP:
        lost = await answer_to(answer)
        assert isinstance(lost, Unanswered | Malformed), answer[:100]
        if isinstance(lost, Unanswered):
            assert (lost.id, lost.cause) == (2, "unknown"), answer[:100]
            assert "127.0.0.1" not in lost.reason


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_retry_after_is_passed_on_from_busy_servers(status: int) -> None:
    waits: list[tuple[dict[str, str], Any]] = [({}, None), ({"retry-after": "7"}, {"retryAfter": 7})]
    for header, data in (*waits, ({"retry-after": "soon"}, None)):
        answer = json_answer({"error": {"code": -32600, "message": "full"}}, status, **header)
        assert await answer_to(answer) == Failure(2, status, f"HTTP {status}: full", data)


async def test_an_answer_over_the_size_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.transports.http.client.answers.MAX_MESSAGE", 100_000)
    refused = await answer_to(Answer(body="x" * 200_000))
    assert isinstance(refused, Malformed)
    assert refused.failure.message == "an answer of more than 100,000 bytes"


@pytest.mark.slow
async def test_a_gzip_bomb_is_refused() -> None:
    bomb = gzip.compress(bytes(200 * 1024 * 1024), 1)
    refused = await answer_to(Answer(body=bomb, headers={"content-encoding": "gzip"}))
    assert isinstance(refused, Malformed)
    assert "more than" in refused.failure.message


async def test_an_event_over_the_size_limit_is_reported_as_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.transports.http.client.client.MAX_MESSAGE", 1_000)
    async with transport_to(Script(call=stream(f"data: {'x' * 2_000}\n\n"))) as transport:
        await say(transport, CALL)
        received = [*await transport.receive()]
        while len(received) < 2:
            received += await transport.receive()
    assert received == [Gap(), Unanswered(2, "the stream ended without an answer")]


async def test_a_redirect_is_not_followed() -> None:
    script = Script(call=Answer(307, headers={"location": "/elsewhere"}))
    async with transport_to(script) as transport:
        await say(transport, CALL)
        assert await transport.receive() == [
            Failure(2, 307, "HTTP 307: the server is at /elsewhere", {"location": "/elsewhere"})
        ]
    assert len(script.requests) == 1


@pytest.mark.parametrize("is_stream", [False, True])
async def test_an_answer_with_its_id_as_a_string_opens_the_session(is_stream: bool) -> None:
    opened = json_answer({"id": "1", "result": OPENED}, 200, **SESSION)
    if is_stream:
        opened = Answer(200, f"data: {opened.body!s}\n\n", {"content-type": "text/event-stream", **SESSION})
    script = Script(initialize=opened, initialized=Answer(202), call=json_answer({"id": "2", "result": {}}))
    async with transport_to(script) as transport:
        await shake_hands(transport)
        await say(transport, CALL)
        assert await transport.receive() == [Response(2, {})]
    [call] = [request for request in script.requests if request.method == "POST" and request.name == "call"]
    assert call.headers["mcp-session-id"] == "s-1"
