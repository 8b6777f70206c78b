"""Questions: requests from a server to the client, made during a call. They are elicitation (a form to fill in, or a
URL to visit), sampling (a completion by the client's model), and the client's roots.

Up to 2025-11-25 a question is sent as a JSON-RPC request; since 2026-07-28, it is part of an `input_required` result,
with which the call ends. In both cases the client must have declared the capability, and the answers are checked
here.

In the second case the client repeats the call with its answers, in one or more further rounds, and the server stores
nothing between them (2026-07-28, multi-round-trip requests). What it has to remember is in the signed `requestState`,
which the client sends back: the request to which it belongs, the principal, the expiry, the number of rounds, and the
answers so far. A state that is forged, expired, or sent with another request or by another principal is refused.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from enum import Enum
from typing import Any

from pydantic import ValidationError

from ...errors import InputRequired, InvalidParams, MethodNotFound, MissingCapability
from ..identity import Peer, Principal
from ..records import record
from ..shaping import shape_request
from ..signing import Signer, digest
from ..types.base import Wire, describe_first_error
from ..types.client import CreateMessageResult, ElicitResult, ListRootsResult
from ..versions import V2024_11_05, V2025_06_18, V2025_11_25, Version
from ..wire.jsonrpc import RequestId

LIFETIME_SECONDS = 3600.0
"""The number of seconds for which a `requestState` is valid: the time that a user has to answer."""
MAX_ROUNDS = 10
"""Maximum number of rounds of one call."""

_ROUND_PARAMS = ("_meta", "inputResponses", "requestState")
"""The params that differ between the rounds of a call."""


@record
class Question:
    """A request to the client."""

    method: str
    params: dict[str, Any] = field(default_factory=dict)
    capability: tuple[str, ...] = ()
    """The path of the client capability that it requires."""
    first: Version = V2024_11_05
    """The first protocol version that has it."""


_ANSWERS: dict[str, type[Wire]] = {
    "elicitation/create": ElicitResult,
    "sampling/createMessage": CreateMessageResult,
    "roots/list": ListRootsResult,
}


def elicit_form(message: str, schema: dict[str, Any]) -> Question:
    """Return a question that shows a form. `schema` is a flat object of strings, numbers, booleans and choices."""
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    has_lists = any(field.get("type") == "array" for field in schema.get("properties", {}).values())
    # Fields with several choices are new in 2025-11-25.
    first = V2025_11_25 if has_lists else V2025_06_18
    return Question("elicitation/create", params, ("elicitation", "form"), first)


def elicit_url(message: str, url: str, elicitation_id: str) -> Question:
    """Return a question that asks the user to visit `url`, for data that must not pass through the client, such as
    secrets. The server chooses the id, which it must not use again (2025-11-25, Elicitation, URL Mode)."""
    params = {"mode": "url", "message": message, "url": url, "elicitationId": elicitation_id}
    return Question("elicitation/create", params, ("elicitation", "url"), V2025_11_25)


def sample(params: dict[str, Any]) -> Question:
    """Return a question to the client's model, with the `params` of `sampling/createMessage`."""
    if "tools" in params or "toolChoice" in params:
        return Question("sampling/createMessage", params, ("sampling", "tools"), V2025_11_25)
    return Question("sampling/createMessage", params, ("sampling",))


def list_roots() -> Question:
    """Return a question for the directories in which the user works."""
    return Question("roots/list", {}, ("roots",))


def read_question(method: str, params: dict[str, Any]) -> Question:
    """Return the question for a request that another server has sent. Raises MethodNotFound for an unknown method,
    and InvalidParams for a form with an invalid schema."""
    match method:
        case "roots/list":
            return Question(method, params, ("roots",))
        case "sampling/createMessage":
            return sample(params)
        case "tasks/result" | "tasks/cancel":
            return Question(method, params, ("tasks",), V2025_11_25)
        case "elicitation/create" if params.get("mode", "form") == "url":
            return Question(method, params, ("elicitation", "url"), V2025_11_25)
        case "elicitation/create":
            schema = params.get("requestedSchema")
            fields = schema.get("properties", {}) if isinstance(schema, dict) else None
            if not isinstance(fields, dict) or not all(isinstance(schema_, dict) for schema_ in fields.values()):
                raise InvalidParams("the form has no schema for its fields")
            return replace(elicit_form("", {"properties": fields}), params=params)
    raise MethodNotFound(f"method not found: {method[:100]}")


def find_missing_capability(question: Question, peer: Peer) -> dict[str, Any] | None:
    """Return the capability that the question requires and `peer` did not declare, in wire form; None if it did.

    An empty `elicitation` means forms (2025-11-25, Elicitation, Capabilities).
    """
    path = question.capability
    if peer.version.order >= question.first.order and peer.can(*path):
        return None
    if path == ("elicitation", "form") and peer.version.order >= question.first.order:
        declared = peer.capabilities.get("elicitation")
        # 2025-06-18 has only forms, which `{}` declares; later versions keep this meaning.
        if isinstance(declared, dict) and "url" not in declared:
            return None
    required: dict[str, Any] = {}
    for name in reversed(path):
        required = {name: required}
    return required


def require_capabilities(questions: Mapping[str, Question], peer: Peer) -> None:
    """Raise MissingCapability if `peer` did not declare a capability that one of the questions requires."""
    for question in questions.values():
        missing = find_missing_capability(question, peer)
        if missing is not None:
            raise MissingCapability(missing)


def read_answers(questions: Mapping[str, Question], answers: Mapping[str, Any], version: Version) -> dict[str, Any]:
    """Return the answers to `questions` as models. `answers` are those that a stateless call has received so far.

    Raises InputRequired with the questions that have no answer, and InvalidParams for an invalid answer.
    """
    missing = {key: question for key, question in questions.items() if key not in answers}
    if missing:
        raise InputRequired(_shape_questions(missing, version))
    return {key: read_answer(question, answers[key]) for key, question in questions.items()}


def end_round(questions: Mapping[str, Question], peer: Peer, carried: Any) -> InputRequired:
    """Return the exception that ends a round to ask `peer` the `questions` of another server. The next round receives
    `carried`, which is not None. Raises MissingCapability."""
    return InputRequired(write_requests(questions, peer), carried)


def write_requests(questions: Mapping[str, Question], peer: Peer) -> dict[str, dict[str, Any]]:
    """Return the `questions` by key, in the form of `peer`'s version. Raises MissingCapability."""
    require_capabilities(questions, peer)
    return _shape_questions(questions, peer.version)


def _shape_questions(questions: Mapping[str, Question], version: Version) -> dict[str, dict[str, Any]]:
    """Return the `questions` by key, in the form of `version`."""
    return {
        key: {"method": question.method, "params": shape_request(question.method, question.params, version)}
        for key, question in questions.items()
    }


def read_answer(question: Question, answer: Any) -> Any:
    """Return `answer` as a model. Raises InvalidParams if it does not match the question."""
    try:
        return _ANSWERS[question.method].model_validate(answer)
    except ValidationError as error:
        raise InvalidParams(f"the answer to {question.method} is invalid: {describe_first_error(error)}") from None


class _Standalone(Enum):
    STANDALONE = "apart"


STANDALONE = _Standalone.STANDALONE
"""The subject of a question that the server asks independently of any request from the peer."""


def find_asker(id: RequestId | None) -> int | None:
    """Return the number of the replica that asked the question with that id; None if no replica creates such ids."""
    # The id comes from a peer, so it may have any type.
    return id >> 32 if type(id) is int and id > 0 else None


class PendingQuestions:
    """The questions that were sent as requests and have no answer yet, each with its subject: the id of the peer's
    request for which it was asked, or STANDALONE."""

    __slots__ = ("_last_id", "_subjects", "numbers")

    def __init__(self, replica: int = 0) -> None:
        """The ids of the questions contain the number `replica`, by which `find_asker` finds it."""
        self._subjects: dict[RequestId, RequestId | Enum] | None = None  # most sessions have no questions
        self._last_id = replica << 32
        self.numbers: Iterator[int] | None = None
        """The numbers for the ids, if several sessions share them; by default each session counts from 1."""

    def add(self, subject: RequestId | Enum) -> int:
        """Add a question with that subject, and return its id."""
        if self.numbers is None:
            self._last_id += 1
        else:
            self._last_id = self._last_id >> 32 << 32 | next(self.numbers)
        self._subjects = self._subjects or {}
        self._subjects[self._last_id] = subject
        return self._last_id

    def remove(self, id: RequestId | None) -> RequestId | Enum | None:
        """Remove the question `id`, which was answered or withdrawn. Return its subject; None if it is unknown."""
        return self._subjects.pop(id, None) if self._subjects and id is not None else None


# Rounds


@record
class Round:
    """One round of a call, with all answers received so far, by key."""

    number: int = 1
    answers: dict[str, Any] = field(default_factory=dict)
    carried: Any = None
    """The data that the previous round has left for this one (see `InputRequired`)."""


FIRST_ROUND = Round()
"""The first round of a call: no answers, and no state."""


def read_round(
    method: str, params: dict[str, Any], principal: Principal | None, *, signer: Signer, now: float
) -> Round:
    """Return the round that a request with these `params` begins. Raises InvalidParams if its state has expired, or
    was issued for another request or principal."""
    answers = params.get("inputResponses")
    state = params.get("requestState")
    if state is None:
        return FIRST_ROUND if answers is None else Round(answers=answers)
    content = signer.verify("requestState", state)
    # Without this check, the answers to one call could be used for another call, or by another principal.
    if content["request"] != _request_digest(method, params, principal):
        raise InvalidParams("this requestState belongs to another request")
    if content["expires"] < now:
        raise InvalidParams("this requestState has expired; start over without it")
    # The client sends only the answers of the last round, so the earlier ones are added.
    return Round(content["round"] + 1, {**content["answers"], **(answers or {})}, content.get("carried"))


def sign_state(
    method: str, params: dict[str, Any], principal: Principal | None, current: Round, *, signer: Signer, now: float
) -> str:
    """Return the signed `requestState` for the round after `current`. Raises InvalidParams after too many."""
    if current.number >= MAX_ROUNDS:
        raise InvalidParams(f"this request was not completed within {MAX_ROUNDS} rounds")
    state = {
        "request": _request_digest(method, params, principal),
        "expires": now + LIFETIME_SECONDS,
        "round": current.number,
        "answers": current.answers,
        **({} if current.carried is None else {"carried": current.carried}),
    }
    return signer.sign("requestState", state)


def _request_digest(method: str, params: dict[str, Any], principal: Principal | None) -> str:
    # `_meta` is left out too, since each round has another progress token, and perhaps another trace.
    bound = {name: value for name, value in params.items() if name not in _ROUND_PARAMS}
    return digest([method, bound, None if principal is None else principal.key])
