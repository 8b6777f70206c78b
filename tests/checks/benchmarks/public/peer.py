"""The four tools of the public comparison on FastMCP or on the official SDK, as their documentation would have them.

python peer.py fastmcp|sdk PORT WORKERS

FastMCP runs in an environment of its own, where nothing of this project is but this folder. Both answer plain JSON
and keep no sessions, which is their fastest form.
"""

import asyncio
import json
import os
import sys
from typing import Any

import httpx2
import uvicorn
from work import fibonacci, upper

http = httpx2.AsyncClient()


async def compute(n: int) -> str:
    """Compute a Fibonacci number."""
    return json.dumps({"result": fibonacci(n)})


async def fetch(url: str) -> str:
    """Fetch a URL."""
    answer = await http.get(url)
    return json.dumps({"status": answer.status_code, "body": answer.text})


async def transform(data: dict[str, Any]) -> str:
    """Write all texts in upper case."""
    return json.dumps(upper(data))


async def wait(ms: int) -> str:
    """Wait as long as a database would."""
    await asyncio.sleep(ms / 1_000)
    return json.dumps({"waited": ms})


def make() -> Any:
    """The application, in each process that serves it."""
    if os.environ["PUBLIC_PEER"] == "fastmcp":
        from fastmcp import FastMCP

        server = FastMCP("public")
    else:
        from mcp.server import MCPServer

        server = MCPServer("public", log_level="WARNING")
    for function in (compute, fetch, transform, wait):
        server.tool()(function)
    app = server.http_app if os.environ["PUBLIC_PEER"] == "fastmcp" else server.streamable_http_app
    return app(json_response=True, stateless_http=True)


if __name__ == "__main__":
    os.environ["PUBLIC_PEER"], port, workers = sys.argv[1:]
    options: dict[str, Any] = {"factory": True, "access_log": False, "log_level": "warning", "app_dir": sys.path[0]}
    uvicorn.run("peer:make", port=int(port), workers=int(workers), **options)
