"""Servers of others behind the door, next to one of ours: what passes a bridge passes the gateway before it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from shared import Context, Running
from shared.gateway.bridge import bridge
from tests.servers.everything.peer import CAPABILITIES, answer_to
from tests.shared.gateway.bridge.upstreams import EVERY_PAIR, OLD, Behind
from tests.shared.gateway.joined.members import Door, joined, small
from tests.shared.server.peer import NEWEST_HANDSHAKE, PATIENCE, STATELESS, Json, Peer, talking

pytestmark = pytest.mark.slow
ROUNDS = 5


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


async def settled(peer: Peer, method: str, params: Json, **meta: Any) -> Json:
    """The result of a request, whose questions are answered."""
    for _ in range(ROUNDS):
        id_ = await peer.begin(method, params, **meta)
        while True:
            message = await peer.receive()
            if "method" in message and "id" in message:
                await peer.reply(message["id"], answer_to(message))
            elif "method" in message:
                peer.others.append(message)
            elif message["id"] == id_:
                break
        result: Json = message["result"]
        if result.get("resultType") != "input_required":
            return result
        brought = {key: answer_to(asked) for key, asked in result["inputRequests"].items()}
        params = {**params, "inputResponses": brought, "requestState": result["requestState"]}
    raise AssertionError("the call was never settled")


async def names(peer: Peer, what: str = "tools") -> list[str]:
    return [one["name"] for one in (await settled(peer, f"{what}/list", {}))[what]]


async def text(peer: Peer, tool: str, **arguments: Any) -> str:
    result = await settled(peer, "tools/call", {"name": tool, "arguments": arguments})
    found: str = result["content"][0]["text"]
    return found


@EVERY_PAIR
async def test_tools_and_prompts_are_called_by_names_of_the_gateway(version: str, mode: str) -> None:
    async with behind_door(Behind(mode=mode), version) as peer:
        found = await names(peer)
        assert found[0] == "ours__echo"
        assert "theirs__echo" in found
        assert await text(peer, "ours__echo") == "ours"
        assert await text(peer, "theirs__echo", text="theirs") == "theirs"
        got = await settled(peer, "prompts/get", {"name": "test_simple_prompt"})
        assert got["messages"]


@EVERY_PAIR
async def test_resources_find_their_owner(version: str, mode: str) -> None:
    async with behind_door(Behind(mode=mode), version) as peer:
        for uri in ("test://static-text", "test://template/1/data", "ours://1"):
            assert (await settled(peer, "resources/read", {"uri": uri}))["contents"][0]["uri"] == uri
        listed = (await settled(peer, "resources/list", {}))["resources"]
        assert "test://static-text" in [one["uri"] for one in listed]
        error = (await peer.request("resources/read", {"uri": "test://nothing"}))["error"]
        assert error["data"] == {"uri": "test://nothing"}


@EVERY_PAIR
async def test_questions_and_progress_pass(version: str, mode: str) -> None:
    async with behind_door(Behind(mode=mode), version) as peer:
        assert await text(peer, "test_input_required_result_multi_round") == "Both rounds are done: accept, accept"
        call = {"name": "test_tool_with_progress", "arguments": {}}
        await settled(peer, "tools/call", call, progressToken="token")
        reports = [one["params"] for one in peer.others if one["method"] == "notifications/progress"]
        assert [one["progressToken"] for one in reports] == ["token"] * len(reports)
        assert [one["progress"] for one in reports][-1] == 100


@EVERY_PAIR
async def test_arguments_are_completed_under_mapped_names(version: str, mode: str) -> None:
    async with behind_door(Behind(mode=mode), version) as peer:
        ref = {"type": "ref/resource", "uri": "test://template/{id}/data"}
        params = {"ref": ref, "argument": {"name": "id", "value": "1"}}
        result = await settled(peer, "completion/complete", params)
        assert result["completion"]["values"] == ["123"]


@EVERY_PAIR
async def test_a_change_there_is_told_to_who_subscribed(version: str, mode: str) -> None:
    uri = "test://watched-resource"
    async with behind_door(Behind(mode=mode), version) as peer:
        if version == STATELESS:
            await peer.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}})
            await peer.other("notifications/subscriptions/acknowledged")
        else:
            await settled(peer, "resources/subscribe", {"uri": uri})
        await text(peer, "trigger_resource_update")
        assert (await peer.other("notifications/resources/updated"))["params"]["uri"] == uri


@EVERY_PAIR
async def test_a_change_of_the_tools_there_is_one_here(version: str, mode: str) -> None:
    async with behind_door(Behind(mode=mode), version) as peer:
        if version == STATELESS:
            await peer.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            await peer.other("notifications/subscriptions/acknowledged")
        assert "extra_tool" not in await names(peer)
        await text(peer, "test_trigger_tool_change")
        while "extra_tool" not in await names(peer):
            await peer.other("notifications/tools/list_changed")


@EVERY_PAIR
async def test_a_server_that_is_lost_leaves_ours_and_returns(
    version: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.gateway.bridge.own_sessions.AWAY_SECONDS", 0.01)
    behind = Behind(mode=mode)
    async with behind_door(behind, version) as peer:
        if version == STATELESS:
            await peer.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            await peer.other("notifications/subscriptions/acknowledged")
        assert "theirs__echo" in await names(peer)
        behind.is_away = True
        await behind.lose()
        while "theirs__echo" in await names(peer):
            await peer.other("notifications/tools/list_changed")
        assert await text(peer, "ours__echo") == "ours"
        answer = await peer.call("theirs__echo", text="a")
        assert "behind is not available" in str(answer)
        assert "secret" not in str(answer)
        error = (await peer.request("tools/call", {"name": "other", "arguments": {}}))["error"]
        assert error["message"] == "unknown tool: other; not available at this time: theirs"
        behind.is_away = False
        while "theirs__echo" not in await names(peer):
            await peer.other("notifications/tools/list_changed")
        assert await text(peer, "theirs__echo", text="theirs") == "theirs"


async def test_lists_of_a_server_with_sessions_are_each_clients_own() -> None:
    server = small("theirs")

    @server.tool()
    async def show(ctx: Context[Any]) -> str:
        """Show what the client can."""
        return ", ".join(sorted(ctx.peer.capabilities))

    async def listed(running: Running[Any], context: Context[Any], _params: Any) -> Json:
        tools = running.features.tools.listed(None)
        return {"tools": tools if context.peer.can("roots") else []}

    behind = Behind(server, OLD)
    with anyio.fail_after(3 * PATIENCE):
        async with (
            behind.serving() as upstream,
            joined(Door("theirs", bridge(upstream))) as running,
            talking(running, NEWEST_HANDSHAKE, {"roots": {}}) as first,
            talking(running, NEWEST_HANDSHAKE) as second,
        ):
            behind.running.handlers["tools/list"] = listed
            assert await names(first) == ["show"]
            assert await names(second) == []
            assert await names(first) == ["show"]


async def test_what_holds_there_is_told_once_with_a_level() -> None:
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
