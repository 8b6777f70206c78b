"""How an error is told to a peer: as a JSON-RPC error or as a result, with the code of its version."""

from ...errors import (
    CallTimeout,
    InternalError,
    InvalidArguments,
    InvalidParams,
    McpError,
    MissingCapability,
    ResourceNotFound,
    RpcError,
    ToolError,
)
from ..peer import Peer
from .events import Call

__all__ = ["explain", "is_result"]


def explain(error: McpError, peer: Peer) -> RpcError:
    """`error` as this peer's version says it. What is unknown here is an internal error without detail."""
    match error:
        case RpcError():
            return error
        case InvalidArguments():
            return InvalidParams(str(error))
        case CallTimeout() | ToolError():
            return InternalError(str(error))
        case ResourceNotFound():
            return RpcError(error.message, code=peer.version.resource_not_found, data={"uri": error.uri})
        case MissingCapability():
            data = {"requiredCapabilities": error.required}
            return RpcError(str(error), code=peer.version.missing_capability, data=data)
        case _:
            return InternalError("internal error")


def is_result(error: McpError, call: Call) -> bool:
    """Whether the model is to read the error: what fails in a tool is a result, and so are, since SEP-1303,
    arguments that break its schema."""
    if call.method.name != "tools/call":
        return False
    if isinstance(error, InvalidArguments):
        return call.peer.version.argument_errors_are_results
    return isinstance(error, ToolError | CallTimeout)
