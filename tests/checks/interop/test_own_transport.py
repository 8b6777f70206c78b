"""The official client at a server on a Unix domain socket, by the transport that CONTRIBUTING.md shows."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import Client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from shared import Context, Implementation, Server
from tests.contributing import names_of
from tests.wire import PATIENCE

HEADING = "Adding a transport"


def server() -> Server[None]:
    app = Server[None](Implementation(name="adder", version="1"))

    @app.tool()
    async def add(ctx: Context[None], a: int, b: int) -> str:
        """Add."""
        await ctx.progress(1, 2, "adding")
        return str(a + b)

    @app.resource("sum://{a}/{b}")
    async def sum_of(a: int, b: int) -> str:
        """A sum."""
        return str(a + b)

    return app


@asynccontextmanager
async def official(path: Path) -> AsyncIterator[Any]:
    """The socket at `path` as a transport of the official client."""
    to_client, received = anyio.create_memory_object_stream[SessionMessage | Exception](100)
    to_server, sent = anyio.create_memory_object_stream[SessionMessage](100)
    async with await anyio.connect_unix(path) as stream, anyio.create_task_group() as tasks:
        tasks.start_soon(_receive, stream, to_client)
        tasks.start_soon(_send, sent, stream)
        yield received, to_server
        tasks.cancel_scope.cancel()


async def _receive(stream: ByteStream, to_client: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    left = b""
    async with to_client:
        async for chunk in stream:
            *lines, left = (left + chunk).split(b"\n")
            for line in lines:
                await to_client.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))


async def _send(sent: MemoryObjectReceiveStream[SessionMessage], stream: ByteStream) -> None:
    async with sent:
        async for one in sent:
            await stream.send(one.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_works_over_a_custom_transport(mode: str, tmp_path: Path) -> None:
    path, told = tmp_path / "socket", []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    with anyio.fail_after(PATIENCE), listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(names_of(HEADING)["serve_socket"], server(), listener)
            async with Client(official(path), mode=mode) as client, Client(official(path), mode=mode) as other:
                assert [tool.name for tool in (await client.list_tools()).tools] == ["add"]
                result = await client.call_tool("add", {"a": 1, "b": 2}, progress_callback=heard)
                read = await other.read_resource("sum://3/4")
            tasks.cancel_scope.cancel()
    assert (result.content[0].text, read.contents[0].text) == ("3", "7")
    assert told == [(1, 2, "adding")]
