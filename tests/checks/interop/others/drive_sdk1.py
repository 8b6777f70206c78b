"""Drives the client of the official Python SDK 1.x, which begins every connection with `initialize`."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from driving import ROOTS, SAMPLE, SECONDS, Ears, Progress, Task, by_ears, fill_in
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.websocket import websocket_client
from pydantic import AnyUrl, BaseModel
from rows import drive


def wire(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Connection:
    def __init__(self, session: ClientSession, ears: Ears, opened: types.InitializeResult) -> None:
        self.ears = ears
        self._session = session
        self._opened = opened

    def opened(self) -> dict[str, Any]:
        return {"version": self._opened.protocolVersion, "name": self._opened.serverInfo.name}

    async def all(self, kind: str) -> list[dict[str, Any]]:
        listing = {
            "tools": self._session.list_tools,
            "prompts": self._session.list_prompts,
            "resources": self._session.list_resources,
            "resourceTemplates": self._session.list_resource_templates,
        }[kind]
        found: list[dict[str, Any]] = []
        params = None
        while True:
            page = wire(await listing(params=params))
            found += page[kind]
            if "nextCursor" not in page:
                return found
            params = types.PaginatedRequestParams(cursor=page["nextCursor"])

    async def call(
        self, name: str, arguments: dict[str, Any] | None = None, progress: Progress | None = None
    ) -> dict[str, Any]:
        return wire(await self._session.call_tool(name, arguments, progress_callback=progress))

    async def cancelled(self, name: str, arguments: dict[str, Any]) -> None:
        """This client has no call for it, and does not tell a request's number: progress has it as its token."""
        began = asyncio.Event()
        number = self._session._request_id

        async def progress(_done: float, _total: float | None, _message: str | None) -> None:
            began.set()

        call = asyncio.create_task(self.call(name, arguments, progress))
        await began.wait()
        params = types.CancelledNotificationParams(requestId=number)
        await self._session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
        call.cancel()

    async def read(self, uri: str) -> dict[str, Any]:
        return wire(await self._session.read_resource(AnyUrl(uri)))

    async def prompt(self, name: str, arguments: dict[str, str] | None = None) -> dict[str, Any]:
        return wire(await self._session.get_prompt(name, arguments))

    async def complete(self, reference: dict[str, str], name: str, value: str) -> list[str]:
        kind = types.PromptReference if reference["type"] == "ref/prompt" else types.ResourceTemplateReference
        result = await self._session.complete(kind.model_validate(reference), {"name": name, "value": value})
        return result.completion.values

    async def ping(self) -> None:
        await self._session.send_ping()

    async def begin_task(self, name: str, arguments: dict[str, Any]) -> str:
        """The id of a task that a call becomes."""
        task = (await self._session.experimental.call_tool_as_task(name, arguments, ttl=60_000)).task
        if (task.status, task.ttl) != ("working", 60_000):
            raise AssertionError(f"it begins so: {task!r}")
        return task.taskId

    async def end_task(self, id: str) -> tuple[str, dict[str, Any]]:
        """How a task has ended, and its result, as the documentation of this client has them."""
        async for task in self._session.experimental.poll_task(id):
            if task.status == "input_required":
                break
        result = wire(await self._session.experimental.get_task_result(id, types.CallToolResult))
        return (await self._session.experimental.get_task(id)).status, result

    async def cancel_task(self, id: str) -> str:
        return (await self._session.experimental.cancel_task(id)).status

    async def from_warning(self) -> bool:
        await self._session.set_logging_level("warning")
        return True

    @asynccontextmanager
    async def listening(self, **wanted: Any) -> AsyncIterator[Callable[[], Awaitable[dict[str, Any]]]]:
        async with by_ears(self.ears, wanted) as heard:
            if "uri" not in wanted:
                yield heard
                return
            await self._session.subscribe_resource(AnyUrl(wanted["uri"]))
            yield heard
            await self._session.unsubscribe_resource(AnyUrl(wanted["uri"]))


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
            if isinstance(message, types.ServerNotification):
                ears.letters.put_nowait(wire(message.root))

        async with AsyncExitStack() as stack:
            read, write = await self._streams(stack, self._task.servers[server], token)
            session = ClientSession(
                read,
                write,
                elicitation_callback=form,
                sampling_callback=model,
                list_roots_callback=roots,
                logging_callback=log,
                message_handler=hear,
            )
            await stack.enter_async_context(session)
            async with asyncio.timeout(SECONDS):
                opened = await session.initialize()
            yield Connection(session, ears, opened)

    async def _streams(self, stack: AsyncExitStack, server: dict[str, Any], token: str | None) -> tuple[Any, Any]:
        if "command" in server:
            errors = stack.enter_context(Path(self._task.errors).open("a"))  # noqa: SIM115
            command, *arguments = server["command"]
            parameters = StdioServerParameters(command=command, args=arguments, cwd=server["cwd"])
            return await stack.enter_async_context(stdio_client(parameters, errlog=errors))
        if self._task.transport == "websocket":
            return await stack.enter_async_context(websocket_client(server["url"]))
        headers = {"Authorization": f"Bearer {token or server['token']}"}
        if self._task.transport == "sse+token":
            return await stack.enter_async_context(sse_client(server["url"], headers, timeout=SECONDS))
        http = await stack.enter_async_context(httpx.AsyncClient(headers=headers, trust_env=False, timeout=SECONDS))
        read, write, _ = await stack.enter_async_context(streamable_http_client(server["url"], http_client=http))
        return read, write


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # each use of its tasks warns
    given = Task.read()
    drive(Peer(given), given)
