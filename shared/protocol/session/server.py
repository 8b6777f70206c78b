"""One peer's side of the protocol, without I/O: messages in, events and messages out.

Feed each decoded message to `receive`; carry out the events it returns; then send what `outgoing` gives.
The session answers by itself what needs no application: `initialize`, `ping`, `server/discover`,
`logging/setLevel`, and every protocol error. It never raises for what the peer did. A request that becomes
a `Call` ends by exactly one of `respond`, `fail` or `require_input`; when the peer has cancelled it meanwhile,
those do nothing.

Both eras live side by side: a request whose `_meta` names a protocol version is stateless, any other belongs
to the handshake.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from ...errors import InputRequired, InvalidRequest, McpError, RpcError
from ..identity import Identity
from ..methods import MethodTable
from ..peer import Peer
from ..shaping import SUBSCRIPTION_ID, shape, shape_question
from ..signing import Seal
from ..types.lifecycle import CancelledParams
from ..wire.jsonrpc import Batch, Failure, Malformed, Message, Notification, Request, RequestId, Response, failure
from .admission import Admission
from .batches import MAX_BATCH, Batches
from .builtins import answer
from .events import Answered, Call, Cancelled, Change, Event, Outgoing
from .exchange import Asked, InFlight
from .failures import explain, is_result
from .handshake import Handshake, State
from .questions import Question, brought_answers, require_capabilities
from .rounds import close_state
from .subscriptions import Listen, Subscriptions

__all__ = ["ServerSession"]


class ServerSession:
    """The protocol with one peer: a process on a pipe, an HTTP session, or a single stateless request."""

    def __init__(
        self,
        identity: Identity,
        methods: MethodTable,
        seal: Seal,
        *,
        principal: str | None = None,
        now: Callable[[], float],
    ) -> None:
        self.subscriptions = Subscriptions()
        self.principal = principal
        self.roots_changed = 0
        """How often the peer has said that its roots are others now."""
        self._identity = identity
        self._seal = seal
        self._now = now
        self._handshake = Handshake(principal)
        self._admission = Admission(methods, self._handshake, seal, now)
        self._in_flight: dict[RequestId, InFlight] = {}
        self._asked = Asked()
        self._batches: Batches | None = None
        self.waiting: list[Outgoing] = []
        """The messages that `outgoing` will give."""

    # What the peer sent

    def receive(self, message: Message) -> list[Event]:
        """Takes one message in; what the application must do about it."""
        if isinstance(message, Batch):
            return self._batch(message)
        event = self._request(message) if isinstance(message, Request) else self._one(message)
        return [] if event is None else [event]

    def outgoing(self) -> list[Outgoing]:
        """The messages due to the peer, oldest first; each is given once."""
        waiting, self.waiting = self.waiting, []
        return waiting

    def rest(self) -> None:
        """Nothing comes for a while: what is empty gives up the room that it had."""
        self._in_flight = self._in_flight or {}

    def _one(self, message: Message) -> Event | None:
        match message:
            case Request():
                return self._request(message)
            case Notification():
                return self._notification(message)
            case Response() | Failure():
                return self._answered(message)
            case Malformed(silent=False):
                self._reply(message.failure)
        return None

    def _batch(self, batch: Batch) -> list[Event]:
        peer = self._handshake.peer
        if peer is None or not peer.version.batching:
            return self._refuse_batch("batches exist in one older protocol version only")
        if len(batch.messages) > MAX_BATCH:
            return self._refuse_batch(f"a batch may hold {MAX_BATCH} messages at most")
        batches = self._batches = self._batches or Batches()
        events = [event for event in map(self._one, batches.open(batch)) if event is not None]
        self._queue(batches.close())
        return events

    def _refuse_batch(self, reason: str) -> list[Event]:
        self._send(failure(None, InvalidRequest(reason)))
        return []

    def _request(self, request: Request) -> Event | None:
        try:
            entry, params = self._admission.admit(request, self.principal)
            if request.id in self._in_flight:
                raise InvalidRequest("this id is in use by a request that has no answer yet")
        except RpcError as error:
            self._reply(failure(request.id, error))
            return None
        self._in_flight[request.id] = entry
        call = Call(request.id, entry.method, params, entry.peer)
        if not entry.method.built_in:
            if self._batches is not None:
                self._batches.expect(call.id)
            return call
        self._answer(call, entry)
        return None

    def _answer(self, call: Call, entry: InFlight) -> None:
        try:
            result = answer(call, self._identity, self._handshake)
        except RpcError as error:
            self.fail(call.id, error)
            return
        if call.method.name == "initialize" and self._handshake.peer is not None:
            entry.peer = self._handshake.peer
        self.respond(call.id, result)

    def _notification(self, message: Notification) -> Event | None:
        match message.method:
            case "notifications/initialized":
                self._handshake.initialized()
            case "notifications/cancelled":
                return self._cancelled(message)
            case "notifications/roots/list_changed":
                self.roots_changed += 1
        return None

    def _cancelled(self, message: Notification) -> Event | None:
        try:
            params = CancelledParams.model_validate(message.params)
        except ValidationError:
            return None
        return self.cancel(params.request_id, params.reason)

    def _answered(self, message: Response | Failure) -> Event | None:
        if message.id is None or self._asked.settle(message.id) is None:
            return None
        return Answered(message.id, message)

    # What the application says

    def cancel(self, id: RequestId, reason: str | None = None) -> Cancelled | None:
        """Drops a call: its answer is no longer wanted. None where nothing is under way under that id."""
        if self._in_flight.pop(id, None) is None:
            return None
        self.subscriptions.close(id)
        batches = self._batches
        self._queue(batches.drop(id) if batches is not None and batches.has(id) else Outgoing(None, id))
        return Cancelled(id, reason)

    def respond(self, id: RequestId, result: dict[str, Any]) -> None:
        """Answers a call with `result`, built for the newest version."""
        entry = self._in_flight.pop(id, None)
        if entry is not None:
            answer = Response(id, shape(entry.method, result, entry.peer.version, self._identity.server_info))
            if self._batches is None:
                self.waiting.append(Outgoing(answer, id))
            else:
                self._reply(answer)

    def fail(self, id: RequestId, error: McpError) -> None:
        """Answers a call with an error, or with the result that this version wants in its place."""
        entry = self._in_flight.get(id)
        if entry is None:
            return
        if is_result(error, entry):
            self.respond(id, {"content": [{"type": "text", "text": str(error)}], "isError": True})
        else:
            del self._in_flight[id]
            self._reply(failure(id, explain(error, entry.peer)))

    def ask(self, about: RequestId, questions: Mapping[str, Question]) -> dict[str, Any]:
        """Asks the client while serving the call `about`.

        In the handshake era requests go out, and each key gives the id to wait for, an int. Without one,
        each key gives the answer that the call brought along, a model.

        Raises MissingCapability for what the client did not declare, InputRequired for what it has not
        answered yet, InvalidParams for an answer that does not fit, InvalidRequest when the call is over.
        """
        entry = self._in_flight.get(about)
        if entry is None:
            raise InvalidRequest("this call is over")
        require_capabilities(questions, entry.peer)
        if entry.peer.version.stateless:
            return brought_answers(questions, entry.round.answers, entry.peer.version)
        return {key: self._ask_now(about, entry.peer, question) for key, question in questions.items()}

    def _ask_now(self, about: RequestId, peer: Peer, question: Question) -> int:
        id_ = self._asked.enter(about)
        params = shape_question(question.method, question.params, peer.version)
        self._send(Request(id_, question.method, params), about)
        return id_

    def require_input(self, id: RequestId, asked: InputRequired) -> None:
        """Answers a stateless call with questions, and a sealed state that comes back with the answers."""
        entry = self._in_flight.get(id)
        if entry is None:
            return
        name, params = entry.method.name, entry.params
        try:
            state = close_state(name, params, self.principal, entry.round, seal=self._seal, now=self._now())
        except RpcError as error:
            self.fail(id, error)
        else:
            result = {"resultType": "input_required", "inputRequests": asked.requests, "requestState": state}
            self.respond(id, result)

    def withdraw(self, id: Any, reason: str) -> None:
        """Takes a request of ours back; nothing where it is answered, or was never sent."""
        about = self._asked.settle(id) if isinstance(id, int) else None
        if about is not None:
            self._send(Notification("notifications/cancelled", {"requestId": id, "reason": reason}), about)

    def notify(self, about: RequestId | None, method: str, params: dict[str, Any]) -> None:
        """Sends a notification that belongs to the call `about`; nothing where that call is over."""
        if about is None or self._in_flight.get(about) is not None:
            self._send(Notification(method, params), about)

    def progress(self, id: RequestId, progress: float, total: float | None, message: str | None) -> None:
        """Tells the peer how far its call is, if it gave a token and `progress` has grown."""
        entry = self._in_flight.get(id)
        if entry is None or entry.progress_token is None or not entry.advance(progress):
            return
        report = {"progressToken": entry.progress_token, "progress": progress, "total": total, "message": message}
        params = {name: value for name, value in report.items() if value is not None}
        self.notify(
            id, "notifications/progress", shape_question("notifications/progress", params, entry.peer.version)
        )

    def log(self, id: RequestId, level: str, data: Any, logger: str | None) -> None:
        """Sends a log message about a call, if logging is declared and the peer wants that level."""
        entry = self._in_flight.get(id) if self._identity.has(("logging",)) else None
        if entry is not None:
            # The log level of the handshake may be another one since the call came.
            peer = entry.peer if entry.peer.version.stateless else self._handshake.peer or entry.peer
            if peer.wants_log(level):
                named = {} if logger is None else {"logger": logger}
                self.notify(id, "notifications/message", {"level": level, **named, "data": data})

    # Subscriptions

    def acknowledge(self, listen: Listen) -> None:
        """Opens a listen stream: from here on its changes are delivered."""
        if self._in_flight.get(listen.id) is None:
            return
        self.subscriptions.listen(listen)
        params = {"_meta": {SUBSCRIPTION_ID: listen.id}, "notifications": listen.honoured()}
        self._send(Notification("notifications/subscriptions/acknowledged", params), listen.id)

    def deliver(self, change: Change) -> None:
        """Tells the peer of `change` wherever it asked for it."""
        is_open = self._handshake.state is State.OPEN
        for notification, about in self.subscriptions.matching(change, handshake_open=is_open):
            self._send(notification, about)

    def end_listen(self, id: RequestId) -> None:
        """Ends a listen stream from our side: the result that one page of the specification asks for, then the
        notification that another one does. A client that saw the notification first would take it for a loss."""
        if self.subscriptions.close(id) is None:
            return
        meta = {SUBSCRIPTION_ID: id}
        self.respond(id, {"_meta": meta})
        self._send(Notification("notifications/cancelled", {"_meta": meta, "requestId": id}), id)

    # Inside

    def _reply(self, answer: Response | Failure) -> None:
        if self._batches is not None and self._batches.takes(answer):
            self._queue(self._batches.add(answer))
        else:
            self.waiting.append(Outgoing(answer, answer.id))

    def _queue(self, outgoing: Outgoing | None) -> None:
        if outgoing is not None:
            self.waiting.append(outgoing)

    def _send(self, message: Request | Notification | Response | Failure, about: RequestId | None = None) -> None:
        self.waiting.append(Outgoing(message, about))
