"""The server side of the dialect of document 000. Methods begin with `mcp/`, an id may be null, and params an array.

Five methods are the document's own: `mcp/initialize` and those in `_OWN_METHODS`. Any other is a method of the
specification with the prefix `mcp/`, and has standard params and a standard result, because section 3.2.1 calls all
methods with the prefix standard. Decisions where the document leaves room:

* `mcp/initialize` is optional, because the document's example (4.1.3) has none. On a stream it is required for
  subscriptions and the log level, which exist only after a handshake; a single POST can't use them;
* params by position are accepted if the document lists them in an order: `[toolId, inputs]`, `[resourceId, query]`.
  Otherwise an empty array means no params, and an array of a single object means that object;
* the document has no progress token: the progress of a POST is reported with the id of its request as the token, if
  the client asks for a stream (4.2.3);
* a message without `jsonrpc` is refused, as 3.1 requires JSON-RPC 2.0;
* the transports and the authentication in `mcp/initialize` are ignored, since the message has already arrived over a
  transport, with authentication;
* an error whose request is unknown has the id null (3.2.2).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ....errors import InvalidParams, InvalidRequest, MethodNotFound
from ...identity import LOG_LEVELS, find_capability
from ...methods import REQUESTS
from ...types.base import SERVER_INFO, SUBSCRIPTION_ID
from ...versions import NEWEST_HANDSHAKE
from ..jsonrpc import Failure, Malformed, Message, Notification, Request, RequestId, Response, error_object
from .open_requests import OpenRequest, OpenRequests, add_envelope, is_id

_PREFIX = "mcp/"
_HANDLER_PREFIX = "dialects/"
_INITIALIZE = "mcp/initialize"
_OWN_METHODS: Mapping[str, tuple[str, ...]] = {
    "mcp/listTools": (),
    "mcp/listResources": (),
    "mcp/tool/execute": ("toolId", "inputs"),
    "mcp/resource/read": ("resourceId", "query"),
}
"""The methods that `extensions/dialects` handles, with the names of their params in the order of positions (5.2)."""
_HANDSHAKE_METHODS = frozenset(row.name for row in REQUESTS if not row.last.stateless)
_ALLOWED_BEFORE_HANDSHAKE = ("ping",)
_NEEDS_STREAM = "this method needs a stream, which a POST does not have: use stdio, a WebSocket or HTTP+SSE"
_LIFECYCLE = ("initialize", "server/discover")
_HANDSHAKE = {
    "protocolVersion": NEWEST_HANDSHAKE.date,
    "capabilities": {},
    "clientInfo": {"name": "document 000", "version": "0"},
}
"""The params of the handshake that this module makes with the server, for a client without capabilities."""


class Document000:
    """The server's side of one connection to a client that follows document 000."""

    document = "000"

    def __init__(self, *, is_stream: bool) -> None:
        """`is_stream` is False for a single POST. On a stream, `mcp/initialize` becomes a standard handshake, which
        subscriptions require."""
        self._is_stream = is_stream
        self._has_initialized = False
        self._log_level: str | None = None
        self._requests = OpenRequests()

    # Messages from the peer

    def read(self, value: dict[str, Any]) -> Sequence[Message]:
        """Return the messages for a JSON object from the client: for `mcp/initialize` on a stream, all messages of a
        handshake; for any other object, one message."""
        return self._requests.read(value, self._interpret)

    def refuse(self, answer: Failure) -> Malformed:
        """Return the message for a text that is not a valid message: `answer` with a new id, which `write` replaces
        with the peer's id."""
        return self._requests.refuse(answer)

    def _interpret(self, value: dict[str, Any]) -> Sequence[Message]:
        method = value.get("method")
        if value.get("jsonrpc") != "2.0":
            raise InvalidRequest('"jsonrpc" must be "2.0"')
        if not isinstance(method, str):
            raise InvalidRequest('"method" must be a string')
        if not method.startswith(_PREFIX):
            raise MethodNotFound(
                f"method not found: {method[:100]}; this connection uses document 000, as set by its first message: "
                'method names start with "mcp/"'
            )
        params = _name_params(method, value.get("params"))
        if "id" not in value:
            name = method.removeprefix(_PREFIX)
            if name == "notifications/cancelled" and "requestId" in params:
                number = self._requests.number_of(params["requestId"])
                self._requests.close(number)
                params = {**params, "requestId": number}
            return [Notification(name, params)]
        if not is_id(value["id"]):
            raise InvalidRequest('"id" must be a string, an integer or null')
        id_ = value["id"]
        standard = method.removeprefix(_PREFIX)
        if method == _INITIALIZE and self._is_stream:
            request = self._requests.open(id_, method, standard, _HANDSHAKE)
            self._has_initialized = True
            return [request, Notification("notifications/initialized")]
        if method == _INITIALIZE:
            return [self._requests.open(id_, method, "server/discover", add_envelope({}))]
        if standard in _HANDSHAKE_METHODS:
            return [self._open_handshake_request(id_, method, standard, params)]
        if method in _OWN_METHODS:
            standard = f"{_HANDLER_PREFIX}000/{standard}"
        elif standard.startswith(_HANDLER_PREFIX):
            # Clients may not call the internal methods by their internal names. With the prefix this is unknown.
            standard = method
        token = None if self._is_stream else id_
        return [self._requests.open(id_, method, standard, add_envelope(params, token, self._log_level))]

    def _open_handshake_request(
        self, id: RequestId | None, method: str, standard: str, params: dict[str, Any]
    ) -> Request:
        if standard not in _ALLOWED_BEFORE_HANDSHAKE and not self._has_initialized:
            raise InvalidRequest(f'send "{_INITIALIZE}" first' if self._is_stream else _NEEDS_STREAM)
        request = self._requests.open(id, method, standard, params)
        # The calls are stateless, so the envelope of each must contain the log level. It is set here, not when the
        # server answers, because calls may have arrived together with this request.
        if standard == "logging/setLevel" and params.get("level") in LOG_LEVELS:
            self._log_level = params["level"]
        return request

    # Messages to the peer

    def write(self, message: Message) -> dict[str, Any] | None:
        """Return `message` in the dialect's form, with the peer's id; None if nothing is sent, for example because
        the peer has cancelled the request."""
        match message:
            case Response(number, result) if (request := self._requests.find(number)) is not None:
                answer: Any = self._restore_ids(result)
                if request.method in _OWN_METHODS:
                    answer = answer["value"]
                elif request.method == _INITIALIZE:
                    answer = self._make_initialize_result(answer)
                self._requests.close(number)
                return _make_answer(request.id, result=answer)
            case Failure(number):
                request = OpenRequest(None) if number is None else self._requests.close(number)
                if request is None:
                    return None
                error = error_object(message)
                # The peer knows the method by another name.
                if message.code == MethodNotFound.code and request.method:
                    error = {**error, "message": f"method not found: {request.method[:100]}"}
                return _make_answer(request.id, error=error)
            case Notification("notifications/cancelled"):
                return None  # the answer has already ended the stream
            case Notification(method, params):
                return {"jsonrpc": "2.0", "method": _PREFIX + method, "params": self._restore_ids(params)}
        return None  # a request to the client: never sent, because no client of this dialect declares capabilities

    def _make_initialize_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result of `mcp/initialize` (5.2.1), from a result of `initialize` or `server/discover`."""
        server = result.get("serverInfo") or result["_meta"][SERVER_INFO]
        standard_methods = [
            f"{_PREFIX}{row.name}"
            for row in REQUESTS
            if row.name not in _LIFECYCLE
            and (self._is_stream or row.last.stateless)
            and find_capability(result["capabilities"], row.capability) not in (None, False)
        ]
        initialize_result = {
            "name": server["name"],
            "version": server["version"],
            "methods": [_INITIALIZE, *_OWN_METHODS, *standard_methods],
        }
        return (
            {**initialize_result, "instructions": result["instructions"]}
            if "instructions" in result
            else initialize_result
        )

    def _restore_ids(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return `params` with the peer's id of the subscription, if they contain the id of one."""
        meta = params.get("_meta", {})
        request = self._requests.find(meta.get(SUBSCRIPTION_ID))
        return params if request is None else {**params, "_meta": {**meta, SUBSCRIPTION_ID: request.id}}


def _name_params(method: str, params: Any) -> dict[str, Any]:
    """Return the params of `method` as an object. Raises InvalidParams if they can't be converted."""
    match params:
        case dict():
            return params
        case None | []:
            return {}
        case [dict(only)]:
            return only
        case list() if len(params) <= len(_OWN_METHODS.get(method, ())):
            return dict(zip(_OWN_METHODS[method], params, strict=False))
    raise InvalidParams('"params" must be an object, null, or an array of the params in order')


def _make_answer(id: RequestId | None, **outcome: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, **outcome}
