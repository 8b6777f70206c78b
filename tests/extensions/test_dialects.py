"""Servers whose peers speak a dialect: in memory, without the official schemas, which know of none."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from shared import Server
from shared.testing import connected
from shared.transports.memory import MemoryTransport
from tests.server.peer import PATIENCE, server

Json = dict[str, Any]


class Talk:
    """The peer's end."""

    def __init__(self, end: MemoryTransport) -> None:
        self._end = end

    async def send(self, **message: Any) -> None:
        with anyio.fail_after(PATIENCE):
            await self._end.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def receive(self) -> Json:
        with anyio.fail_after(PATIENCE):
            return json.loads(await self._end.receive_bytes())

    async def ask(self, method: str, params: Any = None, *, id: Any = 1) -> Any:
        """The result of a request, or its error as it stands in the answer."""
        await self.send(method=method, params=params, id=id)
        answer = await self.receive()
        assert answer["id"] == id
        return answer["result"] if "result" in answer else answer["error"]


@asynccontextmanager
async def talking(app: Server[Any], *, dialects: bool = True) -> AsyncIterator[Talk]:
    async with connected(app, dialects=dialects) as end:
        yield Talk(end)


def app() -> Server[Any]:
    """A server with a tool."""
    made = server()

    @made.tool()
    async def read_file(path: str) -> str:
        """Reads a file."""
        return f"what is in {path}"

    return made


async def test_all_tools_are_one_array():
    async with talking(app()) as talk:
        (tool,) = await talk.ask("mcp/listTools")
    assert tool["toolId"] == "test/read_file"
    assert tool["description"] == "Reads a file."
    assert tool["inputSchema"]["required"] == ["path"]


async def test_where_dialects_are_off_their_methods_need_a_handshake_like_all_others():
    async with talking(app(), dialects=False) as talk:
        error = await talk.ask("mcp/listTools", {})
    assert error["code"] == -32600
    assert "initialize" in error["message"]
