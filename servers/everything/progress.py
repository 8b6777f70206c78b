"""Long calls: progress, log messages, time, and a stream that breaks off."""

from typing import Annotated, get_args

import anyio
from pydantic import Field

from shared import LogLevel

from .app import Ctx, app

__all__ = ["long_call", "test_logging_tool", "test_reconnection", "test_tool_with_logging", "test_tool_with_progress"]

PAUSE = 0.05
"""Seconds between two messages of one call."""


@app.tool(title="Progress", read_only=True)
async def test_tool_with_progress(ctx: Ctx) -> str:
    """Report progress three times, to clients that gave a token, and answer."""
    for done in (0, 50, 100):
        await ctx.progress(done, 100, f"Completed step {done} of 100")
        await anyio.sleep(PAUSE)
    return "Tool with progress executed"


@app.tool(title="Long call", read_only=True)
async def long_call(
    ctx: Ctx,
    seconds: Annotated[float, Field(ge=0, le=3_600)] = 2.0,
    steps: Annotated[int, Field(ge=1, le=1_000, description="reports of progress")] = 10,
) -> str:
    """Take that long and report progress, for cancelling, time limits and keeping streams open."""
    for step in range(1, steps + 1):
        await anyio.sleep(seconds / steps)
        await ctx.progress(step, steps, f"step {step} of {steps}")
    return f"Took {seconds:g} seconds in {steps} steps."


@app.tool(title="Log messages", read_only=True)
async def test_tool_with_logging(ctx: Ctx) -> str:
    """Send three log messages of the level info to clients that want it."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.log("info", message, logger="everything")
        await anyio.sleep(PAUSE)
    return "Tool with logging executed"


@app.tool(title="Log messages of every level", read_only=True)
async def test_logging_tool(ctx: Ctx) -> str:
    """Log once at each of the eight levels; a client gets those that it wants, by default none."""
    for level in get_args(LogLevel):
        await ctx.log(level, {"message": f"a message of the level {level}"}, logger="everything")
    return "Logged at every level."


@app.tool(title="Broken stream", read_only=True)
async def test_reconnection(ctx: Ctx) -> str:
    """Answer after a moment, for clients that lose their stream and come back for the answer."""
    await ctx.close_stream(retry_ms=100)
    await anyio.sleep(4 * PAUSE)
    return "Reconnection test completed"
