"""The requests under way, in both directions. Ids "7" and 7 are different, as they are different JSON."""

from dataclasses import dataclass
from typing import Any

from ..methods import Method
from ..peer import Peer
from ..wire.jsonrpc import RequestId
from .rounds import Round

__all__ = ["Asked", "InFlight"]


@dataclass(slots=True)
class InFlight:
    """A request of the peer's that has no answer yet."""

    method: Method
    peer: Peer
    params: dict[str, Any]
    """As they came, for what must be bound to the very request."""
    round: Round
    progress_token: RequestId | None = None
    progress: float | None = None

    def advance(self, progress: float) -> bool:
        """Records `progress`; False where it did not grow, which may not be sent (Utilities, Progress)."""
        if self.progress is not None and progress <= self.progress:
            return False
        self.progress = progress
        return True


class Asked:
    """Our own requests that have no answer yet, each with the request of the peer's it is about."""

    __slots__ = ("_about", "_last_id")

    def __init__(self) -> None:
        self._about: dict[RequestId, RequestId] = {}
        self._last_id = 0

    def enter(self, about: RequestId) -> int:
        """A fresh id for a request of ours, made while serving the peer's request `about`."""
        self._last_id += 1
        self._about[self._last_id] = about
        return self._last_id

    def settle(self, id: RequestId | None) -> RequestId | None:
        """Takes our request `id` out: answered or withdrawn. The request it was about, or None if unknown."""
        return self._about.pop(id, None) if id is not None else None
