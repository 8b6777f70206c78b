"""The client's side of a session with one server, without I/O: the counterpart of `ServerSession`.

`request` queues a request, and returns its id. `outgoing` returns the queued messages, which the caller sends. The
caller passes each received message to `receive`, which returns the events to handle. A session uses one era at a
time (see `versions.py`). It may begin in the stateless era, with `server/discover`, and switch to the handshake era
depending on the answer:

    discover() ──▶ handle_discovery(answer) ──▶ STATELESS   the session is open
                                            ──▶ RETRY       call discover() once more
                                            ──▶ HANDSHAKE   initialize() ──▶ handle_initialize(result)
                                            ──▶ FAIL        no common version, access denied, or too busy

The session itself answers `ping`, and refuses requests from the server that the client's capabilities don't allow. It
never raises because of a message from the server: unexpected answers, late progress notifications and malformed input
are dropped, and an answer that can't be used becomes `Unusable`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from ...errors import InternalError, InvalidParams, InvalidRequest, McpError, RpcError
from ..identity import find_capability
from ..types.base import CLIENT_CAPABILITIES, SERVER_INFO, SUBSCRIPTION_ID
from ..types.tasks import TASKS
from ..versions import NEWEST, VERSIONS, Version, find_version
from ..wire.dialects.spellings import server_info, standard_method
from ..wire.jsonrpc import (
    Failure,
    Gap,
    Malformed,
    Message,
    NoAnswerCause,
    Notification,
    OnStream,
    Request,
    RequestId,
    Response,
    Unanswered,
    failure,
    id_as_number,
    messages_of,
    normalize_id,
)
from .client_events import ClientEvent, Notified, ServerRequest, Stray, Unusable, Withdrawn, read_input_wanted
from .descriptions import ClientIdentity, ServerDescription
from .events import Answered, Outgoing

_STATELESS_ERRORS = (-32020, -32021)
_UNSUPPORTED_VERSION = -32022
_UNINFORMATIVE = (401, 403, 429, 502, 503, 504)
"""HTTP statuses that don't reveal which versions the server supports, because it denies access or is too busy."""
_MULTI_ROUND = ("tools/call", "prompts/get", "resources/read")
MAX_SERVER_REQUESTS = 100
"""Maximum number of requests from a server in progress. Each occupies a task, and most need a person to answer."""
MAX_UNSENT_REPLIES = 10_000
"""Maximum number of answers to the server that wait to be sent; further ones are dropped."""
MAX_ABANDONED = 100
"""Maximum number of remembered cancelled calls that the server may still turn into tasks. Beyond it the oldest are
forgotten: most will not be answered."""
_TOO_MANY = -31_000
"""A code outside the ranges that JSON-RPC and the protocol reserve."""
_NOT_CANCELLABLE = ("initialize", "server/discover")


class OpeningStep(Enum):
    """What the client does after the answer to `server/discover`."""

    STATELESS = "stateless"
    RETRY = "retry"
    HANDSHAKE = "handshake"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request in progress."""

    method: str
    progress: bool
    takes_tasks: bool = False
    caller: ClientIdentity | None = None


def first_version(mode: str, accepted: Sequence[Version] = VERSIONS) -> Version:
    """Return the newest of the `accepted` versions, which are sorted oldest first, that `mode` allows. `mode` is
    "auto", "stateless", "handshake", or the date of one version.

    Raises ValueError for any other `mode`, and if it allows none of the accepted versions.
    """
    eras = {"auto": (False, True), "stateless": (True,), "handshake": (False,)}.get(mode)
    if eras is None and find_version(mode) is None:
        raise ValueError(
            f"the mode must be auto, stateless, handshake or the date of a protocol version, not {mode!r}"
        )
    candidates = [
        version for version in accepted if (version.date == mode if eras is None else version.stateless in eras)
    ]
    if not candidates:
        raise ValueError(f"the mode {mode!r} has none of the versions from {accepted[0]} to {accepted[-1]}")
    return candidates[-1]


class ClientSession:
    """The client's side of a session with one server. `version` is the version to begin with: in the handshake era,
    the one to offer. The server may choose any of the `accepted` versions, which are sorted oldest first."""

    def __init__(
        self, identity: ClientIdentity, version: Version = NEWEST, accepted: Sequence[Version] = VERSIONS
    ) -> None:
        self.server: ServerDescription | None = None
        self.offered: list[str] = []
        """The versions that the server has offered, e.g. in an error; untrusted."""
        self._identity = identity
        self._version = version
        self._accepted = accepted
        self._sent: dict[RequestId, _Sent] = {}
        self._server_requests: set[RequestId] = set()
        self._outgoing: list[Outgoing] = []
        self._unsent_replies = 0
        self._last_id = 0
        self._has_retried = self._is_unanswered = False
        self._task_tokens: set[str] = set()
        self._abandoned: dict[RequestId, ClientIdentity | None] = {}

    @property
    def stateless(self) -> bool:
        """True if the session uses the stateless era, so that every request has an envelope."""
        return self._version.stateless

    @property
    def accepts_handshake(self) -> bool:
        """True if a version of the handshake era is accepted."""
        return not self._accepted[0].stateless

    @property
    def server_request_count(self) -> int:
        """The number of requests from the server that have not been answered yet."""
        return len(self._server_requests)

    @property
    def outgoing_count(self) -> int:
        """The number of messages waiting to be sent."""
        return len(self._outgoing)

    def outgoing(self) -> list[Outgoing]:
        """Return the messages for the server, oldest first. Each is returned once."""
        waiting, self._outgoing, self._unsent_replies = self._outgoing, [], 0
        return waiting

    # Opening

    def discover(self) -> RequestId:
        """Queue a request for the server's description and its versions, and return its id."""
        return self.request("server/discover", {})

    def handle_discovery(self, answer: Response | Failure | None) -> OpeningStep:
        """Handle the answer to `discover`, which is None if there was none in time, and return the next step.

        Servers of the handshake era may answer anything, or nothing, so the stateless era is used only after an
        answer that no such server can give (2026-07-28, Versioning).
        """
        if isinstance(answer, Response):
            return self._choose(answer.result.get("supportedVersions"), answer.result)
        if answer is None:
            self._is_unanswered = True
            return OpeningStep.HANDSHAKE
        # Servers of the handshake era don't use these codes, so this server supports the stateless era, and has
        # refused only this request.
        if answer.code in _STATELESS_ERRORS:
            self.server = ServerDescription(self._version.date, {}, {})
            return OpeningStep.STATELESS
        if answer.code == _UNSUPPORTED_VERSION and isinstance(answer.data, dict):
            return self._choose(answer.data.get("supported"), None)
        return OpeningStep.FAIL if answer.code in _UNINFORMATIVE else OpeningStep.HANDSHAKE

    def initialize(self) -> RequestId:
        """Queue `initialize`, and return its id. A session of the stateless era switches to the handshake era."""
        if self._version.stateless:
            self._version = [version for version in self._accepted if not version.stateless][-1]
        identity = self._identity
        capabilities = identity.capabilities
        if identity.task_requests and self._version.task_requests:
            capabilities = {"tasks": identity.task_requests, **capabilities}
        offer = {"protocolVersion": self._version.date, "capabilities": capabilities}
        return self.request("initialize", {**offer, "clientInfo": identity.info})

    def handle_initialize(self, result: dict[str, Any]) -> bool:
        """Handle the result of `initialize`, and complete the handshake. Return False if the server has chosen an
        unsupported version; the caller then disconnects (2025-11-25, Lifecycle)."""
        date = result.get("protocolVersion")
        self._set_offered([date])
        version = find_version(date)
        if version is None or version.stateless or version not in self._accepted:
            return False
        self._version = version
        self.server = _describe(version, result, server_info(result))
        self.notify("notifications/initialized", {})
        return True

    def handle_refusal(self, refusal: Failure) -> bool:
        """Handle an error while the session is opened. Return True if it lists supported versions, which means that
        the server refused the version (2025-11-25, Lifecycle, and 2026-07-28, Versioning)."""
        supported = refusal.data.get("supported") if isinstance(refusal.data, dict) else None
        if not isinstance(supported, list):
            return False
        self._set_offered(supported)
        return True

    def switch_to_stateless(self) -> bool:
        """Switch to the stateless era after the server has refused the handshake, and return True, if the server has
        listed a stateless version that is accepted. Otherwise return False."""
        # A server that was slow to start did not answer `discover` in time, but has received it. It then expects the
        # stateless era, even if its error lists no versions.
        offered = (
            self.offered if self.offered or not self._is_unanswered else [version.date for version in self._accepted]
        )
        stateless = [version for version in self._accepted if version.stateless and version.date in offered]
        if not stateless or self._has_retried:
            return False
        self._has_retried = True
        self._version = stateless[-1]
        return True

    def _set_offered(self, dates: list[Any]) -> None:
        self.offered = [date for date in dates if isinstance(date, str)]

    def _choose(self, dates: object, result: dict[str, Any] | None) -> OpeningStep:
        if not isinstance(dates, list):
            return OpeningStep.HANDSHAKE
        self._set_offered(dates)
        if self._version.date in dates and result is not None:
            self.server = _describe(self._version, result, _meta(result).get(SERVER_INFO))
            return OpeningStep.STATELESS
        common_versions = [version for version in self._accepted if version.date in dates]
        if result is None and common_versions and common_versions[-1].stateless and not self._has_retried:
            # It may be the version that was just refused: another replica of the server may have sent this list.
            self._has_retried = True
            self._version = common_versions[-1]
            return OpeningStep.RETRY
        common_versions = [version for version in common_versions if not version.stateless]
        if not common_versions:
            return OpeningStep.FAIL
        self._version = common_versions[-1]
        return OpeningStep.HANDSHAKE

    # Sending

    def request(
        self, method: str, params: dict[str, Any], *, progress: bool = False, caller: ClientIdentity | None = None
    ) -> RequestId:
        """Queue a request, and return its id. `caller` is given if the request is made for another client, whose
        identity a stateless request then contains."""
        self._last_id += 1
        id_ = self._last_id
        # The id is also the progress token, because it is unique among the requests in progress.
        meta = {**_meta(params), **({"progressToken": id_} if progress else {})}
        takes_tasks = method == "tools/call" and "task" in params
        if self._version.stateless:
            envelope = (caller or self._identity).envelope(self._version)
            meta |= envelope
            # With the tasks extension the server decides which calls become tasks, and does so only for tools
            # (SEP-2663).
            extension = find_capability(envelope[CLIENT_CAPABILITIES], ("extensions", TASKS))
            takes_tasks = method == "tools/call" and extension is not None
        self._sent[id_] = _Sent(method, progress, takes_tasks, caller)
        self._send(Request(id_, method, {**params, "_meta": meta} if meta else params))
        return id_

    def make_progress_token(self) -> str:
        """Return a progress token that remains valid after the request with which it is sent, until
        `forget_token`."""
        self._last_id += 1
        token = f"task-{self._last_id}"
        self._task_tokens.add(token)
        return token

    def forget_token(self, token: str) -> None:
        """Forget the token, so that later progress for it is dropped."""
        self._task_tokens.discard(token)

    def log_level(self, level: str) -> None:
        """Make stateless requests ask for log messages of this `level` or above from now on."""
        self._identity = replace(self._identity, log_level=level)

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Queue a notification."""
        self._send(Notification(method, params))

    def cancel(self, id: RequestId, reason: str) -> bool:
        """Abandon this client's request `id`, and queue its cancellation. An answer that still arrives is dropped.
        Return False if nothing is queued: the request has ended, or may not be cancelled."""
        sent = self._sent.pop(id, None)
        # `initialize` may not be cancelled (2025-11-25, Cancellation).
        if sent is None or sent.method in _NOT_CANCELLABLE:
            return False
        # The server may turn the call into a task before it receives the cancellation. The call is remembered, so
        # that the task is cancelled when the answer shows its id.
        if sent.takes_tasks:
            self._abandoned[id] = sent.caller
            if len(self._abandoned) > MAX_ABANDONED:
                del self._abandoned[next(iter(self._abandoned))]
        self._send(Notification("notifications/cancelled", {"requestId": id, "reason": reason}), id)
        return True

    def respond(self, id: RequestId, result: dict[str, Any]) -> None:
        """Answer the request `id` from the server. Does nothing if the request was cancelled."""
        self._answer_request(id, Response(id, result))

    def fail(self, id: RequestId, error: McpError) -> None:
        """Answer the request `id` from the server with an error. Does nothing if the request was cancelled."""
        refusal = error if isinstance(error, RpcError) else InternalError("the client could not answer")
        self._answer_request(id, failure(id, refusal))

    def _answer_request(self, id: RequestId, answer: Response | Failure) -> None:
        if id in self._server_requests:
            self._server_requests.discard(id)
            self._reply(id, answer)

    def _reply(self, id: RequestId, answer: Response | Failure) -> None:
        # This limits the memory that a server can take by sending requests without reading the answers.
        if self._unsent_replies < MAX_UNSENT_REPLIES:
            self._unsent_replies += 1
            self._send(answer, id)

    def _send(
        self, message: Request | Notification | Response | Failure, related_request_id: RequestId | None = None
    ) -> None:
        self._outgoing.append(Outgoing(message, related_request_id))

    # Receiving

    def receive(self, message: Message) -> list[ClientEvent]:
        """Handle one message, and return the events for the application."""
        # A batch is accepted even in versions without batches, since its meaning is clear.
        return [event for event in map(self._handle, messages_of(message)) if event is not None]

    def _handle(self, message: Message) -> ClientEvent | None:
        match message:
            case Response():
                return self._handle_response(normalize_id(message))
            case Failure():
                return self._handle_failure(normalize_id(message))
            case Notification():
                return self._handle_notification(message)
            case Request():
                return self._handle_request(message)
            case Malformed(refused, is_call=True):
                # An invalid request from the server, which is answered only in the handshake era: in the stateless
                # era a server may not send requests.
                if refused.id is not None and not self._version.stateless:
                    self._reply(refused.id, refused)
            case Malformed(refused):
                return self._handle_invalid(normalize_id(refused))
            case Unanswered(id_, reason, cause):
                return self._drop_unusable(id_, reason, cause)
            case Gap():
                return message
            case OnStream(inner, related_request_id):
                event = self._handle(inner)
                if isinstance(event, ServerRequest) or (
                    isinstance(event, Notified) and event.related_request_id is None
                ):
                    return replace(event, stream=related_request_id)
                return event
        return None

    def _handle_failure(self, failure: Failure) -> Answered | Stray | None:
        if failure.id is None:
            # Without an id, the error may concern any message that this client has sent.
            return Stray(failure.message)
        return Answered(failure.id, failure) if self._forget(failure.id) else None

    def _handle_invalid(self, refusal: Failure) -> Unusable | Stray | None:
        if refusal.id is None:
            return Stray(refusal.message)
        return self._drop_unusable(refusal.id, refusal.message, "invalid answer")

    def _handle_response(self, answer: Response) -> ClientEvent | None:
        sent = self._sent.pop(answer.id, None)
        if sent is None:
            # A cancelled call may have become a task before the server received the cancellation.
            if answer.id in self._abandoned:
                caller = self._abandoned.pop(answer.id)
                created = answer.result if self._version.stateless else answer.result.get("task")
                id_ = created.get("taskId") if isinstance(created, dict) else None
                if isinstance(id_, str):
                    self.request("tasks/cancel", {"taskId": id_}, caller=caller)
            return None
        # Many programs write an absent cursor as an empty string, which is a cursor only since 2026-07-28.
        if not self._version.stateless and answer.result.get("nextCursor") == "":
            result = {name: value for name, value in answer.result.items() if name != "nextCursor"}
            answer = replace(answer, result=result)
        kind = answer.result.get("resultType", "complete") if self._version.stateless else "complete"
        if kind == "complete" or (kind == "task" and sent.takes_tasks):
            return Answered(answer.id, answer)
        input_wanted = read_input_wanted(answer) if kind == "input_required" and sent.method in _MULTI_ROUND else None
        return input_wanted or Unusable(answer.id, f"the server answered {sent.method} with a result of unknown type")

    def _drop_unusable(self, id: RequestId | None, reason: str, cause: NoAnswerCause = "unknown") -> Unusable | None:
        return Unusable(id, reason, cause) if id is not None and self._forget(id) else None

    def _forget(self, id: RequestId) -> bool:
        """Forget this client's request `id`. Return False if it was unknown."""
        return self._sent.pop(id, None) is not None

    def _handle_notification(self, message: Notification) -> ClientEvent | None:
        method, params = message.method, message.params
        if method == "notifications/cancelled":
            # In the handshake era, the server cancels a request of its own; in the stateless era, it ends a stream of
            # `subscriptions/listen`.
            id_, reason = _as_id(params.get("requestId")), params.get("reason")
            if id_ is None:
                return None
            if self._version.stateless:
                listen_id = id_as_number(id_)
                listen_request = self._sent.get(listen_id)
                is_listen = listen_request is not None and listen_request.method == "subscriptions/listen"
                return self._drop_unusable(listen_id, "the server ended the stream") if is_listen else None
            if id_ not in self._server_requests:
                return None
            self._server_requests.discard(id_)
            return Withdrawn(id_, reason if isinstance(reason, str) else None)
        if method == "notifications/progress":
            token = _as_id(params.get("progressToken"))
            if token in self._task_tokens:
                return Notified(method, params, token)
            number = None if token is None else id_as_number(token)
            sent = None if number is None else self._sent.get(number)
            return Notified(method, params, number) if sent is not None and sent.progress else None
        if SUBSCRIPTION_ID not in _meta(params):
            return Notified(method, params)
        stream = _as_id(_meta(params)[SUBSCRIPTION_ID])
        stream = None if stream is None else id_as_number(stream)
        return Notified(method, params, stream) if stream in self._sent else None

    def _handle_request(self, request: Request) -> ServerRequest | None:
        if self._version.stateless:
            # In the stateless era, a server must not send requests, and a client must not answer them (2026-07-28,
            # Transports, stdio).
            return None
        server_request = ServerRequest(request.id, standard_method(request.method), request.params)
        refusal = self._find_refusal(server_request)
        if refusal is not None:
            self._reply(request.id, failure(request.id, refusal))
        elif request.method == "ping":
            self._reply(request.id, Response(request.id, {}))
        else:
            self._server_requests.add(request.id)
            return server_request
        return None

    def _find_refusal(self, server_request: ServerRequest) -> RpcError | None:
        if server_request.id in self._server_requests:
            return InvalidRequest("this id is in use by a request that has not been answered yet")
        if len(self._server_requests) >= MAX_SERVER_REQUESTS and server_request.method != "ping":
            return RpcError("too many requests are in progress at once", code=_TOO_MANY)
        mode = server_request.params.get("mode", "form")
        # An empty capability declares forms. Without the capability, the request is refused later, because it has no
        # handler. `modes` is a list because `mode` comes from the server and may be unhashable.
        modes = list(self._identity.capabilities.get("elicitation") or ("form",))
        if server_request.method == "elicitation/create" and mode not in modes:
            return InvalidParams("this mode of elicitation was not declared")
        return None


def _as_id(value: object) -> RequestId | None:
    # True is excluded because it equals 1, and would match the request with that id.
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def _meta(params: dict[str, Any]) -> dict[str, Any]:
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def _describe(version: Version, result: dict[str, Any], info: object) -> ServerDescription:
    """Return the server's description in a `result` of `initialize` or `server/discover`; ignore malformed fields."""
    capabilities, instructions = result.get("capabilities"), result.get("instructions")
    return ServerDescription(
        version.date,
        capabilities if isinstance(capabilities, dict) else {},
        info if isinstance(info, dict) else {},
        instructions if isinstance(instructions, str) else None,
    )
