"""The server side of document 002: four methods, semantic versions, and messages that may lack `jsonrpc`.

Two of the methods are standard ones in another form; `initialize` and the reading of a resource need data of the
server, and are handled by `extensions/dialects`. There are no lists, since the tools and prompts are in the answer to
`initialize`. `forms_002.py` converts params, results and errors. Decisions where the document leaves room:

* `initialize` is optional, and the features of one version are available in all of them;
* a message without `jsonrpc` is answered without it; if that is unknown, the answer has it;
* such a client is sent answers only, no requests and no notifications; its own notifications are ignored.
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
    """The core's method for one in the document, with the conversions of its params and result."""

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
    """The state of one connection."""

    name = "002"

    def __init__(self) -> None:
        self._requests = OpenRequests()

    def read(self, value: dict[str, Any]) -> Sequence[Message]:
        """Return the message in `value`."""
        return self._requests.read(value, self._read, is_bare="jsonrpc" not in value)

    def refuse(self, answer: Failure) -> Malformed:
        """Return the replacement for text that is not a message, so that `write` sends this answer, under the peer's
        id."""
        return self._requests.refuse(answer)

    def write(self, message: Message) -> dict[str, Any] | None:
        """Return `message` with the peer's own id; None if it is not an answer."""
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

    def _read(self, value: dict[str, Any]) -> Sequence[Message]:
        method, params, id_ = value.get("method"), value.get("params", {}), value.get("id")
        is_bare = "jsonrpc" not in value
        if not is_bare and value["jsonrpc"] != "2.0":
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
        return [self._requests.open(id_, method, target.call, add_envelope(target.params(params)), is_bare=is_bare)]


def _make_answer(request: OpenRequest, **outcome: Any) -> dict[str, Any]:
    head = {} if request.is_bare else {"jsonrpc": "2.0"}
    return {**head, **outcome} if request.id is None else {**head, "id": request.id, **outcome}
