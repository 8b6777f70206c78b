"""What sessions may take of an HTTP server, and what all of them have in common."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...contracts import ReplayLimits, Replica
from ...kit.expiry import ExpiryQueue

__all__ = ["Keeping", "SessionLimits"]


@dataclass(frozen=True, slots=True)
class SessionLimits(ReplayLimits):
    """What sessions may take."""

    sessions: int = 10_000
    idle_seconds: float = 1_800.0
    """Time without a request or an open stream until a session ends."""
    retry_ms: int = 1_000
    """How long a client should wait before it comes back."""


class Keeping:
    """What the sessions of an endpoint have in common."""

    __slots__ = ("bus", "idle", "limits", "log", "store")

    def __init__(self, limits: SessionLimits, replica: Replica, unused: Callable[[Any], None]) -> None:
        """`unused` is told of a session that nobody has used for too long."""
        self.limits = limits
        self.store, self.bus, self.log = replica.sessions, replica.bus, replica.log(limits)
        """What they share with other replicas."""
        self.idle = ExpiryQueue(limits.idle_seconds, unused)
        """The sessions that nobody uses."""
