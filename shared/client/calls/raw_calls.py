"""Calls to a server that return its results as unchanged dictionaries, for tests, and for programs that show the
messages of a server even if they are invalid."""

from collections.abc import Mapping
from typing import Any, Protocol

from ...errors import InvalidResult, McpError
from ..options import Progress

MAX_PAGES = 1_000
"""The maximum number of pages of one list; a server could announce further pages endlessly."""


class Requester(Protocol):
    """The interface of `Client.request`, which makes a request and returns its result."""

    async def __call__(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = 60,  # noqa: ASYNC109 - part of the interface
        on_progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Return the result."""


class RawCalls:
    """The calls to one server. They raise the same errors as `Client.request`, InvalidResult for a result that is not
    a list, and McpError for an endless list."""

    def __init__(self, request: Requester) -> None:
        self._request = request

    async def list_tools(self) -> list[dict[str, Any]]:
        """Return all tools."""
        return await self._list("tools/list", "tools")

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = 60,  # noqa: ASYNC109 - part of the interface
        on_progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Return the result of a tool. Check `isError`: a failure of the tool is a result."""
        params = {"name": name, "arguments": dict(arguments or {})}
        return await self._request("tools/call", params, timeout=timeout, on_progress=on_progress)

    async def list_resources(self) -> list[dict[str, Any]]:
        """Return all resources."""
        return await self._list("resources/list", "resources")

    async def list_resource_templates(self) -> list[dict[str, Any]]:
        """Return all resource templates."""
        return await self._list("resources/templates/list", "resourceTemplates")

    async def read_resource(self, uri: str) -> dict[str, Any]:
        """Return the contents of a resource."""
        return await self._request("resources/read", {"uri": uri})

    async def list_prompts(self) -> list[dict[str, Any]]:
        """Return all prompts."""
        return await self._list("prompts/list", "prompts")

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return a rendered prompt."""
        return await self._request("prompts/get", {"name": name, "arguments": dict(arguments or {})})

    async def _list(self, method: str, field: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        for _ in range(MAX_PAGES):
            result = await self._request(method, params)
            listed = result.get(field) or []
            if not isinstance(listed, list):
                raise InvalidResult(method, field, "it is not a list", result)
            items += listed
            if result.get("nextCursor") is None:
                return items
            params = {"cursor": result["nextCursor"]}
        raise McpError(f"{method} has more than {MAX_PAGES} pages")
