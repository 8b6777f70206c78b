"""What every HTTP answer is like, whatever it answers: compressed where that helps, and never an echo."""

import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
import uvicorn
from anyio.abc import SocketStream

from shared.transports.http.connections import Connection
from shared.transports.http.server import HttpOptions, http_app
from tests.shared.transports.http.http_wire import PATIENCE, Json, Site, events, make_server, merged, served, visited

MARK = "qxz7"
"""What no answer may contain."""


# Compression


def echo(size: int) -> Json:
    return {"name": "echo", "arguments": {"text": "x" * size}}


@pytest.mark.parametrize(
    ("accepted", "size", "compressed"),
    [
        ("gzip", 5_000, True),
        ("deflate, gzip;q=0.5", 5_000, True),
        ("gzip", 500, False),
        ("gzip;q=0", 5_000, False),
        ("br", 5_000, False),
        ("identity", 5_000, False),
    ],
)
@pytest.mark.parametrize("stateless", [True, False])
async def test_long_json_is_compressed(
    standing: Site, accepted: str, size: int, compressed: bool, stateless: bool
) -> None:
    async with visited(standing) as site:
        if stateless:
            message, headers = site.stateless("tools/call", echo(size))
        else:
            message, headers = site.message("tools/call", echo(size)), await site.initialize()
        async with site.stream(message, {**headers, "Accept-Encoding": accepted}) as answer:
            body = b"".join([chunk async for chunk in answer.aiter_raw()])
        assert (answer.headers.get("content-encoding") == "gzip") is compressed
        assert ("accept-encoding" in answer.headers.get("vary", "").lower()) is (size > 1_024)
        assert answer.headers["content-length"] == str(len(body))
        text = json.loads(gzip.decompress(body) if compressed else body)["result"]["content"][0]["text"]
        assert len(text) == size
        assert not compressed or len(body) < 1_000


@pytest.mark.parametrize("stateless", [True, False])
async def test_streams_are_never_compressed(stateless: bool) -> None:
    async with served() as site:
        params = {"name": "report", "arguments": {"steps": 100}}
        if stateless:
            message, headers = site.stateless("tools/call", params, progressToken=1)
        else:
            headers = await site.initialize()
            message = site.message("tools/call", {**params, "_meta": {"progressToken": 1}})
        async with site.stream(message, {**headers, "Accept-Encoding": "gzip"}) as answer:
            assert "content-encoding" not in answer.headers
            assert len([one async for one in events(answer)]) == 101


# Raw requests, to both of the parsers that uvicorn has: ours is made of one, and the application runs under either


@asynccontextmanager
async def listening(parser: object, **options: object) -> AsyncIterator[int]:
    """The port of a server whose heads are read by `parser`."""
    async with make_server().open() as running, anyio.create_task_group() as tasks:
        asgi = http_app(running, HttpOptions(port=0, **options))
        config = uvicorn.Config(asgi, port=0, http=parser, ws="none", log_config=None, lifespan="on")  # type: ignore[arg-type]
        server = uvicorn.Server(config)
        with anyio.fail_after(3 * PATIENCE):
            tasks.start_soon(server._serve)
            while not server.started:
                await anyio.lowlevel.checkpoint()
            yield server.servers[0].sockets[0].getsockname()[1]
            server.should_exit = True


async def ask(port: int, request: str, lines: list[str], body: bytes = b"") -> bytes:
    """The answer to a request written by hand, until the server closes the connection."""
    head = "\r\n".join([f"{request} HTTP/1.1", *lines, f"Content-Length: {len(body)}", "Connection: close", "", ""])
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(head.encode("latin-1") + body)
        return await rest(stream)


async def rest(stream: SocketStream) -> bytes:
    answer = b""
    try:
        while True:
            answer += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return answer


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


PARSERS = pytest.mark.parametrize("parser", [Connection, "h11"])
PING = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}'  # noqa: E501
USUAL = [
    "Host: localhost",
    "Accept: application/json, text/event-stream",
    "Content-Type: application/json",
    "MCP-Protocol-Version: 2026-07-28",
    "Mcp-Method: tools/list",
]


@PARSERS
async def test_blanks_around_values(parser: object) -> None:
    async with listening(parser, tokens=("secret",)) as port:
        blank = " \t \t"
        padded = [line.replace(": ", f":{blank}", 1) + blank for line in [*USUAL, "Authorization: Bearer secret"]]
        assert status(await ask(port, "POST /mcp", padded, PING)) == 200
        assert status(await ask(port, "POST /mcp", [*padded, f"Origin:{blank}http://evil.example"], PING)) == 403


ONCE = [
    "Host: localhost",
    "Origin: http://localhost",
    "Authorization: Bearer secret",
    "X-API-Key: secret",
    "Content-Type: application/json",
    "MCP-Protocol-Version: 2026-07-28",
    "mcp-method: tools/list",
    "Last-Event-ID: 0_0",
    "Content-Length: 4",
]


@PARSERS
async def test_values_that_may_come_once(parser: object) -> None:
    async with listening(parser, tokens=("secret",)) as port:
        lines = [*USUAL, "Authorization: Bearer secret"]
        assert status(await ask(port, "POST /mcp", lines, PING)) == 200
        for line in ONCE:
            name = line.partition(":")[0].lower()
            once = lines if any(one.lower().startswith(name) for one in lines) else [*lines, line]
            assert status(await ask(port, "POST /mcp", [*once, line], PING)) == 400, line


MARKED = [f"X-Other: {MARK}", f"Cookie: {MARK}", f"User-Agent: {MARK}", f"Referer: {MARK}"]


CASES: list[tuple[str, Json, bytes]] = [
    (f"GET /{MARK}", {}, b""),
    (f"GET /mcp/{MARK}/?{MARK}", {}, b""),
    (f"GET //{MARK}.example/mcp/", {}, b""),
    (f"POST /mcp/?next={MARK}", {}, PING),
    (f"{MARK.upper()} /mcp", {}, b""),
    ("OPTIONS /mcp", {"Origin": "http://localhost", "Access-Control-Request-Method": MARK}, b""),
    ("POST /mcp", {"Host": f"{MARK}.example"}, PING),
    ("POST /mcp", {"Host": f"{MARK}@localhost"}, PING),
    ("POST /mcp", {"Origin": f"http://{MARK}.example"}, PING),
    ("POST /mcp", {"Authorization": f"Bearer {MARK}"}, PING),
    ("POST /mcp", {"Authorization": f"Basic {MARK}"}, PING),
    ("POST /mcp", {"Accept": MARK}, PING),
    ("POST /mcp", {"Content-Type": MARK}, PING),
    ("POST /mcp", {"Content-Encoding": MARK}, PING),
    ("POST /mcp", {"MCP-Protocol-Version": MARK}, PING),
    ("POST /mcp", {"Mcp-Method": MARK}, PING),
    ("POST /mcp", {"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": MARK}, b'{"jsonrpc": "2.0"}'),
    ("POST /mcp", {"MCP-Protocol-Version": MARK, "Mcp-Session-Id": MARK}, b'{"jsonrpc": "2.0", "method": "x"}'),
    ("GET /mcp", {"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": MARK, "Last-Event-ID": MARK}, b""),
    ("DELETE /mcp", {"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": MARK}, b""),
    ("POST /mcp", {}, f"{MARK}".encode()),
    ("POST /mcp", {}, f'{{"{MARK}": '.encode()),
    ("POST /mcp", {}, f'"{MARK}"'.encode()),
    ("POST /mcp", {}, f'["{MARK}"]'.encode()),
    ("POST /mcp", {}, f'{{"jsonrpc": "{MARK}", "{MARK}": "{MARK}"}}'.encode()),
    ("POST /mcp", {}, f'{{"jsonrpc": "2.0", "method": ["{MARK}"]}}'.encode()),
    ("POST /mcp", {}, f'{{"jsonrpc": "2.0", "method": "x", "params": "{MARK}"}}'.encode()),
    ("POST /mcp", {"Transfer-Encoding": MARK}, PING),
    (f"POST /mcp HTTP/9.9{MARK}", {}, PING),
]


@PARSERS
async def test_nothing_that_was_sent_comes_back(parser: object) -> None:
    async with listening(parser, tokens=("secret",)) as port:
        lines = dict(line.split(": ", 1) for line in [*USUAL, "Authorization: Bearer secret", *MARKED])
        for request_line, changed, body in CASES:
            sent = [f"{name}: {value}" for name, value in {**lines, **changed}.items()]
            answer = await ask(port, request_line, sent, body)
            assert 400 <= status(answer) < 500, (request_line, changed, body)
            assert MARK not in answer.decode("latin-1").lower()
            assert b"\nlocation:" not in answer.lower()


async def test_a_session_refuses_without_an_echo() -> None:
    async with served() as site:
        session = await site.initialize()
        for changed in ({"MCP-Protocol-Version": MARK}, {"Last-Event-ID": MARK}, {"Last-Event-ID": f"{MARK}_1"}):
            answer = await site.client.get("/mcp", headers=merged({**session, **changed}))
            assert answer.status_code == 400
            assert MARK not in answer.text + str(answer.headers)


@pytest.mark.parametrize("stateless", [False, True])
async def test_text_that_is_no_unicode_is_refused_under_its_id(stateless: bool) -> None:
    params = {"name": "echo", "arguments": {"text": "\ud83d"}}
    async with served() as site:
        if stateless:
            answer = await site.call("tools/call", params)
        else:
            answer = await site.post(site.message("tools/call", params, id=7), await site.initialize())
        assert answer.status_code == 400
        assert answer.json()["id"] == (1 if stateless else 7)
        assert answer.json()["error"]["code"] == -32602
        assert answer.json()["error"]["message"].startswith("params.arguments.text is not valid Unicode")
