"""Third-party servers behind a gateway, next to ours: features, changes and faults pass both."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from servers.gateway.bridge import bridge
from servers.gateway.rules.extension import rules
from servers.gateway.rules.names import Rules
from servers.gateway.rules.pins import Pins
from shared import Context, Run
from tests.quiet import quiet
from tests.servers.everything.peer import CAPABILITIES, called, listed, settled, text
from tests.servers.gateway.bridge.upstreams import EVERY_PAIR, OLD, Behind
from tests.servers.gateway.changes import listening, subscribed, updated
from tests.servers.gateway.joined.members import Door, joined, small
from tests.servers.gateway.rules.test_rules import declare, names_of
from tests.shared.server.peer import NEWEST_HANDSHAKE, PATIENCE, Json, Peer, server, talking


@asynccontextmanager
async def behind_door(behind: Behind, version: str, capabilities: Json | None = None) -> AsyncIterator[Peer]:
    """A client of a gateway to a server of ours and to `behind`, over a bridge."""
    with anyio.fail_after(3 * PATIENCE):
        async with (
            behind.serving() as upstream,
            joined(ours(), Door("theirs", bridge(upstream))) as running,
            talking(running, version, CAPABILITIES if capabilities is None else capabilities) as peer,
        ):
            yield peer


def ours() -> Door:
    """A server of ours that has a tool of the same name as theirs."""
    server = small("ours")

    @server.tool()
    async def echo() -> str:
        """Say whose it is."""
        return "ours"

    @server.resource("ours://{id}")
    async def read(id: str) -> str:
        """Read."""
        return id

    return Door("ours", server)


async def tools(peer: Peer) -> list[str]:
    return [one["name"] for one in await listed(peer, "tools")]


@EVERY_PAIR
async def test_features_of_a_bridged_server_have_names_of_the_gateway(version: str, mode: str) -> None:
    async with behind_door(Behind(mode=mode), version) as peer:
        found = await tools(peer)
        assert (found[0], "theirs__echo" in found) == ("ours__echo", True)
        assert await text(peer, "ours__echo") == "ours"
        assert await text(peer, "theirs__echo", text="theirs") == "theirs"
        assert (await settled(peer, "prompts/get", {"name": "test_simple_prompt"}))["result"]["messages"]
        # Resources find their owner.
        for uri in ("test://static-text", "test://template/1/data", "ours://1"):
            read = await settled(peer, "resources/read", {"uri": uri})
            assert read["result"]["contents"][0]["uri"] == uri
        assert "test://static-text" in [one["uri"] for one in await listed(peer, "resources")]
        error = (await peer.request("resources/read", {"uri": "test://nothing"}))["error"]
        assert error["data"] == {"uri": "test://nothing"}
        ref = {"type": "ref/resource", "uri": "test://template/{id}/data"}
        completed = await settled(peer, "completion/complete", {"ref": ref, "argument": {"name": "id", "value": "1"}})
        assert completed["result"]["completion"]["values"] == ["123"]
        # So do questions and progress.
        both = await text(peer, "test_input_required_result_multi_round")
        assert both == "Both rounds are done: accept, accept"
        await called(peer, "test_tool_with_progress", progressToken="token")
        reports = [one["params"] for one in peer.others if one["method"] == "notifications/progress"]
        assert {one["progressToken"] for one in reports} == {"token"}
        assert reports[-1]["progress"] == 100


@EVERY_PAIR
async def test_changes_of_a_bridged_server_are_forwarded(version: str, mode: str) -> None:
    async with behind_door(Behind(mode=mode), version) as peer:
        await subscribed(peer, "test://watched-resource", toolsListChanged=True)
        await text(peer, "trigger_resource_update")
        assert await updated(peer) == "test://watched-resource"
        assert "extra_tool" not in await tools(peer)
        await text(peer, "test_trigger_tool_change")
        while "extra_tool" not in await tools(peer):
            await peer.other("notifications/tools/list_changed")


@EVERY_PAIR
async def test_a_lost_server_does_not_affect_ours_and_returns(
    version: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How long a session is waited for nobody may set.
    monkeypatch.setattr("servers.gateway.bridge.connection.CALL_WAIT_SECONDS", 0.01)
    behind = Behind(mode=mode)
    async with behind_door(behind, version) as peer:
        await listening(peer, "tools")
        assert "theirs__echo" in await tools(peer)
        behind.is_away = True
        await behind.lose()
        while "theirs__echo" in await tools(peer):
            await peer.other("notifications/tools/list_changed")
        assert await text(peer, "ours__echo") == "ours"
        answer = await peer.call("theirs__echo", text="a")
        assert "behind is not available" in str(answer)
        assert "secret" not in str(answer)
        error = (await peer.request("tools/call", {"name": "other", "arguments": {}}))["error"]
        assert error["message"] == "unknown tool: other; not available at the moment: theirs"
        behind.is_away = False
        while "theirs__echo" not in await tools(peer):
            await peer.other("notifications/tools/list_changed")
        assert await text(peer, "theirs__echo", text="theirs") == "theirs"


async def test_lists_of_a_server_with_sessions_differ_by_client() -> None:
    server = small("theirs")

    @server.tool()
    async def show(ctx: Context[Any]) -> str:
        """Show what the client can."""
        return ", ".join(sorted(ctx.peer.capabilities))

    async def listed(running: Run[Any], context: Context[Any], _params: Any) -> Json:
        tools = running.features.tools.entries(None)
        return {"tools": tools if context.peer.can("roots") else []}

    behind = Behind(server, OLD)
    with anyio.fail_after(3 * PATIENCE):
        async with behind.serving() as upstream:
            # Before anyone connects, since the handlers are fixed then.
            behind.running.features.handlers["tools/list"] = listed
            async with (
                joined(Door("theirs", bridge(upstream))) as running,
                talking(running, NEWEST_HANDSHAKE, {"roots": {}}) as first,
                talking(running, NEWEST_HANDSHAKE) as second,
            ):
                assert await tools(first) == ["show"]
                assert await tools(second) == []
                assert await tools(first) == ["show"]


async def test_persistent_log_messages_are_forwarded_once() -> None:
    behind = Behind(mode=OLD)
    with anyio.fail_after(3 * PATIENCE):
        async with behind.serving() as upstream:
            theirs = Door("theirs", bridge(upstream))
            async with joined(theirs) as running:
                assert theirs.running is not None
                theirs.running.conditions.begin("test", "error", "it holds")
                async with talking(running, NEWEST_HANDSHAKE) as peer:
                    await peer.request("logging/setLevel", {"level": "error"})
                    assert [one["params"]["data"] for one in peer.others if "data" in one["params"]] == ["it holds"]


@EVERY_PAIR
async def test_tools_withheld_by_the_bridge_are_withheld_by_the_gateway(version, mode, tmp_path):
    app = server()
    for name in "abc":
        declare(app, name, f"Is {name}.")
    behind, pins = Behind(app, mode), Pins(tmp_path / "behind.pins.json")
    given = rules(Rules(deny=("c",), rename={"b": "x"}), pins=pins, name="behind")
    with anyio.fail_after(3 * PATIENCE):
        async with (
            behind.serving() as upstream,
            joined(Door("ours", small("ours")), Door("theirs", bridge(upstream, extensions=[given]))) as running,
            talking(running, version) as peer,
        ):
            assert {"a", "x"} <= set(await names_of(peer))
            assert await peer.text("x") == "b"
            assert "error" in await peer.call("c")
            behind.running.features.tools.remove("a")
            declare(behind.running.features, "a", "Is another.")
            behind.running.changes.tools()
            while "a" in await names_of(peer):
                await quiet()
            assert await peer.text("x") == "b"
            assert (await peer.call("a"))["error"]["message"] == "unknown tool: a"
