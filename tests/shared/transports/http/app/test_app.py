"""The application: authentication, headers that may appear once, and answers that echo nothing."""

import json
from typing import Any

import anyio
import pytest
from anyio import lowlevel
from anyio.abc import SocketStream

from shared.protocol.http.rules import Denial, Headers, HttpRequest
from shared.protocol.identity import Principal
from shared.tracing.trace_context import current
from shared.transports.http.server import HttpOptions, http_app
from tests.shared.transports.http.http_wire import Json, Site, make_server, merged, served

PAGE = (b"origin", b"http://localhost:6274")


Header = tuple[bytes, bytes]
PLACES = [("POST", "/mcp"), ("GET", "/x"), ("GET", "/healthz"), ("GET", "/metrics"), ("POST", "/healthz")]


class FixedAuthenticator:
    """An authenticator that yields to the event loop and always gives the same answer."""

    def __init__(self, answer: Principal | Denial | None) -> None:
        self.answer = answer
        self.headers: list[Headers] = []

    async def authenticate(self, request: HttpRequest) -> Principal | Denial | None:
        await lowlevel.checkpoint()
        self.headers.append(request.headers)
        return self.answer


async def request(
    authenticator: FixedAuthenticator, method: str, path: str, *headers: Header
) -> tuple[int, dict[bytes, bytes]]:
    """Returns the status and headers of the answer to a request without a body."""
    sent: list[Any] = []
    scope = {"type": "http", "method": method, "path": path, "client": ("127.0.0.1", 1), "query_string": b""}
    scope["headers"] = [(b"host", b"localhost:8000"), *headers]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    async with make_server().open() as running:
        app = http_app(running, HttpOptions(authenticator=authenticator))
        await app(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"])


@pytest.mark.parametrize("headers", [(), (PAGE,)], ids=["program", "page"])
async def test_the_authenticator_is_called_once_per_request(headers: tuple[Header, ...]) -> None:
    for method, path in PLACES:
        for answer in (None, Principal("ada"), Denial("no", "Bearer")):
            authenticator = FixedAuthenticator(answer)
            await request(authenticator, method, path, *headers)
            assert len(authenticator.headers) == 1, (method, path, answer)


@pytest.mark.parametrize("headers", [(), (PAGE,)], ids=["program", "page"])
async def test_a_denial_is_a_401_with_its_challenge(headers: tuple[Header, ...]) -> None:
    for method, path in (("POST", "/mcp"), ("GET", "/x"), ("GET", "/metrics"), ("PUT", "/healthz")):
        status, sent = await request(
            FixedAuthenticator(Denial("no", 'DPoP error="invalid_token"')), method, path, *headers
        )
        assert (status, sent[b"www-authenticate"]) == (401, b'DPoP error="invalid_token"'), (method, path)


async def test_a_foreign_origin_is_refused_before_authentication() -> None:
    authenticator = FixedAuthenticator(None)
    status, _ = await request(authenticator, "POST", "/mcp", (b"origin", b"http://evil.example"))
    assert (status, authenticator.headers) == (403, [])


# No echo of the request
MARK = "qxz7"
"""What no answer may contain."""


async def ask(site: Site, request: str, lines: list[str], body: bytes = b"") -> tuple[int, str]:
    """Sends a handwritten request; returns the status and the rest of the answer."""
    head = "\r\n".join([f"{request} HTTP/1.1", *lines, f"Content-Length: {len(body)}", "Connection: close", "", ""])
    async with await anyio.connect_tcp("127.0.0.1", site.port) as stream:
        await stream.send(head.encode("latin-1") + body)
        answer = (await rest(stream)).decode("latin-1")
    return int(answer.split(" ", 2)[1]), answer


async def rest(stream: SocketStream) -> bytes:
    answer = b""
    try:
        while True:
            answer += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return answer


PING = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}'  # noqa: E501
USUAL = [
    "Host: localhost",
    "Accept: application/json, text/event-stream",
    "Content-Type: application/json",
    "MCP-Protocol-Version: 2026-07-28",
    "Mcp-Method: tools/list",
]


async def test_whitespace_around_header_values_is_ignored() -> None:
    async with served(tokens=("secret",)) as site:
        blank = " \t \t"
        padded = [line.replace(": ", f":{blank}", 1) + blank for line in [*USUAL, "Authorization: Bearer secret"]]
        assert (await ask(site, "POST /mcp", padded, PING))[0] == 200
        assert (await ask(site, "POST /mcp", [*padded, f"Origin:{blank}http://evil.example"], PING))[0] == 403


ONCE = [
    "Host: localhost",
    "Origin: http://localhost",
    "Authorization: Bearer secret",
    "X-API-Key: secret",
    "Content-Type: application/json",
    "MCP-Protocol-Version: 2026-07-28",
    "mcp-method: tools/list",
    "Mcp-Session-Id: x",
    "Last-Event-ID: 0_0",
    "Content-Length: 4",
]


async def test_a_repeated_single_value_header_is_refused() -> None:
    async with served(tokens=("secret",)) as site:
        lines = [*USUAL, "Authorization: Bearer secret"]
        assert (await ask(site, "POST /mcp", lines, PING))[0] == 200
        for line in ONCE:
            name = line.partition(":")[0].lower()
            once = lines if any(one.lower().startswith(name) for one in lines) else [*lines, line]
            assert (await ask(site, "POST /mcp", [*once, line], PING))[0] == 400, line


MARKED = [f"X-Other: {MARK}", f"Cookie: {MARK}", f"User-Agent: {MARK}", f"Referer: {MARK}"]
CASES: list[tuple[str, Json, bytes]] = [
    (f"GET /{MARK}", {}, b""),
    (f"GET /mcp/{MARK}/?{MARK}", {}, b""),
    (f"GET //{MARK}.example/mcp/", {}, b""),
    (f"POST /mcp//?next={MARK}", {}, PING),
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


async def test_error_answers_echo_nothing_of_the_request() -> None:
    async with served(tokens=("secret",)) as site:
        lines = dict(line.split(": ", 1) for line in [*USUAL, "Authorization: Bearer secret", *MARKED])
        for request_line, changed, body in CASES:
            sent = [f"{name}: {value}" for name, value in {**lines, **changed}.items()]
            status, answer = await ask(site, request_line, sent, body)
            assert 400 <= status < 500, (request_line, changed, body)
            assert MARK not in answer.lower()
            assert "\nlocation:" not in answer.lower()


async def test_errors_of_a_session_echo_nothing_of_the_request() -> None:
    async with served() as site:
        session = await site.initialize()
        for changed in ({"MCP-Protocol-Version": MARK}, {"Last-Event-ID": MARK}, {"Last-Event-ID": f"{MARK}_1"}):
            answer = await site.client.get("/mcp", headers=merged({**session, **changed}))
            assert answer.status_code == 400
            assert MARK not in answer.text + str(answer.headers)


async def test_invalid_unicode_is_refused_with_the_request_id() -> None:
    params = {"name": "echo", "arguments": {"text": "\ud83d"}}
    async with served() as site:
        stateless = await site.call("tools/call", params)
        of_a_session = await site.post(site.message("tools/call", params, id=7), await site.initialize())
    for answer, id_ in ((stateless, 1), (of_a_session, 7)):
        assert (answer.status_code, answer.json()["id"], answer.json()["error"]["code"]) == (400, id_, -32602)
        assert answer.json()["error"]["message"].startswith("params.arguments.text is not valid Unicode")


async def test_a_pipelined_request_belongs_to_no_trace_of_the_one_before_it() -> None:
    app = make_server()

    @app.tool()
    async def trace() -> str:
        """Names the trace of the call."""
        return "none" if current.get() is None else "traced"

    async with served(app) as site:
        message, routing = site.stateless("tools/call", {"name": "trace", "arguments": {}})
        body = json.dumps(message).encode()
        headers = merged({**routing, "Host": "localhost", "Content-Length": str(len(body))})
        head = "\r\n".join(["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in headers)])
        parent = f"traceparent: 00-{'a' * 32}-{'b' * 16}-01"
        both = [f"{head}\r\n{more}\r\n".encode() + body for more in (f"{parent}\r\n", "")]
        async with await anyio.connect_tcp("127.0.0.1", site.port) as stream:
            await stream.send(b"".join(both))
            received = b""
            while received.count(b'"content"') < 2:
                received += await stream.receive()
    assert received.index(b'"traced"') < received.index(b'"none"')
