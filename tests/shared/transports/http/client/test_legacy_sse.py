"""`connect_sse` and the fallback of `connect` to it, against our own server and unusual ones."""

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketAttribute, SocketStream

from shared.client.client import Client
from shared.client.connect import connect, connect_http, connect_sse, connect_websocket
from shared.client.connection.changes import Change
from shared.client.options import ClientOptions
from shared.concurrency import background
from shared.errors import PeerError
from shared.protocol.session.events import Outgoing
from shared.protocol.types.client import Root
from shared.protocol.wire.jsonrpc import Request, Response
from shared.transports.http.client.legacy_sse import open_sse
from shared.transports.http.client.pool import Pool, open_pool
from tests.descriptors import left_open, settled_descriptors
from tests.shared.client.small import Small, listening, text_of
from tests.shared.transports.http.scripted import Answer, ReceivedRequest, Script, serving

VERSIONS = pytest.mark.parametrize("mode", ["auto", "2024-11-05"])
TOKEN = "secret-secret-secret"


@asynccontextmanager
async def served(small: Small, *tokens: str) -> AsyncIterator[tuple[str, anyio.Event]]:
    """Yields the URL of `small` without a path, and an event that stops it."""
    async with listening(small, *tokens) as (address, stop):
        yield f"http://{address}", stop


@asynccontextmanager
async def connected(small: Small, **options: Any) -> AsyncIterator[Client]:
    async with served(small) as (url, _), connect_sse(f"{url}/sse", ClientOptions(**options)) as client:
        yield client


@VERSIONS
async def test_a_tool_is_called_over_sse(mode: str) -> None:
    async with connected(Small(), mode=mode) as client:
        assert client.server.version == (mode if mode[0] == "2" else "2025-11-25")
        assert len(await client.raw.list_tools()) == 7
        assert text_of(await client.raw.call_tool("add", {"a": 2, "b": 3})) == "5"


async def test_requests_of_the_server_are_answered() -> None:
    async with connected(Small(), roots=[Root(uri="file:///a")]) as client:
        assert text_of(await client.raw.call_tool("roots")) == "file:///a"


async def test_changes_arrive_while_subscribed() -> None:
    small = Small()
    async with connected(small) as client:
        async with client.changes(["memo://one"]) as changes:
            small.running.changes.resource("memo://one")
            assert await anext(changes) == Change("resource", "memo://one")
        await small.released.wait()


async def test_the_token_is_sent_with_every_request() -> None:
    async with served(Small(), TOKEN) as (url, _):
        async with connect_sse(f"{url}/sse", token=TOKEN) as client:
            assert text_of(await client.raw.call_tool("add", {"a": 1, "b": 1})) == "2"
        for door in (connect_sse, connect_http):
            with pytest.raises(PeerError, match="HTTP 401") as caught:
                async with door(f"{url}/sse"):
                    pass
            assert caught.value.code == 401


async def ask_on(client: Client) -> None:
    while True:
        await client.raw.call_tool("add", {"a": 1, "b": 1})


async def test_calls_raise_connection_error_when_the_server_stops() -> None:
    async with served(Small()) as (url, stop), connect_sse(f"{url}/sse", ClientOptions(reconnect=False)) as client:
        stop.set()
        with pytest.raises(ConnectionError):
            await ask_on(client)


# Falling back


@VERSIONS
async def test_connect_falls_back_to_sse_when_posts_are_refused(mode: str) -> None:
    async with served(Small()) as (url, _), connect(f"{url}/sse", ClientOptions(mode=mode)) as client:
        assert text_of(await client.raw.call_tool("add", {"a": 2, "b": 3})) == "5"


@pytest.mark.parametrize(("path", "options"), [("/none", {}), ("/sse", {"min_version": "2026-07-28"})])
async def test_the_http_error_is_raised_when_the_fallback_fails(path: str, options: dict[str, str]) -> None:
    async with served(Small()) as (url, _):
        with pytest.raises(PeerError, match=r"^HTTP 40[45]: "):
            async with connect(url + path, ClientOptions(**options)):
                pass


# Unusual servers


@asynccontextmanager
async def answering(
    text: str,
    media_type: str = "text/event-stream",
    *,
    status: str = "200 OK",
    post: str = "202 Accepted",
    body: str = "",
    stays: bool = True,
) -> AsyncIterator[str]:
    """Serves a raw answer `text` to GET, and `body` to POST (no answer without a status); yields the URL."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\n\r\n{text}" if status else ""
    answer = f"HTTP/1.1 {post}\r\nContent-Length: {len(body)}\r\n\r\n{body}" if post else ""

    async def handle(stream: SocketStream) -> None:
        async with stream:
            request = await stream.receive()
            if request.startswith(b"POST"):
                await stream.send(answer.encode())
                return
            await stream.send(head.encode())
            while stays and head:
                await stream.receive()

    async def safely(stream: SocketStream) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            await handle(stream)

    with anyio.fail_after(30):
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, background() as tasks:
            tasks.start_soon(listener.serve, safely)
            yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/sse"


async def test_an_endpoint_of_another_origin_or_an_invalid_one_is_refused() -> None:
    others = ("http://evil.example/messages", "//evil.example/x", "https://127.0.0.1/x", "http://127.0.0.1:1/x")
    for endpoint in (*others, "http://[::1", "http://127.0.0.1:99999999/"):
        async with answering(f"event: endpoint\ndata: {endpoint}\n\n") as url:
            with pytest.raises(ConnectionError, match=r"not a URL|another origin"):
                async with connect_sse(url, token=TOKEN):
                    pass


async def test_a_refused_endpoint_releases_its_connection_in_a_given_session() -> None:
    async with answering("event: endpoint\ndata: //evil.example/x\n\n") as url:
        connector = aiohttp.TCPConnector(limit=1)
        async with aiohttp.ClientSession(connector=connector) as http:
            for _ in range(2):  # the second would wait for the connection of the first
                with pytest.raises(ConnectionError, match="another origin"):
                    async with open_sse(url, {}, Pool(http), endpoint_timeout=5):
                        pass


@pytest.mark.parametrize("named", ["/messages", "http://{}/messages", "http://somebody:else@{}/messages"])
async def test_credentials_in_the_url_are_sent_to_the_endpoint(named: str) -> None:
    authorization = "Basic dXM6cHc="
    script = Script()

    async def answer(request: ReceivedRequest) -> Answer:
        script.requests.append(request)
        if request.headers.get("authorization") != authorization:
            return Answer(401)
        if request.method == "POST":
            return Answer(403)
        event = f"event: endpoint\ndata: {named.format(request.headers['host'])}\n\n"
        return Answer(headers={"content-type": "text/event-stream"}, pieces=_and_stays(event))

    async with serving(answer) as url:
        with anyio.fail_after(30), pytest.raises(PeerError, match="HTTP 403"):
            async with connect_sse(url.replace("://", "://us:pw@")):
                pass
    assert [one.method for one in script.requests] == ["GET", "POST"]


async def _and_stays(text: str) -> AsyncGenerator[bytes, None]:
    yield text.encode()
    await anyio.sleep_forever()


async def test_an_accepted_post_counts_even_if_its_body_breaks_off() -> None:
    posted = anyio.Event()

    async def events() -> AsyncGenerator[bytes, None]:
        yield b"event: endpoint\ndata: /messages\n\n"
        await posted.wait()
        yield b'data: {"jsonrpc": "2.0", "id": 7, "result": {"n": 1}}\n\n'
        await anyio.sleep_forever()

    async def answer(request: ReceivedRequest) -> Answer:
        if request.method == "POST":
            return Answer(202, pieces=cut())
        return Answer(headers={"content-type": "text/event-stream"}, pieces=events())

    async def cut() -> AsyncGenerator[bytes, None]:
        yield b"Acce"
        posted.set()
        raise ConnectionError

    with anyio.fail_after(30):
        async with serving(answer) as url, open_pool(None, url) as pool, open_sse(url, {}, pool) as transport:
            await transport.send([Outgoing(Request(7, "ping"), None)])
            assert await transport.receive() == [Response(7, {"n": 1})]


async def test_a_stream_without_an_endpoint_event_raises_timeout_error() -> None:
    async with answering(": hello\n\n") as url, aiohttp.ClientSession() as http:
        with pytest.raises(TimeoutError, match="did not announce its endpoint"):
            async with open_sse(url, {}, Pool(http), endpoint_timeout=0.05):
                pass


class Slow:
    """Credentials that take longer than a server may."""

    has_come = False

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        await anyio.lowlevel.checkpoint()
        self.has_come = True
        return {}

    async def answered(self, method: str, url: str, status: int, headers: Mapping[str, str]) -> bool:
        return False


async def test_getting_credentials_does_not_count_against_the_timeout() -> None:
    auth = Slow()
    async with served(Small()) as (url, _), open_pool(None, url) as pool:
        with pytest.raises(TimeoutError):
            async with open_sse(f"{url}/sse", {}, pool, auth, endpoint_timeout=0):
                pass
    assert auth.has_come


async def test_a_redirect_is_not_followed() -> None:
    """The token of a given session is not meant for another host."""
    script = Script(GET=Answer(307, headers={"location": "/elsewhere"}))
    async with serving(script) as url, aiohttp.ClientSession() as http:
        with pytest.raises(PeerError, match="HTTP 307"):
            async with connect_sse(url, http=http, token=TOKEN):
                pass
    assert len(script.requests) == 1


@pytest.mark.parametrize("connect_to", [connect_sse, connect_websocket])
async def test_retry_after_is_passed_on_from_busy_servers(connect_to: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    async with serving(Script(GET=[Answer(503, headers={"retry-after": "7"})] * 9)) as url:
        address = url if connect_to is connect_sse else url.replace("http", "ws")
        with pytest.raises(PeerError, match="HTTP 503") as caught:
            async with connect_to(address, ClientOptions(reconnect=False)):
                pass
    assert (caught.value.code, caught.value.data) == (503, {"retryAfter": 7})


async def test_an_endless_answer_is_not_read() -> None:
    given_up, pieces = anyio.Event(), list[int]()

    async def endless() -> AsyncGenerator[bytes, None]:
        try:
            while len(pieces) < 2_000:
                pieces.append(65_536)
                yield bytes(65_536)
        finally:
            given_up.set()

    async def events() -> AsyncGenerator[bytes, None]:
        yield b"event: endpoint\ndata: /messages\n\n"
        await given_up.wait()

    async def answer(request: ReceivedRequest) -> Answer:
        if request.method == "POST":
            return Answer(202, pieces=endless())
        return Answer(headers={"content-type": "text/event-stream"}, pieces=events())

    async with serving(answer) as url:
        with anyio.fail_after(30), pytest.raises(ConnectionError, match="ended the connection"):
            async with connect_sse(url):
                pass
    assert len(pieces) < 500  # more fits into the buffers of the two sockets


SUSPENDED = '{"jsonrpc": "2.0", "error": {"code": -32600, "message": "tenant is suspended"}}'
NAMED = "event: endpoint\ndata: /messages\n\n"
ODD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "a stream that ends before it names an endpoint": (
        {"text": ": hello\n\n", "stays": False},
        ConnectionError,
        "ended before",
    ),
    "a stream that ends": ({"text": NAMED, "stays": False}, ConnectionError, "ended the connection"),
    "a page": ({"text": "<html>", "media_type": "text/html"}, PeerError, "not an event stream"),
    "a POST that is not taken": ({"text": NAMED, "post": "404 Not Found"}, PeerError, "HTTP 404: Not Found"),
    "a POST without an answer": ({"text": NAMED, "post": ""}, ConnectionError, "closed the connection without"),
    "a refusal": (
        {"text": NAMED, "post": "403 Forbidden", "body": SUSPENDED},
        PeerError,
        "HTTP 403: tenant is suspended",
    ),
}


@pytest.mark.parametrize(("server", "error", "text"), ODD.values(), ids=ODD)
async def test_an_invalid_server_raises_a_clear_error(
    server: dict[str, Any], error: type[Exception], text: str
) -> None:
    async with answering(**server) as url:
        with pytest.raises(error, match=text):
            async with connect_sse(url):
                pass


@pytest.mark.parametrize(
    "get", [{}, {"stays": False}, {"status": ""}, {"status": "500 Oh", "stays": False}, {"media_type": "text/html"}]
)
async def test_the_error_of_the_post_is_raised_when_the_sse_fallback_fails(
    get: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["shared.client.connect"], "FALLBACK_SECONDS", 0.05)
    async with answering(": hello\n\n", post="404 Not Found", body=SUSPENDED, **get) as url:
        with pytest.raises(PeerError, match="HTTP 404: tenant is suspended"):
            async with connect(url):
                pass


async def test_clients_leave_no_descriptors_behind() -> None:
    async with served(Small()) as (url, _), answering("event: endpoint\ndata: //evil.example\n\n") as evil:
        previous = settled_descriptors()
        for _ in range(5):
            async with connect(f"{url}/sse") as client:
                await client.raw.call_tool("add", {"a": 1, "b": 1})
            with pytest.raises(ConnectionError):
                async with connect_sse(evil):
                    pass
            with pytest.raises(PeerError):
                async with connect(f"{url}/none"):
                    pass
        while left_open(previous):  # the servers close their side when they notice
            await anyio.lowlevel.checkpoint()


async def test_a_refused_connection_raises_connection_error() -> None:
    with anyio.fail_after(30), pytest.raises(ConnectionError, match=r"no connection to 127\.0\.0\.1:9"):
        async with connect_sse("http://127.0.0.1:9/sse"):
            pass


@pytest.mark.parametrize("target", ["ftp://127.0.0.1/", "127.0.0.1:8000", ""])
def test_connect_refuses_targets_of_other_schemes(target: str) -> None:
    with pytest.raises(ValueError, match="start with"):
        connect(target)


def test_connect_refuses_a_token_for_a_command() -> None:
    with pytest.raises(TypeError):
        connect(["server"], token=TOKEN)
