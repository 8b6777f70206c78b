"""Tool calls that may continue as tasks while their callers do something else.

A client requests a task from a server of 2025-11-25 only if the tool has declared task support.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from ...protocol.types.tools import CallToolResult, named_tools
from .following import OnTask, TaskChannel, TaskState, cancel, fetch_state, follow

MAX_TOOLS = 5_000
"""Maximum number of tools whose task support is remembered; beyond it, the oldest is dropped."""


class StartedTool:
    """A tool call that was started. Its task, if there is one, continues until it ends, expires or is cancelled,
    whether or not anyone waits for it."""

    def __init__(
        self,
        tool: str,
        channel: TaskChannel,
        read: Callable[[str, dict[str, Any]], Awaitable[CallToolResult]],
        *,
        id: str | None = None,
        immediate_result: dict[str, Any] | None = None,
    ) -> None:
        """`read` converts the result, which is `immediate_result` or the result of the task `id`, to a model."""
        self.tool = tool
        self.id = id
        """The id of the task; None if the server returned a result at once."""
        self._channel = channel
        self._read = read
        self._immediate_result = immediate_result

    async def result(self, on_task: OnTask | None = None) -> CallToolResult:
        """Wait for the result of the tool and return it. During the wait, input requests of the task are answered,
        and `on_task` receives its states.

        Raises the same errors as `Client.call_tool`, and TaskLost; cancelling the wait does not cancel the task.
        """
        return await self._read(self.tool, await self.plain_result(on_task))

    async def plain_result(self, on_task: OnTask | None = None) -> dict[str, Any]:
        """Return the same result as a dictionary, as received and without checks."""
        if self._immediate_result is None and self.id is not None:
            channel = replace(self._channel, on_task=on_task)
            self._immediate_result = await follow(self.id, channel, cancels=False)
        return dict(self._immediate_result or {})

    async def state(self) -> TaskState | None:
        """Return the state of the task; None if there is no task. Raises TaskLost, and the same errors as
        `Client.request`."""
        return None if self.id is None else await fetch_state(self._channel, self.id)

    async def cancel(self) -> None:
        """Ask the server to cancel the task, if there is one. Raises the same errors as `Client.request`, including
        PeerError if the task has already ended."""
        if self.id is not None:
            await cancel(self._channel, self.id)

    def saved(self) -> dict[str, Any]:
        """Return JSON with which `Client.resume_tool` resumes the call later, in this process or another. It gives
        access to the result, so protect it like the result itself."""
        rest: Mapping[str, Any] = {"result": self._immediate_result} if self.id is None else {"taskId": self.id}
        return {"tool": self.tool, **rest}


class TaskSupport:
    """The declared task support of the tools of one server."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}

    def learn(self, result: Mapping[str, Any]) -> None:
        """Remember the task support in a result of `tools/list`."""
        for name, tool in named_tools(result):
            execution = tool.get("execution")
            support = execution.get("taskSupport") if isinstance(execution, dict) else None
            self._tools[name] = support if support in ("optional", "required") else "forbidden"
            if len(self._tools) > MAX_TOOLS:
                del self._tools[next(iter(self._tools))]

    def find(self, call: Mapping[str, Any]) -> str | None:
        """Return "optional", "required" or "forbidden" for the tool of a call; None if it was not listed."""
        name = call.get("name")
        return self._tools.get(name) if isinstance(name, str) else None
