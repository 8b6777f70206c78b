"""Clients over HTTP and WebSocket, in both eras: headers, credentials, faulty servers, and dialects.

`tests/checks/client_faults` has more faults, over all transports."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup, TaskStatus

from shared.client.auth import AuthorizationCode, OAuth
from shared.client.client import Client
from shared.client.connect import connect, connect_http, connect_sse, connect_stdio, connect_websocket
from shared.client.connection.changes import Change
from shared.client.options import ClientOptions
from shared.errors import AuthError, LoginRequired, McpError, PeerError
from shared.protocol.types.client import Root
from shared.transports.http.client.authorized import MAX_ATTEMPTS
from tests.shared.client import child
from tests.shared.client.auth.world import Person
from tests.shared.client.hostile import STREAM, Exchange, Hostile, hostile, resets
from tests.shared.client.hostile_sockets import HostileSse, HostileWebSocket
from tests.shared.client.leavings import nothing_left
from tests.shared.client.small import Small, listening, text_of

# All features


@pytest.mark.parametrize("scheme", ["http", "ws"])
@pytest.mark.parametrize("mode", ["auto", "handshake", "2025-03-26"])
async def test_connect_uses_a_server_at_a_url(scheme: str, mode: str) -> None:
    small, seen = Small(), list[float]()
    options = ClientOptions(mode=mode, roots=[Root(uri="file:///a")])
    async with listening(small) as (address, _), connect(f"{scheme}://{address}/mcp", options) as client:
        assert client.stateless == (mode == "auto")
        assert len(await client.raw.list_tools()) == 7
        assert text_of(await client.raw.call_tool("add", {"a": 2, "b": 3})) == "5"
        with pytest.raises(PeerError, match="method not found") as caught:
            await client.request("no/such")
        assert caught.value.code == -32601
        await client.raw.call_tool("count", {"to": 3}, on_progress=lambda *report: seen.append(report[0]))
        assert seen == [1, 2, 3]
        assert text_of(await client.raw.call_tool("roots")) == "file:///a"
        async with client.changes(["memo://one"]) as changes:
            small.running.changes.resource("memo://one")
            assert await anext(changes) == Change("resource", "memo://one")
        await small.released.wait()
        while not small.started.is_set():
            with pytest.raises(TimeoutError):
                await client.raw.call_tool("wait", timeout=0.05)
        await small.cancelled.wait()
        assert text_of(await client.raw.call_tool("add", {"a": 1, "b": 1})) == "2"


# Headers


@pytest.mark.parametrize("token", ["s3cret\n", "s3cret\r\nx: y", " s3cret ", "s3crét", "s3cret\0"])
async def test_an_invalid_token_is_refused_without_quoting_it(token: str) -> None:
    for scheme in ("http", "https", "ws", "wss"):
        with pytest.raises(ValueError, match="header authorization has") as caught:
            async with connect(f"{scheme}://127.0.0.1:9/", token=token):
                pass
        assert "s3cr" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "a:", "a\n", "é", "Content-Length", "Transfer-Encoding"])
async def test_an_invalid_or_reserved_header_name_is_refused(name: str) -> None:
    for scheme in ("http", "ws"):
        with pytest.raises(ValueError, match="not the name of an HTTP header that can be set"):
            async with connect(f"{scheme}://127.0.0.1:9/", headers={name: "x"}):
                pass


async def test_each_header_is_sent_once() -> None:
    heads: list[str] = []

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.close()

    given = {"User-Agent": "me", "Accept": "x/y", "AUTHORIZATION": "no", "X-Mine": "1"}
    async with await asyncio.start_server(hang_up, "127.0.0.1") as server:
        host, port = server.sockets[0].getsockname()
        with pytest.raises(ConnectionError):
            async with connect(f"http://{host}:{port}/", token="s3cret", headers=given):
                pass
    lines = [line.partition(": ")[::2] for line in heads[0].lower().split("\r\n")[1:-2]]
    sent = dict(lines)
    assert len(sent) == len(lines)
    assert sent["authorization"] == "bearer s3cret"
    assert (sent["user-agent"], sent["x-mine"]) == ("me", "1")
    assert "text/event-stream" in sent["accept"]
    assert sent["accept-encoding"] == "gzip, deflate"


# Credentials: called with each HTTP request and each answer

WAYS = {
    "stateless": (connect_http, "http://{}/mcp", "stateless"),
    "handshake": (connect_http, "http://{}/mcp", "handshake"),
    "sse": (connect_sse, "http://{}/sse", "handshake"),
    "websocket": (connect_websocket, "ws://{}/mcp", "auto"),
}


class Renewed:
    """Sends an old token until a server refuses it."""

    def __init__(self, *tokens: str, error: AuthError | None = None) -> None:
        self.tokens = list(tokens)
        self.error = error
        self.seen: list[tuple[str, str, int]] = []

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        if self.error is not None:
            raise self.error
        return {"authorization": f"Bearer {self.tokens[0]}"}

    async def answered(self, method: str, url: str, status: int, headers: Mapping[str, str]) -> bool:
        self.seen.append((method, url, status))
        if status != 401:
            return False
        assert headers["WWW-Authenticate"] == headers["www-authenticate"]
        if len(self.tokens) > 1:
            del self.tokens[0]
        return True


Connecting = Callable[[Renewed], AbstractAsyncContextManager[Client]]


@asynccontextmanager
async def served(way: str) -> AsyncIterator[tuple[Connecting, str]]:
    """A function that connects to a server that accepts one token, and the URL of the server."""
    connects, url, mode = WAYS[way]
    async with listening(Small(), "new") as (address, _):
        place = url.format(address)
        yield lambda auth: connects(place, ClientOptions(mode=mode), auth=auth), place.replace("ws:", "http:")


@pytest.mark.parametrize("way", WAYS)
async def test_a_refused_request_is_repeated_with_new_credentials(way: str) -> None:
    auth, refused, none = Renewed("old", "new"), Renewed("old"), Renewed(error=LoginRequired("run login"))
    async with served(way) as (connecting, url):
        async with connecting(auth) as client:
            assert text_of((await client.call_tool("add", {"a": 1, "b": 2})).to_wire()) == "3"
        assert auth.seen[0][1:] == (url, 401)
        assert [status for *_, status in auth.seen].count(401) == 1
        with pytest.raises(PeerError) as given_up:
            async with connecting(refused):
                pass
        assert (given_up.value.code, len(refused.seen)) == (401, MAX_ATTEMPTS)
        with pytest.raises(LoginRequired, match="run login"):
            async with connecting(none):
                pass


@pytest.mark.parametrize(("way", "status"), [("sse", 200), ("websocket", 101)])
async def test_the_auth_sees_the_status_of_an_opened_stream(way: str, status: int) -> None:
    auth = Renewed("new")
    async with served(way) as (connecting, url), connecting(auth):
        assert auth.seen[0] == ("GET", url, status)


class Slow(Renewed):
    """An auth whose login takes longer than the wait for a silent server."""

    waiting = 0

    def __init__(self, *tokens: str, may_wait_for_person: bool) -> None:
        super().__init__(*tokens)
        self.may_wait_for_person = may_wait_for_person

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        if not self.seen:
            self.waiting += 1
            logged_in = asyncio.Event()
            asyncio.get_running_loop().call_later(0.2, logged_in.set)
            await logged_in.wait()
        return await super().headers(method, url)


@pytest.mark.parametrize("way", [*WAYS, "auto"])
async def test_opening_waits_for_a_login_only_if_a_person_is_present(way: str) -> None:
    connecting, url, mode = WAYS.get(way, (connect_http, "http://{}/mcp", "auto"))
    options = ClientOptions(mode=mode, probe_seconds=0.01, opening_seconds=0.05)
    async with listening(Small(), "new") as (address, _):
        patient = Slow("new", may_wait_for_person=True)
        async with connecting(url.format(address), options, auth=patient) as client:
            assert await client.list_tools()
        assert patient.waiting == 1
        if way == "auto":
            with pytest.raises(TimeoutError):
                async with connecting(url.format(address), options, auth=Slow("new", may_wait_for_person=False)):
                    pass


def test_a_login_may_wait_for_a_person_only_with_a_redirect() -> None:
    for redirect in (Person(), None):
        login = OAuth("http://127.0.0.1/mcp", AuthorizationCode(redirect))
        assert login.may_wait_for_person == (redirect is not None)


# Faulty servers


async def outcomes(mode: str, faults: Iterable[str]) -> dict[str, str]:
    """The outcome of a call whose answer has the fault, and of the next call."""
    found: dict[str, str] = {}
    command = [sys.executable, "-I", "-S", str(Path(child.__file__))]
    async with nothing_left():
        with anyio.fail_after(30):
            async with connect_stdio(command, ClientOptions(mode=mode)) as client:
                for fault in faults:
                    try:
                        found[fault] = text_of(await client.raw.call_tool("work", {"fault": fault}, timeout=5))
                    except (ConnectionError, McpError):
                        found[fault] = "an error"
                    assert text_of(await client.raw.call_tool("work")) == "done", fault
    return found


async def test_an_unusable_answer_fails_only_its_call() -> None:
    for mode, faults in (("handshake", child.NO_ANSWERS), ("stateless", child.NO_STATELESS_ANSWERS)):
        assert await outcomes(mode, faults) == dict.fromkeys(faults, "an error")


async def test_a_duplicate_answer_counts_once() -> None:
    faults = ("twice", "twice_in_two_ways", "to_all_before")
    assert await outcomes("handshake", faults) == dict.fromkeys(faults, "done")


async def test_an_answer_to_another_id_is_logged_and_the_call_times_out(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "shared.client.connection")
    async with connect_stdio([sys.executable, "-I", "-S", str(Path(child.__file__))]) as client:
        with anyio.fail_after(30), pytest.raises(TimeoutError):
            await client.raw.call_tool("work", {"fault": "to_another"}, timeout=0.1)
        assert text_of(await client.raw.call_tool("work")) == "done"
    reason = "an answer must have an id and either a result or an error"
    assert caplog.messages == [f"the server sent something that answers no request: {reason}"]


async def test_a_server_that_only_prints_indented_json_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    program = """import json; print(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}}, indent=2))"""
    with anyio.fail_after(30), pytest.raises(ConnectionError):
        async with connect_stdio([sys.executable, "-I", "-S", "-c", program], ClientOptions(mode="handshake")):
            pass
    [record] = [record for record in caplog.records if record.name == "shared.client.connection"]
    assert (record.levelname, "in a stream, a message must be one line" in record.message) == ("WARNING", True)


STRICT = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "server/discover":
        sys.exit("expected initialize")
    if "id" in request:
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


async def test_a_server_that_ends_unless_it_is_initialized_first_is_started_again() -> None:
    command = [sys.executable, "-I", "-S", "-c", STRICT]
    with anyio.fail_after(30):
        async with connect_stdio(command) as client:
            assert client.server.version == "2025-06-18"
        with pytest.raises(ConnectionError, match="the server ended the connection"):
            async with connect_stdio(command, ClientOptions(mode="stateless")):
                pass


async def _break_off(exchange: Exchange) -> None:
    await exchange.send(STREAM if exchange.method == "POST" else b"\x81\x70{")


@pytest.mark.usefixtures("short_pauses")
@pytest.mark.parametrize(
    ("kind", "connects"), [(Hostile, connect_http), (HostileSse, connect_sse), (HostileWebSocket, connect_websocket)]
)
async def test_a_client_reconnects_after_the_server_breaks_off(
    kind: type[Hostile], connects: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.transports.websocket.CLOSE_SECONDS", 0.01)  # a hanging server sends no close frame
    async with nothing_left(), hostile(kind) as server:
        with anyio.fail_after(30):
            for fault in (resets, _break_off):
                server.on("initialize", fault, times=1)
                with pytest.raises(ConnectionError):
                    async with connects(server.url, ClientOptions(mode="handshake")):
                        pass
            hangs = anyio.Event()

            async def hang(exchange: Exchange) -> None:
                hangs.set()
                await exchange.hang()

            async def connect() -> None:
                async with connects(server.url, ClientOptions(mode="handshake")):
                    pass

            server.on("initialize", hang, times=1)
            async with anyio.create_task_group() as connecting:
                connecting.start_soon(connect)
                await hangs.wait()
                connecting.cancel_scope.cancel()
            async with connects(server.url, ClientOptions(mode="handshake")) as client:
                for fault in (resets, _break_off):
                    server.on("tools/call", fault, times=1)
                    with pytest.raises(ConnectionError):
                        await client.raw.call_tool("work")
                    assert text_of(await client.raw.call_tool("work")) == "done"
                    server.on("tools/list", fault, times=1)
                    assert len(await client.raw.list_tools()) == 1


# Replaced servers


class Replaced:
    """Servers that listen at the same port, one after the other."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._port = 0
        self._stop = self._over = anyio.Event()

    async def start(self, small: Small) -> str:
        """Ends the previous server, and serves `small`; returns its host and port."""
        if self._port:
            self.end()
            await self._over.wait()
        address: str = await self._tasks.start(self._run, small)
        return address

    async def _run(self, small: Small, *, task_status: TaskStatus[str]) -> None:
        over = self._over = anyio.Event()
        async with listening(small, port=self._port) as (address, self._stop):
            self._port = int(address.rpartition(":")[2])
            task_status.started(address)
            await self._stop.wait()
        over.set()

    def end(self) -> None:
        """Ends the last server."""
        self._stop.set()


@pytest.mark.usefixtures("short_pauses")
@pytest.mark.parametrize("way", [*WAYS, "websocket handshake"])
async def test_a_client_reconnects_to_a_replaced_server(way: str) -> None:
    connects, url, mode = WAYS.get(way, (connect_websocket, "ws://{}/mcp", "handshake"))
    async with anyio.create_task_group() as tasks:
        server, small = Replaced(tasks), Small()
        address = await server.start(Small())
        async with (
            connects(url.format(address), ClientOptions(mode=mode)) as client,
            client.changes(["memo://one"]) as changes,
        ):
            await server.start(small)
            assert text_of(await client.raw.call_tool("add", {"a": 2, "b": 3})) == "5"
            assert await anext(changes) == Change("missed")
            small.running.changes.resource("memo://one")
            assert await anext(changes) == Change("resource", "memo://one")
        server.end()


# Dialects

BY_HAND = Path(__file__).with_name("document_server.py")


@pytest.mark.parametrize(("document", "tool", "sum_"), [("000", "hand/add", "5"), ("002", "add", '{"sum":5}')])
async def test_a_server_of_a_dialect_is_used(document: str, tool: str, sum_: str) -> None:
    with anyio.fail_after(60):
        async with connect([sys.executable, "-I", str(BY_HAND), document], dialect=document) as client:
            assert [one["name"] for one in await client.raw.list_tools()] == [tool]
            assert text_of(await client.raw.call_tool(tool, {"a": 2, "b": 3})) == sum_
            assert (await client.raw.read_resource("note:one"))["contents"][0]["text"] == "the text of note:one"
            with pytest.raises(PeerError, match="method not found"):
                await client.request("no/such")


IN_DIALECT = {
    "http": (connect, "http://{}/mcp"),
    "sse": (connect_sse, "http://{}/sse"),
    "ws": (connect, "ws://{}/mcp"),
}


@pytest.mark.parametrize("way", IN_DIALECT)
@pytest.mark.parametrize(("document", "tool"), [("000", "small/add"), ("002", "add")])
async def test_a_dialect_is_spoken_over_every_transport(way: str, document: str, tool: str) -> None:
    connects, url = IN_DIALECT[way]
    async with (
        listening(Small(), dialects=True) as (address, _),
        connects(url.format(address), ClientOptions(dialect=document)) as client,
    ):
        assert tool in [one["name"] for one in await client.raw.list_tools()]
        assert text_of(await client.raw.call_tool(tool, {"a": 2, "b": 3})) == "5"
        with pytest.raises(TimeoutError):
            await client.raw.call_tool(tool.replace("add", "wait"), timeout=0.5)
        assert text_of(await client.raw.call_tool(tool, {"a": 1, "b": 1})) == "2"


async def test_a_client_of_a_dialect_sends_no_headers_of_the_specification() -> None:
    heads: list[str] = []

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1") as server:
        host, port = server.sockets[0].getsockname()
        with pytest.raises(ConnectionError):
            async with connect(f"http://{host}:{port}/", dialect="000"):
                pass
    assert "\r\nmcp-" not in heads[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dialect": "001"}, "the dialect must be 000 or 002, not '001'"),
        ({"framing": "frames"}, "the framing must be lines or content-length, not 'frames'"),
        ({"dialect": "000", "options": ClientOptions(mode="handshake")}, "omit the mode 'handshake'"),
    ],
)
async def test_an_unknown_dialect_or_framing_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        async with connect([sys.executable, "-c", ""], **given):
            pass
