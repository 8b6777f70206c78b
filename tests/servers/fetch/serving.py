"""The server as a process over stdio."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx

from tests.servers import peers
from tests.wire import PATIENCE, start_http

COMMAND = [sys.executable, "-m", "servers.fetch", "--allow-private", "127.0.0.1:*"]
served = partial(peers.served, COMMAND)


@asynccontextmanager
async def two_sessions() -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Yields two clients of one server over HTTP without tokens."""
    async with start_http(COMMAND) as url, client_at_url(url) as one, client_at_url(url) as other:
        await open_session(one)
        await open_session(other)
        yield one, other


def client_at_url(url: str) -> httpx.AsyncClient:
    """Yields a client of a server over HTTP."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    return httpx.AsyncClient(base_url=url, headers=headers, trust_env=False)


async def open_session(client: httpx.AsyncClient) -> str:
    """Begins a session, and sends its ID with all further requests of the client."""
    info = {"name": "test", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    session = (await client.post("/mcp", json=_message("initialize", hello))).headers["mcp-session-id"]
    client.headers["Mcp-Session-Id"] = session
    return str(session)


async def asked_over_http(client: httpx.AsyncClient, method: str, **params: Any) -> Any:
    """Returns the result of a request."""
    text = (await client.post("/mcp", json=_message(method, params), timeout=PATIENCE)).text
    (data,) = [line.partition("data:")[2] or line for line in text.splitlines() if '"jsonrpc"' in line]
    return json.loads(data)["result"]


def _message(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
