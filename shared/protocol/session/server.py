"""The server's side of a session with one peer, without I/O.

The caller passes each decoded message to `receive`, handles the events that it returns, and then sends the messages
that `outgoing` returns. The session itself handles everything that does not need the application: `initialize`,
`ping`, `server/discover`, `logging/setLevel`, and all protocol errors. It never raises because of an error of the
peer. A request that becomes a `Call` ends with `finish` or `cancel`; after that nothing more is sent for it.

A session may contain requests of both eras: one whose `_meta` contains a protocol version is stateless, any other
belongs to the handshake. `questions.py` says what questions are.
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
from ..shaping import outcome_for_peer, shape, shape_request
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
"""The requests, one in each era, after which the client receives the messages about current conditions."""


_NO_SCOPES: frozenset[str] = frozenset()
"""The empty set that all sessions share, since each of their own would take 216 bytes."""


class ServerSession:
    """The server's side of a session: with a process on a pipe, over HTTP, or for a single stateless request."""

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
        """`replica` is the number of this process among those that share their sessions, below 2^20. It makes the ids
        of questions and of sessions unique. If there is a single process, it is 0."""
        self.principal = principal
        """The sender of all messages, with the scopes of its current token."""
        self.needed_scopes = _NO_SCOPES
        """All OAuth scopes that calls of the peer have needed so far. A client that reconnects to read their answers
        needs them too."""
        self.on_unhandled: Callable[[UnhandledRequest], None] | None = None
        """A function to call with requests that end before they reach a handler."""
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
        """Size in bytes of the notifications in `waiting` whose size depends on the server's author."""

    # Persistent state

    def snapshot(self) -> Snapshot:
        """Return the part of the session that other replicas need to continue it."""
        return Snapshot(self._handshake.state, self._handshake.peer, self.roots_changed, self.needed_scopes)

    def restore(self, snapshot: Snapshot) -> None:
        """Replace the part of the session that `snapshot` returns. Calls, questions and subscriptions remain."""
        self._handshake.state, self._handshake.peer = snapshot.state, snapshot.peer
        self.roots_changed = snapshot.roots_changed
        self.add_needed_scopes(snapshot.needed_scopes)

    def number_questions(self, numbers: Iterator[int]) -> None:
        """Take the numbers in the ids of questions from `numbers`, which all sessions of this replica share. So a
        session that moves to another replica and comes back uses no id twice."""
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
        """The memory in bytes of results that wait for other answers of their batches."""
        return 0 if self._batches is None else self._batches.size

    def is_in_batch(self, call: Call) -> bool:
        """Return True if `call` came in a batch."""
        return self._batches is not None and self._batches.has(call.id)

    @property
    def subscription_count(self) -> int:
        """The number of resources that the peer has subscribed to."""
        return 0 if self._subscriptions is None else len(self._subscriptions.subscribed)

    def set_log_level(self, level: str) -> None:
        """Set the lowest level of log messages that the peer of the handshake receives, as it has requested."""
        self._handshake.set_log_level(level)

    def has_state(self, snapshot: Snapshot) -> bool:
        """Return True if `snapshot()` would equal `snapshot`; creating a new one would cost more."""
        handshake = self._handshake
        return (
            handshake.peer is snapshot.peer
            and handshake.state is snapshot.state
            and self.roots_changed == snapshot.roots_changed
            and self.needed_scopes == snapshot.needed_scopes
        )

    def add_needed_scopes(self, scopes: frozenset[str]) -> None:
        """Add the OAuth scopes of a call to `needed_scopes`."""
        if not scopes <= self.needed_scopes:
            self.needed_scopes |= scopes

    # Messages from the peer

    def receive(self, message: Message) -> list[Event]:
        """Handle one message, and return the events for the application."""
        if not isinstance(message, Request):
            return self._receive_batch(message) if isinstance(message, Batch) else self._handle(message)
        try:
            call = self._admission.admit(message, self.principal)
            # An id may be used again only after the answer; until then, the answer could belong to either request.
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
        # Created with the first batch: only one version has batches, and hardly any client sends them.
        batches = self._batches = self._batches or Batches()
        events = [event for message in batches.open(batch) for event in self.receive(message)]
        self._append(batches.close())
        return events

    def _refuse_batch(self, reason: str) -> list[Event]:
        # The error concerns the whole batch, so it has no id.
        self._answer_invalid(failure(None, InvalidRequest(reason)))
        return []

    def _answer_invalid(self, refusal: Failure) -> None:
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
        # `call.peer` is the peer as it was before the handshake, but the answer must have the form of the version
        # that was just negotiated.
        if call.method.name == "initialize" and self._handshake.peer is not None:
            call.peer = self._handshake.peer
        if call.method.name in _LEVEL_METHODS:
            for message in self._identity.conditions.values():
                self.log(call, message.level, message.data, message.logger)
        self.finish(call, result)

    def _handle(self, message: Message) -> list[Event]:
        match message:
            case Notification(method="notifications/initialized"):
                # If it arrives too early or for a second time, it is ignored, since a notification is never answered
                # (JSON-RPC 2.0, section 4.1).
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
                if answer.id is not None and self._questions.remove(answer.id) is not None:
                    return [Answered(answer.id, answer)]
            case Malformed(silent=False):
                self._answer_invalid(message.failure)
        return []

    # Messages from the application

    def finish(self, call: Call, outcome: Outcome) -> None:
        """Answer `call` with `outcome`, which is converted to the form of the peer's version. Requests for input get
        a signed state, which the client sends back with its answers. Does nothing if the call is over."""
        if call.is_over:
            return
        converted = outcome if isinstance(outcome, dict) else self._convert_outcome(call, outcome)
        answer: Response | Failure
        if isinstance(converted, dict):
            answer = Response(call.id, shape(call.method, converted, call.peer.version, self._identity.server_info))
        else:
            answer = failure(call.id, converted)
        if self.on_unhandled is not None and call.began is None:
            self._report_unhandled(call, outcome)
        # The same as `Call.end`, which is called only for the few calls that have something to release.
        call.is_over, call.params, call.raw = True, None, None
        if call.release is not None:
            call.end()
        del self._calls[call.id]
        # An emptied dict would keep its memory, which is a tenth of an idle session's.
        self._calls = self._calls or {}
        if self._batches is None:
            self.waiting.append(Outgoing(answer, call.id))
        else:
            self._reply(answer)

    def cancel(self, call: Call) -> None:
        """End a call without an answer, because the peer has cancelled it. Does nothing if the call is over."""
        if call.is_over:
            return
        self._report_unhandled(call, None)
        call.end()
        del self._calls[call.id]
        self.subscriptions.close(call.id)
        batches = self._batches
        is_in_batch = batches is not None and batches.has(call.id)
        self._append(batches.drop(call.id) if batches is not None and is_in_batch else Outgoing(None, call.id))

    def abandon(self) -> list[Call]:
        """End all calls of a disconnected peer without an answer, and return them."""
        calls, self._calls = list(self._calls.values()), {}
        for call in calls:
            self._report_unhandled(call, None)
            call.end()
        return calls

    def ask(self, call: Call, questions: Mapping[str, Question]) -> dict[str, Any]:
        """Ask the client the `questions`, given by key, during `call`.

        In a session with a handshake, requests are sent. Return their ids by key; the answers arrive later, as
        `Answered`. In the stateless era, return the answers that came with the call by key, as models.

        Raises MissingCapability for an undeclared capability, InputRequired for questions that the call has no answer
        to, InvalidParams for an invalid answer, and InvalidRequest if the call is over.
        """
        if call.is_over:
            raise InvalidRequest("this call has ended")
        require_capabilities(questions, call.peer)
        # From 2026-07-28 on, the server sends no requests: the call ends with its questions, and the client repeats
        # it with the answers (multi-round-trip requests).
        if call.peer.version.stateless:
            return read_answers(questions, call.round.answers, call.peer.version)
        ids: dict[str, Any] = {}
        for key, question in questions.items():
            id_ = ids[key] = self._questions.add(call.id)
            params = shape_request(question.method, question.params, call.peer.version)
            self._send(Request(id_, question.method, params), call.id)
        return ids

    def ask_standalone(self, question: Question) -> int:
        """Ask the client a question independently of its calls, which needs a handshake. Return the id of the
        request; the answer arrives later, as `Answered`.

        Raises MissingCapability for an undeclared capability, and InvalidRequest without a completed handshake.
        """
        peer = self._handshake.peer
        # Before `initialized` a server may send nothing but pings and log messages (2025-11-25, Lifecycle).
        if peer is None or self._handshake.state is not State.OPEN:
            raise InvalidRequest("there is no open session through which to ask the client")
        require_capabilities({"": question}, peer)
        id_ = self._questions.add(STANDALONE)
        self._send(Request(id_, question.method, shape_request(question.method, question.params, peer.version)))
        return id_

    def withdraw(self, id: Any) -> None:
        """Cancel the question `id`, whose answer is no longer needed. Does nothing if it has been answered, or was
        never sent."""
        subject = self._questions.remove(id) if isinstance(id, int) else None
        if subject is not None:
            params = {"requestId": id, "reason": "no longer needed"}
            self._send(
                Notification("notifications/cancelled", params), None if isinstance(subject, Enum) else subject
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
        """Send a progress notification with `meta`, if the peer sent a progress token and `progress` has grown."""
        if call.is_over or call.token is None or not call.advance(progress):
            return
        fields: dict[str, Any] = {"progress": progress, "total": total, "message": message, "_meta": meta or None}
        report = {"progressToken": call.token, **fields}
        params = {name: value for name, value in report.items() if value is not None}
        method = "notifications/progress"
        self.notify(call, method, shape_request(method, params, call.peer.version))

    def log(self, call: Call, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message that belongs to a call, if the server declared logging and the peer wants that level."""
        if self.wants_log(call, level):
            self.notify(call, _LOG_METHOD, LogMessage(level, data, logger).to_wire())

    def wants_log(self, call: Call, level: LogLevel) -> bool:
        """Return True if `log` would send anything."""
        if call.is_over or not self._identity.has(("logging",)):
            return False
        # The peer may have changed the log level of the handshake after this call began.
        peer = call.peer if call.peer.version.stateless else self._handshake.peer or call.peer
        return peer.wants_log(level)

    def notify_session(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification that does not belong to a call. Does nothing before the handshake is complete."""
        if self._handshake.state is State.OPEN:
            self._notify(Notification(method, params))

    def announce(self, message: LogMessage) -> None:
        """Send a log message that does not belong to a call, if the server declared logging, and the peer has
        completed a handshake and wants that level. In the stateless era, every log message belongs to a request."""
        peer = self._handshake.peer
        if peer is None or self._handshake.state is not State.OPEN or not self._identity.has(("logging",)):
            return
        if peer.wants_log(message.level):
            self._send(Notification(_LOG_METHOD, message.to_wire()))

    def pause(self, call: Call, retry_ms: int) -> None:
        """Allow the client to disconnect while the call continues, if its version and the transport support it."""
        # In older versions a stream has no first event from which to resume, and its end means the end of the
        # request.
        if not call.is_over and call.peer.version.priming_events:
            self.waiting.append(Outgoing(None, call.id, retry_ms))

    # Subscriptions

    @property
    def subscriptions(self) -> Subscriptions:
        """The subscriptions of the peer."""
        self._subscriptions = self._subscriptions or Subscriptions()  # few peers have any
        return self._subscriptions

    def acknowledge(self, call: Call, listen: Listen) -> None:
        """Begin a stream of `subscriptions/listen`. The changes in its filter are sent from now on."""
        if call.is_over:
            return
        self.subscriptions.listen(listen)
        params = {"_meta": {SUBSCRIPTION_ID: listen.id}, "notifications": listen.acknowledged_filter()}
        self._send(Notification("notifications/subscriptions/acknowledged", params), listen.id)

    def deliver(self, change: Change) -> None:
        """Notify the peer of `change`, once for each subscription that includes it."""
        is_open = self._handshake.state is State.OPEN
        for notification, related_request_id in self.subscriptions.notifications_for(change, handshake_open=is_open):
            self._send(notification, related_request_id)

    def end_listen(self, call: Call) -> None:
        """End a stream of `subscriptions/listen` from the server's side. One page of the specification requires a
        result for this and another a notification, so both are sent."""
        if call.is_over or self.subscriptions.close(call.id) is None:
            return
        # On a pipe, all streams share one sequence of messages, in which the id identifies them (2026-07-28, stdio).
        meta = {SUBSCRIPTION_ID: call.id}
        # The result comes first: after the notification alone, a client would assume that the stream was lost.
        self.finish(call, {"_meta": meta})
        self._send(Notification("notifications/cancelled", {"_meta": meta, "requestId": call.id}), call.id)

    # Private methods

    def _convert_outcome(self, call: Call, outcome: McpError | InputRequired) -> dict[str, Any] | RpcError:
        if isinstance(outcome, InputRequired):
            name, ended_round = call.method.name, call.round
            try:
                if outcome.carried is not None:
                    ended_round = replace(ended_round, answers={}, carried=outcome.carried)
                state = sign_state(name, call.raw, self.principal, ended_round, signer=self._signer, now=self._now())
            except RpcError as error:
                return error
            return {"resultType": "input_required", "inputRequests": outcome.requests, "requestState": state}
        return outcome_for_peer(outcome, call.method, call.peer)

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
        # A value that JSON can't express is not counted: either the short name of its type is sent instead, or
        # sending fails.
        with suppress(ValueError, RecursionError):
            self.waiting_bytes += len(json_of(notification.params))
        self._send(notification, related_request_id)

    def _send(
        self, message: Request | Notification | Response | Failure, related_request_id: RequestId | None = None
    ) -> None:
        self.waiting.append(Outgoing(message, related_request_id))
