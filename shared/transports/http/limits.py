"""What sessions may take of an HTTP server, and the count of what they keep for clients that come back."""

from dataclasses import dataclass

from ...kit.expiry import ExpiryQueue

__all__ = ["Keeping", "Room", "SessionLimits"]


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


class Room:
    """How much is kept, here and in what is around it."""

    __slots__ = ("_limit", "_outer", "used")

    def __init__(self, limit: int, outer: "Room | None" = None) -> None:
        self.used = 0
        self._limit = limit
        self._outer = outer

    def add(self, size: int) -> None:
        """So many bytes are kept from now on; fewer, where negative."""
        self.used += size
        if self._outer is not None:
            self._outer.add(size)

    @property
    def is_full(self) -> bool:
        """Whether something must go."""
        return self.used > self._limit or (self._outer is not None and self._outer.is_full)


class Keeping:
    """What the sessions of an endpoint keep, and for how long."""

    __slots__ = ("idle", "limits", "room", "unread")

    def __init__(self, limits: SessionLimits) -> None:
        self.limits = limits
        self.room = Room(limits.total_replay_bytes)
        """The bytes kept in all of them."""
        self.idle = ExpiryQueue(limits.idle_seconds)
        """The sessions that nobody uses."""
        self.unread = ExpiryQueue(limits.replay_seconds)
        """The streams that nobody reads."""
