"""Tasks: tool calls that outlive their request, their connection and its session.

    server = Server(..., extensions=[tasks()])

    @server.tool(task="optional")
    async def import_csv(ctx: Context[State], ...) -> str: ...

Clients with the extension io.modelcontextprotocol/tasks (SEP-2663) get a task instead of a result if a call takes
long; clients of 2025-11-25 get a task if they request one. For all other clients a tool works as usual.
"""

from .extension import tasks

__all__ = ["tasks"]
