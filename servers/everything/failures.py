"""Failures: as a result that the model reads, and as an error of the protocol."""

from typing import Literal

from shared import MissingCapability, ResourceNotFound, RpcError, ToolError

from .app import Ctx, app

__all__ = ["fail", "test_error_handling", "test_missing_capability"]


@app.tool(title="Failing tool", read_only=True)
async def test_error_handling() -> str:
    """Fail as tools do: with a result that says so."""
    raise ToolError("This tool intentionally returns an error for testing")


@app.tool(title="Fail in a chosen way", read_only=True)
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


@app.tool(title="Needs sampling", read_only=True)
async def test_missing_capability(ctx: Ctx) -> str:
    """Refuse clients that did not declare sampling."""
    if not ctx.peer.can("sampling"):
        raise MissingCapability({"sampling": {}})
    return "The client can sample."
