"""The values that a `ServerSession` passes to the application (calls and other events) and to the transport."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ...errors import InputRequired, McpError
from ..identity import Peer, Principal
from ..methods import Method
from ..records import mutable_record, record
from ..types.base import Params
from ..wire.jsonrpc import Batch, Failure, Message, Notification, Request, RequestId, Response
from .questions import FIRST_ROUND, Round


@mutable_record
class Call:
    """An admitted request from the peer. All code that handles the request uses this object, until its answer.

    Calls are compared by identity, because another call may use the same id as soon as this one is over. A call that
    is over has no params: they may take megabytes, and objects that refer to the call, such as a cancelled task, may
    exist until the garbage collector runs.
    """

    id: RequestId
    method: Method
    params: Any
    """The params as a validated model."""
    peer: Peer
    raw: Any
    """The params as received, a dict. Signed states are bound to them."""
    round: Round = FIRST_ROUND
    """The round that this request begins, if it takes several (2026-07-28, multi-round-trip requests)."""
    token: RequestId | None = None
    """The progress token, if the peer requested progress notifications."""
    weight: int = 0
    """The memory in bytes that the params take."""
    release: Any = None
    """A function to call at the end, which subtracts that memory from the total; None if it was not counted."""
    is_over: bool = False
    """True if the call has been answered or cancelled, so that nothing more may be sent for it."""
    link: Any = None
    """The connection on which the call arrived."""
    cancel_scope: Any = None
    """The cancel scope of the work on the call."""
    outlet: Any = None
    """The object that receives the outcome."""
    scopes: frozenset[str] = frozenset()
    """The OAuth scopes that a token needs for the call, if they were checked."""
    origin_context: Any = None
    """The context variables with which the call arrived, while it waits to begin."""
    task: Any = None
    """The object that can turn the call into a task, and then takes the place of its peer; None if none can."""
    view: Any = None
    """Additional data for the app that shows the result, which is added to the result."""
    questions: Any = None
    """The requests to the client that the call has made, by key: method and params. None if there were none."""
    began: float | None = None
    """The time at which work on the call began, on the event loop's clock; None before."""
    _progress: float | None = None

    def end(self) -> None:
        """Mark the call as over, and drop its params."""
        self.is_over, self.params, self.raw = True, None, None
        if self.release is not None:
            self.release()
            self.release = None

    def advance(self, progress: float) -> bool:
        """Record `progress`. Return False if it has not grown, since it may not be sent then (Utilities,
        Progress)."""
        if self._progress is not None and progress <= self._progress:
            return False
        self._progress = progress
        return True

    @contextmanager
    def act_as(self, method: Method, params: Params) -> Iterator[None]:
        """Make this call one of another `method` with other `params` during the block. A method of a dialect is
        served in this way by the standard method. Time limit, progress and cancellation of the call remain."""
        original = self.method, self.params, self.raw
        self.method = replace(method, multi_round=self.method.multi_round, is_stream=self.method.is_stream)
        self.params, self.raw = params, self._make_raw(params, (self.raw or {}).get("_meta"))
        try:
            yield
        finally:
            if not self.is_over:
                self.method, self.params, self.raw = original

    def make_inner(self, method: Method, params: Params) -> "Call":
        """Return an internal call of another method that the server makes for this call. It has the same peer, but
        reports no progress."""
        outer_meta = (self.raw or {}).get("_meta") or {}
        meta = {name: value for name, value in outer_meta.items() if name != "progressToken"}
        raw = self._make_raw(params, meta)
        return replace(
            self, method=method, params=params, raw=raw, round=FIRST_ROUND, token=None, release=None, task=None
        )

    def _make_raw(self, params: Params, meta: dict[str, Any] | None) -> dict[str, Any]:
        raw = {name: value for name, value in params.to_wire().items() if name != "_meta"}
        return {**raw, "_meta": meta} if meta else raw


Outcome = dict[str, Any] | McpError | InputRequired
"""The outcome of a call: a result in the form of the newest version, an error, or requests for input."""


@record
class Cancelled:
    """The peer has cancelled `call`: the work on it has to stop. The peer may use its id again."""

    call: Call
    reason: str | None = None


@record
class Answered:
    """One side's request `id` was answered by the other."""

    id: RequestId
    answer: Response | Failure


@record
class Opened:
    """The handshake is complete: the peer may receive notifications and requests from now on."""


@record
class RootsChanged:
    """The roots of the peer have changed."""


@record
class UnknownNotification:
    """The peer has sent an unknown notification."""

    method: str
    params: dict[str, Any]


@record
class UnhandledRequest:
    """A request that ended before it reached a handler: the session answered or refused it, or it was cancelled while
    it waited for its turn."""

    method: str
    """The method; empty for an invalid request."""
    params: dict[str, Any]
    principal: Principal | None
    peer: Peer | None
    """The peer of the session's handshake; None if there was none."""
    outcome: Outcome | Failure | None
    """The answer; None if the request was cancelled."""


Event = Call | Cancelled | Answered | Opened | RootsChanged | UnknownNotification


@record
class Outgoing:
    """A message for the peer. `related_request_id` is the id of the peer's request to which it belongs, or None. HTTP
    uses it to find the stream; other transports ignore it.

    Without a message, the request `related_request_id` will not be answered, because it was cancelled. With
    `retry_ms` too, the request continues, but if the transport supports it, the client may disconnect now and
    reconnect after that many milliseconds.
    """

    message: Request | Notification | Response | Failure | Batch | None
    related_request_id: RequestId | None = None
    retry_ms: int | None = None


@record
class Change:
    """A change to which a peer may have subscribed."""

    kind: str
    """The kind of list whose entries have changed, such as "tools"; "resources" for the change of a resource."""
    uri: str | None = None
    """The resource that has changed; None if the list has."""
    part: str | None = None
    """The part of that resource that has changed, as the URI to report (2025-11-25, Resources, Subscriptions)."""


def cancelled_id(message: Message) -> RequestId | None:
    """Return the id of the request that `message` cancels; None if it is not a cancellation."""
    if not isinstance(message, Notification) or message.method != "notifications/cancelled":
        return None
    id_ = message.params.get("requestId")
    return id_ if type(id_) in (str, int) else None
