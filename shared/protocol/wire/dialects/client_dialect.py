"""The client side of a dialect.

The client makes requests of the newest version, which needs no handshake. Each is written as the equivalent request
of the dialect, and its answer is converted to a result of the specification.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from ....errors import InternalError, InvalidRequest
from ...records import record
from ...types.base import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, SERVER_INFO
from ...versions import NEWEST
from ..jsonrpc import Failure, Malformed, Message, Notification, Request, RequestId, Response, error_object, failure

MAX_SENT = 10_000
"""Maximum number of requests that wait for an answer. Beyond it the oldest are forgotten, because some are abandoned
without a cancellation."""
_ENVELOPE = {PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO}
_FORM_ERRORS = (AttributeError, LookupError, TypeError, ValueError)
"""The errors that a `Form` raises for a result of an unknown form."""

Fields = dict[str, Any]


@record
class Form:
    """The dialect's equivalent of a standard method, with conversions of its params and its result."""

    method: str
    params: Callable[[Fields], Fields]
    """Converts the standard params to those of the dialect."""
    result: Callable[[Fields, Any], Fields]
    """Converts a result of the dialect to a standard result; its first argument is the standard params of the
    request. Raises `_FORM_ERRORS` for a result of another form."""


class ClientDialect:
    """The client's side of one connection to a server that uses a dialect."""

    document: str
    """The number of the document that describes the dialect."""
    prefix = ""
    """The prefix of the name of every method."""
    forms: Mapping[str, Form]
    """The forms, by standard method. Methods that are not in it have their standard params and result."""
    notifies = True
    """True if the client sends notifications to servers."""

    def __init__(self) -> None:
        self._sent: dict[RequestId, Request] = {}

    def read(self, value: Fields) -> Sequence[Message]:
        """Return the standard message for a JSON object from a server. Never raises because of its content."""
        method, id_ = value.get("method"), value.get("id")
        if not isinstance(id_, str) and type(id_) is not int:
            id_ = None
        if isinstance(method, str):
            params = value.get("params")
            standard, fields = method.removeprefix(self.prefix), params if isinstance(params, dict) else {}
            return [Request(id_, standard, fields) if id_ is not None else Notification(standard, fields)]
        request = None if id_ is None else self._sent.pop(id_, None)
        if request is None:
            return [self.refuse(failure(None, InvalidRequest("not an answer to one of our requests")))]
        if "error" in value:
            error = value["error"]
            code, message = (error.get("code"), error.get("message")) if isinstance(error, dict) else (None, None)
            if type(code) is not int or not isinstance(message, str):
                return [failure(request.id, InternalError("the server returned a malformed error"))]
            return [Failure(request.id, code, message, error.get("data"))]
        try:
            result = value["result"]
            form = self.forms.get(request.method)
            if form is not None:
                result = form.result(request.params, result)
            return [Response(request.id, {"resultType": "complete", **result})]
        except _FORM_ERRORS:
            return [self.refuse(failure(request.id, InvalidRequest(f"not a result of document {self.document}")))]

    def refuse(self, answer: Failure) -> Malformed:
        """Return `answer` as a silent error, since servers receive no answer to an invalid message."""
        return Malformed(answer, silent=True)

    def write(self, message: Message) -> Fields | None:
        """Return `message` in the dialect's form; None if the dialect has no form for it."""
        match message:
            case Request():
                params = {name: value for name, value in message.params.items() if name != "_meta"}
                form = self.forms.get(message.method)
                if len(self._sent) >= MAX_SENT:
                    del self._sent[next(iter(self._sent))]
                self._sent[message.id] = Request(message.id, message.method, params)
                fields = params if form is None else form.params(message.params)
                meta = {
                    name: value for name, value in message.params.get("_meta", {}).items() if name not in _ENVELOPE
                }
                if meta and self.notifies:  # such as a progress token
                    fields = {**fields, "_meta": meta}
                method = self.prefix + message.method if form is None else form.method
                return {"jsonrpc": "2.0", "id": message.id, "method": method, "params": fields}
            case Notification(method, params):
                if method == "notifications/cancelled":
                    self._sent.pop(params.get("requestId", ""), None)
                return {"jsonrpc": "2.0", "method": self.prefix + method, "params": params} if self.notifies else None
            case Response(id_, result):
                return {"jsonrpc": "2.0", "id": id_, "result": result}
            case Failure(id_):
                return {"jsonrpc": "2.0", "id": id_, "error": error_object(message)}
        return None


def discover_result(info: Fields, capabilities: Fields, instructions: Any) -> Fields:
    """Return the result of `server/discover` for a server with this description."""
    result = {"supportedVersions": [NEWEST.date], "capabilities": capabilities, "_meta": {SERVER_INFO: info}}
    return {**result, "instructions": instructions} if isinstance(instructions, str) else result


def json_text(value: Any) -> str:
    """Return `value` as JSON, for content that must be text."""
    return to_json(value).decode()
