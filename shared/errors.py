"""Every exception of the package, by the side at fault.

McpError
    ├── DeclarationError        the author of a server declared something impossible (raised at import)
    ├── RpcError                becomes a JSON-RPC error answer
    │   ├── ParseError          -32700  the peer sent no JSON
    │   ├── InvalidRequest      -32600  the peer sent JSON that is not a valid message
    │   ├── MethodNotFound      -32601
    │   ├── InvalidParams       -32602
    │   │   └── UnknownTool
    │   ├── InsufficientScope   -32600  the token does not allow it; 403 over HTTP
    │   ├── LimitExceeded       -32600  too much, or too often; 429 over HTTP
    │   ├── InternalError       -32603  a fault of this program; never contains details
    │   │   └── Unavailable             the state of replicas can't be reached; also an OSError, and 503 over HTTP
    │   └── PeerError           the peer answered a request that we sent with an error
    ├── InvalidAnswer           a handler of the client gave an answer that violates the requested schema
    ├── InvalidArguments        a tool's arguments violate its schema; a result or -32602, by version
    ├── CallTimeout             the call used up its wall time; a result for a tool, else -32603
    │   └── AnswerTimeout       nobody answered its question in time
    ├── InvalidResult           a server's result violates its model or its output schema
    ├── ResourceNotFound        the peer asked for a resource that does not exist; code by version
    ├── MissingCapability       the call needs something the client did not declare; code by version
    ├── TaskLost                the server does not know a task anymore: it was restarted, or the task expired
    │   └── TaskCancelled       the task was cancelled, by either side
    ├── AuthError               the authorization that a server requires can't be obtained
    │   └── LoginRequired       someone has to log in first
    └── ToolError               the tool could not do it; becomes a result that the model reads
    InputRequired               (BaseException) ends a call to ask the client; never an error

Codes: JSON-RPC 2.0 section 5.1; MCP adds -32020 to -32022 (2026-07-28) and -32002 (before it).
"""

from collections.abc import Collection
from typing import Any

__all__ = [
    "AnswerTimeout",
    "AuthError",
    "CallTimeout",
    "DeclarationError",
    "InputRequired",
    "InsufficientScope",
    "InternalError",
    "InvalidAnswer",
    "InvalidArguments",
    "InvalidParams",
    "InvalidRequest",
    "InvalidResult",
    "LimitExceeded",
    "LoginRequired",
    "McpError",
    "MethodNotFound",
    "MissingCapability",
    "ParseError",
    "PeerError",
    "ResourceNotFound",
    "RpcError",
    "TaskCancelled",
    "TaskLost",
    "ToolError",
    "Unavailable",
    "UnknownName",
    "UnknownTool",
]


class McpError(Exception):
    """The root of all errors this package raises."""


class DeclarationError(McpError):
    """A decorator or a server received something that can't work; raised when the module is imported."""


class RpcError(McpError):
    """Ends a request with a JSON-RPC error of this `code`, `message` (one short sentence) and `data`."""

    code = -32603
    kind = ""
    """The kind of error, more specific than the code, for peers that have their own code for it. It is not sent."""

    def __init__(self, message: str, *, code: int | None = None, data: Any = None) -> None:
        super().__init__(message)
        self.code = type(self).code if code is None else code
        self.message = message
        self.data = data


class ParseError(RpcError):
    """The bytes are not JSON (JSON-RPC 2.0, section 5.1)."""

    code = -32700


class InvalidRequest(RpcError):
    """The JSON is not a message that may be sent now (JSON-RPC 2.0, section 5.1)."""

    code = -32600


class MethodNotFound(RpcError):
    """The method does not exist in the negotiated version, or its capability is not declared."""

    code = -32601


class InvalidParams(RpcError):
    """The params don't fit the method: wrong shape, unknown name, bad cursor, forged state."""

    code = -32602


class UnknownName(InvalidParams):
    """There is no tool or prompt with that name. The server adds the most similar name that the client may see."""


class UnknownTool(UnknownName):
    """There is no tool with that name."""

    kind = "unknown tool"


class InsufficientScope(InvalidRequest):
    """The request needs a token with all these scopes (RFC 6750, section 3.1). Over HTTP the answer is a 403 with the
    challenge that lets a client obtain one; if it is too late for a challenge, the scopes are in `data.scopes`."""

    kind = "insufficient_scope"

    def __init__(self, scopes: Collection[str]) -> None:
        needed = sorted(scopes)
        super().__init__(f"this requires a token with the scope {' '.join(needed)}", data={"scopes": needed})


class LimitExceeded(InvalidRequest):
    """The peer does more than the operator allows: `limit` is the name of the limit. The peer may try again after
    `seconds`, which are also in `data.retryAfter`; over HTTP the answer is a 429."""

    kind = "limit_exceeded"

    def __init__(self, message: str, limit: str, seconds: int) -> None:
        data = {"limit": limit, "retryAfter": seconds}
        super().__init__(f"{message}; try again in {seconds} s", data=data)
        self.seconds = seconds


class InternalError(RpcError):
    """Something failed in this program. The message never contains details, which go to the log."""

    code = -32603


class Unavailable(InternalError, OSError):
    """The state that the replicas of a server share can't be reached, or this replica is no longer one of them.
    `data.mayHaveRun` is true if the work may have been done, and `data.retryAfter` is the number of seconds to wait.
    """

    kind = "unavailable"
    seconds = 2

    def __init__(self, *, may_have_run: bool = False) -> None:
        data = {"mayHaveRun": may_have_run, "retryAfter": self.seconds}
        if may_have_run:
            self.kind = ""  # no status may make a client send it again automatically
        super().__init__(
            "the store shared by the replicas of this server can't be reached; try again in a moment", data=data
        )


class PeerError(RpcError):
    """The peer answered a request with this error."""


class InvalidArguments(McpError):
    """The arguments of a tool or a prompt violate its schema; the text names each one and its error."""


class InvalidAnswer(McpError):
    """The answer of a handler of the client does not match the schema of the request; it was not sent."""


class InvalidResult(McpError):
    """The `result` of `method` is invalid at `path`, names and indexes separated by dots. The server has already done
    the work; `result` is the result as received."""

    def __init__(self, method: str, path: str, fault: str, result: dict[str, Any]) -> None:
        super().__init__(
            f"the server answered {method} with a result that is invalid at {path or 'the top level'}: {fault}"
        )
        self.method = method
        self.path = path
        self.result = result


class CallTimeout(McpError):
    """The call was stopped at the end of its wall time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"stopped after {seconds:g} s, the operator's limit for one call; request less at once")


class AnswerTimeout(CallTimeout):
    """The call was stopped because its question was not answered in time."""

    def __init__(self, seconds: float) -> None:
        text = f"no one answered the question within {seconds:g} s, the operator's limit; call again to ask once more"
        McpError.__init__(self, text)


class ResourceNotFound(McpError):
    """There is no resource at `uri`. -32002 in the handshake era, -32602 from 2026-07-28 on, `data.uri` in both."""

    def __init__(self, uri: str, message: str = "resource not found") -> None:
        super().__init__(message)
        self.uri = uri
        self.message = message


class MissingCapability(McpError):
    """The call can't be served without client capabilities shaped like `required`, e.g. `{"sampling": {}}`."""

    def __init__(self, required: dict[str, Any]) -> None:
        names = (*(name for name in required if name != "extensions"), *required.get("extensions", ()))
        super().__init__(f"the client did not declare the capability that this call needs: {', '.join(names)}")
        self.required = required


class TaskLost(McpError):
    """The result of a task is lost: the server no longer knows the task."""


class TaskCancelled(TaskLost):
    """The task was cancelled, so it has no result."""


class AuthError(McpError):
    """The authorization that a server behind a URL requires can't be obtained; the text gives the reason."""


class LoginRequired(AuthError):
    """A person has to log in first, and none is available."""


class ToolError(McpError):
    """The tool failed in a way the model should read: becomes a result with `isError` and this text."""

    def __init__(self, message: str = "the tool failed, and gave no reason") -> None:
        super().__init__(message)


class InputRequired(BaseException):
    """Ends a stateless call to ask the client: `requests` maps keys to `{"method", "params"}` (2026-07-28,
    multi-round-trip requests). `carried` is JSON that the next round of the call receives, instead of the answers so
    far."""

    def __init__(self, requests: dict[str, dict[str, Any]], carried: Any = None) -> None:
        super().__init__("input required from the client")
        self.requests = requests
        self.carried = carried
