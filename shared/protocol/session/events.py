"""Values that the protocol core passes to the application, and to the wire."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ...errors import InputRequired, McpError
from ..identity import Peer, Principal
from ..methods import Method
from ..records import record
from ..types.base import Params
from ..wire.jsonrpc import Batch, Failure, Message, Notification, Request, RequestId, Response
from .questions import FIRST_ROUND, Round


@dataclass(slots=True, eq=False)
class Call:
    """A request from the peer, from its admission to its answer. All code that handles the request uses this object.

    It is compared by identity, not by its id, which another call may use as soon as this one is over. From then on it
    has no params: they may take megabytes, and objects with a reference to the call, such as a cancelled task, may
    wait for the garbage collector.
    """

    id: RequestId
    method: Method
    params: Any
    """The validated params, a model."""
    peer: Peer
    raw: Any
    """The params as received, a dict, for data that must be bound to exactly this request."""
    round: Round = FIRST_ROUND
    token: RequestId | None = None
    """The token for its progress notifications, if the peer requested them."""
    weight: int = 0
    """The memory in bytes that its params take."""
    release: Any = None
    """Releases that memory, if it is counted."""
    is_over: bool = False
    """True if it has been answered or cancelled, so that nothing more can be sent about it."""
    link: Any = None
    """The connection on which it arrived."""
    scope: Any = None
    """The scope that cancels the work on it."""
    outlet: Any = None
    """Receives its outcome."""
    scopes: frozenset[str] = frozenset()
    """The scopes that a token needs for it, if they were checked."""
    origin_context: Any = None
    """The context in which it arrived, while it waits for its turn."""
    task: Any = None
    """The object that turns it into a task, and then replaces its peer; None if it can't become one."""
    view: Any = None
    """Further data for a page that shows the result, until the result has it."""
    asked: Any = None
    """The method and params of the questions that it has asked, if any, by key."""
    began: float | None = None
    """The time at which work on it began, by the event loop's clock."""
    _progress: float | None = None

    def end(self) -> None:
        """End the call, which has been answered or cancelled, and drop its params."""
        self.is_over, self.params, self.raw = True, None, None
        if self.release is not None:
            self.release()
            self.release = None

    def advance(self, progress: float) -> bool:
        """Record `progress`; return False if it did not grow, so that it may not be sent (Utilities, Progress)."""
        if self._progress is not None and progress <= self._progress:
            return False
        self._progress = progress
        return True

    @contextmanager
    def act_as(self, method: Method, params: Params) -> Iterator[None]:
        """Make this a request of `method` with `params` during the block, for a peer that has its own form without
        rounds. It remains the same call, with its clock, progress and cancellation."""
        original = self.method, self.params, self.raw
        self.method = replace(method, multi_round=self.method.multi_round, is_stream=self.method.is_stream)
        self.params, self.raw = params, self._make_raw(params, (self.raw or {}).get("_meta"))
        try:
            yield
        finally:
            if not self.is_over:
                self.method, self.params, self.raw = original

    def make_inner(self, method: Method, params: Params) -> "Call":
        """Return an internal request with `params`, made for this call: from the same client, and without progress
        reports."""
        own_meta = (self.raw or {}).get("_meta") or {}
        meta = {name: value for name, value in own_meta.items() if name != "progressToken"}
        raw = self._make_raw(params, meta)
        return replace(
            self, method=method, params=params, raw=raw, round=FIRST_ROUND, token=None, release=None, task=None
        )

    def _make_raw(self, params: Params, meta: dict[str, Any] | None) -> dict[str, Any]:
        raw = {name: value for name, value in params.to_wire().items() if name != "_meta"}
        return {**raw, "_meta": meta} if meta else raw


Outcome = dict[str, Any] | McpError | InputRequired
"""The outcome of a call: a result of the newest version, an error, or questions to the client."""


@record
class Cancelled:
    """The cancellation of `call` by the peer: stop the work. Its id may be reused."""

    call: Call
    reason: str | None = None


@record
class Answered:
    """The peer answered the server's request `id`."""

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
    """None before `initialize`."""
    outcome: Outcome | Failure | None
    """The answer; None for a cancelled request."""


Event = Call | Cancelled | Answered | Opened | RootsChanged | UnknownNotification


@record
class Outgoing:
    """A message for the peer. `related_request_id` is the id of the peer's request to which it belongs, or None; a
    stream ignores it, and HTTP routes by it. Without a message, `related_request_id` was cancelled and gets no
    answer; or, with `retry_ms`, the client may disconnect and wait that long for it, if the transport supports it."""

    message: Request | Notification | Response | Failure | Batch | None
    related_request_id: RequestId | None = None
    retry_ms: int | None = None


@record
class Change:
    """A change to which the peer may have subscribed: of a list (`uri` is None), or of the resource `uri`, whose
    `part` has its own URI (2025-11-25, Resources, Subscriptions)."""

    what: str
    uri: str | None = None
    part: str | None = None


def cancelled_id(message: Message) -> RequestId | None:
    """Return the id of the request that `message` cancels, if any."""
    if not isinstance(message, Notification) or message.method != "notifications/cancelled":
        return None
    id_ = message.params.get("requestId")
    return id_ if type(id_) in (str, int) else None
