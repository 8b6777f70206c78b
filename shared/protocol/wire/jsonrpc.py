"""JSON-RPC 2.0 messages as values. `codec.py` converts between them and bytes."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Literal, TypeVar

from pydantic_core import PydanticSerializationError, to_json

from ...errors import RpcError
from ..records import record

RequestId = str | int


@record
class Request:
    """A message that requires an answer with the same `id`."""

    id: RequestId
    method: str
    params: dict[str, Any] = field(default_factory=dict)
    weight: int = field(default=0, kw_only=True)
    """The memory in bytes that a received request takes, or 0 if that is little; not compared by `==`."""


@record
class Notification:
    """A message that never gets an answer, not even an error."""

    method: str
    params: dict[str, Any] = field(default_factory=dict)


@record
class Response:
    """The answer to the request `id`, with its result."""

    id: RequestId
    result: dict[str, Any]


@record
class Failure:
    """An error as the answer to the request `id`, which is None if it could not be read. `kind` is `RpcError.kind`,
    and is not sent."""

    id: RequestId | None
    code: int
    message: str
    data: Any = None
    kind: str = ""


@record
class Malformed:
    """Input that is not a message. `failure` is the error to answer. `silent` is True if it must not be sent on a
    two-way stream, because the input was a notification or an answer (JSON-RPC 2.0, section 4.1)."""

    failure: Failure
    silent: bool = False
    is_call: bool = False
    """True if the input has a method, so that its id belongs to a request from the peer. Otherwise it may be the id
    of a request sent to the peer."""


@record
class Batch:
    """A JSON-RPC batch: several messages in one array, or the answers to them."""

    messages: tuple["Message", ...]


NoAnswerCause = Literal["unknown", "invalid answer", "unreached", "session over", "unauthorized", "no login"]
"""Why a request has no usable answer, which tells whether the server may have executed it. "unknown": it may have.
"invalid answer": it has, but its answer can't be read. In all other cases it has not: the request did not reach the
server, the server no longer knows the session, or the client is not authorized, in the last case because nobody was
there to log in."""


@record
class Unanswered:
    """Received from a client's transport instead of an answer to the request `id`, which will not come. `reason` is
    one short sentence for people."""

    id: RequestId
    reason: str
    cause: NoAnswerCause = "unknown"


@record
class Gap:
    """Received from a client's transport after a stream of the server broke and could not be resumed, so
    notifications may have been lost."""


@record
class OnStream:
    """Received from a client's transport for a message that arrived on the stream of a request, and is not its
    answer. It belongs to that request (2025-11-25, Streamable HTTP)."""

    message: "Message"
    related_request_id: RequestId


Message = Request | Notification | Response | Failure | Malformed | Batch | Unanswered | Gap | OnStream


class Prepared(dict[str, Any]):
    """A result that was already serialized: `json` is its JSON. It must not be changed."""

    __slots__ = ("json",)

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__(result)
        self.json = json_of(result)


def messages_of(message: Message) -> tuple[Message, ...]:
    """Return the messages of a batch, or `message` alone."""
    return message.messages if isinstance(message, Batch) else (message,)


Answer = TypeVar("Answer", Response, Failure, Response | Failure)


def id_as_number(id_: RequestId) -> RequestId:
    """Return the id of a request of ours, as a peer wrote it in an answer. Our ids are numbers, but some peers write
    every id as a string."""
    is_number = isinstance(id_, str) and id_.isascii() and id_.isdecimal() and len(id_) < 20
    return int(id_) if is_number else id_


def normalize_id(answer: Answer) -> Answer:
    """Return the answer to a request of ours with its id as a number."""
    return replace(answer, id=id_as_number(answer.id)) if isinstance(answer.id, str) else answer


def failure(id: RequestId | None, error: RpcError) -> Failure:
    """Return the answer to request `id` with `error`."""
    return Failure(id, error.code, error.message, error.data, error.kind)


def error_object(answer: Failure) -> dict[str, Any]:
    """Return the value of `error` in `answer` (JSON-RPC 2.0, section 5.1)."""
    error: dict[str, Any] = {"code": answer.code, "message": answer.message}
    return error if answer.data is None else {**error, "data": answer.data}


def json_of(value: Any) -> bytes:
    """Return `value` as compact JSON in UTF-8, as in `encode`. Raises PydanticSerializationError for a value that
    JSON can't express."""
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError:
        return to_json(scrub(value), inf_nan_mode="null")


def texts_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the values as text: strings unchanged, other values as JSON, without those that are None."""
    return {
        name: value if isinstance(value, str) else json_of(value).decode()
        for name, value in values.items()
        if value is not None
    }


def scrub(value: Any) -> Any:
    """Return `value` with U+FFFD instead of each lone surrogate."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {scrub(key): scrub(item) for key, item in value.items()}
        case list() | tuple():
            return [scrub(item) for item in value]
        case _:
            return value
