"""The exceptions of the protocol, whose type tells the cause, and which side is at fault. Those of a server's domain,
such as files, are in `coded_errors.py`.

McpError
    ├── DeclarationError        the author of a server declared something impossible (raised at import)
    ├── RpcError                is sent as a JSON-RPC error
    │   ├── ParseError          -32700  the peer sent no JSON
    │   ├── InvalidRequest      -32600  the peer sent JSON that is not a valid message
    │   │   ├── InsufficientScope       the token lacks a scope; over HTTP with status 403
    │   │   └── LimitExceeded           the peer does too much, or too often; over HTTP with status 429
    │   ├── MethodNotFound      -32601
    │   ├── InvalidParams       -32602
    │   │   └── UnknownName             there is no tool or prompt with that name
    │   │       └── UnknownTool
    │   ├── InternalError       -32603  a fault of this program; never contains details
    │   │   └── Unavailable             the store of the replicas can't be reached; over HTTP with status 503
    │   └── PeerError           the peer answered a request that we sent with this error
    ├── InvalidAnswer           a handler of the client gave an answer that violates the requested schema
    ├── InvalidArguments        a tool's arguments violate its schema; sent as a result or as -32602, depending on
    │                           the protocol version
    ├── CallTimeout             the call reached its time limit; sent as a result for a tool, otherwise as -32603
    │   └── AnswerTimeout       the user did not answer the call's request for input in time
    ├── InvalidResult           a server's result violates its model or its output schema
    ├── ResourceNotFound        the resource does not exist; the code depends on the protocol version
    ├── MissingCapability       the call needs a capability that the client did not declare; the code depends on the
    │                           protocol version
    ├── TaskLost                the server no longer knows a task: it was restarted, or the task expired
    │   └── TaskCancelled       the task was cancelled, by either side
    ├── AuthError               the authorization that a server requires can't be obtained
    │   └── LoginRequired       a person has to log in first
    └── ToolError               the tool failed; sent as a result that the model reads
    InputRequired               (a BaseException) ends a call that needs input from the client; not an error

The codes are those of JSON-RPC 2.0, section 5.1. MCP adds -32020 to -32022 since 2026-07-28; earlier versions have
-32002.
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
    """The author of a server declared something that can't work, such as a tool without a name; raised when the
    server's module is imported."""


class RpcError(McpError):
    """Ends a request with a JSON-RPC error of this `code`, `message` (one short sentence) and `data`."""

    code = -32603
    kind = ""
    """The kind of error, more specific than the code. It is not sent: it selects the code of other protocols, and the
    status of HTTP."""

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
    """The params don't fit the method: they have the wrong shape, name something unknown, or contain an invalid
    cursor or a forged state."""

    code = -32602


class UnknownName(InvalidParams):
    """There is no tool or prompt with that name. The server adds the most similar name that the client may see."""


class UnknownTool(UnknownName):
    """There is no tool with that name."""

    kind = "unknown tool"


class InsufficientScope(InvalidRequest):
    """The request needs a token with all of `scopes` (RFC 6750, section 3.1). Over HTTP the response has status 403
    and a challenge that lets a client obtain such a token. If the headers of the response were already sent, the
    client finds the scopes in `data.scopes`."""

    kind = "insufficient_scope"

    def __init__(self, scopes: Collection[str]) -> None:
        needed = sorted(scopes)
        super().__init__(f"this requires a token with the scope {' '.join(needed)}", data={"scopes": needed})


class LimitExceeded(InvalidRequest):
    """The peer does more than the operator allows: `limit` is the name of the limit. The peer may try again after
    `seconds`, which it finds in `data.retryAfter`. Over HTTP the response has status 429."""

    kind = "limit_exceeded"

    def __init__(self, message: str, limit: str, seconds: int) -> None:
        data = {"limit": limit, "retryAfter": seconds}
        super().__init__(f"{message}; try again in {seconds} s", data=data)
        self.seconds = seconds


class InternalError(RpcError):
    """Something failed in this program. The message never contains details, which go to the log."""

    code = -32603


class Unavailable(InternalError, OSError):
    """The store that the replicas of a server share can't be reached, or this replica was given up by the others.
    `data.mayHaveRun` is true if the work may have been done, and `data.retryAfter` is the number of seconds to wait.
    """

    kind = "unavailable"
    seconds = 2

    def __init__(self, *, may_have_run: bool = False) -> None:
        data = {"mayHaveRun": may_have_run, "retryAfter": self.seconds}
        if may_have_run:
            # Without a kind, the response has no status that makes a client send the request again by itself.
            self.kind = ""
        super().__init__(
            "the store shared by the replicas of this server can't be reached; try again in a moment", data=data
        )


class PeerError(RpcError):
    """The peer answered a request with this error."""


class InvalidArguments(McpError):
    """The arguments of a tool or a prompt violate its schema; the text names each invalid argument and its error."""


class InvalidAnswer(McpError):
    """The answer of a handler of the client does not match the schema of the request; it was not sent."""


class InvalidResult(McpError):
    """A server's result for `method` is invalid at `path`, which is names and indexes separated by dots. The server
    has already done the work; `result` is the result as received."""

    def __init__(self, method: str, path: str, fault: str, result: dict[str, Any]) -> None:
        super().__init__(
            f"the server answered {method} with a result that is invalid at {path or 'the top level'}: {fault}"
        )
        self.method = method
        self.path = path
        self.result = result


class CallTimeout(McpError):
    """The call was stopped because it reached its time limit of `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"stopped after {seconds:g} s, the operator's limit for one call; request less at a time")


class AnswerTimeout(CallTimeout):
    """The call was stopped because its request for input was not answered within `seconds`."""

    def __init__(self, seconds: float) -> None:
        text = f"no one answered the question within {seconds:g} s, the operator's limit; call again to ask once more"
        McpError.__init__(self, text)


class ResourceNotFound(McpError):
    """There is no resource at `uri`. The code is -32602 from 2026-07-28 on, and -32002 before; `data.uri` is sent
    with both."""

    def __init__(self, uri: str, message: str = "resource not found") -> None:
        super().__init__(message)
        self.uri = uri
        self.message = message


class MissingCapability(McpError):
    """The call needs the client capabilities `required`, e.g. `{"sampling": {}}`, which it did not declare."""

    def __init__(self, required: dict[str, Any]) -> None:
        names = (*(name for name in required if name != "extensions"), *required.get("extensions", ()))
        super().__init__(f"the client did not declare the capability that this call needs: {', '.join(names)}")
        self.required = required


class TaskLost(McpError):
    """The result of a task is lost: the server no longer knows the task."""


class TaskCancelled(TaskLost):
    """The task was cancelled, so it has no result."""


class AuthError(McpError):
    """The authorization that a remote server requires can't be obtained; the text gives the reason."""


class LoginRequired(AuthError):
    """A person has to log in first, but nobody is available to do so."""


class ToolError(McpError):
    """The tool failed, and the model should read why: sent as a result with `isError` and this text."""

    def __init__(self, message: str = "the tool failed, and gave no reason") -> None:
        super().__init__(message)


class InputRequired(BaseException):
    """Ends one round of a call that needs input from the client (multi-round-trip requests of 2026-07-28). `requests`
    maps keys to `{"method": ..., "params": ...}`. The client calls again with the answers. If `carried` is given, the
    next round receives this JSON instead of the answers of the earlier rounds."""

    def __init__(self, requests: dict[str, dict[str, Any]], carried: Any = None) -> None:
        super().__init__("input required from the client")
        self.requests = requests
        self.carried = carried
