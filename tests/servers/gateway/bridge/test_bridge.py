"""A bridge between clients and servers of both eras."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from servers.gateway.bridge import Upstream, bridge
from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.protocol.session.events import Outgoing
from shared.protocol.wire.jsonrpc import Failure, Message, Request, Response
from tests.servers.gateway.bridge.asking import named
from tests.servers.gateway.bridge.telling import MODES, Telling, until
from tests.servers.gateway.bridge.upstreams import (
    EVERY_PAIR,
    NEW,
    OLD,
    PAIRS,
    Behind,
    Endless,
    bridged,
    child,
    opened,
)
from tests.shared.client.connection.test_link import OPENING, Play, Played
from tests.shared.client.small import Small, text_of
from tests.shared.server.peer import NEWEST_HANDSHAKE, PATIENCE, STATELESS, Json, Peer, talking


def without_tasks(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A list without the task fields of a single version."""
    return [{name: value for name, value in one.items() if name != "execution"} for one in listed]


@EVERY_PAIR
async def test_lists_equal_those_of_the_server(version: str, mode: str) -> None:
    behind = Behind(mode=mode)
    older = min(version, NEWEST_HANDSHAKE if mode == OLD else STATELESS)
    async with bridged(behind, version) as peer, talking(behind.running, older) as direct:
        for kind in ("tools", "resources", "resourceTemplates", "prompts"):
            method = "resources/templates/list" if kind == "resourceTemplates" else f"{kind}/list"
            theirs, ours = await direct.request(method), await peer.request(method)
            assert without_tasks(ours["result"][kind]) == without_tasks(theirs["result"][kind])


async def test_the_bridge_is_ready_while_its_server_is_available() -> None:
    behind = Behind()
    behind.is_away = True
    with anyio.fail_after(PATIENCE):
        async with behind.serving() as upstream:
            app = bridge(upstream)
            assert app.ready is not None
            async with app.open() as running:
                assert await app.ready(running) == "not available: nobody answers at http://…"
            behind.is_away = False
            async with app.open() as running:
                assert await app.ready(running) is None


WITHOUT_A_WORD = [
    (STATELESS, "ping", {}),
    (STATELESS, "initialize", {}),
    (STATELESS, "logging/setLevel", {"level": "error"}),
    (STATELESS, "resources/subscribe", {"uri": "memo://one"}),
    (STATELESS, "resources/unsubscribe", {"uri": "memo://one"}),
    (STATELESS, "tasks/list", {}),
    (NEWEST_HANDSHAKE, "server/discover", {}),
    (NEWEST_HANDSHAKE, "subscriptions/listen", {"notifications": {}}),
    (NEWEST_HANDSHAKE, "tasks/list", {}),
    (NEWEST_HANDSHAKE, "tasks/get", {"taskId": "1"}),
]


@pytest.mark.parametrize("mode", MODES)
async def test_methods_of_the_other_era_are_refused_by_name(mode: str) -> None:
    telling = Telling(mode)
    async with telling.bridged() as running:
        for version, method, params in WITHOUT_A_WORD:
            async with talking(running, version) as peer:
                error = (await peer.request(method, params))["error"]
                assert (error["code"], method in error["message"]) == (-32601, True)
                assert await peer.text("add", a=1, b=2) == "3"


WITH_TOOLS: Json = {"capabilities": {"tools": {}}}
DISCOVERED: Json = {**WITH_TOOLS, "supportedVersions": [STATELESS], "ttlMs": 0, "cacheScope": "private"}


class Scripted(Played):
    """A server whose description is requested like any other method."""

    def _sent(self, one: Outgoing) -> None:
        if isinstance(one.message, Request) and (answer := self.play(one.message)) is not None:
            self._answers.send_nowait(answer)


def scripted(mode: str, play: Play) -> Upstream:
    """A server that answers by `play`, in each of its sessions."""

    @asynccontextmanager
    async def connect(options: ClientOptions) -> AsyncIterator[Client]:
        given = replace(options, mode=mode if options.mode == "auto" else options.mode)
        async with Client(Scripted(play), given) as client:
            yield client

    return Upstream("odd", connect)


def described(request: Request) -> Message:
    """The answer to the request that opens a session; other methods are unknown."""
    match request.method:
        case "initialize":
            return Response(request.id, {**OPENING, **WITH_TOOLS})
        case "server/discover":
            return Response(request.id, DISCOVERED)
    return Failure(request.id, -32601, "method not found")


@EVERY_PAIR
async def test_a_response_with_an_unknown_id_is_ignored(version: str, mode: str) -> None:
    asked = anyio.Event()

    def play(request: Request) -> Message:
        if request.method != "tools/call":
            return described(request)
        is_odd = request.params["name"] == "odd"
        if is_odd:
            asked.set()
        said = {"content": [{"type": "text", "text": request.params["name"]}]}
        return Response(f"not {request.id}" if is_odd else request.id, said)

    with anyio.fail_after(3 * PATIENCE):
        async with talking(bridge(scripted(mode, play)), version) as peer:
            odd = await peer.start("odd")
            await asked.wait()
            assert await peer.text("even") == "even"
            await peer.cancel(odd)
            assert await peer.text("even") == "even"


@EVERY_PAIR
async def test_an_array_in_a_string_reaches_the_server_as_an_array(version: str, mode: str) -> None:
    schema, received = {"type": "object", "properties": {"ids": {"type": "array"}}}, []

    def play(request: Request) -> Message:
        if request.method == "tools/list":
            return Response(request.id, {"tools": [{"name": "a", "inputSchema": schema}]})
        if request.method != "tools/call":
            return described(request)
        received.append(request.params["arguments"])
        return Response(request.id, {"content": []})

    async with talking(bridge(scripted(mode, play)), version) as peer:
        await peer.request("tools/list")
        await peer.request("tools/call", {"name": "a", "arguments": {"ids": "[1]"}})
    assert received == [{"ids": [1]}]


@EVERY_PAIR
async def test_an_object_in_the_text_of_a_tool_with_an_output_schema_is_structured_content(
    version: str, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    schema = {"type": "object"}
    listed = {"tools": [{"name": "typed", "inputSchema": schema, "outputSchema": schema}]}

    def play(request: Request) -> Message:
        if request.method == "tools/list":
            return Response(request.id, listed)
        if request.method != "tools/call":
            return described(request)
        texts = request.params["arguments"]["texts"]
        return Response(request.id, {"content": [{"type": "text", "text": text} for text in texts]})

    with anyio.fail_after(3 * PATIENCE):
        async with talking(bridge(scripted(mode, play)), version) as peer:
            await peer.request("tools/list")
            for texts, structured in (
                (['{"a": 1}'], {"a": 1}),
                (["[1]"], None),
                (["{"], None),
                (["{}", "{}"], None),
                ([], None),
            ):
                answer = await peer.request("tools/call", {"name": "typed", "arguments": {"texts": texts}})
                assert answer["result"].get("structuredContent") == structured
            answer = await peer.request("tools/call", {"name": "other", "arguments": {"texts": ["{}"]}})
            assert "structuredContent" not in answer["result"]
    warnings = [record.message for record in caplog.records if record.name == "shared.gateway.bridge.repairs"]
    assert len(warnings) == 1
    assert "the tool typed has an output schema but returned no structured content" in warnings[0]


@pytest.mark.parametrize("mode", ["auto", OLD, NEW])
async def test_a_server_of_an_unknown_version_is_refused_by_name(mode: str) -> None:
    def play(request: Request) -> Message:
        if request.method == "initialize":
            return Response(request.id, {**OPENING, "protocolVersion": "2099-01-01"})
        return Response(request.id, {**DISCOVERED, "supportedVersions": ["2099-01-01"]})

    with anyio.fail_after(3 * PATIENCE):
        async with talking(bridge(scripted(mode, play))) as peer:
            error = (await peer.call("any"))["error"]
            assert error["code"] == -32603
            why = "the server odd is not available: no common protocol version: the server supports 2099-01-01"
            assert error["message"].startswith(why)


DYING = [sys.executable, "-m", "tests.servers.gateway.bridge.dying"]


LOST = "the server child was lost while it answered; it is unknown whether it carried out the request"


@pytest.mark.parametrize(
    ("version", "mode"), [PAIRS[0], *(pytest.param(*one, marks=pytest.mark.slow) for one in PAIRS[1:])]
)
async def test_a_crashed_server_fails_one_call_and_is_restarted(version: str, mode: str) -> None:
    with anyio.fail_after(3 * PATIENCE):
        async with bridge(child(mode, DYING)).open() as running, talking(running, version) as peer:
            connection, before = running.state.connection, await peer.text("live")
            used = connection.client
            assert (await peer.call("die"))["error"] == {"code": -32603, "message": LOST}
            if connection.stateless:
                await until(lambda: connection.up and connection.client is not used)
            assert await peer.text("live") != before


async def test_requests_succeed_as_soon_as_the_server_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servers.gateway.bridge.connection.Pauses", Endless)
    behind = Behind(Small().app)
    behind.is_away = True
    async with bridged(behind, NEWEST_HANDSHAKE) as peer:
        assert "is not available" in (await peer.request("tools/list"))["error"]["message"]
        behind.is_away = False
        assert (await peer.request("tools/list"))["result"]["tools"]


async def greeted(peer: Peer, call: Any, *names: str) -> str:
    """What the tool says that asks for two names, the call of which has begun."""
    for name in names:
        if peer.version != STATELESS:
            await peer.reply((await peer.other("elicitation/create"))["id"], named(name))
            continue
        asked = (await peer.answer(call))["result"]
        brought = {"inputResponses": dict.fromkeys(asked["inputRequests"], named(name))}
        params: Json = {"name": "greet", "arguments": {}, "requestState": asked["requestState"], **brought}
        call = await peer.begin("tools/call", params)
    return text_of((await peer.answer(call))["result"])


@EVERY_PAIR
async def test_each_client_is_asked_about_its_own_calls_which_end_where_they_are_cancelled(
    version: str, mode: str
) -> None:
    small, forms = Small(), {"elicitation": {"form": {}}}
    async with (
        opened(Behind(small.app, mode)) as running,
        talking(running, version, forms) as ada,
        talking(running, version, forms) as bob,
    ):
        calls = [await ada.start("greet"), await bob.start("greet")]
        assert await greeted(bob, calls[1], "Bob's first", "Bob's last") == "Bob's first Bob's last"
        assert await greeted(ada, calls[0], "Ada's first", "Ada's last") == "Ada's first Ada's last"
        waiting = await ada.start("wait")
        await small.started.wait()
        await ada.cancel(waiting)
        await small.cancelled.wait()
        ada.capabilities = {}
        if version == STATELESS:
            error = (await ada.call("greet"))["error"]
            assert error["data"]["requiredCapabilities"] == forms


@EVERY_PAIR
async def test_a_lost_session_is_one_error_and_the_next_call_has_another(version: str, mode: str) -> None:
    small = Small()
    behind = Behind(small.app, mode)
    async with bridged(behind, version) as peer:
        call = await peer.start("wait")
        await small.started.wait()
        await behind.lose()
        lost = "the server behind was lost while it answered; it is unknown whether it carried out the request"
        assert (await peer.answer(call))["error"] == {"code": -32603, "message": lost}
        while "error" in (answer := await peer.call("add", a=1, b=2)):
            assert "the server behind" in answer["error"]["message"]
        assert text_of(answer["result"]) == "3"
