"""What the core hands to the application, and what it hands to the wire."""

from typing import Any

from ..methods import Method
from ..peer import Peer
from ..records import record
from ..wire.jsonrpc import Batch, Failure, Notification, Request, RequestId, Response

__all__ = ["Answered", "Call", "Cancelled", "Change", "Event", "Outgoing"]


@record
class Call:
    """A request that the application must answer with `respond` or `fail`. `params` are validated."""

    id: RequestId
    method: Method
    params: Any
    peer: Peer


@record
class Cancelled:
    """The peer no longer wants the answer to `id`: stop the work. The id is free already."""

    id: RequestId
    reason: str | None = None


@record
class Answered:
    """The peer answered our request `id`."""

    id: RequestId
    answer: Response | Failure


Event = Call | Cancelled | Answered


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
    """Something the peer may have subscribed to has changed: a list (`uri` None) or the resource `uri`."""

    what: str
    uri: str | None = None
