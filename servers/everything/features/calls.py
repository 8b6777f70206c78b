"""The possible courses of a call: it fails, takes long and reports progress, logs, or loses its stream."""

from typing import Annotated, Literal, get_args

import anyio
from pydantic import Field

from shared import Features, LogLevel, MissingCapability, ResourceNotFound, RpcError, ToolError

from . import Ctx

features = Features[None]()

PAUSE_SECONDS = 0.05
"""Seconds between two messages of one call."""


@features.tool(title="Failing tool", read_only=True)
async def test_error_handling() -> str:
    """Fail as tools do: with an error result."""
    raise ToolError("This tool intentionally returns an error for testing")


@features.tool(title="Fail in a chosen way", read_only=True)
async def fail(how: Literal["tool", "protocol", "missing_resource", "crash"] = "protocol") -> str:
    """Fail with a result, an error with data, a missing resource, or an error without detail."""
    match how:
        case "tool":
            raise ToolError("the tool could not do it")
        case "protocol":
            raise RpcError("an error of this server's own", code=-31_000, data={"reason": "asked for"})
        case "missing_resource":
            raise ResourceNotFound("test://no-such-resource")
        case _:
            raise RuntimeError("the client never sees this text")


@features.tool(title="Needs sampling", read_only=True)
async def test_missing_capability(ctx: Ctx) -> str:
    """Refuse clients that did not declare sampling."""
    if not ctx.peer.can("sampling"):
        raise MissingCapability({"sampling": {}})
    return "The client can sample."


@features.tool(title="Progress", read_only=True)
async def test_tool_with_progress(ctx: Ctx) -> str:
    """Report progress three times, to clients that gave a token, and answer."""
    for done in (0, 50, 100):
        await ctx.progress(done, 100, f"Completed step {done} of 100")
        await anyio.sleep(PAUSE_SECONDS)
    return "Tool with progress executed"


@features.tool(title="Long call", read_only=True)
async def long_call(
    ctx: Ctx,
    seconds: Annotated[float, Field(ge=0, le=3_600)] = 2.0,
    steps: Annotated[int, Field(ge=1, le=1_000, description="progress reports")] = 10,
) -> str:
    """Run for the given time and report progress, to test cancellation, time limits and open streams."""
    for step in range(1, steps + 1):
        await anyio.sleep(seconds / steps)
        await ctx.progress(step, steps, f"step {step} of {steps}")
    return f"Took {seconds:g} seconds in {steps} steps."


@features.tool(title="Log messages", read_only=True)
async def test_tool_with_logging(ctx: Ctx) -> str:
    """Send three info log messages to clients that requested them."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.log("info", message, logger="everything")
        await anyio.sleep(PAUSE_SECONDS)
    return "Tool with logging executed"


@features.tool(title="Log messages of every level", read_only=True)
async def test_logging_tool(ctx: Ctx) -> str:
    """Log once at each of the eight levels; a client gets the levels that it requested, by default none."""
    for level in get_args(LogLevel):
        await ctx.log(level, {"message": f"a message at the level {level}"}, logger="everything")
    return "Logged at every level."


@features.tool(title="Broken stream", read_only=True)
async def test_reconnection(ctx: Ctx) -> str:
    """Close the stream, then answer when the client has had time to reconnect."""
    await ctx.close_stream(retry_ms=100)
    await anyio.sleep(4 * PAUSE_SECONDS)
    return "Reconnection test completed"
