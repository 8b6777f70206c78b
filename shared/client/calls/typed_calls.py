"""The calls of a server as an application makes them: models go in and come out, and lists are followed to their
last page."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import anyio

from ...errors import InvalidArguments, InvalidParams, InvalidResult, McpError, PeerError
from ...protocol.types.base import Wire
from ...protocol.types.prompts import GetPromptResult, Prompt, PromptReference, ResourceReference
from ...protocol.types.resources import Resource, ResourceTemplate
from ...protocol.types.results import (
    CompleteResult,
    Completion,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    ReadResourceResult,
    ResultPage,
)
from ...protocol.types.tools import CallToolResult, Tool
from ..options import Progress
from ..schemas.checks import ToolChecks
from .pages import iter_pages, read_result
from .raw_calls import Requester

SECONDS = 60.0
"""How long an answer may take where the caller does not say."""

Item = TypeVar("Item", bound=Wire)
Result = TypeVar("Result", bound=Wire)
Page = TypeVar("Page", bound=ResultPage)


class TypedCalls:
    """What is asked of one server. Each call raises what `Client.request` does, and InvalidResult for a result that
    is not shaped as the protocol says; a list without end raises McpError. Where a list changes while it is read, its
    server may refuse to give the next page: a list is then read anew, once, and an iterator raises PeerError."""

    def __init__(
        self,
        request: Requester,
        *,
        check_arguments: bool = False,
        has_output_schemas: Callable[[], bool] = lambda: True,
        distrust: Callable[[str], None] = lambda method: None,
    ) -> None:
        """`has_output_schemas` says whether the protocol that is spoken has them. `distrust` hears of a method whose
        result was no use, before it is asked for again: what is given then is not to be what was kept."""
        self._requested = request
        self._has_output_schemas = has_output_schemas
        self._distrust = distrust
        self._checks = ToolChecks(arguments=check_arguments)

    async def list_tools(self) -> list[Tool]:
        """Every tool."""
        return await _whole(self.iter_tools)

    async def iter_tools(self) -> AsyncIterator[Tool]:
        """Every tool; a page is asked for when the one before it has been taken."""
        async for page in self._pages("tools/list", ListToolsResult):
            self._checks.learn(page.tools)
            for tool in page.tools:
                yield tool

    async def list_resources(self) -> list[Resource]:
        """Every resource."""
        return await _whole(self.iter_resources)

    async def iter_resources(self) -> AsyncIterator[Resource]:
        """Every resource; a page is asked for when the one before it has been taken."""
        async for page in self._pages("resources/list", ListResourcesResult):
            for resource in page.resources:
                yield resource

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """Every resource template."""
        return await _whole(self.iter_resource_templates)

    async def iter_resource_templates(self) -> AsyncIterator[ResourceTemplate]:
        """Every resource template; a page is asked for when the one before it has been taken."""
        async for page in self._pages("resources/templates/list", ListResourceTemplatesResult):
            for template in page.resource_templates:
                yield template

    async def list_prompts(self) -> list[Prompt]:
        """Every prompt."""
        return await _whole(self.iter_prompts)

    async def iter_prompts(self) -> AsyncIterator[Prompt]:
        """Every prompt; a page is asked for when the one before it has been taken."""
        async for page in self._pages("prompts/list", ListPromptsResult):
            for prompt in page.prompts:
                yield prompt

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = SECONDS,  # noqa: ASYNC109 - every request has a limit, asked for or not
        on_progress: Progress | None = None,
    ) -> CallToolResult:
        """The result of a tool; look for `is_error`, a tool's failure is a result.

        Structured content that breaks the schema of a tool that was listed is an InvalidResult, and InvalidArguments
        are raised where the options say that they are checked. Before that the list is read again, as it may be old;
        a list, too, takes `timeout` seconds at most.
        """
        params = await self._call_of(name, arguments, timeout)
        result = await self._requested("tools/call", params, timeout=timeout, on_progress=on_progress)
        return await self._result_of(name, result, timeout)

    async def _call_of(self, name: str, arguments: Mapping[str, Any] | None, seconds: float | None) -> dict[str, Any]:
        given = dict(arguments or {})
        if self._checks.lacks(name):
            await self._list_tools_in(seconds)
        if self._checks.arguments:
            await self._checked(self._checks.check_arguments, name, given, seconds)
        return {"name": name, "arguments": given}

    async def _result_of(self, name: str, result: dict[str, Any], seconds: float | None) -> CallToolResult:
        called = self._read("tools/call", CallToolResult, result)
        if self._has_output_schemas():
            await self._checked(self._checks.check_result, name, result, seconds)
        return called

    async def read_resource(
        self,
        uri: str,
        *,
        timeout: float | None = SECONDS,  # noqa: ASYNC109 - as above
    ) -> ReadResourceResult:
        """The contents of a resource."""
        result = await self._requested("resources/read", {"uri": uri}, timeout=timeout)
        return self._read("resources/read", ReadResourceResult, result)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = SECONDS,  # noqa: ASYNC109 - as above
    ) -> GetPromptResult:
        """A prompt, rendered."""
        params = {"name": name, "arguments": dict(arguments or {})}
        result = await self._requested("prompts/get", params, timeout=timeout)
        return self._read("prompts/get", GetPromptResult, result)

    async def complete(
        self,
        ref: PromptReference | ResourceReference,
        name: str,
        value: str,
        context: Mapping[str, str] | None = None,
    ) -> Completion:
        """Values for the argument `name` of a prompt or a resource template, of which `value` was typed; `context`
        has the arguments that are settled already."""
        params: dict[str, Any] = {"ref": ref.to_wire(), "argument": {"name": name, "value": value}}
        if context:
            params["context"] = {"arguments": dict(context)}
        result = await self._requested("completion/complete", params)
        return self._read("completion/complete", CompleteResult, result).completion

    async def _checked(
        self, check: Callable[[str, dict[str, Any]], None], tool: str, value: dict[str, Any], seconds: float | None
    ) -> None:
        try:
            check(tool, value)
        except (InvalidArguments, InvalidResult):
            self._distrust("tools/list")
            with suppress(McpError, ConnectionError, TimeoutError):
                await self._list_tools_in(seconds)
            check(tool, value)

    async def _list_tools_in(self, seconds: float | None) -> None:
        with anyio.move_on_after(seconds) as patience:
            await self.list_tools()
        if patience.cancelled_caught:
            raise TimeoutError(f"the server did not list its tools in {seconds:g} s")

    async def _pages(self, method: str, model: type[Page]) -> AsyncIterator[Page]:
        try:
            async for page in iter_pages(self._requested, method, model):
                yield page
        except InvalidResult:
            self._distrust(method)
            raise

    def _read(self, method: str, model: type[Result], result: dict[str, Any]) -> Result:
        try:
            return read_result(method, model, result)
        except InvalidResult:
            self._distrust(method)
            raise


async def _whole(items: Callable[[], AsyncIterator[Item]]) -> list[Item]:
    try:
        return [item async for item in items()]
    except PeerError as error:
        if error.code != InvalidParams.code:
            raise
    return [item async for item in items()]
