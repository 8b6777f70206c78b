"""A server whose calls end when a test opens a gate."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from pydantic import BaseModel

from shared import Context, Implementation, Opening, RpcError, Run, Server, ToolError, elicit_form
from shared.contracts import TaskLimits
from shared.extensions.tasks import tasks
from shared.protocol.types.tasks import TASKS
from tests.shared.server.peer import Json, Peer

CAPABILITIES: Json = {"elicitation": {"form": {}}, "extensions": {TASKS: {}}}
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
ACCEPTED: Json = {"action": "accept", "content": {"name": "Ada"}}


class Name(BaseModel):
    """One field."""

    name: str


@dataclass
class Gate:
    """The event that calls of `wait` wait for, and their end."""

    opened: anyio.Event = field(default_factory=anyio.Event)
    stopped: anyio.Event = field(default_factory=anyio.Event)
    answer: str = "done"


def app(*, after_seconds: float = 0.0, **limits: Any) -> Server[Gate]:
    """The server. Calls of tools with tasks become tasks after `after_seconds`, by default at once."""
    server: Server[Gate] = Server(
        Implementation(name="tasks", version="1"), extensions=[tasks(after_seconds=after_seconds)]
    )
    server.task_limits = TaskLimits(**limits)

    @server.lifespan
    async def open_gate(opening: Opening) -> AsyncIterator[Gate]:
        yield Gate()

    @server.tool(task="optional")
    async def wait(ctx: Context[Gate]) -> str:
        """Wait until the gate is open."""
        try:
            await ctx.progress(1, 4, "waiting")
            await ctx.state.opened.wait()
            await ctx.progress(2, 4, "going on")
            return ctx.state.answer
        finally:
            if not ctx.state.opened.is_set():
                ctx.state.stopped.set()

    @server.tool(task="required")
    async def fail(ctx: Context[Gate], how: str = "tool") -> str:
        """Fail once the gate is open."""
        await ctx.state.opened.wait()
        raise ToolError("it can't be done") if how == "tool" else RpcError("it broke", code=-31_000, data={"a": 1})

    @server.tool(task="required")
    async def ask(ctx: Context[Gate]) -> str:
        """Ask the same thing twice, then two things at once."""
        results = [await ctx.ask("name", "Who?", Name) for _ in range(2)]
        both = await ctx.inputs({"a": elicit_form("a?", FORM), "b": elicit_form("b?", FORM)})
        return ", ".join([*(one.action for one in results), *(one.action for one in both.values())])

    @server.tool()
    async def plain() -> str:
        """Answer at once."""
        return "plain"

    return server


async def begin(peer: Peer, tool: str, /, **arguments: Any) -> str:
    """Calls a tool, and returns the id of its task."""
    task = (await peer.call(tool, **arguments))["result"]
    assert task["resultType"] == "task"
    found: str = task["taskId"]
    return found


async def status(peer: Peer, id: str) -> Json:
    """The task from `tasks/get`, in either form of tasks."""
    found: Json = (await peer.request("tasks/get", {"taskId": id}))["result"]
    return found


async def until(peer: Peer, id: str, wanted: str) -> Json:
    """The task once it has this status."""
    while (task := await status(peer, id))["status"] != wanted:
        await anyio.lowlevel.checkpoint()
    return task


@asynccontextmanager
async def opened(server: Server[Gate] | None = None) -> AsyncIterator[Run[Gate]]:
    """The server, for several clients."""
    async with (server or app()).open() as running:
        yield running
