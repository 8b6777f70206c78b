"""Drives the client of the official Python SDK 2.x."""

import warnings
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
from driving import ROOTS, SAMPLE, SECONDS, Ears, Progress, Task, fill_in
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning
from modern import Modern, wire
from pydantic import BaseModel
from rows import drive

warnings.simplefilter("ignore", MCPDeprecationWarning)  # of what the newest version has no more


class Connection(Modern):
    def opened(self) -> dict[str, Any]:
        info = self._client.server_info if self._handshake else None
        return {"version": self._client.protocol_version, "name": info and info.name}

    async def all(self, kind: str) -> list[dict[str, Any]]:
        listing = {
            "tools": self._client.list_tools,
            "prompts": self._client.list_prompts,
            "resources": self._client.list_resources,
            "resourceTemplates": self._client.list_resource_templates,
        }[kind]
        found: list[dict[str, Any]] = []
        cursor = None
        while True:
            page = wire(await listing(cursor=cursor, cache_mode="bypass"))
            found += page[kind]
            cursor = page.get("nextCursor")
            if cursor is None:
                return found

    async def call(
        self, name: str, arguments: dict[str, Any] | None = None, progress: Progress | None = None
    ) -> dict[str, Any]:
        return wire(await self._client.call_tool(name, arguments, progress_callback=progress))

    async def read(self, uri: str) -> dict[str, Any]:
        return wire(await self._client.read_resource(uri, cache_mode="bypass"))

    async def prompt(self, name: str, arguments: dict[str, str] | None = None) -> dict[str, Any]:
        return wire(await self._client.get_prompt(name, arguments))

    async def complete(self, reference: dict[str, str], name: str, value: str) -> list[str]:
        kind = types.PromptReference if reference["type"] == "ref/prompt" else types.ResourceTemplateReference
        result = await self._client.complete(kind.model_validate(reference), {"name": name, "value": value})
        return result.completion.values

    async def ping(self) -> None:
        await self._client.send_ping()

    async def from_warning(self) -> bool:
        """From 2026-07-28 on this client says once which level it wants, when it is made."""
        if self._handshake:
            await self._client.set_logging_level("warning")
        return True


class Peer:
    def __init__(self, task: Task) -> None:
        self._task = task

    @asynccontextmanager
    async def connect(self, server: str, token: str | None = None) -> AsyncIterator[Connection]:
        ears = Ears()

        async def form(_context: Any, params: Any) -> types.ElicitResult:
            return types.ElicitResult.model_validate(fill_in(wire(params)))

        async def model(_context: Any, _params: Any) -> types.CreateMessageResult:
            return types.CreateMessageResult.model_validate(SAMPLE)

        async def roots(_context: Any) -> types.ListRootsResult:
            return types.ListRootsResult.model_validate(ROOTS)

        async def log(params: types.LoggingMessageNotificationParams) -> None:
            ears.logs.append(wire(params))

        async def hear(message: Any) -> None:
            if isinstance(message, BaseModel):
                ears.letters.put_nowait(wire(message))

        async with AsyncExitStack() as stack:
            client = Client(
                await self._transport(stack, self._task.servers[server], token),
                elicitation_callback=form,
                sampling_callback=model,
                list_roots_callback=roots,
                logging_callback=log,
                log_level="warning",
                message_handler=hear,
                read_timeout_seconds=SECONDS,
                mode=self._task.era,
            )
            yield Connection(await stack.enter_async_context(client), ears)

    async def _transport(self, stack: AsyncExitStack, server: dict[str, Any], token: str | None) -> Any:
        if "command" in server:
            errors = stack.enter_context(Path(self._task.errors).open("a"))  # noqa: SIM115
            command, *arguments = server["command"]
            parameters = StdioServerParameters(command=command, args=arguments, cwd=server["cwd"])
            return stdio_client(parameters, errlog=errors)
        given = token or server.get("token")
        headers = {"Authorization": f"Bearer {given}"} if given else {}
        http = httpx2.AsyncClient(headers=headers, trust_env=False, timeout=SECONDS)
        return streamable_http_client(server["url"], http_client=await stack.enter_async_context(http))


if __name__ == "__main__":
    given = Task.read()
    drive(Peer(given), given)
