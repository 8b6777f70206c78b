"""The transport of `connect_http` by itself: what it makes of a server that is odd, busy, slow or gone."""

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from shared.protocol.session.events import Outgoing
from shared.protocol.wire.jsonrpc import (
    Failure,
    Gap,
    Malformed,
    Message,
    Notification,
    OnStream,
    Request,
    Response,
    Unanswered,
)
from shared.transports.http import client as client_module
from shared.transports.http.client import HttpTransport, open_http
from shared.transports.http.client_pool import lent_http
from tests.descriptors import left_open, settled_descriptors
from tests.shared.transports.http.scripted import Answer, Asked, Script, result, said, serving, stream

SESSION = {"mcp-session-id": "s-1"}
OPENED = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
NOTED = '{"jsonrpc": "2.0", "method": "notifications/x"}'
CALL = Request(2, "tools/call", {"name": "x", "arguments": {}})


@asynccontextmanager
async def transport_to(script: Any) -> AsyncIterator[HttpTransport]:
    with anyio.fail_after(30):
        async with serving(script) as url, lent_http(None, url) as http, open_http(url, {}, http) as transport:
            yield transport


async def say(transport: HttpTransport, *messages: Message) -> None:
    await transport.send([Outgoing(message, None) for message in messages])


async def shake_hands(transport: HttpTransport) -> None:
    """Opens a session; the script has to answer it."""
    await say(transport, Request(1, "initialize", {}))
    assert isinstance((await transport.receive())[0], Response)
    await say(transport, Notification("notifications/initialized"))


def handshake(**answers: Any) -> Script:
    """Opens the session s-1; the stream of notifications is as `answers` have it."""
    return Script(initialize=result(1, OPENED, **SESSION), initialized=Answer(202), **answers)


async def until_lost(transport: HttpTransport) -> list[Message]:
    """All that comes before the connection is lost."""
    received: list[Message] = []
    with suppress(anyio.BrokenResourceError):
        while True:
            received += await transport.receive()
    return received


async def answer_to(answer: Answer | bytes) -> Message:
    async with transport_to(Script(call=answer)) as transport:
        await say(transport, CALL)
        return (await transport.receive())[0]


# Answers that are none


async def test_who_is_not_reached_has_not_been_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/"
    async with lent_http(None, url) as http, open_http(url, {}, http) as transport:
        await say(transport, CALL)
        (lost,) = await transport.receive()
    assert isinstance(lost, Unanswered)
    assert (lost.id, lost.fate) == (2, "unreached")
    assert lost.reason.endswith(": Connection refused")


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize(
    "answer",
    [
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
    ],
)
async def test_what_is_no_http_leaves_the_fate_open(answer: bytes) -> None:
    lost = await answer_to(answer)
    assert isinstance(lost, Unanswered | Malformed)
    if isinstance(lost, Unanswered):
        assert (lost.id, lost.fate) == (2, "unknown")
        assert "127.0.0.1" not in lost.reason


@pytest.mark.parametrize("status", [429, 502, 503, 504])
@pytest.mark.parametrize(
    ("header", "data"),
    [({}, None), ({"retry-after": "7"}, {"retryAfter": 7}), ({"retry-after": "soon"}, None)],
)
async def test_who_is_busy_says_for_how_long(status: int, header: dict[str, str], data: Any) -> None:
    answer = said({"error": {"code": -32600, "message": "full"}}, status, **header)
    assert await answer_to(answer) == Failure(2, status, f"HTTP {status}: full", data)


async def test_an_answer_that_is_too_long_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.transports.http.client_answers.MAX_MESSAGE", 100_000)
    refused = await answer_to(Answer(body="x" * 200_000))
    assert isinstance(refused, Malformed)
    assert refused.failure.message == "an answer of more than 100,000 bytes"


@pytest.mark.slow
async def test_a_body_that_swells_is_not_kept() -> None:
    bomb = gzip.compress(bytes(200 * 1024 * 1024), 1)
    refused = await answer_to(Answer(body=bomb, headers={"content-encoding": "gzip"}))
    assert isinstance(refused, Malformed)
    assert "more than" in refused.failure.message


async def test_an_event_that_is_too_long_may_have_been_a_notification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.transports.http.client.MAX_MESSAGE", 1_000)
    async with transport_to(Script(call=stream(f"data: {'x' * 2_000}\n\n"))) as transport:
        await say(transport, CALL)
        received = [*await transport.receive()]
        while len(received) < 2:
            received += await transport.receive()
    assert received == [Gap(), Unanswered(2, "the stream ended without an answer")]


async def test_no_redirect_is_followed() -> None:
    script = Script(call=Answer(307, headers={"location": "/elsewhere"}))
    async with transport_to(script) as transport:
        await say(transport, CALL)
        assert await transport.receive() == [Failure(2, 307, "HTTP 307: Status")]
    assert len(script.requests) == 1


# Sessions


async def test_a_session_that_is_forgotten_is_told_and_not_deleted() -> None:
    script = handshake(call=Answer(404), DELETE=Answer(204))
    async with transport_to(script) as transport:
        await shake_hands(transport)
        await say(transport, CALL)
        (lost,) = await transport.receive()
    assert lost == Unanswered(2, "the server has forgotten the session", "session over")
    assert script.count("DELETE") == 0


async def test_a_session_that_is_forgotten_before_it_is_told_something_is_lost() -> None:
    async with transport_to(handshake(list_changed=Answer(404))) as transport:
        await shake_hands(transport)
        await say(transport, Notification("notifications/roots/list_changed"))
        with pytest.raises(anyio.BrokenResourceError):
            await transport.receive()


async def test_what_is_cancelled_need_not_be_heard() -> None:
    asked = anyio.Event()

    async def answer(request: Asked) -> Answer | bytes:
        if request.name == "call":
            asked.set()
            await anyio.sleep_forever()
        return {"initialize": result(1, OPENED, **SESSION), "cancelled": b"", "list": result(3, {})}.get(
            request.name, Answer(202)
        )

    async with transport_to(answer) as transport:
        await shake_hands(transport)
        await say(transport, CALL)
        await asked.wait()
        await transport.send([Outgoing(Notification("notifications/cancelled", {"requestId": 2}), 2)])
        await say(transport, Request(3, "tools/list"))
        assert await transport.receive() == [Response(3, {})]


async def test_a_request_that_was_not_sent_is_not_cancelled_at_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_CALLS", 1)
    cancelled: list[int] = []
    asked = anyio.Event()

    async def answer(request: Asked) -> Answer:
        if request.name == "cancelled":
            cancelled.append(json.loads(request.body)["params"]["requestId"])
            return Answer(202)
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    def withdrawn(id_: int) -> Outgoing:
        return Outgoing(Notification("notifications/cancelled", {"requestId": id_}), id_)

    async with transport_to(answer) as transport:
        await say(transport, CALL)
        await asked.wait()
        await say(transport, Request(3, "tools/call"))
        await anyio.lowlevel.checkpoint()
        await transport.send([Outgoing(Request(4, "tools/call"), None), withdrawn(4), withdrawn(3), withdrawn(2)])
        while not cancelled:
            await anyio.lowlevel.checkpoint()
    assert cancelled == [2]


async def test_a_notification_that_is_not_taken_holds_up_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "FAREWELL_SECONDS", 0.01)

    async def answer(request: Asked) -> Answer:
        if request.name == "list_changed":
            await anyio.sleep_forever()
        return result(2, {})

    async with transport_to(answer) as transport:
        await say(transport, Notification("notifications/roots/list_changed"), CALL)
        assert await transport.receive() == [Response(2, {})]


async def test_what_need_not_be_waited_for_leaves_at_once() -> None:
    script = handshake(call=result(2, {}))
    async with transport_to(script) as transport:
        assert transport.try_send([Outgoing(Request(1, "initialize", {}), None)])
        assert isinstance((await transport.receive())[0], Response)
        assert not transport.try_send([Outgoing(Notification("notifications/initialized"), None)])
        await say(transport, Notification("notifications/initialized"))
        assert transport.try_send([Outgoing(CALL, None)])
        assert await transport.receive() == [Response(2, {})]
    assert [one.name for one in script.requests if one.method == "POST"] == ["initialize", "initialized", "call"]


# The stream of notifications


@pytest.mark.parametrize("status", [404, 405, 400])
async def test_a_server_without_a_stream_of_its_own_is_no_less_a_server(status: int) -> None:
    script = handshake(GET=Answer(status), call=result(2, {}))
    async with transport_to(script) as transport:
        await shake_hands(transport)
        while not script.count("GET"):
            await anyio.lowlevel.checkpoint()
        await say(transport, CALL)
        assert await transport.receive() == [Response(2, {})]
    assert script.count("DELETE") == 1


async def test_a_stream_that_is_opened_anew_may_have_missed_something() -> None:
    streams = [stream(f"retry: 1\ndata: {NOTED}\n\n"), Answer(503, headers={"retry-after": "0"}), stream(": \n\n")]
    async with transport_to(handshake(GET=[*streams, Answer(405)])) as transport:
        await shake_hands(transport)
        assert await until_lost(transport) == [Notification("notifications/x"), Gap()]


async def test_a_stream_that_is_resumed_has_missed_nothing() -> None:
    streams = [stream(f"id: {n}\nretry: 1\ndata: {NOTED}\n\n", whole=False) for n in range(8)]
    script = handshake(GET=[*streams, Answer(405)])
    async with transport_to(script) as transport:
        await shake_hands(transport)
        assert await until_lost(transport) == [Notification("notifications/x")] * 8
    assert [one.headers.get("last-event-id") for one in script.requests if one.method == "GET"] == [
        *(None, "0", "1", "2", "3", "4", "5", "6", "7"),
    ]


async def test_a_stream_that_stood_and_whose_session_is_forgotten_loses_the_connection() -> None:
    script = handshake(GET=[stream("id: 1\nretry: 1\ndata:\n\n"), Answer(404)])
    async with transport_to(script) as transport:
        await shake_hands(transport)
        with pytest.raises(anyio.BrokenResourceError):
            await transport.receive()
    assert script.count("DELETE") == 0


async def test_a_stream_is_given_up_after_some_attempts() -> None:
    script = handshake(GET=[stream("id: 1\nretry: 1\ndata:\n\n"), *[Answer(502)] * 10])
    async with transport_to(script) as transport:
        await shake_hands(transport)
        with pytest.raises(anyio.BrokenResourceError):
            await transport.receive()
    assert script.count("GET") == 6


# Connections


async def test_calls_one_after_the_other_share_a_connection() -> None:
    answers = [result(2, {"n": n}) for n in range(3)] + [stream('data: {"jsonrpc":"2.0","id":2,"result":{}}\n\n')]
    script = Script(call=[*answers, result(2, {})])
    async with transport_to(script) as transport:
        for _ in range(5):
            await say(transport, CALL)
            assert isinstance((await transport.receive())[0], Response)
    assert script.connections == 1


class Talkative(Answer):
    """An answer that is followed by a response to nothing, as soon as that is wanted."""

    def __init__(self, answer: Answer, wanted: anyio.Event) -> None:
        super().__init__(body=answer.body, headers=answer.headers)
        self._wanted = wanted

    async def write(self, writer: asyncio.StreamWriter) -> None:
        await super().write(writer)
        await self._wanted.wait()
        await Answer(408).write(writer)


async def test_a_response_to_nothing_is_the_answer_to_nothing() -> None:
    wanted = anyio.Event()
    script = Script(call=[Talkative(result(2, {}), wanted), result(2, {"n": 1})])
    async with transport_to(script) as transport:
        await say(transport, CALL)
        assert await transport.receive() == [Response(2, {})]
        wanted.set()
        for _ in range(20):  # turns in which it comes
            await anyio.lowlevel.checkpoint()
        await say(transport, CALL)
        assert await transport.receive() == [Response(2, {"n": 1})]
    assert script.connections == 2


async def test_calls_beyond_the_bound_wait_and_streams_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_CALLS", 2)
    running, most, go = 0, 0, anyio.Event()

    async def forever() -> AsyncGenerator[bytes, None]:
        yield f"data: {NOTED}\n\n".encode()
        await anyio.sleep_forever()

    async def answer(request: Asked) -> Answer:
        nonlocal running, most
        if request.name == "listen":
            return Answer(headers={"content-type": "text/event-stream"}, pieces=forever())
        running += 1
        most = max(most, running)
        await go.wait()
        running -= 1
        return Answer(500)

    async with transport_to(answer) as transport:
        await say(transport, *(Request(id_, "tools/call") for id_ in range(10, 15)))
        while running < 2:
            await anyio.lowlevel.checkpoint()
        await say(transport, *(Request(id_, "subscriptions/listen") for id_ in range(3)))
        received: list[Message] = []
        while len(received) < 3:
            received += await transport.receive()
        go.set()
        while len(received) < 8:
            received += await transport.receive()
    assert most == 2


async def test_nothing_is_begun_at_once_in_a_session_that_is_over() -> None:
    """Its client has yet to see that, and then has what it wanted to send."""
    script = handshake(GET=[stream("id: 1\nretry: 1\ndata:\n\n"), Answer(404)])
    async with transport_to(script) as transport:
        await shake_hands(transport)
        while transport.try_send([Outgoing(Notification("notifications/x"), None)]):
            await anyio.lowlevel.checkpoint()
        with pytest.raises(anyio.BrokenResourceError):
            await transport.receive()


async def test_a_request_that_is_cancelled_closes_its_stream() -> None:
    closed = anyio.Event()

    async def noisy() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield f"data: {NOTED}\n\n".encode()
                await anyio.lowlevel.checkpoint()
        finally:
            closed.set()

    async def answer(_request: Asked) -> Answer:
        return Answer(headers={"content-type": "text/event-stream"}, pieces=noisy())

    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    async with transport_to(answer) as transport:
        await say(transport, Request(2, "tools/call", {"name": "x", **meta}))
        assert (await transport.receive())[0] == OnStream(Notification("notifications/x"), 2)
        await transport.send([Outgoing(Notification("notifications/cancelled", {"requestId": 2}), 2)])
        await closed.wait()


async def test_what_is_under_way_ends_with_the_transport() -> None:
    asked = anyio.Event()

    async def answer(_request: Asked) -> Answer:
        asked.set()
        await anyio.sleep_forever()
        return Answer()

    before = settled_descriptors()
    async with transport_to(answer) as transport:
        await say(transport, CALL)
        await asked.wait()
        await transport.aclose()
        await transport.aclose()
        with pytest.raises(anyio.EndOfStream):
            await transport.receive()
    while left_open(before):
        await anyio.lowlevel.checkpoint()


async def test_a_large_message_is_sent_whole() -> None:
    async def answer(request: Asked) -> Answer:
        return result(2, {"length": len(request.body)})

    async with transport_to(answer) as transport:
        await say(transport, Request(2, "tools/call", {"name": "x", "arguments": {"text": "x" * 3_000_000}}))
        (answered,) = await transport.receive()
    assert isinstance(answered, Response)
    assert answered.result["length"] > 3_000_000


async def test_a_silent_connection_is_probed_by_the_system() -> None:
    async def silent() -> AsyncGenerator[bytes, None]:
        yield b"x"
        await anyio.sleep_forever()

    script = Script(GET=Answer(pieces=silent()))
    async with serving(script) as url, lent_http(None, url) as pool, pool.session.get(url) as response:
        opened: Any = response.connection
        connected = opened.transport.get_extra_info("socket")
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


# Proxies


async def test_the_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(call=result(2, {}))
    async with serving(script) as proxy:
        monkeypatch.setenv("http_proxy", proxy.replace("//", "//me:secret@").removesuffix("/mcp"))
        url = "http://server.example/mcp"
        async with lent_http(None, url) as http, open_http(url, {}, http) as transport:
            await say(transport, CALL)
            assert await transport.receive() == [Response(2, {})]
    assert script.requests[0].path == "http://server.example/mcp"
    assert script.requests[0].headers["proxy-authorization"] == "Basic bWU6c2VjcmV0"


async def test_no_proxy_is_asked_for_a_host_that_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert await answer_to(result(2, {})) == Response(2, {})


@pytest.mark.parametrize("proxy", ["socks5://me:secret@127.0.0.1:9", "http://", "http://[", "ftp://x"])
async def test_a_proxy_that_can_not_be_used_is_not_named(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(ConnectionError, match="the proxy that the environment names") as caught:
        async with lent_http(None, "http://server.example/mcp"):
            pass
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "mcp", "ftp://a/", "http://", "http:///mcp", "http://a b/", "http://a/\ud800"])
async def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(ValueError, match="no URL of HTTP"):
        async with lent_http(None, url):
            pass
