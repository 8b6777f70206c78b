"""Clients of one server over HTTP, each with its own address, and one that keeps the server busy."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import anyio
import httpx

from tests.wire import PATIENCE, STATELESS, Json, with_envelope

__all__ = ["busy", "client_at", "result_of"]

_ids = count(1)


@asynccontextmanager
async def client_at(url: str, address: str) -> AsyncIterator[httpx.AsyncClient]:
    """Opens a client with that address of this machine."""
    # Without TLS nothing is verified, and reading all certificates takes longer than many calls.
    transport = httpx.AsyncHTTPTransport(local_address=address, verify=False)
    async with httpx.AsyncClient(base_url=url, transport=transport, trust_env=False, timeout=PATIENCE) as client:
        yield client


async def result_of(client: httpx.AsyncClient, tool: str, **arguments: object) -> Json:
    """Returns the result of a tool."""
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": STATELESS}
    headers |= {"mcp-method": "tools/call", "mcp-name": tool}
    params = with_envelope({"name": tool, "arguments": arguments})
    message = {"jsonrpc": "2.0", "id": next(_ids), "method": "tools/call", "params": params}
    result: Json = (await client.post("/mcp", json=message, headers=headers)).json()["result"]
    return result


@asynccontextmanager
async def busy(client: httpx.AsyncClient, calls: int, tool: str, **arguments: object) -> AsyncIterator[None]:
    """Keeps that many endless calls in progress during the block."""

    async def call() -> None:
        await result_of(client, tool, **arguments)
        raise AssertionError("it ended")

    async with anyio.create_task_group() as tasks:
        for _ in range(calls):
            tasks.start_soon(call)
        with anyio.fail_after(PATIENCE):
            while (await client.get("/healthz")).json()["streams"] < calls:
                await anyio.lowlevel.checkpoint()
        yield
        tasks.cancel_scope.cancel()
