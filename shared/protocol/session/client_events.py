"""Events from `ClientSession` for the application; the mirror of `events.py`."""

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
    """The client's request on whose stream it came, if the transport knows."""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The cancellation of a request from the server: stop the work. Its id may be reused."""

    id: RequestId
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Notified:
    """A notification from the server. `related_request_id` is the client's request to which it belongs, or None."""

    method: str
    params: dict[str, Any]
    related_request_id: RequestId | None = None
    stream: RequestId | None = None
    """The client's request on whose stream it came, if the transport knows and `related_request_id` is None."""


@dataclass(frozen=True, slots=True)
class InputWanted:
    """The client's request `id` has ended and must be repeated, with answers to `requests` (key to method and params)
    and with the unchanged `state` (2026-07-28, multi-round-trip requests)."""

    id: RequestId
    requests: dict[str, tuple[str, dict[str, Any]]]
    state: str | None


@dataclass(frozen=True, slots=True)
class Unusable:
    """The client's request `id` has ended without a usable answer."""

    id: RequestId
    reason: str
    cause: NoAnswerCause = "unknown"


@dataclass(frozen=True, slots=True)
class Stray:
    """The server sent an error for no request, or something that is not a message; `text` describes it."""

    text: str


MAX_INPUTS = 100
"""Maximum number of questions in one answer. Each may need a person, or a model that costs money."""

ClientEvent = Answered | ServerRequest | Gap | InputWanted | Notified | Stray | Unusable | Withdrawn


def read_input_wanted(answer: Response) -> InputWanted | None:
    """Return the questions of an `input_required` result; None if it has neither questions nor a state, too many
    questions, or malformed ones."""
    requests, state = answer.result.get("inputRequests", {}), answer.result.get("requestState")
    if not isinstance(requests, dict) or not isinstance(state, str | None) or (not requests and state is None):
        return None
    if len(requests) > MAX_INPUTS:
        return None
    questions: dict[str, tuple[str, dict[str, Any]]] = {}
    for key, request in requests.items():
        method, params = (
            (request.get("method"), request.get("params", {})) if isinstance(request, dict) else (None, None)
        )
        if not isinstance(method, str) or not isinstance(params, dict):
            return None
        questions[key] = (method, params)
    return InputWanted(answer.id, questions, state)
