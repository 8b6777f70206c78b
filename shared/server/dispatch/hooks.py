"""`Hooks`: what the program, the transports and the extensions attach to one run of a server, mostly to observe it.

Hooks are set after the run has been created. They must not block or raise.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ...contracts import Observer, Quota
from ...errors import LimitExceeded
from ...protocol.session.events import Outgoing, UnhandledRequest
from ...protocol.wire.jsonrpc import Message


class Hooks:
    """The callbacks of one run, and the addresses on which it listens."""

    def __init__(self) -> None:
        self.trace: Observer | None = None
        """An observer of the messages of all connections, or None."""
        self.meter: Callable[[], Observer] | None = None
        """Creates, for each new connection, an observer that counts its messages; None if nothing counts them."""
        self.quota: Quota | None = None
        """Limits the number of calls that each client may have in progress; None for no limit."""
        self.on_refused: Callable[[LimitExceeded], None] | None = None
        """Called with the error of each call that is refused because of the client's quota or memory."""
        self.on_unhandled: Callable[[UnhandledRequest], None] | None = None
        """Called with each request that ends before it reaches a handler."""
        self.before_sending: Callable[[], None] | None = None
        """Called before messages are sent to a client, and when a client leaves."""
        self.handshake_callbacks: list[Callable[[Any], None]] = []
        """Called with the `Connection` of each peer that has completed the handshake."""
        self.is_reachable: Callable[[], bool] = lambda: True
        """Returns False if the run forwards to a remote server that can't be reached."""
        self.stoppers: list[Callable[[], None]] = []
        """Called when the run is about to stop, while its clients are still connected."""
        self.endpoints: list[tuple[str, int]] = []
        """The addresses and ports on which the HTTP transport listens."""
        self._is_stopping = False

    def copy_from(self, other: "Hooks") -> None:
        """Copy from `other`, the run that contains this one, the hooks that the program and its transports have set
        there."""
        self.trace, self.meter, self.quota = other.trace, other.meter, other.quota
        self.on_refused, self.endpoints = other.on_refused, other.endpoints

    def make_observer(self) -> Observer | None:
        """Return the observer of a new connection; None if nothing observes it."""
        if self.meter is None:
            return self.trace
        return self.meter() if self.trace is None else _TwoObservers(self.trace, self.meter())

    def stop(self) -> None:
        """Call the stoppers, unless that was done before."""
        if not self._is_stopping:
            self._is_stopping = True
            for stop in self.stoppers:
                stop()


class _TwoObservers:
    """An observer that passes messages to two others."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def on_received(self, message: Message) -> None:
        for observer in self._observers:
            observer.on_received(message)

    def on_sent(self, outgoing: Sequence[Outgoing]) -> None:
        for observer in self._observers:
            observer.on_sent(outgoing)
