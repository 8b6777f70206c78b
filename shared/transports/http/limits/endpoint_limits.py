"""The limits of requests and sessions of an HTTP server, and the state that all its sessions share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ....concurrency import ExpiryQueue
from ....contracts import ReplayLimits, Replica
from ....protocol.records import record


@record
class SessionLimits(ReplayLimits):
    """The limits of sessions."""

    sessions: int = 10_000
    idle_seconds: float = 1_800.0
    """Seconds without a request or an open stream after which a session ends."""
    retry_ms: int = 1_000
    """Milliseconds that a client should wait before it reconnects."""


@record
class ClientLimits:
    """The limits of one principal, or of one address without authentication."""

    per_second: float = 1_000.0
    """Requests per second, in the long run."""
    burst: float = 10_000.0
    """Requests that may arrive at once, after a pause."""
    calls: int = 512
    """Simultaneous requests, over all connections."""
    sessions: int = 10_000
    """Simultaneous sessions at one server."""
    day_bytes: int = 100 * 1024**3
    """Bytes of bodies and messages per day, in both directions. Used bytes become available evenly over the day."""


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """The limits of one request, of all requests, and of sessions."""

    body_bytes: int = 4 * 1_048_576
    body_seconds: float = 30.0
    keep_alive_seconds: float = 15.0
    """Seconds after which a comment is sent on a stream, and a ping on a WebSocket."""
    requests: int = 1_024
    """Simultaneous requests without a session. Requests for a listen stream, which remains open, are counted
    separately: there may be as many of them as sessions. One client may hold at most half of either."""
    sessions: SessionLimits = field(default_factory=SessionLimits)
    clients: ClientLimits | None = None
    """The limits of one principal; None if principals have no limits."""
    dialects: bool = False
    """True if the message of a POST may be in a dialect of `protocol/wire/dialects`."""


class SharedSessionState:
    """The state that all sessions of an endpoint share."""

    __slots__ = ("event_log", "idle", "limits", "store")

    def __init__(self, limits: SessionLimits, replica: Replica, on_unused: Callable[[Any], None]) -> None:
        """`on_unused` is called with a session that has been unused for too long."""
        self.limits = limits
        self.store, self.event_log = replica.sessions, replica.log(limits)
        """The sessions, and the messages on their streams, which other replicas may share."""
        self.idle = ExpiryQueue(limits.idle_seconds, on_unused)
        """The unused sessions."""
