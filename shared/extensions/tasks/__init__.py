"""Tasks: tool calls that outlive their request, their connection and its session.

server = Server(..., extensions=[tasks()])

    @server.tool(task="optional")
    async def import_csv(ctx: Context[State], ...) -> str: ...

Clients with the extension io.modelcontextprotocol/tasks (SEP-2663) get a task instead of a result if a call lasts
long; those of 2025-11-25 if they request one. For all others a tool works as usual.
"""

from .extension import tasks

__all__ = ["tasks"]
