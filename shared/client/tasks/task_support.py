"""Which tools of a server of 2025-11-25 may run as tasks, or have to: the client has to ask for it."""

from collections.abc import Mapping
from typing import Any

__all__ = ["TaskSupport"]

MAX_TOOLS = 5_000
"""Tools that are remembered; the oldest are forgotten."""


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
