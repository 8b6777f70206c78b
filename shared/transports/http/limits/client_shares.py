"""Who has how many sessions and requests, so that nobody has all of them.

Who comes when there is no room for a session takes the place of another one of whoever has most; a request without a
session is refused.

A client is an address and a principal together. Behind a proxy, and with one token for all, all clients are one: they
can only take the place of each other's handshakes, which lapse first.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import IPv4Address, ip_address, ip_network
from typing import Any, Protocol

from ....protocol.http.rules import Refusal, refuse
from .rate_limits import Allowances, account_of

TOO_MANY = refuse(503, "too many sessions are open", Retry_After="60")

UNUSED_SECONDS = 60.0
"""How long a session is left alone that its client has not used, before the same client can take its place."""
_HANDSHAKE = 1
"""Requests after `initialize` that are no use yet: the one that says that the client is ready."""


@lru_cache(1_024)
def client_name(principal: str | None, host: str) -> str:
    """The name that an address and a principal have together."""
    return f"{principal or ''}@{network_of(host)}"


@lru_cache(1_024)
def network_of(host: str) -> str:
    """The address that `host` counts as: of IPv6 the network of 64 bits, since a host chooses the rest."""
    try:
        address = ip_address(host)
    except ValueError:  # a name that a proxy has sent
        return host
    if isinstance(address, IPv4Address):
        return host
    # A socket for both kinds has IPv4 addresses within IPv6 addresses (RFC 4291, section 2.5.5.2).
    return str(address.ipv4_mapped or ip_network((address, 64), strict=False))


class Place(Protocol):
    """A session of any kind, as it counts here."""

    client: str
    uses: int
    """How many requests it has had."""

    @property
    def is_idle(self) -> bool:
        """Whether it may go before those that are in use."""

    @property
    def idle_seconds(self) -> float:
        """For how long it has been idle; 0 where it is not."""


GiveWay = Callable[[Any], None]
"""Ends a session, which counts no more when this returns."""


class _Share:
    """The sessions of one client, those that were used last at the end."""

    __slots__ = ("unused", "used")

    def __init__(self) -> None:
        self.unused: dict[Place, GiveWay] = {}
        self.used: dict[Place, GiveWay] = {}

    def __len__(self) -> int:
        return len(self.unused) + len(self.used)


class Shares:
    """The sessions of an endpoint by client."""

    def __init__(self, limit: int, allowances: Allowances | None = None) -> None:
        """`limit` is how many sessions there may be; `allowances` say how many one principal may have."""
        self._limit = limit
        self._allowances = allowances
        self._taken = 0
        self._by_account: Counter[str] = Counter()
        self._by_client: dict[str, _Share] = {}

    def add(self, session: Place, give_way: GiveWay) -> None:
        """A session has been opened; `give_way` ends it when another one needs its place."""
        self._by_client.setdefault(session.client, _Share()).unused[session] = give_way
        self._taken += 1
        self._by_account[account_of(session.client)] += 1

    def use(self, session: Place) -> None:
        """A session is being used."""
        share = self._by_client[session.client]
        session.uses += 1
        # `initialized` follows `initialize` by itself: a client that sends both and then nothing has not used its
        # session.
        if session.uses > _HANDSHAKE:
            held = share.used if session in share.used else share.unused
            share.used[session] = held.pop(session)

    def remove(self, session: Place) -> None:
        """A session has ended."""
        share = self._by_client[session.client]
        share.unused.pop(session, None)
        share.used.pop(session, None)
        self._taken -= 1
        account = account_of(session.client)
        self._by_account[account] -= 1
        if not self._by_account[account]:
            del self._by_account[account]
        if not share:
            del self._by_client[session.client]

    def make_room(self, client: str) -> Refusal | None:
        """Makes room for a new session of `client`, for which another one may have to give way; why there is none,
        where there is none."""
        allowances, account = self._allowances, account_of(client)
        if allowances is not None and self._by_account[account] >= allowances.limits.sessions:
            return self._make_room_of(account, allowances)
        if self._taken < self._limit:
            return None
        share, found = self._yielding(client)
        if found is None:
            return TOO_MANY
        (share.unused.get(found) or share.used[found])(found)
        return None

    def _make_room_of(self, account: str, allowances: Allowances) -> Refusal | None:
        """The same for who has as many as he may: one of his own gives way, that he has not used."""
        for client, share in self._by_client.items():
            found = _first(share.unused, _is_forgotten) if account_of(client) == account else None
            if found is not None:
                share.unused[found](found)
                return None
        return allowances.too_many_sessions()

    def _yielding(self, client: str) -> tuple[_Share, Place | None]:
        """Who has most, and which of his sessions has to give way; None where none has to."""
        holder, share = max(self._by_client.items(), key=lambda item: len(item[1]))
        if holder == client:
            return share, _first(share.unused, _is_forgotten)
        # Who comes would have as many as the one who gives way: places would go to and fro between the two.
        if len(share) <= len(self._by_client.get(client, ())) + 1:
            return share, None
        found = _first(share.unused, _is_idle) or _first(share.used, _is_idle)
        # One client has more than half of all places, and uses them: then even what is in use goes.
        if found is None and len(share) > self._limit / 2:
            found = _first((*share.unused, *share.used))
        return share, found


def _is_idle(session: Place) -> bool:
    return session.is_idle


def _is_forgotten(session: Place) -> bool:
    return session.idle_seconds >= UNUSED_SECONDS


def _first(sessions: Iterable[Place], fits: Callable[[Place], bool] = lambda _: True) -> Place | None:
    return next(filter(fits, sessions), None)
