"""Drives FastMCP's client.

It has no calls for subscriptions of either era: those go through its `session`, which is the official SDK's.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from driving import ROOTS, SAMPLE, SECONDS, Ears, Progress, Task, fill_in
from fastmcp.client import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from modern import Modern, wire
from pydantic import BaseModel
from rows import drive


class Connection(Modern):
    def opened(self) -> dict[str, Any]:
        info = self._client.server_info if self._client.mode in ("auto", "legacy") else None
        return {"version": self._client.protocol_version, "name": info and info.name}

    async def all(self, kind: str) -> list[dict[str, Any]]:
        listing = {
            "tools": self._client.list_tools,
            "prompts": self._client.list_prompts,
            "resources": self._client.list_resources,
            "resourceTemplates": self._client.list_resource_templates,
        }[kind]
        return [wire(one) for one in await listing()]

    async def call(
        self, name: str, arguments: dict[str, Any] | None = None, progress: Progress | None = None
    ) -> dict[str, Any]:
        """`call_tool` is what validates the data; it gives the parts of the result."""
        result = await self._client.call_tool(name, arguments, progress_handler=progress, raise_on_error=False)
        return {
            "content": [wire(block) for block in result.content],
            "structuredContent": result.structured_content,
            "isError": result.is_error,
        }

    async def read(self, uri: str) -> dict[str, Any]:
        return {"contents": [wire(one) for one in await self._client.read_resource(uri)]}

    async def prompt(self, name: str, arguments: dict[str, str] | None = None) -> dict[str, Any]:
        return wire(await self._client.get_prompt(name, arguments))

    async def complete(self, reference: dict[str, str], name: str, value: str) -> list[str]:
        kind = types.PromptReference if reference["type"] == "ref/prompt" else types.ResourceTemplateReference
        result = await self._client.complete(kind.model_validate(reference), {"name": name, "value": value})
        return result.values

    async def ping(self) -> None:
        await self._client.ping()

    async def from_warning(self) -> bool:
        """From 2026-07-28 on this client asks for every level with each call, and offers no other."""
        if self._handshake:
            await self._client.set_logging_level("warning")
        return self._handshake


class Peer:
    def __init__(self, task: Task) -> None:
        self._task = task

    @asynccontextmanager
    async def connect(self, server: str, token: str | None = None) -> AsyncIterator[Connection]:
        ears = Ears()

        async def form(_message: str, _kind: Any, params: Any, _context: Any) -> types.ElicitResult:
            return types.ElicitResult.model_validate(fill_in(wire(params)))

        async def model(_messages: Any, _params: Any, _context: Any) -> types.CreateMessageResult:
            return types.CreateMessageResult.model_validate(SAMPLE)

        async def roots(_context: Any) -> list[types.Root]:
            return types.ListRootsResult.model_validate(ROOTS).roots

        async def log(params: types.LoggingMessageNotificationParams) -> None:
            ears.logs.append(wire(params))

        async def hear(message: Any) -> None:
            if isinstance(message, BaseModel):
                ears.letters.put_nowait(wire(message))

        with open(self._task.errors, "a") as errors:
            client = Client(
                self._transport(self._task.servers[server], token, errors),
                elicitation_handler=form,
                sampling_handler=model,
                roots=roots,
                log_handler=log,
                message_handler=hear,
                timeout=SECONDS,
                mode=self._task.era,
            )
            async with client:
                yield Connection(client, ears)

    @staticmethod
    def _transport(
        server: dict[str, Any], token: str | None, errors: Any
    ) -> StdioTransport | StreamableHttpTransport:
        if "command" in server:
            command, *arguments = server["command"]
            return StdioTransport(command, arguments, cwd=server["cwd"], keep_alive=False, log_file=errors)
        return StreamableHttpTransport(server["url"], auth=token or server["token"])


if __name__ == "__main__":
    given = Task.read()
    drive(Peer(given), given)
