"""What requests and sessions may take of an HTTP server, and what all sessions have in common."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ....concurrency import ExpiryQueue
from ....contracts import ReplayLimits, Replica
from ....protocol.records import record


@record
class SessionLimits(ReplayLimits):
    """What sessions may take."""

    sessions: int = 10_000
    idle_seconds: float = 1_800.0
    """Time without a request or an open stream until a session ends."""
    retry_ms: int = 1_000
    """How long a client should wait before it comes back."""


@record
class ClientLimits:
    """What one principal may take, or one address where nobody is authenticated."""

    per_second: float = 1_000.0
    """Requests, in the long run."""
    burst: float = 10_000.0
    """Requests at once, after a time of rest."""
    calls: int = 512
    """Requests that are served at the same time, over all connections."""
    sessions: int = 10_000
    """Sessions of one server."""
    day_bytes: int = 100 * 1024**3
    """Bytes of bodies and messages a day, both ways. What is used up comes back evenly."""


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """What one request may take, and all of them and all sessions together."""

    body_bytes: int = 4 * 1_048_576
    body_seconds: float = 30.0
    keep_alive_seconds: float = 15.0
    """Pause after which a comment is sent on a stream, and a ping on a WebSocket."""
    requests: int = 1_024
    """Requests without a session that are served at once, besides as many listen streams as there may be sessions.
    One client has half of either at most."""
    sessions: SessionLimits = field(default_factory=SessionLimits)
    clients: ClientLimits | None = None
    """What one principal may take; None for as much as there is."""
    dialects: bool = False
    """Whether a POST may speak a dialect of `protocol/wire/dialects`."""


class Keeping:
    """What the sessions of an endpoint have in common."""

    __slots__ = ("idle", "limits", "log", "store")

    def __init__(self, limits: SessionLimits, replica: Replica, unused: Callable[[Any], None]) -> None:
        """`unused` is told of a session that nobody has used for too long."""
        self.limits = limits
        self.store, self.log = replica.sessions, replica.log(limits)
        """What they share with other replicas."""
        self.idle = ExpiryQueue(limits.idle_seconds, unused)
        """The sessions that nobody uses."""
