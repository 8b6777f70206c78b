"""A server whose tools do what servers should not: block, print, flood, ignore that they are cancelled.

A tool that waits says `begun` in a log message first, so that a test knows when it is under way.
"""

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

import anyio
from anyio import to_thread
from pydantic import BaseModel, Field

from shared import Context, Data, Implementation, Opening, ResourceNotFound, Server
from shared.program.run import run

URI = "slow:///thing"
COMMAND = [sys.executable, "-m", "tests.slow_server"]
"""To be run in the project's folder."""

Ctx = Context[None]


class SlowSettings(BaseModel):
    """How this server misbehaves at its start and its end."""

    drain: float = Field(5.0, description="seconds for calls under way to finish")
    broken: bool = Field(False, description="fail to start")


app = Server[None](
    Implementation(name="slow", version="1", description="Does what servers should not."),
    settings=SlowSettings,
    capabilities={"logging": {}},
)


@app.lifespan
async def _open(opening: Opening) -> AsyncIterator[None]:
    settings: SlowSettings = opening.settings
    if settings.broken:
        raise FileNotFoundError(2, "No such file or directory", "/there/is/none")
    object.__setattr__(opening.limits, "drain_seconds", settings.drain)
    yield
    logging.getLogger("slow").warning("closed in order")


@app.tool(read_only=True)
async def echo(text: str) -> str:
    """Answer with the same text."""
    return text


@app.tool(read_only=True)
async def hold(ctx: Ctx, seconds: float = 3_600) -> str:
    """Take a long time."""
    await ctx.log("info", "begun")
    await anyio.sleep(seconds)
    return "held"


@app.tool(read_only=True)
async def cling(ctx: Ctx, seconds: float = 0.2) -> str:
    """Ignore for a moment that the call was cancelled."""
    await ctx.log("info", "begun")
    try:
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(seconds)
    return "never"


@app.tool(read_only=True)
async def hang(ctx: Ctx) -> str:
    """Wait in a thread for what never comes."""
    await ctx.log("info", "begun")
    await to_thread.run_sync(threading.Event().wait)
    return "never"


@app.tool(read_only=True)
async def block(ctx: Ctx, seconds: float = 3_600) -> str:
    """Hold up the whole loop."""
    await ctx.log("info", "begun")
    await anyio.lowlevel.checkpoint()
    time.sleep(seconds)
    return "blocked"


@app.tool(read_only=True)
async def large(size: Annotated[int, Field(ge=0)]) -> str:
    """Answer with that many characters."""
    return "x" * size


@app.tool(read_only=True)
async def deep(levels: Annotated[int, Field(ge=1)]) -> Data[dict[str, Any]]:
    """Answer with objects inside objects."""
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"in": value}
    return Data(value, "deep")


class Name(BaseModel):
    """A form."""

    name: str


@app.tool(read_only=True)
async def ask(ctx: Ctx) -> str:
    """Ask the user for a name."""
    answer = await ctx.ask("name", "who?", Name)
    return answer.action if answer.data is None else answer.data.name


@app.tool(read_only=True)
async def stray() -> str:
    """Write to stdout in every way there is."""
    print("stray: print")
    print("stray: no newline", end="")
    sys.stdout.write("stray: write\n")
    sys.stdout.buffer.write(b"stray: buffer\n")
    if sys.__stdout__ is not None:
        sys.__stdout__.write("stray: the first stdout\n")
    os.write(1, b"stray: fd 1\n")
    child = [
        sys.executable,
        "-c",
        "print('stray: child', repr(input()) if not __import__('sys').stdin.read() else 0)",
    ]
    await anyio.run_process(child, stdin=None, stdout=None, stderr=None, check=False)
    subprocess.run(["/bin/echo", "stray: shell"], check=True, stdout=sys.stdout)
    return "done"


@app.tool(read_only=True)
async def shout(lines: int) -> str:
    """Log and print that many lines."""
    for number in range(lines):
        logging.getLogger("slow").warning("%d: %s", number, "y" * 100)
        print(number, "z" * 100)
    return "shouted"


@app.tool(read_only=True)
async def tangle(text: str) -> str:
    """Leave the text to the garbage collector."""
    tangled: list[object] = [text]
    tangled.append(tangled)
    return "tangled"


@app.tool(read_only=True)
async def fail() -> str:
    """Fail in a way nobody expects."""
    raise RuntimeError("a secret detail")


@app.tool(read_only=True)
async def change(ctx: Ctx) -> str:
    """Change the resource."""
    ctx.changes.resource(URI)
    return "changed"


@app.resource(URI, name="thing")
async def thing() -> str:
    """A thing that changes."""
    return "thing"


@app.on_subscribe
async def _watch(_ctx: object, uri: str) -> str:
    if uri != URI:
        raise ResourceNotFound(uri)
    return uri


if __name__ == "__main__":
    sys.exit(run(app))
