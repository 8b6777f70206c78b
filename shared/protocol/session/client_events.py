"""The events that `ClientSession` returns to the application; those of a server are in `events.py`."""

from dataclasses import dataclass
from typing import Any

from ..wire.jsonrpc import Gap, NoAnswerCause, RequestId, Response
from .events import Answered


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A request from the server, to be answered with `respond` or `fail`."""

    id: RequestId
    method: str
    params: dict[str, Any]
    stream: RequestId | None = None
    """The id of the client's request on whose stream the request arrived, if the transport knows it."""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The server has cancelled its request `id`: the work for it has to stop. The server may use the id again."""

    id: RequestId
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Notified:
    """A notification from the server. `related_request_id` is the client's request to which it belongs, if any."""

    method: str
    params: dict[str, Any]
    related_request_id: RequestId | None = None
    stream: RequestId | None = None
    """The id of the client's request on whose stream the notification arrived, if the transport knows it, and the
    notification itself does not name a request."""


@dataclass(frozen=True, slots=True)
class InputWanted:
    """The server needs input to complete the client's request `id`, which has ended. The client has to send it again
    with answers to `requests`, which maps keys to method and params, and with the unchanged `state` (2026-07-28,
    multi-round-trip requests)."""

    id: RequestId
    requests: dict[str, tuple[str, dict[str, Any]]]
    state: str | None


@dataclass(frozen=True, slots=True)
class Unusable:
    """The client's request `id` has ended without a usable answer. `reason` is for people; `cause` tells whether the
    server may have executed the request."""

    id: RequestId
    reason: str
    cause: NoAnswerCause = "unknown"


@dataclass(frozen=True, slots=True)
class Stray:
    """The server sent an error without an id, or something that is not a message; `text` describes it."""

    text: str


MAX_INPUT_REQUESTS = 100
"""Maximum number of requests for input in one result. Each may need a person, or a model that costs money."""

ClientEvent = Answered | ServerRequest | Gap | InputWanted | Notified | Stray | Unusable | Withdrawn


def read_input_wanted(answer: Response) -> InputWanted | None:
    """Return the requests for input in an `input_required` result. None if there are neither requests nor a state, if
    there are too many requests, or if any part is malformed."""
    requests, state = answer.result.get("inputRequests", {}), answer.result.get("requestState")
    if not isinstance(requests, dict) or not isinstance(state, str | None) or (not requests and state is None):
        return None
    if len(requests) > MAX_INPUT_REQUESTS:
        return None
    input_requests: dict[str, tuple[str, dict[str, Any]]] = {}
    for key, request in requests.items():
        method, params = (
            (request.get("method"), request.get("params", {})) if isinstance(request, dict) else (None, None)
        )
        if not isinstance(method, str) or not isinstance(params, dict):
            return None
        input_requests[key] = (method, params)
    return InputWanted(answer.id, input_requests, state)
