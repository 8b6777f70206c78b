"""Which arguments of a tool are repeated in headers, so that a request can be checked before it is served.

A server's own tools say so themselves. Those that it answers for, as a gateway does, are known by what it listed.
"""

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ....errors import McpError
from ....protocol.http.routing_headers import Parameter, parameter_headers
from ....protocol.identity import Principal
from ....server.run import Run
from ....server.tools import RegisteredTool

MAX_LISTED = 10_000
"""Tools of others with such arguments that are remembered; those that were listed first are forgotten first."""


class RepeatedArguments:
    """What is known of the tools of one running server."""

    def __init__(self, running: Run[Any]) -> None:
        self._running = running
        self._own: WeakKeyDictionary[RegisteredTool, Sequence[Parameter]] = WeakKeyDictionary()
        self._listed: dict[str, Sequence[Parameter]] = {}

    def of(self, name: str, principal: Principal | None = None) -> Sequence[Parameter]:
        """The arguments of that tool which headers repeat; none where nothing is known of it, or it is not there for
        `principal`."""
        running = self._running.parts.for_principal(principal)
        for extension in running.extensions:
            if extension.hides is not None and extension.hides(running, principal, name):
                return ()
        try:
            tool = running.features.tools.find(name, running.settings)
        except McpError:
            return self._listed.get(name, ())
        known = self._own.get(tool)
        if known is None:
            known = self._own[tool] = tuple(parameter_headers(tool.listed["inputSchema"]))
        return known

    def learn(self, result: dict[str, Any]) -> None:
        """Takes a result of `tools/list` before it is sent; where the tools are our own, it tells nothing new."""
        if self._running.features.tools:
            return
        tools = result.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
                self._remember(name, tool.get("inputSchema"))

    def _remember(self, name: str, schema: Any) -> None:
        marked = tuple(parameter_headers(schema)) if isinstance(schema, dict) else ()
        self._listed.pop(name, None)
        if marked:
            self._listed[name] = marked
            if len(self._listed) > MAX_LISTED:
                del self._listed[next(iter(self._listed))]
