"""The description of joined servers: the capabilities of all, and the instructions of each."""

from typing import Any

from shared.server.declaration import MAX_INSTRUCTIONS
from tests.servers.gateway.joined.members import Door, both_eras, joined, small, with_tools
from tests.shared.server.peer import STATELESS, Json, Peer, talking
from tests.wire import CLIENT_INFO


async def described(running: Any, version: str) -> Json:
    """The description that a new client gets."""
    async with talking(running, STATELESS) as peer:
        if version == STATELESS:
            result: Json = (await peer.request("server/discover"))["result"]
            return result
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT_INFO}
        shaken = Peer(peer.end, version, {})
        told: Json = (await shaken.request("initialize", params))["result"]
        return told


@both_eras
async def test_capabilities_are_the_union_of_those_of_the_members(version: str) -> None:
    a, b = with_tools("a", "say", capabilities={"logging": {}}), small("b", capabilities={"experimental": {"x": {}}})

    @b.resource("b://1")
    async def read() -> str:
        """Read."""
        return "b"

    async with joined(a, Door("b", b)) as running:
        told = (await described(running, version))["capabilities"]
        assert {name for name in told if name != "extensions"} == {"tools", "resources", "logging", "experimental"}
        assert told["tools"] == told["resources"] == {"listChanged": True}


async def test_a_closed_member_counts_as_having_every_capability() -> None:
    async with joined(closed=(with_tools("a", "a_tool"),)) as running:
        told = (await described(running, STATELESS))["capabilities"]
        assert told["resources"] == {"subscribe": True, "listChanged": True}
        assert told.keys() == {"tools", "prompts", "resources", "completions", "logging"}


async def test_instructions_follow_the_names_of_their_members() -> None:
    a, c = (with_tools(name, "say", instructions=f"Use {name}.") for name in "ac")
    async with joined(a, with_tools("b", "say"), c) as running:
        assert (await described(running, STATELESS))["instructions"] == "## a\nUse a.\n\n## c\nUse c."


async def test_long_instructions_are_truncated_before_short_ones() -> None:
    said = {"a": "long ü " * 250, "b": "short", "c": "x " * 999}
    async with joined(*(with_tools(name, "say", instructions=text) for name, text in said.items())) as running:
        told = (await described(running, STATELESS))["instructions"]
        assert MAX_INSTRUCTIONS - 20 < len(told.encode()) <= MAX_INSTRUCTIONS
        assert "## b\nshort\n\n## c" in told
        assert told.count(" …") == 2


async def test_members_without_instructions_give_none() -> None:
    async with joined(with_tools("a", "a_tool")) as running:
        assert "instructions" not in await described(running, STATELESS)
