"""The SQLite server as a process, for a client that shows apps."""

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from shared.client import Client, ClientOptions, connect
from shared.errors import PeerError

__all__ = ["Server", "make_database", "run_server"]

HOST = ClientOptions(
    mode="2025-11-25",
    capabilities={"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}},
)
"""What hosts that show apps declare, in the version that they speak."""


class Server:
    """A client of the server, as a host provides it to its apps."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Returns the result of a tool."""
        return await self._client.request("tools/call", {"name": name, "arguments": arguments})

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Returns the answer of the host to an app, for the methods that it forwards."""
        if method not in ("tools/call", "resources/read"):
            return {"error": {"code": -32601, "message": f"this host does not do {method}"}}
        try:
            return {"result": await self._client.request(method, params)}
        except PeerError as error:
            return {"error": {"code": error.code, "message": str(error)}}


@asynccontextmanager
async def run_server(*arguments: str) -> AsyncIterator[Server]:
    """The server with these arguments. It is started and ended in a task of its own, since a fixture may begin and
    end in different ones."""
    ready: asyncio.Future[Server] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def hold() -> None:
        async with connect([sys.executable, "-m", "servers.sqlite", *arguments], HOST) as client:
            ready.set_result(Server(client))
            await over.wait()

    task = asyncio.create_task(hold())
    await asyncio.wait([ready, task], return_when=asyncio.FIRST_COMPLETED)
    if not ready.done():
        await task
    try:
        yield ready.result()
    finally:
        over.set()
        await task


def make_database(path: Path, script: str) -> str:
    """Makes a database; returns its path."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return str(path)
