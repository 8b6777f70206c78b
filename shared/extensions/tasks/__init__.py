"""Tasks: tool calls that continue after their request was answered, even if the connection or the session ends.

    server = Server(..., extensions=[tasks()])

    @server.tool(task="optional")
    async def import_csv(ctx: Context[State], ...) -> str: ...

A client that declared the extension io.modelcontextprotocol/tasks (SEP-2663) receives a task instead of a result if a
call takes long; a client of version 2025-11-25 if it requests a task. Other clients wait for the result as usual.
"""

from .extension import tasks

__all__ = ["tasks"]
