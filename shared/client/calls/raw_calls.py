"""The calls of a server with dictionaries for results, just as they came: for tests, and for programs that
show what a server sent, not what it should have sent.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from ...errors import InvalidResult, McpError
from ..options import Progress

MAX_PAGES = 1_000
"""Pages of one list that are followed; a server that always names another one must not hold us for ever."""


class Requester(Protocol):
    """`Client.request`: makes a request, and gives its result or raises."""

    async def __call__(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = 60,  # noqa: ASYNC109 - every request has a limit, asked for or not
        on_progress: Progress | None = None,
    ) -> dict[str, Any]:
        """The result."""


class PlainCalls:
    """What is asked of one server. Raises what `Client.request` does, InvalidResult for a list that is none, and
    McpError for one without end."""

    def __init__(self, request: Requester) -> None:
        self._request = request

    async def list_tools(self) -> list[dict[str, Any]]:
        """Every tool."""
        return await self._list("tools/list", "tools")

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = 60,  # noqa: ASYNC109 - every request has a limit, asked for or not
        on_progress: Progress | None = None,
    ) -> dict[str, Any]:
        """The result of a tool; look for `isError`, a tool's failure is a result."""
        params = {"name": name, "arguments": dict(arguments or {})}
        return await self._request("tools/call", params, timeout=timeout, on_progress=on_progress)

    async def list_resources(self) -> list[dict[str, Any]]:
        """Every resource."""
        return await self._list("resources/list", "resources")

    async def list_resource_templates(self) -> list[dict[str, Any]]:
        """Every resource template."""
        return await self._list("resources/templates/list", "resourceTemplates")

    async def read_resource(self, uri: str) -> dict[str, Any]:
        """The contents of a resource."""
        return await self._request("resources/read", {"uri": uri})

    async def list_prompts(self) -> list[dict[str, Any]]:
        """Every prompt."""
        return await self._list("prompts/list", "prompts")

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> dict[str, Any]:
        """A prompt, rendered."""
        return await self._request("prompts/get", {"name": name, "arguments": dict(arguments or {})})

    async def _list(self, method: str, what: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        for _ in range(MAX_PAGES):
            result = await self._request(method, params)
            listed = result.get(what) or []
            if not isinstance(listed, list):
                raise InvalidResult(method, what, "it is not a list", result)
            items += listed
            if result.get("nextCursor") is None:
                return items
            params = {"cursor": result["nextCursor"]}
        raise McpError(f"{method} has more than {MAX_PAGES} pages")
