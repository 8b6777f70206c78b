"""Who has how many sessions and requests, so that nobody has all of them.

Who comes when there is no room for a session takes the place of another one of whoever has most; a request without a
session is refused.

A client is an address and a principal together. Behind a proxy, and with one token for all, all clients are one: they
can only take the place of each other's handshakes, which lapse first.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, TypeAlias

from ...kit.expiry import ExpiryQueue

if TYPE_CHECKING:
    from .session import HttpSession
    from .websocket_session import WebSocketSession  # loaded with the first of them

    Sharing: TypeAlias = HttpSession | WebSocketSession
    """What has a place among the sessions."""

__all__ = ["Portions", "Shares", "client_name"]

UNUSED_SECONDS = 60.0
"""How long a session is left alone that its client has not used, before the same client can take its place."""
_HANDSHAKE = 1
"""Requests after `initialize` that are no use yet: the one that says that the client is ready."""


@lru_cache(1_024)
def client_name(principal: str | None, host: str) -> str:
    """One name for whoever shares an address and a principal; of an IPv6 address the network counts, since a host
    chooses the rest."""
    try:
        address = ip_address(host)
    except ValueError:
        return f"{principal or ''}@{host}"
    network = ip_network((address, 64), strict=False) if address.version == 6 else address
    return f"{principal or ''}@{network}"


class _Share:
    """The sessions of one client, those that were used last at the end."""

    __slots__ = ("unused", "used")

    def __init__(self) -> None:
        self.unused: dict[Sharing, None] = {}
        self.used: dict[Sharing, None] = {}

    def __len__(self) -> int:
        return len(self.unused) + len(self.used)


class Shares:
    """The sessions of an endpoint by client."""

    def __init__(self, limit: int, idle: ExpiryQueue) -> None:
        """`limit` is how many sessions there may be; `idle` knows since when each of them is idle."""
        self._limit = limit
        self._idle = idle
        self._by_client: dict[str, _Share] = {}

    def add(self, session: "Sharing") -> None:
        """A session has been opened."""
        self._by_client.setdefault(session.client, _Share()).unused[session] = None

    def use(self, session: "Sharing") -> None:
        """A session is being used."""
        share = self._by_client[session.client]
        session.uses += 1
        if session.uses > _HANDSHAKE:
            share.unused.pop(session, None)
            share.used.pop(session, None)
            share.used[session] = None

    def remove(self, session: "Sharing") -> None:
        """A session has ended."""
        share = self._by_client[session.client]
        share.unused.pop(session, None)
        share.used.pop(session, None)
        if not share:
            del self._by_client[session.client]

    def yielding(self, client: str) -> "Sharing | None":
        """The session that has to make room for a new one of `client`; None where none has to."""
        holder, share = max(self._by_client.items(), key=lambda item: len(item[1]))
        if holder == client:
            return _first(share.unused, lambda one: self._idle.waited(one) >= UNUSED_SECONDS)
        if len(share) <= len(self._by_client.get(client, ())) + 1:
            return None
        found = _first(share.unused, _is_idle) or _first(share.used, _is_idle)
        if found is None and len(share) > self._limit / 2:
            found = _first((*share.unused, *share.used))
        return found


class Portions:
    """How many of `limit` each client has: as many as are left for others at most, so alone half of them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._by_client: Counter[str] = Counter()

    def take(self, client: str) -> bool:
        """Takes one, if the client may have one more."""
        if self._by_client.get(client, 0) >= self._limit - self._by_client.total():
            return False
        self._by_client[client] += 1
        return True

    def give(self, client: str) -> None:
        """Gives one back."""
        self._by_client[client] -= 1
        if not self._by_client[client]:
            del self._by_client[client]


def _is_idle(session: "Sharing") -> bool:
    return not session.streams


def _first(sessions: "Iterable[Sharing]", fits: "Callable[[Sharing], bool]" = lambda _: True) -> "Sharing | None":
    return next(filter(fits, sessions), None)
