"""Who sees every message of a connection besides the two that speak: a trace, and what counts."""

from collections.abc import Sequence
from typing import Protocol

from ..protocol.session.events import Outgoing
from ..protocol.wire.jsonrpc import Message

__all__ = ["Observer", "Observers"]


class Observer(Protocol):
    """Sees every message, e.g. `shared.ops.trace.Trace` and `shared.ops.metrics.Meter`. It never waits or raises."""

    def received(self, message: Message) -> None:
        """Takes note of what came."""

    def sent(self, outgoing: Sequence[Outgoing]) -> None:
        """Takes note of what leaves."""


class Observers:
    """Several as one."""

    def __init__(self, *observers: Observer) -> None:
        self._all = observers

    def received(self, message: Message) -> None:
        """Tells all of them what came."""
        for observer in self._all:
            observer.received(message)

    def sent(self, outgoing: Sequence[Outgoing]) -> None:
        """Tells all of them what leaves."""
        for observer in self._all:
            observer.sent(outgoing)
