"""The requests under way, in both directions. Every change of this state is one method here."""

from dataclasses import dataclass
from typing import Any

from .jsonrpc import RequestId
from .methods import Method
from .peer import Peer
from .rounds import Round

__all__ = ["Exchange", "InFlight"]


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


class Exchange:
    """Ids in use. "7" and 7 are different ids, as they are different JSON."""

    def __init__(self) -> None:
        self._incoming: dict[RequestId, InFlight] = {}
        self._outgoing: dict[RequestId, RequestId] = {}
        self._last_id = 0

    def register(self, id: RequestId, entry: InFlight) -> bool:
        """Enters a request of the peer's; False where its id is in use."""
        if id in self._incoming:
            return False
        self._incoming[id] = entry
        return True

    def find(self, id: RequestId) -> InFlight | None:
        """The request of the peer's under that id, while it is unanswered."""
        return self._incoming.get(id)

    def complete(self, id: RequestId) -> InFlight | None:
        """Takes the request out: it is answered or cancelled, and its id is free."""
        return self._incoming.pop(id, None)

    def ask(self, about: RequestId) -> int:
        """A fresh id for a request of ours, made while serving the peer's request `about`."""
        self._last_id += 1
        self._outgoing[self._last_id] = about
        return self._last_id

    def settle(self, id: RequestId | None) -> RequestId | None:
        """Takes our request `id` out: answered or withdrawn. The request it was about, or None if unknown."""
        return self._outgoing.pop(id, None) if id is not None else None
