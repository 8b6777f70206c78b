"""The server side of the dialect of document 002: four methods and semantic versions; messages may lack `jsonrpc`.

`call_tool` and `render_prompt` become standard methods. `initialize` and `read_resource` need data of the server, so
`extensions/dialects` handles them. No method lists anything, since the tools and prompts are in the answer to
`initialize`. `forms_002.py` converts params, results and errors. Decisions where the document leaves room:

* `initialize` is optional, and all features are available in all versions of the document;
* a message without `jsonrpc` is answered without it. If the message can't be read, the answer has `jsonrpc`;
* a client receives only answers, no requests and no notifications. Its notifications are ignored.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....errors import InvalidParams, InvalidRequest, MethodNotFound
from ...methods import REQUESTS
from ...records import record
from ..jsonrpc import Failure, Malformed, Message, Notification, Response
from .forms_002 import (
    choose_version,
    convert_error,
    initialize_result,
    prompt_params,
    prompt_result,
    read_params,
    read_result,
    tool_params,
    tool_result,
)
from .open_requests import OpenRequest, OpenRequests, add_envelope, is_id

_Convert = Callable[[dict[str, Any]], dict[str, Any]]


@record
class _Method:
    """The internal method that executes a method of the document, with the conversions of its params and result."""

    call: str
    params: _Convert
    result: _Convert


_METHODS: Mapping[str, _Method] = {
    "initialize": _Method("dialects/002/initialize", choose_version, initialize_result),
    "read_resource": _Method("dialects/002/read_resource", read_params, read_result),
    "call_tool": _Method("tools/call", tool_params, tool_result),
    "render_prompt": _Method("prompts/get", prompt_params, prompt_result),
}
_STANDARD = frozenset(row.name for row in REQUESTS)


class Document002:
    """The server's side of one connection to a client that follows document 002."""

    document = "002"

    def __init__(self) -> None:
        self._requests = OpenRequests()

    def read(self, value: dict[str, Any]) -> Sequence[Message]:
        """Return the message in a JSON object from the client."""
        return self._requests.read(value, self._interpret, lacks_jsonrpc="jsonrpc" not in value)

    def refuse(self, answer: Failure) -> Malformed:
        """Return the message for a text that is not a valid message: `answer` with a new id, which `write` replaces
        with the peer's id."""
        return self._requests.refuse(answer)

    def write(self, message: Message) -> dict[str, Any] | None:
        """Return `message` in the dialect's form, with the peer's id; None if it is not an answer."""
        if not isinstance(message, Response | Failure):
            return None
        request = OpenRequest(None) if message.id is None else self._requests.find(message.id)
        if request is None:
            return None
        if isinstance(message, Failure):
            answer = _make_answer(request, error=convert_error(request.method, message))
        else:
            answer = _make_answer(request, result=_METHODS[request.method].result(message.result))
        self._requests.close(message.id)
        return answer

    def _interpret(self, value: dict[str, Any]) -> Sequence[Message]:
        method, params, id_ = value.get("method"), value.get("params", {}), value.get("id")
        lacks_jsonrpc = "jsonrpc" not in value
        if not lacks_jsonrpc and value["jsonrpc"] != "2.0":
            raise InvalidRequest('"jsonrpc" must be "2.0" or omitted')
        if not isinstance(method, str):
            raise InvalidRequest('"method" must be a string')
        if "id" not in value:
            return [Notification(method)]  # without params, since notifications are ignored
        if id_ is None or not is_id(id_):
            raise InvalidRequest('"id" must be a string or an integer')
        if method not in _METHODS:
            reason = f"method not found: {method[:100]}"
            if method in _STANDARD or method.startswith("mcp/"):
                reason += "; this connection uses document 002, as set by its first message"
            raise MethodNotFound(reason)
        if not isinstance(params, dict):
            raise InvalidParams('"params" must be an object')
        target = _METHODS[method]
        return [
            self._requests.open(
                id_, method, target.call, add_envelope(target.params(params)), lacks_jsonrpc=lacks_jsonrpc
            )
        ]


def _make_answer(request: OpenRequest, **outcome: Any) -> dict[str, Any]:
    head = {} if request.lacks_jsonrpc else {"jsonrpc": "2.0"}
    return {**head, **outcome} if request.id is None else {**head, "id": request.id, **outcome}
