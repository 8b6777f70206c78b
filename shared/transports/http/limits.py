"""What sessions may take of an HTTP server, and what all of them have in common."""

from dataclasses import dataclass

from ...contracts import Replica
from ...kit.expiry import ExpiryQueue

__all__ = ["Keeping", "SessionLimits"]


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """What sessions may take."""

    sessions: int = 10_000
    idle_seconds: float = 1_800.0
    """Time without a request or an open stream until a session ends."""
    stream_bytes: int = 1_048_576
    """How far the reader of a stream may fall behind."""
    replay_bytes: int = 1_048_576
    """What one stream keeps for a client that comes back; an answer is kept whatever its size."""
    replay_events: int = 1_000
    """The same in messages."""
    replay_streams: int = 100
    """How many streams that have ended a session keeps."""
    session_replay_bytes: int = 4 * 1_048_576
    """What all streams of a session keep together."""
    total_replay_bytes: int = 256 * 1_048_576
    """What all sessions keep together."""
    replay_seconds: float = 60.0
    """How long a stream that has ended, or that nobody reads, is kept."""
    retry_ms: int = 1_000
    """How long a client should wait before it comes back."""


class Keeping:
    """What the sessions of an endpoint have in common."""

    __slots__ = ("idle", "limits", "log", "replica")

    def __init__(self, limits: SessionLimits, replica: Replica) -> None:
        self.limits = limits
        self.replica = replica
        """What they share with other replicas."""
        self.log = replica.log(limits)
        """What streams keep."""
        self.idle = ExpiryQueue(limits.idle_seconds)
        """The sessions that nobody uses."""
