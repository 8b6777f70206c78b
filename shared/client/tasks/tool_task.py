"""A tool that was started, and may work on as a task while its caller does something else; and which tools may, or
have to, as a server of 2025-11-25 lists them: there the client has to ask for it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from ...protocol.types.tools import CallToolResult
from .following import OnTask, TaskState, Way, cancel, follow, look

MAX_TOOLS = 5_000
"""Tools that are remembered; the oldest are forgotten."""


class StartedTool:
    """A call of a tool. Its task goes on whoever waits for it, until it is over, expires or is cancelled."""

    def __init__(
        self,
        tool: str,
        way: Way,
        read: Callable[[str, dict[str, Any]], Awaitable[CallToolResult]],
        *,
        id: str | None = None,
        answered: dict[str, Any] | None = None,
    ) -> None:
        """`read` makes a result of what was `answered`, or of what comes of the task `id`."""
        self.tool = tool
        self.id = id
        """Of the task; None where the server answered at once."""
        self._way = way
        self._read = read
        self._answered = answered

    async def result(self, on_task: OnTask | None = None) -> CallToolResult:
        """What it gives. The task's questions are answered meanwhile, and `on_task` hears how it is.

        Raises as `Client.call_tool` does, and TaskLost; who is cancelled leaves the task at work.
        """
        return await self._read(self.tool, await self.plain_result(on_task))

    async def plain_result(self, on_task: OnTask | None = None) -> dict[str, Any]:
        """The same as it came, checked by nothing."""
        if self._answered is None and self.id is not None:
            way = replace(self._way, on_task=on_task)
            self._answered = await follow(self.id, way, cancels=False)
        return dict(self._answered or {})

    async def state(self) -> TaskState | None:
        """How the task is; None where there is none. Raises TaskLost, and what `Client.request` does."""
        return None if self.id is None else await look(self._way, self.id)

    async def cancel(self) -> None:
        """Has the server stop the work; where there is no task, nothing is left to stop. Raises what `Client.request`
        does: PeerError too where the task is over."""
        if self.id is not None:
            await cancel(self._way, self.id)

    def saved(self) -> dict[str, Any]:
        """What `Client.take_up` goes on with, in another process or later: JSON. Whoever has it may have the result,
        so it is to be kept like one."""
        rest: Mapping[str, Any] = {"result": self._answered} if self.id is None else {"taskId": self.id}
        return {"tool": self.tool, **rest}


class TaskSupport:
    """What the lists of the tools of one server said of it."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}

    def learn(self, listed: Mapping[str, Any]) -> None:
        """Takes a result of `tools/list`."""
        tools = listed.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str):
                continue
            execution = tool.get("execution")
            support = execution.get("taskSupport") if isinstance(execution, dict) else None
            self._tools[name] = support if support in ("optional", "required") else "forbidden"
            if len(self._tools) > MAX_TOOLS:
                del self._tools[next(iter(self._tools))]

    def of(self, call: Mapping[str, Any]) -> str | None:
        """ "optional", "required" or "forbidden" for the tool of a call; None where it was not listed."""
        name = call.get("name")
        return self._tools.get(name) if isinstance(name, str) else None
