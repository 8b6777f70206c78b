"""The arguments of tools that clients repeat in HTTP headers (see `routing_headers`), with which a request is checked
before it is served.

The input schemas of tools declare these arguments. The schemas of a server's own tools are known; those of tools
behind a gateway are learned from the lists of tools that it passes on.
"""

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ....errors import McpError
from ....protocol.http.routing_headers import Parameter, parameter_headers
from ....protocol.identity import Principal
from ....protocol.types.tools import named_tools
from ....server.run import Run
from ....server.tools import RegisteredTool

MAX_LISTED = 10_000
"""The maximum number of remembered tools of other servers; beyond it, those listed first are dropped."""


class HeaderArguments:
    """The arguments that headers repeat, for the tools of one running server."""

    def __init__(self, running: Run[Any]) -> None:
        self._running = running
        self._own: WeakKeyDictionary[RegisteredTool, Sequence[Parameter]] = WeakKeyDictionary()
        self._listed: dict[str, Sequence[Parameter]] = {}

    def find(self, name: str, principal: Principal | None = None) -> Sequence[Parameter]:
        """Return the arguments of the tool `name` that headers repeat; empty if the tool is unknown, or hidden from
        `principal`."""
        running = self._running.parts.for_principal(principal)
        try:
            tool = running.features.tools.find(name, running.settings)
        except McpError:
            parameters = self._listed.get(name, ())
        else:
            known = self._own.get(tool)
            if known is None:
                known = self._own[tool] = tuple(parameter_headers(tool.entry["inputSchema"]))
            parameters = known
        # Few tools have such arguments, so only those are looked up among the hidden ones.
        for extension in running.extensions if parameters else ():
            if extension.hides_tool is not None and extension.hides_tool(running, principal, name):
                return ()
        return parameters

    def learn(self, result: dict[str, Any]) -> None:
        """Remember the tools in a result of `tools/list` before it is sent, except for the server's own."""
        # A server that has tools of its own lists no others.
        if self._running.features.tools:
            return
        for name, tool in named_tools(result):
            schema = tool.get("inputSchema")
            parameters = tuple(parameter_headers(schema)) if isinstance(schema, dict) else ()
            self._listed.pop(name, None)
            if parameters:
                self._listed[name] = parameters
            if len(self._listed) > MAX_LISTED:
                del self._listed[next(iter(self._listed))]
