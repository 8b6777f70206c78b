"""Tasks: calls of tools that outlive their request, their connection and its session.

    server = Server(..., extensions=[tasks()])

    @server.tool(task="optional")
    async def import_csv(ctx: Context[State], ...) -> str: ...

Clients that have the extension io.modelcontextprotocol/tasks (SEP-2663) get a task in place of a result where a call
lasts; those of 2025-11-25 where they ask for one. For all others a tool stays what it is.
"""

from .extension import tasks

__all__ = ["tasks"]
