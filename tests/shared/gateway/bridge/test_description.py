"""What a bridge says of itself: what its server says, as far as it passes on."""

from typing import Any

import pytest

from shared.gateway.bridge.description import capabilities_of
from shared.protocol.session.client import ServerDescription
from tests.shared.gateway.bridge.telling import MODES, Telling, until
from tests.shared.server.peer import ERAS, STATELESS, talking
from tests.wire import NEWEST_HANDSHAKE


def capabilities(declared: dict[str, Any], *, stateless: bool = False) -> dict[str, Any]:
    return capabilities_of(ServerDescription(NEWEST_HANDSHAKE, declared, {}), stateless=stateless)


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({}, {"logging": {}}),
        ({"logging": {"own": 1}}, {"logging": {"own": 1}}),
        (
            {"tools": {}, "prompts": {"listChanged": False}},
            {"tools": {"listChanged": True}, "prompts": {"listChanged": True}},
        ),
        ({"resources": {}}, {"resources": {"listChanged": True}}),
        ({"resources": {"subscribe": True}}, {"resources": {"subscribe": True, "listChanged": True}}),
        ({"completions": {}, "experimental": {"own": {}}}, {"completions": {}, "experimental": {"own": {}}}),
        ({"tasks": {"list": {}}}, {}),
        ({"extensions": {"io.modelcontextprotocol/tasks": {}}}, {}),
        (
            {"extensions": {"io.modelcontextprotocol/tasks": {}, "org.example/own": {}}},
            {"extensions": {"org.example/own": {}}},
        ),
        ({"tools": True, "prompts": None, "extensions": []}, {}),
    ],
)
def test_what_is_declared(declared: dict[str, Any], told: dict[str, Any]) -> None:
    assert capabilities(declared) == {"logging": {}, **told}


def test_a_server_without_sessions_tells_of_any_resource() -> None:
    found = capabilities({"resources": {}}, stateless=True)
    assert found["resources"] == {"subscribe": True, "listChanged": True}


def test_what_the_server_has_declared_stays_as_it_was() -> None:
    declared: dict[str, Any] = {"resources": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
    capabilities(declared, stateless=True)
    assert declared == {"resources": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}


@pytest.mark.parametrize("mode", MODES)
async def test_it_has_the_name_and_the_instructions_of_its_server(mode: str) -> None:
    telling = Telling(mode)
    telling.app.instructions = "Be careful."
    async with telling.bridged() as running, talking(running, STATELESS) as peer:
        said = (await peer.request("server/discover"))["result"]
        assert said["instructions"] == "Be careful."
        assert said["_meta"]["io.modelcontextprotocol/serverInfo"] == {"name": "small", "version": "1"}
        assert said["capabilities"]["extensions"]["org.example/view"] == {}


@pytest.mark.slow
async def test_a_server_that_comes_late_is_described_then() -> None:
    telling = Telling("handshake")
    telling.is_down = True
    async with telling.bridged() as running:
        async with talking(running, STATELESS) as early:
            assert "tools" in (await early.request("server/discover"))["result"]["capabilities"]
            error = (await early.request("tools/list"))["error"]
            assert error["message"] == "the server small is not available: it is closed for today"
        telling.is_down = False
        await until(lambda: running.state.base.up)
        async with talking(running, STATELESS) as late:
            said = (await late.request("server/discover"))["result"]
            assert "completions" not in said["capabilities"]


@pytest.mark.parametrize("version", ERAS)
async def test_tasks_are_refused_by_name(version: str) -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running, version) as peer:
        error = (await peer.request("tasks/list"))["error"]
        assert (error["code"], "tasks/list" in error["message"]) == (-32601, True)
