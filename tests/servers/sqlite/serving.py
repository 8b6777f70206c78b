"""A server process over a database, and a client that speaks to it in one era."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.wire import Wire

ERAS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


class Peer:
    """One server, spoken to in one era."""

    def __init__(self, wire: Wire, era: str) -> None:
        self.wire = wire
        self.stateless = era == "2026-07-28"

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole answer."""
        if self.stateless:
            return await self.wire.stateless(method, params)
        return await self.wire.request(method, params)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool, which may say that it is an error."""
        answer = await self.request("tools/call", name=tool, arguments=arguments)
        result: dict[str, Any] = answer["result"]
        return result

    async def data(self, tool: str, **arguments: Any) -> Any:
        """The structured content of a result that is no error."""
        result = await self.call(tool, **arguments)
        assert "isError" not in result, result
        return result["structuredContent"]

    async def error(self, tool: str, **arguments: Any) -> str:
        """The text of a result that is an error."""
        result = await self.call(tool, **arguments)
        assert result.get("isError"), result
        text: str = result["content"][0]["text"]
        return text


@asynccontextmanager
async def served(*options: str | Path, era: str = "2025-11-25") -> AsyncIterator[Peer]:
    """A server started with these options."""
    async with Wire([sys.executable, "-m", "servers.sqlite", *map(str, options)]) as wire:
        if era != "2026-07-28":
            await wire.initialize(era)
        yield Peer(wire, era)
