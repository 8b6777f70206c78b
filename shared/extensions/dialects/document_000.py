"""What the methods of document 000 do (5.2)."""

from collections.abc import Mapping
from typing import Any

from ...protocol.types.base import Params
from ...server.context import Context
from ...server.features import Handler
from ...server.running import Running

__all__ = ["HANDLERS", "list_tools"]


async def list_tools(running: Running[Any], context: Context[Any], params: Params) -> dict[str, Any]:
    """`mcp/listTools`: all tools on offer, as an array."""
    server = running.server.implementation.name
    return {
        "value": [
            {
                "toolId": f"{server}/{tool['name']}",
                "description": tool["description"],
                "inputSchema": tool["inputSchema"],
            }
            for tool in running.features.tools.listed(running.settings)
        ]
    }


HANDLERS: Mapping[str, Handler] = {"listTools": list_tools}
