"""The opening of a session: with servers of both eras, and with servers that send invalid answers or none."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.concurrency import background
from shared.errors import PeerError
from shared.protocol.session.events import Outgoing
from shared.protocol.wire.jsonrpc import Failure, Message, Notification, Request, Response
from shared.transports.memory import MemoryTransport, memory_pair
from tests.shared.client.small import End, Small

Answer = Callable[[Request], Message | None]


class Script:
    """A server that answers each request with the function for its method, and records the messages."""

    def __init__(self, **answers: Answer) -> None:
        self.methods: list[str] = []
        self.offers: list[str] = []
        self._answers = answers

    async def run(self, end: MemoryTransport) -> None:
        try:
            while True:
                for message in await end.receive():
                    await self._take(message, end)
        except anyio.EndOfStream:
            end.close()

    async def _take(self, message: Message, end: MemoryTransport) -> None:
        assert isinstance(message, Request | Notification)
        self.methods.append(message.method)
        if message.method == "initialize":
            self.offers.append(message.params["protocolVersion"])
        answer = self._answers.get(message.method.rpartition("/")[2])
        response = answer(message) if isinstance(message, Request) and answer is not None else None
        if response is not None:
            await end.send([Outgoing(response)])


@asynccontextmanager
async def connected(script: Script, **options: Any) -> AsyncIterator[Client]:
    ours, theirs = memory_pair()
    with anyio.fail_after(30):
        async with background() as tasks:
            tasks.start_soon(script.run, theirs)
            try:
                async with Client(End(ours), ClientOptions(**options)) as client:
                    yield client
            finally:
                theirs.close()


def _error(code: int, data: Any = None) -> Answer:
    return lambda request: Failure(request.id, code, "no", data)


def _result(result: dict[str, Any]) -> Answer:
    return lambda request: Response(request.id, result)


def _initialized(version: str = "2025-11-25", **capabilities: Any) -> Answer:
    return _result({"protocolVersion": version, "capabilities": capabilities, "serverInfo": {"name": "old"}})


HANDSHAKE = ["server/discover", "initialize", "notifications/initialized"]


@pytest.mark.parametrize(
    "discover", [_error(-32601), _error(-32602), _error(400), _result({}), _result({"resultType": "x"}), None]
)
async def test_old_servers_get_a_handshake(discover: Answer | None) -> None:
    answers = {"initialize": _initialized("2025-03-26"), "list": _result({"tools": []})}
    script = Script(**answers, **({"discover": discover} if discover else {}))
    # A short wait for the silent server only: the others answer at once.
    async with connected(script, probe_seconds=5 if discover else 0.01) as client:
        assert not client.stateless
        assert client.server.version == "2025-03-26"
        await client.raw.list_tools()
    assert script.methods == [*HANDSHAKE, "tools/list"]


@pytest.mark.parametrize(
    "refused",
    [
        _error(-32022, {"supported": ["2026-07-28"], "requested": "2025-11-25"}),
        _error(0),  # 'duplicate "initialize" received', as the Go SDK 1.8 says
    ],
)
async def test_a_slow_stateless_server_is_discovered_again_after_its_refusal(refused: Answer) -> None:
    """The server has read the first request when it refuses the handshake, so it can be discovered again."""
    discovered = _result({"supportedVersions": ["2026-07-28"], "capabilities": {}})
    late = iter([lambda _request: None, discovered])
    script = Script(discover=lambda request: next(late)(request), initialize=refused)
    async with connected(script, probe_seconds=0.01) as client:
        assert (client.stateless, client.server.version) == (True, "2026-07-28")
    assert script.methods == ["server/discover", "initialize", "server/discover"]


async def test_a_server_that_refuses_every_offered_version_is_an_error() -> None:
    refused = _error(-32022, {"supported": ["2026-07-28"], "requested": "2025-11-25"})
    script = Script(initialize=refused)
    with pytest.raises(ConnectionError, match="no common protocol version"):
        async with connected(script, probe_seconds=0.01):
            pass
    assert script.methods == ["server/discover", "initialize", "server/discover"]


async def test_an_old_server_that_refuses_the_handshake_raises_its_error() -> None:
    script = Script(discover=_error(-32601), initialize=_error(-32000))
    with pytest.raises(PeerError, match="no"):
        async with connected(script):
            pass
    assert script.methods == ["server/discover", "initialize"]


async def test_an_error_code_of_the_stateless_era_keeps_the_client_stateless() -> None:
    async with connected(Script(discover=_error(-32021))) as client:
        assert client.stateless


@pytest.mark.parametrize(
    ("options", "discover", "error"),
    [
        ({}, _error(401), PeerError),
        ({}, _error(-32022, {"supported": ["2099-01-01"]}), ConnectionError),
        ({}, _result({"supportedVersions": ["2099-01-01"]}), ConnectionError),
        ({"mode": "stateless"}, _error(-32601), PeerError),
        ({"mode": "stateless"}, _result({}), ConnectionError),
    ],
)
async def test_a_failed_discovery_is_an_error(
    options: dict[str, Any], discover: Answer, error: type[Exception]
) -> None:
    script = Script(discover=discover)
    with pytest.raises(error):
        async with connected(script, **options):
            pass
    assert script.methods == ["server/discover"]


@pytest.mark.parametrize(
    ("initialize", "error"), [(_error(-32602), PeerError), (_initialized("2099-01-01"), ConnectionError)]
)
async def test_a_failed_handshake_is_an_error(initialize: Answer, error: type[Exception]) -> None:
    script = Script(initialize=initialize)
    with pytest.raises(error):
        async with connected(script, mode="handshake"):
            pass
    assert script.methods == ["initialize"]


@pytest.mark.parametrize(
    ("options", "answers", "text"),
    [
        (
            {"min_version": "2025-06-18"},
            {"discover": _error(-32601), "initialize": _initialized("2024-11-05")},
            "the server supports 2024-11-05, and this client supports 2025-06-18 to 2026-07-28",
        ),
        (
            {"max_version": "2025-03-26"},
            {"initialize": _initialized("2025-11-25")},
            "the server supports 2025-11-25, and this client supports 2024-11-05 to 2025-03-26",
        ),
        (
            {"min_version": "2026-07-28"},
            {"discover": _error(-32022, {"supported": ["2025-11-25", "2025-06-18"]})},
            "the server supports 2025-11-25, 2025-06-18, and this client supports only 2026-07-28",
        ),
        (
            {"mode": "handshake"},
            {"initialize": _error(-32022, {"supported": ["2026-07-28", "\x1b[31m", 7]})},
            "the server supports 2026-07-28, and this client supports 2024-11-05 to 2025-11-25",
        ),
        (
            {"mode": "stateless"},
            {"discover": _result({"supportedVersions": []})},
            "the server does not name its versions, and this client supports only 2026-07-28",
        ),
    ],
)
async def test_a_version_error_names_the_versions_of_both_sides(
    options: dict[str, Any], answers: dict[str, Answer], text: str
) -> None:
    with pytest.raises(ConnectionError, match=f"no common protocol version: {text}$"):
        async with connected(Script(**answers), **options):
            pass


@pytest.mark.parametrize(
    "options", [{"max_version": "2025-06-18"}, {"max_version": "2025-06-18", "mode": "handshake"}]
)
async def test_the_newest_accepted_version_is_offered(options: dict[str, str]) -> None:
    script = Script(initialize=_initialized("2025-06-18"))
    async with connected(script, **options) as client:
        assert client.server.version == "2025-06-18"
    assert script.methods[0] == "initialize"
    assert script.offers == ["2025-06-18"]


@pytest.mark.parametrize(
    "options",
    [
        {"min_version": "2025-01-01"},
        {"min_version": "2025-11-25", "max_version": "2025-06-18"},
        {"max_version": "2025-11-25", "mode": "stateless"},
        {"min_version": "2025-06-18", "mode": "2025-03-26"},
    ],
)
async def test_options_without_a_usable_version_are_refused(options: dict[str, str]) -> None:
    ours, theirs = memory_pair()
    with pytest.raises(ValueError, match="version"):
        Client(End(ours), ClientOptions(**options))
    ours.close()
    theirs.close()


def _busy(times: int, then: Answer) -> Answer:
    statuses = iter([503] * times)

    def answer(request: Request) -> Message | None:
        status = next(statuses, None)
        return then(request) if status is None else Failure(request.id, status, "busy", {"retryAfter": 0.001})

    return answer


@pytest.mark.parametrize(("discover", "initialize"), [(2, 0), (0, 2), (1, 1)])
async def test_a_busy_server_is_asked_again(discover: int, initialize: int) -> None:
    old = _busy(discover, _error(-32601))
    async with connected(Script(discover=old, initialize=_busy(initialize, _initialized()))) as client:
        assert client.server.version == "2025-11-25"


@pytest.mark.usefixtures("short_pauses")
async def test_a_server_that_stays_busy_gets_no_handshake() -> None:
    script = Script(discover=_busy(9, _error(-32601)), initialize=_initialized())
    with pytest.raises(PeerError, match="busy"):
        async with connected(script):
            pass
    assert script.methods == ["server/discover"] * 4


async def test_a_server_that_ends_at_once_raises_connection_error() -> None:
    ours, theirs = memory_pair()
    theirs.close()
    with anyio.fail_after(30), pytest.raises(ConnectionError):
        async with Client(End(ours)):
            pass


@pytest.mark.parametrize("capabilities", [{}, {"logging": {}}])
async def test_the_log_level_is_set_if_the_server_declares_logging(capabilities: dict[str, Any]) -> None:
    script = Script(initialize=_initialized(**capabilities), setLevel=_result({}))
    async with connected(script, mode="handshake", log_level="error"):
        pass
    assert ("logging/setLevel" in script.methods) == bool(capabilities)


async def test_a_refused_log_level_is_logged_and_the_server_is_used(caplog: pytest.LogCaptureFixture) -> None:
    script = Script(initialize=_initialized(logging={}), setLevel=_error(-32601))
    async with connected(script, mode="handshake", log_level="error"):
        pass
    assert "the server refuses the log level error" in caplog.text


async def test_rounds_of_required_input_are_limited() -> None:
    discovered = _result({"supportedVersions": ["2026-07-28"], "capabilities": {}})
    script = Script(discover=discovered, call=_result({"resultType": "input_required", "requestState": "s"}))
    with pytest.raises(Exception, match="10 rounds"):
        async with connected(script) as client:
            await client.raw.call_tool("x")
    assert script.methods.count("tools/call") == 10


async def test_a_silent_stateless_server_raises_a_timeout() -> None:
    ours, theirs = memory_pair()
    with pytest.raises(TimeoutError, match="did not answer"):
        async with Client(End(ours), ClientOptions(mode="stateless", opening_seconds=0.01)):
            pass
    theirs.close()


async def test_a_client_must_be_entered_before_use() -> None:
    ours, theirs = memory_pair()
    client = Client(End(ours))
    assert not client.connected
    with pytest.raises(RuntimeError, match="enter"):
        _ = client.server
    with pytest.raises(ConnectionError, match="not open"):
        await client.raw.list_tools()
    ours.close()
    theirs.close()


async def test_a_client_that_is_closed_stays_closed() -> None:
    async with Small().connected() as client:
        pass
    with pytest.raises(ConnectionError, match="closed"):
        await client.raw.list_tools()
