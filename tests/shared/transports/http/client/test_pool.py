"""The connection pool of a client: reuse of connections, proxies and URLs."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from shared.protocol.wire.jsonrpc import Response
from shared.transports.http.client.client import open_http
from shared.transports.http.client.pool import open_pool
from tests.shared.transports.http.scripted import (
    CALL,
    Answer,
    Script,
    answer_to,
    result,
    say,
    serving,
    stream,
    transport_to,
)


async def test_successive_calls_share_a_connection() -> None:
    answers = [result(2, {"n": n}) for n in range(3)] + [stream('data: {"jsonrpc":"2.0","id":2,"result":{}}\n\n')]
    script = Script(call=[*answers, result(2, {})])
    async with transport_to(script) as transport:
        for _ in range(5):
            await say(transport, CALL)
            assert isinstance((await transport.receive())[0], Response)
    assert script.connections == 1


class Talkative(Answer):
    """An answer that is followed by an unsolicited HTTP response when `wanted` is set."""

    def __init__(self, answer: Answer, wanted: anyio.Event) -> None:
        super().__init__(body=answer.body, headers=answer.headers)
        self._wanted = wanted

    async def write(self, writer: asyncio.StreamWriter) -> None:
        await super().write(writer)
        await self._wanted.wait()
        await Answer(408).write(writer)


async def test_an_unsolicited_http_response_answers_no_request() -> None:
    wanted = anyio.Event()
    script = Script(call=[Talkative(result(2, {}), wanted), result(2, {"n": 1})])
    async with transport_to(script) as transport:
        await say(transport, CALL)
        assert await transport.receive() == [Response(2, {})]
        wanted.set()
        for _ in range(20):  # turns in which it arrives
            await anyio.lowlevel.checkpoint()
        await say(transport, CALL)
        assert await transport.receive() == [Response(2, {"n": 1})]
    assert script.connections == 2


async def test_tcp_keepalive_is_on() -> None:
    async def silent() -> AsyncGenerator[bytes, None]:
        yield b"x"
        await anyio.sleep_forever()

    script = Script(GET=Answer(pieces=silent()))
    async with serving(script) as url, open_pool(None, url) as pool, pool.session.get(url) as response:
        opened: Any = response.connection
        connected = opened.transport.get_extra_info("socket")
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


# Proxies


async def test_the_proxy_from_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(call=result(2, {}))
    async with serving(script) as proxy:
        monkeypatch.setenv("http_proxy", proxy.replace("//", "//me:secret@").removesuffix("/mcp"))
        url = "http://server.example/mcp"
        async with open_pool(None, url) as http, open_http(url, {}, http) as transport:
            await say(transport, CALL)
            assert await transport.receive() == [Response(2, {})]
    assert script.requests[0].path == "http://server.example/mcp"
    assert script.requests[0].headers["proxy-authorization"] == "Basic bWU6c2VjcmV0"


async def test_a_host_in_no_proxy_is_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert await answer_to(result(2, {})) == Response(2, {})


async def test_the_error_of_an_unusable_proxy_hides_its_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for proxy in ("socks5://me:secret@127.0.0.1:9", "http://", "http://[", "ftp://x"):
        monkeypatch.setenv("http_proxy", proxy)
        with pytest.raises(ConnectionError, match="the proxy that is set in the environment") as caught:
            async with open_pool(None, "http://server.example/mcp"):
                pass
        assert "secret" not in str(caught.value)


async def test_an_invalid_url_is_refused() -> None:
    for url in ("", "mcp", "ftp://a/", "http://", "http:///mcp", "http://a b/", "http://a/\ud800"):
        with pytest.raises(ValueError, match="not an HTTP URL"):
            async with open_pool(None, url):
                pass
