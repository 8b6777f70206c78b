"""The four tools of the public comparison on this project, as docs/authors.md would have them written."""

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import anyio

from shared import Context, Implementation, Opening, Server
from shared.program.run import run
from tests.checks.benchmarks.public.work import fibonacci, upper

app = Server[aiohttp.ClientSession](Implementation(name="public", version="1.0"))


@app.lifespan
async def _open(_opening: Opening) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as http:
        yield http


@app.tool
async def compute(n: int) -> str:
    """Compute a Fibonacci number."""
    return json.dumps({"result": fibonacci(n)})


@app.tool
async def fetch(ctx: Context[aiohttp.ClientSession], url: str) -> str:
    """Fetch a URL."""
    async with ctx.state.get(url) as answer:
        return json.dumps({"status": answer.status, "body": await answer.text()})


@app.tool
async def transform(data: dict[str, Any]) -> str:
    """Write all texts in upper case."""
    return json.dumps(upper(data))


@app.tool
async def wait(ms: int) -> str:
    """Wait as long as a database would."""
    await anyio.sleep(ms / 1_000)
    return json.dumps({"waited": ms})


if __name__ == "__main__":
    sys.exit(run(app))
