"""`Hooks`: callbacks into the program, the transports and the extensions around one run of a server.

They are set after the run was made. None of them waits or raises, unless it says so.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ...contracts import Observer, Quota
from ...errors import LimitExceeded
from ...protocol.session.events import Outgoing, Settled
from ...protocol.wire.jsonrpc import Message


class Hooks:
    """The callbacks of one run."""

    def __init__(self) -> None:
        self.trace: Observer | None = None
        """Sees all messages of all connections, where somebody wants them."""
        self.meter: Callable[[], Observer] | None = None
        """Makes what counts for a new connection, where somebody wants the counts."""
        self.quota: Quota | None = None
        """Says how many calls each client may have under way, where somebody does."""
        self.on_refused: Callable[[LimitExceeded], None] | None = None
        """Hears of calls that are refused before anybody is asked, where somebody counts them."""
        self.on_settled: Callable[[Settled], None] | None = None
        """Is told of requests that end before any handler has them."""
        self.greeters: list[Callable[[Any], None]] = []
        """Who hears of the `Connection` of each peer that has shaken hands."""
        self.is_there: Callable[[], bool] = lambda: True
        """Whether what the run stands for can be reached, where that is elsewhere."""
        self.stoppers: list[Callable[[], None]] = []
        """Who hears that the run is about to stop, while its clients are still there."""
        self.endpoints: list[tuple[str, int]] = []
        """The addresses and ports that its HTTP transport listens on."""
        self._is_stopping = False

    def follow(self, other: "Hooks") -> None:
        """Takes over what a program and its transports have set at the run that this one is a part of."""
        self.trace, self.meter, self.quota = other.trace, other.meter, other.quota
        self.on_refused, self.endpoints = other.on_refused, other.endpoints

    def observer(self) -> Observer | None:
        """Who sees all messages of a new connection, where anybody does."""
        if self.meter is None:
            return self.trace
        return self.meter() if self.trace is None else _Both(self.trace, self.meter())

    def stop(self) -> None:
        """Tells that the run is about to stop, once."""
        if not self._is_stopping:
            self._is_stopping = True
            for stop in self.stoppers:
                stop()


class _Both:
    """Two observers as one."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def received(self, message: Message) -> None:
        for observer in self._observers:
            observer.received(message)

    def sent(self, outgoing: Sequence[Outgoing]) -> None:
        for observer in self._observers:
            observer.sent(outgoing)
