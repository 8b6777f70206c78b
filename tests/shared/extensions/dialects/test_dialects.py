"""Clients of dialects, with a server itself, with joined servers, and with a bridge."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from servers.gateway.bridge import bridge
from servers.gateway.joined.gateway import gateway
from shared import Server
from shared.testing import connected
from tests.servers.gateway.bridge.upstreams import Behind
from tests.servers.gateway.joined.members import Door, small
from tests.shared.extensions.dialects.test_document_000 import Talk


def files() -> Server[Any]:
    """A server with a tool, a resource, a template and a prompt."""
    made = small("filesystem")

    @made.tool()
    async def read_file(path: str) -> str:
        """Read a file."""
        return f"what is in {path}"

    @made.resource("file:///one", name="one")
    async def one() -> str:
        """Read the one."""
        return "1"

    @made.resource("file:///of/{id}", name="of")
    async def each(id: str) -> str:
        """Read one of many."""
        return f"of {id}"

    @made.prompt()
    async def greet(who: str = "you") -> str:
        """Greet."""
        return f"hello {who}"

    return made


@asynccontextmanager
async def talking(place: str) -> AsyncIterator[Talk]:
    """A peer of the server itself, or of the gateway in front of it."""
    async with AsyncExitStack() as stack:
        app = files()
        if "bridged" in place:
            app = bridge(await stack.enter_async_context(Behind(app).serving()))
        if "joined" in place:
            doors = [Door("filesystem", app), Door("other", small("other"))]
            for door in doors:
                await door.open()
                stack.push_async_callback(door.close)
            app = gateway(doors)
        yield Talk(await stack.enter_async_context(connected(app, dialects=True)))


PLACES = pytest.mark.parametrize("place", ["direct", "bridged", "joined", "joined and bridged"])


@PLACES
async def test_document_000_lists_calls_and_reads_in_every_place(place: str) -> None:
    async with talking(place) as peer:
        listed = await peer.ask("mcp/listTools")
        assert [one["toolId"].rpartition("/")[2] for one in listed] == ["read_file"]
        for tool_id in (listed[0]["toolId"], "filesystem/readFile", "read_file"):
            assert await peer.ask("mcp/tool/execute", {"toolId": tool_id, "inputs": {"path": "a"}}) == "what is in a"
        error = await peer.ask("mcp/tool/execute", {"toolId": "another/readFile", "inputs": {"path": "a"}})
        assert error["message"].startswith(("this server is ", "unknown tool: another__read"))
        resources = await peer.ask("mcp/listResources")
        assert [one["resourceId"] for one in resources] == ["file:///one", "file:///of/{id}"]
        assert resources[1]["querySchema"]["properties"].keys() == {"id"}
        read = {"resourceId": "file:///of/{id}", "query": {"id": "x"}}
        assert await peer.ask("mcp/resource/read", read) == "of x"


@PLACES
async def test_document_002_initializes_and_reads_in_every_place(place: str) -> None:
    async with talking(place) as peer:
        initialized = await peer.ask("initialize", {"version": "0.7.0"})
        assert [(tool["name"], tool["description"]) for tool in initialized["tools"]] == [
            ("read_file", "Read a file.")
        ]
        assert [prompt["name"] for prompt in initialized["prompts"]] == ["greet"]
        assert initialized["prompts"][0]["arguments"]["properties"].keys() == {"who"}
        read = await peer.ask("read_resource", {"uri": "file:///one"})
        assert read["content"] == [{"type": "text", "text": "1"}]
        called = await peer.ask("call_tool", {"name": "read_file", "arguments": {"path": "a"}})
        assert called["content"] == [{"type": "text", "text": "what is in a"}]
