"""Calls to a server that return models, and read lists to the last page. `raw_calls.py` returns dictionaries."""

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

DEFAULT_TIMEOUT = 60.0
"""The default number of seconds in which the server must answer."""

Item = TypeVar("Item", bound=Wire)
Result = TypeVar("Result", bound=Wire)
Page = TypeVar("Page", bound=ResultPage)


class TypedCalls:
    """The calls to one server. Each raises the same errors as `Client.request`, InvalidResult for a result that does
    not have the shape that the protocol defines, and McpError for an endless list. If a list changes while it is
    read, the server may refuse the next page: then a method that returns a list reads the whole list once more, and
    an iterator raises PeerError."""

    def __init__(
        self,
        request: Requester,
        *,
        check_arguments: bool = False,
        supports_output_schemas: Callable[[], bool] = lambda: True,
        forget_results: Callable[[str], None] = lambda method: None,
    ) -> None:
        """`supports_output_schemas` returns True if the protocol version in use defines output schemas.
        `forget_results` is called with a method whose cached results must not be used again, because they are invalid
        or may be outdated."""
        self._request = request
        self._has_output_schemas = supports_output_schemas
        self._forget_results = forget_results
        self._checks = ToolChecks(arguments=check_arguments)

    async def list_tools(self) -> list[Tool]:
        """Return all tools."""
        return await _collect_pages(self.iter_tools)

    async def iter_tools(self) -> AsyncIterator[Tool]:
        """Iterate over all tools; each page is requested when the previous one has been consumed."""
        async for page in self._pages("tools/list", ListToolsResult):
            self._checks.learn(page.tools)
            for tool in page.tools:
                yield tool

    async def list_resources(self) -> list[Resource]:
        """Return all resources."""
        return await _collect_pages(self.iter_resources)

    async def iter_resources(self) -> AsyncIterator[Resource]:
        """Iterate over all resources; each page is requested when the previous one has been consumed."""
        async for page in self._pages("resources/list", ListResourcesResult):
            for resource in page.resources:
                yield resource

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """Return all resource templates."""
        return await _collect_pages(self.iter_resource_templates)

    async def iter_resource_templates(self) -> AsyncIterator[ResourceTemplate]:
        """Iterate over all resource templates; each page is requested when the previous one has been consumed."""
        async for page in self._pages("resources/templates/list", ListResourceTemplatesResult):
            for template in page.resource_templates:
                yield template

    async def list_prompts(self) -> list[Prompt]:
        """Return all prompts."""
        return await _collect_pages(self.iter_prompts)

    async def iter_prompts(self) -> AsyncIterator[Prompt]:
        """Iterate over all prompts; each page is requested when the previous one has been consumed."""
        async for page in self._pages("prompts/list", ListPromptsResult):
            for prompt in page.prompts:
                yield prompt

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = DEFAULT_TIMEOUT,  # noqa: ASYNC109 - part of the interface
        on_progress: Progress | None = None,
    ) -> CallToolResult:
        """Return the result of a tool. Check `is_error`: a failure of the tool is a result.

        Structured content that violates the schema of a listed tool raises InvalidResult. With the option
        `check_arguments`, invalid arguments raise InvalidArguments. Before either error is raised, the tools are
        listed again, within `timeout` seconds, because the schema may be outdated.
        """
        params = await self._prepare_call(name, arguments, timeout)
        result = await self._request("tools/call", params, timeout=timeout, on_progress=on_progress)
        return await self._read_call_result(name, result, timeout)

    async def _prepare_call(
        self, name: str, arguments: Mapping[str, Any] | None, timeout_seconds: float | None
    ) -> dict[str, Any]:
        call_arguments = dict(arguments or {})
        if self._checks.needs_list(name):
            await self._list_tools_within(timeout_seconds)
        if self._checks.arguments:
            await self._check(self._checks.check_arguments, name, call_arguments, timeout_seconds)
        return {"name": name, "arguments": call_arguments}

    async def _read_call_result(
        self, name: str, result: dict[str, Any], timeout_seconds: float | None
    ) -> CallToolResult:
        call_result = self._read("tools/call", CallToolResult, result)
        if self._has_output_schemas():
            await self._check(self._checks.check_result, name, result, timeout_seconds)
        return call_result

    async def read_resource(
        self,
        uri: str,
        *,
        timeout: float | None = DEFAULT_TIMEOUT,  # noqa: ASYNC109 - part of the interface
    ) -> ReadResourceResult:
        """Return the contents of a resource."""
        result = await self._request("resources/read", {"uri": uri}, timeout=timeout)
        return self._read("resources/read", ReadResourceResult, result)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = DEFAULT_TIMEOUT,  # noqa: ASYNC109 - part of the interface
    ) -> GetPromptResult:
        """Return a rendered prompt. Raises TypeError for an argument that is not a string."""
        for argument, value in (arguments or {}).items():
            if not isinstance(value, str):
                raise TypeError(
                    f"the argument {argument!r} of the prompt {name!r} must be a string, not {type(value).__name__}"
                )
        params = {"name": name, "arguments": dict(arguments or {})}
        result = await self._request("prompts/get", params, timeout=timeout)
        return self._read("prompts/get", GetPromptResult, result)

    async def complete(
        self,
        ref: PromptReference | ResourceReference,
        name: str,
        value: str,
        context: Mapping[str, str] | None = None,
    ) -> Completion:
        """Return completions of the argument `name` of a prompt or a resource template, from the `value` typed so
        far; `context` contains the arguments that are already set."""
        params: dict[str, Any] = {"ref": ref.to_wire(), "argument": {"name": name, "value": value}}
        if context:
            params["context"] = {"arguments": dict(context)}
        result = await self._request("completion/complete", params)
        return self._read("completion/complete", CompleteResult, result).completion

    async def _check(
        self,
        check: Callable[[str, dict[str, Any]], None],
        tool: str,
        value: dict[str, Any],
        timeout_seconds: float | None,
    ) -> None:
        try:
            check(tool, value)
        except (InvalidArguments, InvalidResult):
            self._forget_results("tools/list")  # the schema may be outdated
            with suppress(McpError, ConnectionError, TimeoutError):
                await self._list_tools_within(timeout_seconds)
            check(tool, value)

    async def _list_tools_within(self, timeout_seconds: float | None) -> None:
        with anyio.move_on_after(timeout_seconds) as timeout_scope:
            await self.list_tools()
        if timeout_scope.cancelled_caught:
            raise TimeoutError(f"the server did not list its tools within {timeout_seconds:g} s")

    async def _pages(self, method: str, model: type[Page]) -> AsyncIterator[Page]:
        try:
            async for page in iter_pages(self._request, method, model):
                yield page
        except InvalidResult:
            self._forget_results(method)
            raise

    def _read(self, method: str, model: type[Result], result: dict[str, Any]) -> Result:
        try:
            return read_result(method, model, result)
        except InvalidResult:
            self._forget_results(method)
            raise


async def _collect_pages(items: Callable[[], AsyncIterator[Item]]) -> list[Item]:
    try:
        return [item async for item in items()]
    except PeerError as error:
        if error.code != InvalidParams.code:
            raise
    return [item async for item in items()]
