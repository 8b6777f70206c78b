"""The shares of clients in the sessions of an endpoint, so that no client takes all of them.

If the maximum number of sessions is open, a new session replaces a session of the client that holds the most.

A client is identified by its address and its principal. Behind a proxy with one token for all, all clients count as
one: a new session can then only replace a session that was opened but never used.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import IPv4Address, ip_address, ip_network
from typing import Any, Protocol

from ....protocol.http.rules import Refusal, refuse
from .rate_limits import ClientQuotas, account_of

TOO_MANY_SESSIONS = refuse(503, "too many sessions are open", Retry_After="60")

UNUSED_SECONDS = 60.0
"""Seconds for which an unused session is protected before the same client can replace it."""
_HANDSHAKE = 1
"""The number of messages after `initialize` that do not count as use: the notification that the client is ready."""


@lru_cache(1_024)
def client_name(principal: str | None, host: str) -> str:
    """Return the name of a client, from its principal and its address."""
    return f"{principal or ''}@{network_of(host)}"


@lru_cache(1_024)
def network_of(host: str) -> str:
    """Return the address or network under which the address `host` is counted: for IPv6 the 64-bit network, within
    which a machine chooses its own addresses."""
    try:
        address = ip_address(host)
    except ValueError:  # a host name, which a proxy may have sent
        return host
    if isinstance(address, IPv4Address):
        return host
    # A dual-stack socket reports IPv4 addresses inside IPv6 addresses (RFC 4291, section 2.5.5.2).
    return str(address.ipv4_mapped or ip_network((address, 64), strict=False))


class CountedSession(Protocol):
    """A session of any kind that is counted here."""

    client: str
    """The name of its client, from `client_name`."""
    request_count: int
    """The number of its requests."""

    @property
    def is_idle(self) -> bool:
        """True if the session is not in use: it may be replaced before sessions that are in use."""

    @property
    def idle_seconds(self) -> float:
        """The seconds for which the session has been idle; 0 if it is in use."""


Evict = Callable[[Any], None]
"""Ends the session that it receives, and removes it from the `Shares`."""


class _Share:
    """The sessions of one client in the order of their use, the most recently used last."""

    __slots__ = ("unused", "used")

    def __init__(self) -> None:
        self.unused: dict[CountedSession, Evict] = {}
        self.used: dict[CountedSession, Evict] = {}

    def __len__(self) -> int:
        return len(self.unused) + len(self.used)


class Shares:
    """The sessions of an endpoint by client."""

    def __init__(self, limit: int, quotas: ClientQuotas | None = None) -> None:
        """`limit` is the maximum of sessions of all clients; `quotas` contains that of one principal."""
        self._limit = limit
        self._quotas = quotas
        self._count = 0
        self._by_account: Counter[str] = Counter()
        self._by_client: dict[str, _Share] = {}

    def add(self, session: CountedSession, evict: Evict) -> None:
        """Add a session; `evict` ends it when its place is needed."""
        self._by_client.setdefault(session.client, _Share()).unused[session] = evict
        self._count += 1
        self._by_account[account_of(session.client)] += 1

    def use(self, session: CountedSession) -> None:
        """Record the use of a session."""
        share = self._by_client[session.client]
        session.request_count += 1
        # `initialized` follows `initialize` automatically: a client that sends only these two has not used its
        # session.
        if session.request_count > _HANDSHAKE:
            sessions = share.used if session in share.used else share.unused
            share.used[session] = sessions.pop(session)

    def remove(self, session: CountedSession) -> None:
        """Remove a session that has ended."""
        share = self._by_client[session.client]
        share.unused.pop(session, None)
        share.used.pop(session, None)
        self._count -= 1
        account = account_of(session.client)
        self._by_account[account] -= 1
        if not self._by_account[account]:
            del self._by_account[account]
        if not share:
            del self._by_client[session.client]

    def make_room(self, client: str) -> Refusal | None:
        """Make room for a new session of `client`, possibly by ending another session. Returns a refusal if that is
        impossible."""
        quotas, account = self._quotas, account_of(client)
        if quotas is not None and self._by_account[account] >= quotas.limits.sessions:
            # A client that has reached its own limit ends one of its unused sessions.
            for other_client, share in self._by_client.items():
                session = _find_first(share.unused, _is_abandoned) if account_of(other_client) == account else None
                if session is not None:
                    share.unused[session](session)
                    return None
            return quotas.too_many_sessions()
        if self._count < self._limit:
            return None
        share, session = self._choose_evicted(client)
        if session is None:
            return TOO_MANY_SESSIONS
        (share.unused.get(session) or share.used[session])(session)
        return None

    def _choose_evicted(self, client: str) -> tuple[_Share, CountedSession | None]:
        """Return the share of the client that holds the most sessions, and the session to end; None if no session may
        be ended."""
        holder, share = max(self._by_client.items(), key=lambda item: len(item[1]))
        if holder == client:
            return share, _find_first(share.unused, _is_abandoned)
        # With the new session, the new client would have at least as many as the holder: the two would replace each
        # other's sessions in turn.
        if len(share) <= len(self._by_client.get(client, ())) + 1:
            return share, None
        session = _find_first(share.unused, _is_idle) or _find_first(share.used, _is_idle)
        # If one client has more than half of all sessions, even sessions in use are ended.
        if session is None and len(share) > self._limit / 2:
            session = _find_first((*share.unused, *share.used))
        return share, session


def _is_idle(session: CountedSession) -> bool:
    return session.is_idle


def _is_abandoned(session: CountedSession) -> bool:
    return session.idle_seconds >= UNUSED_SECONDS


def _find_first(
    sessions: Iterable[CountedSession], matches: Callable[[CountedSession], bool] = lambda _: True
) -> CountedSession | None:
    return next(filter(matches, sessions), None)
