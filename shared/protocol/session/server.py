"""The server's side of the protocol with one peer, without I/O: messages in, events and messages out.

Pass each decoded message to `receive`, handle the events it returns, then send the messages from `outgoing`. The
session itself handles everything that does not need the application: `initialize`, `ping`, `server/discover`,
`logging/setLevel`, and all protocol errors. It never raises because of a peer's error. A request that becomes a
`Call` ends with `finish` or `cancel`, whichever comes first. After that nothing more is sent about it.

Both eras exist side by side: a request whose `_meta` contains a protocol version is stateless; any other belongs to
the handshake.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from typing import Any

from pydantic import ValidationError

from ...errors import InputRequired, InvalidRequest, McpError, RpcError
from ..identity import Identity, LogMessage, Peer, Principal
from ..methods import MethodTable
from ..shaping import settle, shape, shape_request
from ..signing import Signer
from ..types.base import SUBSCRIPTION_ID
from ..types.client import CancelledParams, LogLevel
from ..versions import Version
from ..wire.jsonrpc import (
    Batch,
    Failure,
    Malformed,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
    failure,
    json_of,
    normalize_id,
)
from .admission import Admission
from .batches import MAX_BATCH, Batches
from .events import (
    Answered,
    Call,
    Cancelled,
    Change,
    Event,
    Opened,
    Outcome,
    Outgoing,
    RootsChanged,
    UnhandledRequest,
    UnknownNotification,
)
from .handshake import Handshake, Snapshot, State
from .questions import STANDALONE, PendingQuestions, Question, read_answers, require_capabilities, sign_state
from .subscriptions import Listen, Subscriptions

_LOG_METHOD = "notifications/message"
_LEVEL_METHODS = ("logging/setLevel", "server/discover")
"""The requests in each era that open a conversation and set a log level."""


_NO_SCOPES: frozenset[str] = frozenset()
"""Shared by all sessions, since each empty set would take 216 bytes."""


class ServerSession:
    """The protocol with one peer: a process on a pipe, an HTTP session, or a single stateless request."""

    __slots__ = (
        "__weakref__",
        "_admission",
        "_batches",
        "_calls",
        "_handshake",
        "_identity",
        "_now",
        "_questions",
        "_signer",
        "_subscriptions",
        "needed_scopes",
        "on_unhandled",
        "principal",
        "roots_changed",
        "waiting",
        "waiting_bytes",
    )

    def __init__(
        self,
        identity: Identity,
        methods: MethodTable,
        signer: Signer,
        *,
        principal: Principal | None = None,
        now: Callable[[], float],
        replica: int = 0,
    ) -> None:
        """`replica` is the number, below 2^20, of the process among those that share their sessions. It makes the ids
        of questions and of peers' data unique. A single process has 0."""
        self.principal = principal
        """The sender of the received messages: always the same one, with the scopes of its current token."""
        self.needed_scopes = _NO_SCOPES
        """The scopes that the peer's calls have needed. A later reader of their answers needs them as well."""
        self.on_unhandled: Callable[[UnhandledRequest], None] | None = None
        """Called with requests that end before they reach a handler."""
        self.roots_changed = 0
        """The number of times that the peer has reported a change to its roots."""
        self._identity = identity
        self._signer = signer
        self._now = now
        self._handshake = Handshake(principal, replica)
        self._admission = Admission(methods, self._handshake, signer, now)
        self._calls: dict[RequestId, Call] = {}
        self._questions = PendingQuestions(replica)
        self._batches: Batches | None = None
        self._subscriptions: Subscriptions | None = None
        self.waiting: list[Outgoing] = []
        """The messages that `outgoing` will return."""
        self.waiting_bytes = 0
        """Size in bytes of the notifications among them whose contents the server's author has chosen."""

    # Persistent state

    def snapshot(self) -> Snapshot:
        """Return the state that another replica needs to continue the session."""
        return Snapshot(self._handshake.state, self._handshake.peer, self.roots_changed, self.needed_scopes)

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from `snapshot`; calls, questions and subscriptions stay as they are."""
        self._handshake.state, self._handshake.peer = snapshot.state, snapshot.peer
        self.roots_changed = snapshot.roots_changed
        self.add_needed_scopes(snapshot.needed_scopes)

    def number_questions(self, numbers: Iterator[int]) -> None:
        """Number the session's questions with `numbers`, which all sessions of this replica share, since a session
        that leaves this replica and comes back must not use an id twice."""
        self._questions.numbers = numbers

    @property
    def peer(self) -> Peer | None:
        """The peer of the handshake, once `initialize` has been answered."""
        return self._handshake.peer

    @property
    def version(self) -> Version | None:
        """The negotiated version, once `initialize` has been answered."""
        peer = self._handshake.peer
        return None if peer is None else peer.version

    @property
    def batch_bytes(self) -> int:
        """Size in bytes of results that wait for the rest of their batches."""
        return 0 if self._batches is None else self._batches.size

    def is_in_batch(self, call: Call) -> bool:
        """Return True if `call` came in a batch."""
        return self._batches is not None and self._batches.has(call.id)

    @property
    def subscribed(self) -> int:
        """The number of resources that the peer has subscribed to."""
        return 0 if self._subscriptions is None else len(self._subscriptions.subscribed)

    def set_log_level(self, level: str) -> None:
        """From now on, send clients with a handshake log messages of at least this level, as they requested."""
        self._handshake.set_log_level(level)

    def has_state(self, snapshot: Snapshot) -> bool:
        """Return True if a new snapshot would equal `snapshot`. This is cheaper than creating one."""
        handshake = self._handshake
        return (
            handshake.peer is snapshot.peer
            and handshake.state is snapshot.state
            and self.roots_changed == snapshot.roots_changed
            and self.needed_scopes == snapshot.needed_scopes
        )

    def add_needed_scopes(self, scopes: frozenset[str]) -> None:
        """Add a call's scopes to those that a reader of the peer's messages needs."""
        if not scopes <= self.needed_scopes:
            self.needed_scopes |= scopes

    # Messages from the peer

    def receive(self, message: Message) -> list[Event]:
        """Handle one message, and return the events for the application."""
        if not isinstance(message, Request):
            return self._receive_batch(message) if isinstance(message, Batch) else self._handle(message)
        try:
            call = self._admission.admit(message, self.principal)
            # An id may be reused once it is answered; until then, an answer could belong to either request.
            if message.id in self._calls:
                raise InvalidRequest("this id is in use by a request that has not been answered yet")
        except RpcError as error:
            if self.on_unhandled is not None:
                self.on_unhandled(UnhandledRequest(message.method, message.params, self.principal, self.peer, error))
            self._reply(failure(message.id, error))
            return []
        self._calls[message.id] = call
        if call.method.built_in:
            self._answer_built_in(call)
            return []
        if self._batches is not None:
            self._batches.expect(call.id)
        return [call]

    def outgoing(self) -> list[Outgoing]:
        """Return the messages for the peer, oldest first. Each is returned once."""
        waiting, self.waiting, self.waiting_bytes = self.waiting, [], 0
        return waiting

    def _receive_batch(self, batch: Batch) -> list[Event]:
        peer = self._handshake.peer
        if peer is None or not peer.version.batching:
            return self._refuse_batch("only one older protocol version has batches")
        if len(batch.messages) > MAX_BATCH:
            return self._refuse_batch(f"a batch may hold at most {MAX_BATCH} messages")
        # The object is created with the first batch, since only one of five versions has batches, which hardly any
        # client sends.
        batches = self._batches = self._batches or Batches()
        events = [event for message in batches.open(batch) for event in self.receive(message)]
        self._append(batches.close())
        return events

    def _refuse_batch(self, reason: str) -> list[Event]:
        # The error is for the whole batch, and has no id, since the contents were not examined.
        self._refuse(failure(None, InvalidRequest(reason)))
        return []

    def _refuse(self, refusal: Failure) -> None:
        """Answer a message that is not a request."""
        if self.on_unhandled is not None:
            self.on_unhandled(UnhandledRequest("", {}, self.principal, self.peer, refusal))
        self._reply(refusal)

    def _answer_built_in(self, call: Call) -> None:
        try:
            result = self._handshake.answer(call, self._identity)
        except RpcError as error:
            self.finish(call, error)
            return
        # Before the handshake nothing is known about the peer. The answer must be in the version just negotiated.
        if call.method.name == "initialize" and self._handshake.peer is not None:
            call.peer = self._handshake.peer
        if call.method.name in _LEVEL_METHODS:
            for message in self._identity.conditions.values():
                self.log(call, message.level, message.data, message.logger)
        self.finish(call, result)

    def _handle(self, message: Message) -> list[Event]:
        match message:
            case Notification(method="notifications/initialized"):
                # A second one, or one that arrives too early, is ignored, since a notification is never answered
                # (JSON-RPC 2.0, 4.1).
                return [Opened()] if self._handshake.complete() else []
            case Notification(method="notifications/cancelled"):
                try:
                    params = CancelledParams.model_validate(message.params)
                except ValidationError:
                    return []
                # The number 1 and the string "1" are the ids of different requests (JSON-RPC 2.0, section 4).
                call = self._calls.get(params.request_id)
                if call is None:
                    return []
                self.cancel(call)
                return [Cancelled(call, params.reason)]
            case Notification(method="notifications/roots/list_changed"):
                self.roots_changed += 1
                return [RootsChanged()]
            case Notification():
                return [UnknownNotification(message.method, message.params)]
            case Response() | Failure():
                answer = normalize_id(message)
                if answer.id is not None and self._questions.settle(answer.id) is not None:
                    return [Answered(answer.id, answer)]
            case Malformed(silent=False):
                self._refuse(message.failure)
        return []

    # Messages from the application

    def finish(self, call: Call, outcome: Outcome) -> None:
        """Answer `call`. Does nothing if it is over. Results are in the newest version; errors are converted for the
        peer's version; questions get a signed state, which comes back with the answers."""
        if call.is_over:
            return
        answered = outcome if isinstance(outcome, dict) else self._convert_outcome(call, outcome)
        answer: Response | Failure
        if isinstance(answered, dict):
            answer = Response(call.id, shape(call.method, answered, call.peer.version, self._identity.server_info))
        else:
            answer = failure(call.id, answered)
        if self.on_unhandled is not None and call.began is None:
            self._report_unhandled(call, outcome)
        # This is `Call.end`, written here because few calls have anything to release.
        call.is_over, call.params, call.raw = True, None, None
        if call.release is not None:
            call.end()
        del self._calls[call.id]
        self._calls = self._calls or {}  # a used dict keeps its memory, a tenth of an idle session's
        if self._batches is None:
            self.waiting.append(Outgoing(answer, call.id))
        else:
            self._reply(answer)

    def cancel(self, call: Call) -> None:
        """Drop a call whose answer is no longer needed. Does nothing if it is over."""
        if call.is_over:
            return
        self._report_unhandled(call, None)
        call.end()
        del self._calls[call.id]
        self.subscriptions.close(call.id)
        batches = self._batches
        in_batch = batches is not None and batches.has(call.id)
        self._append(batches.drop(call.id) if batches is not None and in_batch else Outgoing(None, call.id))

    def abandon(self) -> list[Call]:
        """Drop all calls of a disconnected peer without an answer, and return them."""
        calls, self._calls = list(self._calls.values()), {}
        for call in calls:
            self._report_unhandled(call, None)
            call.end()
        return calls

    def ask(self, call: Call, questions: Mapping[str, Question]) -> dict[str, Any]:
        """Ask the client during `call`.

        After a handshake, requests are sent, and each key maps to the id to wait for, an int. Without a handshake,
        each key maps to the answer that came with the call, a model.

        Raises MissingCapability for an undeclared capability, InputRequired for questions without an answer,
        InvalidParams for an invalid answer, and InvalidRequest if the call is over.
        """
        if call.is_over:
            raise InvalidRequest("this call has ended")
        require_capabilities(questions, call.peer)
        # From 2026-07-28 on, clients get no requests: the call ends with its questions, and is repeated with the
        # answers (Multi Round-Trip Requests).
        if call.peer.version.stateless:
            return read_answers(questions, call.round.answers, call.peer.version)
        ids: dict[str, Any] = {}
        for key, question in questions.items():
            id_ = ids[key] = self._questions.enter(call.id)
            params = shape_request(question.method, question.params, call.peer.version)
            self._send(Request(id_, question.method, params), call.id)
        return ids

    def ask_standalone(self, question: Question) -> int:
        """Ask a client with a handshake, independently of its calls, and return the id to wait for.

        Raises MissingCapability for an undeclared capability, and InvalidRequest without a session.
        """
        peer = self._handshake.peer
        # Before `initialized` a server may send nothing but pings and log messages (2025-11-25, Lifecycle).
        if peer is None or self._handshake.state is not State.OPEN:
            raise InvalidRequest("there is no open session through which to ask the client")
        require_capabilities({"": question}, peer)
        id_ = self._questions.enter(STANDALONE)
        self._send(Request(id_, question.method, shape_request(question.method, question.params, peer.version)))
        return id_

    def withdraw(self, id: Any) -> None:
        """Cancel an unneeded request to the client. Does nothing if it has been answered, or was never sent."""
        related_request_id = self._questions.settle(id) if isinstance(id, int) else None
        if related_request_id is not None:
            params = {"requestId": id, "reason": "no longer needed"}
            self._send(
                Notification("notifications/cancelled", params),
                None if isinstance(related_request_id, Enum) else related_request_id,
            )

    def notify(self, call: Call, method: str, params: dict[str, Any]) -> None:
        """Send a notification that belongs to `call`. Does nothing if the call is over."""
        if not call.is_over:
            self._notify(Notification(method, params), call.id)

    def progress(
        self,
        call: Call,
        progress: float,
        total: float | None,
        message: str | None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        """Report the progress of a call with `meta`, if the peer sent a token and `progress` has grown."""
        if call.is_over or call.token is None or not call.advance(progress):
            return
        fields: dict[str, Any] = {"progress": progress, "total": total, "message": message, "_meta": meta or None}
        report = {"progressToken": call.token, **fields}
        params = {name: value for name, value in report.items() if value is not None}
        method = "notifications/progress"
        self.notify(call, method, shape_request(method, params, call.peer.version))

    def log(self, call: Call, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message about a call, if logging is declared and the peer requested that level."""
        if self.wants_log(call, level):
            self.notify(call, _LOG_METHOD, LogMessage(level, data, logger).to_wire())

    def wants_log(self, call: Call, level: LogLevel) -> bool:
        """Return True if `log` would send anything."""
        if call.is_over or not self._identity.has(("logging",)):
            return False
        # The log level of the handshake may have changed since the call.
        peer = call.peer if call.peer.version.stateless else self._handshake.peer or call.peer
        return peer.wants_log(level)

    def notify_session(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification that does not belong to a call. Does nothing without a session."""
        if self._handshake.state is State.OPEN:
            self._notify(Notification(method, params))

    def announce(self, message: LogMessage) -> None:
        """Send a log message that does not belong to a call, if logging is declared and the peer requested that level
        in a handshake. Without a handshake, log messages only belong to requests."""
        peer = self._handshake.peer
        if peer is None or self._handshake.state is not State.OPEN or not self._identity.has(("logging",)):
            return
        if peer.wants_log(message.level):
            self._send(Notification(_LOG_METHOD, message.to_wire()))

    def pause(self, call: Call, retry_ms: int) -> None:
        """Let the client disconnect while the call continues, if version and transport support it."""
        # Older clients have no event from which to resume, and treat the end of the stream as the end of the request.
        if not call.is_over and call.peer.version.priming_events:
            self.waiting.append(Outgoing(None, call.id, retry_ms))

    # Subscriptions

    @property
    def subscriptions(self) -> Subscriptions:
        """The subscriptions of the peer."""
        self._subscriptions = self._subscriptions or Subscriptions()  # few peers have any
        return self._subscriptions

    def acknowledge(self, call: Call, listen: Listen) -> None:
        """Open a listen stream. From now on its changes are delivered."""
        if call.is_over:
            return
        self.subscriptions.listen(listen)
        params = {"_meta": {SUBSCRIPTION_ID: listen.id}, "notifications": listen.acknowledged_filter()}
        self._send(Notification("notifications/subscriptions/acknowledged", params), listen.id)

    def deliver(self, change: Change) -> None:
        """Notify the peer of `change` for each of its subscriptions to it."""
        is_open = self._handshake.state is State.OPEN
        for notification, related_request_id in self.subscriptions.notifications_for(change, handshake_open=is_open):
            self._send(notification, related_request_id)

    def end_listen(self, call: Call) -> None:
        """End a listen stream from the server's side: send the result that one page of the specification requires,
        then the notification that another page requires."""
        if call.is_over or self.subscriptions.close(call.id) is None:
            return
        # The id distinguishes the streams on a pipe, which share one sequence of messages (2026-07-28, stdio).
        meta = {SUBSCRIPTION_ID: call.id}
        # After the notification alone, a client would assume a lost stream.
        self.finish(call, {"_meta": meta})
        self._send(Notification("notifications/cancelled", {"_meta": meta, "requestId": call.id}), call.id)

    # Private methods

    def _convert_outcome(self, call: Call, outcome: McpError | InputRequired) -> dict[str, Any] | RpcError:
        if isinstance(outcome, InputRequired):
            name, before = call.method.name, call.round
            try:
                if outcome.carried is not None:
                    before = replace(before, answers={}, carried=outcome.carried)
                state = sign_state(name, call.raw, self.principal, before, signer=self._signer, now=self._now())
            except RpcError as error:
                return error
            return {"resultType": "input_required", "inputRequests": outcome.requests, "requestState": state}
        return settle(outcome, call.method, call.peer)

    def _report_unhandled(self, call: Call, outcome: Outcome | None) -> None:
        if self.on_unhandled is not None and call.began is None:
            self.on_unhandled(UnhandledRequest(call.method.name, call.raw, self.principal, call.peer, outcome))

    def _reply(self, answer: Response | Failure) -> None:
        if self._batches is not None and self._batches.is_batched(answer):
            self._append(self._batches.add(answer))
        else:
            self.waiting.append(Outgoing(answer, answer.id))

    def _append(self, outgoing: Outgoing | None) -> None:
        if outgoing is not None:
            self.waiting.append(outgoing)

    def _notify(self, notification: Notification, related_request_id: RequestId | None = None) -> None:
        # A value without a JSON form is sent as its type's name, which is short, or fails when it is sent.
        with suppress(ValueError, RecursionError):
            self.waiting_bytes += len(json_of(notification.params))
        self._send(notification, related_request_id)

    def _send(
        self, message: Request | Notification | Response | Failure, related_request_id: RequestId | None = None
    ) -> None:
        self.waiting.append(Outgoing(message, related_request_id))
