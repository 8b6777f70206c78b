"""What clients of either form of tasks say and are told of one, and a server that has some."""

from typing import Any

import anyio
from pydantic import BaseModel

from shared import Context, Implementation, Server, elicit_form
from shared.extensions.tasks import tasks
from shared.protocol.types.tasks import TASKS
from shared.server.extension import Extension
from tests.shared.server.peer import NEWEST_HANDSHAKE, PATIENCE, STATELESS, Json, Peer

OURS: Json = {"extensions": {TASKS: {}}}
"""What a client declares that has the extension."""
FORMS = (NEWEST_HANDSHAKE, STATELESS)
"""The versions of the two forms."""
OVER = ("completed", "failed", "cancelled")


class Colour(BaseModel):
    colour: str


class Working:
    """A server whose tools run as tasks, `work` until the test says so."""

    def __init__(self, name: str = "working", *extensions: Extension[Any]) -> None:
        self.app: Server[Any] = Server(Implementation(name=name, version="1"), extensions=[tasks(), *extensions])
        self.began = anyio.Event()
        self.go_on = anyio.Event()
        self.was_cancelled = anyio.Event()
        self.seconds = 0.0
        """The time limit of the last call of `work`."""

        @self.app.tool(task="required")
        async def work(ctx: Context[Any]) -> str:
            """Work for a while."""
            await ctx.progress(1, 4, "working")
            self.seconds = ctx.budget.seconds
            self.began.set()
            try:
                await self.go_on.wait()
            except anyio.get_cancelled_exc_class():
                self.was_cancelled.set()
                raise
            return "done"

        @self.app.tool(task="required")
        async def paint(ctx: Context[Any]) -> str:
            """Ask for a colour."""
            answer = await ctx.ask("colour", "Which colour?", Colour)
            return f"painted {answer.data.colour}" if answer.data else answer.action

        @self.app.tool(task="required")
        async def ask_twice(ctx: Context[Any]) -> str:
            """Ask for two colours at once."""
            schema = {"type": "object", "properties": {"colour": {"type": "string"}}}
            answers = await ctx.inputs({key: elicit_form(key, schema) for key in ("first", "second")})
            return ", ".join(f"{key}: {answer.action}" for key, answer in answers.items())

        @self.app.tool()
        async def add(a: int, b: int) -> int:
            """Add."""
            return a + b


async def started(peer: Peer, tool: str, /, **arguments: Any) -> str:
    """Calls the tool of a peer that has tasks; the id of the task that comes of it."""
    asked = {} if peer.version == STATELESS else {"task": {}}
    answer = await peer.request("tools/call", {"name": tool, "arguments": arguments, **asked})
    result = answer["result"]
    id_: str = result["taskId"] if peer.version == STATELESS else result["task"]["taskId"]
    return id_


async def looked_at(peer: Peer, id: str) -> Json:
    """The task as it is."""
    found: Json = (await peer.request("tasks/get", {"taskId": id}))["result"]
    return found


async def until(peer: Peer, id: str, *statuses: str) -> Json:
    """The task once its status is one of these."""
    with anyio.fail_after(PATIENCE):
        while (found := await looked_at(peer, id))["status"] not in statuses:
            await anyio.lowlevel.checkpoint()
    return found


async def outcome(peer: Peer, id: str) -> Json:
    """The result, or the error, that the task comes to."""
    if peer.version != STATELESS:
        answer = await peer.request("tasks/result", {"taskId": id})
        return answer.get("result") or answer["error"]
    found = await until(peer, id, *OVER)
    return found.get("result") or found["error"]


def text_in(result: Json) -> str:
    """The first text of a result, or the message of an error."""
    text: str = result["content"][0]["text"] if "content" in result else result["message"]
    return text
