"""The description of a bridge: that of its server, limited to what the bridge forwards."""

import pytest

from servers.gateway.bridge.description import capabilities_of
from shared.protocol.session.descriptions import ServerDescription
from tests.servers.gateway.bridge.telling import MODES, Telling, until
from tests.shared.server.peer import STATELESS, Json, talking
from tests.wire import NEWEST_HANDSHAKE

TASKS = "io.modelcontextprotocol/tasks"
LISTED: Json = {"listChanged": True}


def capabilities(declared: Json, *, stateless: bool = False) -> Json:
    return capabilities_of(ServerDescription(NEWEST_HANDSHAKE, declared, {}), stateless=stateless)


DECLARED: list[tuple[Json, Json]] = [
    ({}, {"logging": {}}),
    ({"logging": {"own": 1}}, {"logging": {"own": 1}}),
    ({"tools": {}, "prompts": {"listChanged": False}}, {"tools": LISTED, "prompts": LISTED}),
    ({"resources": {}}, {"resources": LISTED}),
    ({"resources": {"subscribe": True}}, {"resources": {"subscribe": True, **LISTED}}),
    ({"completions": {}, "experimental": {"own": {}}}, {"completions": {}, "experimental": {"own": {}}}),
    ({"tasks": {"list": {}}}, {}),
    ({"extensions": {TASKS: {}}}, {}),
    ({"extensions": {TASKS: {}, "org.example/own": {}}}, {"extensions": {"org.example/own": {}}}),
    ({"tools": True, "prompts": None, "extensions": []}, {}),
]


def test_declared_capabilities_are_those_of_the_server() -> None:
    found = [(declared, capabilities(declared)) for declared, _ in DECLARED]
    assert found == [(declared, {"logging": {}, **told}) for declared, told in DECLARED]


def test_a_stateless_server_declares_resource_subscriptions() -> None:
    found = capabilities({"resources": {}}, stateless=True)
    assert found["resources"] == {"subscribe": True, "listChanged": True}


def test_the_capabilities_of_the_server_are_not_modified() -> None:
    declared: Json = {"resources": {}, "extensions": {TASKS: {}}}
    capabilities(declared, stateless=True)
    assert declared == {"resources": {}, "extensions": {TASKS: {}}}


@pytest.mark.parametrize("mode", MODES)
async def test_the_bridge_has_the_name_and_instructions_of_its_server(mode: str) -> None:
    telling = Telling(mode)
    telling.app.instructions = "Be careful."
    async with telling.bridged() as running, talking(running, STATELESS) as peer:
        said = (await peer.request("server/discover"))["result"]
        assert said["instructions"] == "Be careful."
        assert said["_meta"]["io.modelcontextprotocol/serverInfo"] == {"name": "small", "version": "1"}
        assert said["capabilities"]["extensions"]["org.example/view"] == {}


async def test_a_server_that_connects_late_is_described_afterwards() -> None:
    telling = Telling("handshake")
    telling.is_away = True
    async with telling.bridged() as running:
        async with talking(running, STATELESS) as early:
            assert "tools" in (await early.request("server/discover"))["result"]["capabilities"]
            error = (await early.request("tools/list"))["error"]
            assert error["message"] == "the server small is not available: nobody answers at http://…"
        telling.is_away = False
        await until(lambda: running.state.connection.up)
        async with talking(running, STATELESS) as late:
            said = (await late.request("server/discover"))["result"]
            assert "completions" not in said["capabilities"]
