"""What the core hands to the application, and what it hands to the wire."""

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
    """A request of the peer's from its admission to its answer: whoever has to do with it holds this one object.

    It is told from others by what it is and not by its id, which may be another call's as soon as this one is over.
    From then on it has no params: they may be megabytes, and what holds the call may be left to the garbage
    collector, as a task that was cancelled is.
    """

    id: RequestId
    method: Method
    params: Any
    """Validated: a model."""
    peer: Peer
    raw: Any
    """The params as they came, a dict, for what must be bound to the very request."""
    round: Round = FIRST_ROUND
    token: RequestId | None = None
    """What its reports of progress are marked with, where the peer wants any."""
    weight: int = 0
    """Bytes of memory that its params take."""
    release: Any = None
    """Gives these bytes back, where they are accounted for."""
    is_over: bool = False
    """Whether it is answered, or cancelled: nothing more can be said of it."""
    link: Any = None
    """The connection that it came on, for whoever serves it."""
    scope: Any = None
    """What cancels the work on it."""
    outlet: Any = None
    """Who is told what comes of it."""
    scopes: frozenset[str] = frozenset()
    """What a token needs for it, where that was looked at."""
    came_in: Any = None
    """The context that it came in, while it waits for a place."""
    task: Any = None
    """What makes a task of it, and then stands for its peer; None where it can become none."""
    view: Any = None
    """What a page that shows the result needs besides, until the result has it."""
    began: float | None = None
    """When the work on it began, by the clock of the event loop."""
    _progress: float | None = None

    def end(self) -> None:
        """Ends it: it is answered, or cancelled, and its params are given up."""
        self.is_over, self.params, self.raw = True, None, None
        if self.release is not None:
            self.release()
            self.release = None

    def advance(self, progress: float) -> bool:
        """Records `progress`; False where it did not grow, which may not be sent (Utilities, Progress)."""
        if self._progress is not None and progress <= self._progress:
            return False
        self._progress = progress
        return True

    @contextmanager
    def standing_for(self, method: Method, params: Params) -> Iterator[None]:
        """As long as the block this is a request of `method` with `params`, for which the peer has a form of its own
        that has no rounds. It stays the same call: its clock, its progress, what it is cancelled by."""
        own = self.method, self.params, self.raw
        self.method = replace(method, multi_round=self.method.multi_round, is_stream=self.method.is_stream)
        self.params, self.raw = params, self._raw_of(params, (self.raw or {}).get("_meta"))
        try:
            yield
        finally:
            if not self.is_over:
                self.method, self.params, self.raw = own

    def inner(self, method: Method, params: Params) -> "Call":
        """A request of our own with `params`, made for this call: of the same client, and without a word of its
        progress."""
        said = (self.raw or {}).get("_meta") or {}
        meta = {name: value for name, value in said.items() if name != "progressToken"}
        raw = self._raw_of(params, meta)
        return replace(
            self, method=method, params=params, raw=raw, round=FIRST_ROUND, token=None, release=None, task=None
        )

    def _raw_of(self, params: Params, meta: dict[str, Any] | None) -> dict[str, Any]:
        raw = {name: value for name, value in params.to_wire().items() if name != "_meta"}
        return {**raw, "_meta": meta} if meta else raw


Outcome = dict[str, Any] | McpError | InputRequired
"""What comes of a call: a result of the newest version, an error, or questions to the client."""


@record
class Cancelled:
    """The peer no longer wants the answer to `call`: stop the work. Its id is free already."""

    call: Call
    reason: str | None = None


@record
class Answered:
    """The peer answered our request `id`."""

    id: RequestId
    answer: Response | Failure


@record
class Opened:
    """The handshake is complete: the peer may be told and asked from now on."""


@record
class RootsChanged:
    """The peer's roots are others now."""


@record
class Told:
    """The peer has sent a notification that means nothing to this package."""

    method: str
    params: dict[str, Any]


@record
class Settled:
    """A request that ended before any handler had it: the session answered or refused it, or it was cancelled while
    it waited for its turn."""

    method: str
    """Empty for what is no request, or no valid one."""
    params: dict[str, Any]
    principal: Principal | None
    peer: Peer | None
    """None before `initialize`."""
    outcome: Outcome | Failure | None
    """What it was answered with; None for one that was cancelled."""


Event = Call | Cancelled | Answered | Opened | RootsChanged | Told


@record
class Outgoing:
    """A message for the peer. `about` is the id of the peer's request it belongs to, or None: a stream
    ignores it, HTTP routes by it. No message means that `about` was cancelled and gets no answer; or, with
    `retry_ms`, that the client may wait so long for it without a connection, where the transport has such a thing."""

    message: Request | Notification | Response | Failure | Batch | None
    about: RequestId | None = None
    retry_ms: int | None = None


@record
class Change:
    """Something the peer may have subscribed to has changed: a list (`uri` None) or the resource `uri`, of which
    `part` has a URI of its own (2025-11-25, Resources, Subscriptions)."""

    what: str
    uri: str | None = None
    part: str | None = None


def cancelled_id(message: Message) -> RequestId | None:
    """The request that `message` cancels, if it does."""
    if not isinstance(message, Notification) or message.method != "notifications/cancelled":
        return None
    id_ = message.params.get("requestId")
    return id_ if type(id_) in (str, int) else None
