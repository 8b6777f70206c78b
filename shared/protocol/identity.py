"""Identities: the description of a server, its principals, and the senders of requests with their capabilities."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

from .records import record
from .types.base import Implementation
from .types.client import LogLevel
from .versions import NEWEST, V2024_11_05, Version

LOG_LEVELS = get_args(LogLevel)
"""RFC 5424 severities, least severe first (2025-11-25, Utilities, Logging)."""


def find_capability(capabilities: Any, path: Sequence[str]) -> Any:
    """Return the value at `path` among `capabilities`, which may have any shape; None if it is missing."""
    for name in path:
        capabilities = capabilities.get(name) if isinstance(capabilities, dict) else None
    return capabilities


@record
class LogMessage:
    """The params of `notifications/message` (2025-11-25, Utilities, Logging)."""

    level: LogLevel
    data: Any
    """A string, or any other JSON. Never secrets."""
    logger: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the params of the notification."""
        named = {} if self.logger is None else {"logger": self.logger}
        return {"level": self.level, **named, "data": self.data}


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated sender. Principals with the same key are equal, whatever their tokens allow."""

    key: str
    """A short name that may be logged, unique over all issuers of tokens. Sessions, signed states, and data stored
    for later calls belong to it."""
    name: str = field(default="", compare=False)
    """The name in the operator's settings."""
    scopes: frozenset[str] | None = field(default=None, compare=False)
    """The scopes of the token of this request (RFC 6749, section 3.3); None for everything."""
    client: str | None = field(default=None, compare=False)
    """The program that acts on the principal's behalf, as named by the issuer of the token."""
    expires: float | None = field(default=None, compare=False)
    """The time at which the token expires, in seconds since 1970; None for never."""
    is_revoked: Callable[[], bool] | None = field(default=None, compare=False)
    """Returns True if the token is known to be revoked, without making a request."""


@record
class Span:
    """The peers to which a capability is declared, with versions from `first` to `last`."""

    first: Version = V2024_11_05
    last: Version = NEWEST
    principals_only: bool = False
    """True if the capability is declared only to authenticated peers."""

    def has(self, version: Version, principal: Principal | None) -> bool:
        """Return True if the capability is declared to a peer of that version with that `principal`."""
        fits = self.first.order <= version.order <= self.last.order
        return fits and not (self.principals_only and principal is None)

    def union(self, other: "Span") -> "Span":
        """Return the union of both spans."""
        first = min(self.first, other.first, key=lambda version: version.order)
        last = max(self.last, other.last, key=lambda version: version.order)
        return Span(first, last, self.principals_only and other.principals_only)


EVERYWHERE = Span()
"""All peers."""


@dataclass(frozen=True)
class Identity:
    """Name, instructions and capabilities, in the newest version's form; `shaping` converts them for older ones."""

    implementation: Implementation
    instructions: str | None = None
    """Instructions for the model about the use of the server; hosts cut them at 2 KiB."""
    capabilities: dict[str, Any] = field(default_factory=dict)
    spans: Mapping[tuple[str, ...], Span] = field(default_factory=dict)
    """The peers to which a capability is declared, by path. A capability without a span is declared to all peers."""
    log_level: LogLevel | None = "info"
    """The lowest level that peers with a handshake receive before they set one, chosen by the server; None for no
    log messages at all."""
    conditions: Mapping[str, LogMessage] = field(default_factory=dict)
    """The current conditions, sent to peers that set a level; they change while the server runs."""

    @cached_property
    def server_info(self) -> dict[str, Any]:
        """The implementation in the form that is sent."""
        return self.implementation.to_wire()

    def has(self, path: tuple[str, ...]) -> bool:
        """Return True if the capability `path` is declared."""
        return find_capability(self.capabilities, path) not in (None, False)

    def capabilities_for(self, version: Version, principal: Principal | None = None) -> dict[str, Any]:
        """Return the capabilities for a peer of that `version` with that `principal`.

        The map of extensions is in the schema of 2026-07-28 only; older versions allow capabilities they don't know,
        and the hosts of extensions use those versions. So all peers get it, except those whose methods came later.
        """
        capabilities = self.capabilities
        for path, span in self.spans.items():
            if span is not EVERYWHERE and not span.has(version, principal):
                capabilities = _remove(capabilities, path)
        # An empty map has no meaning, and old clients need not see it.
        return capabilities if capabilities.get("extensions", True) else _remove(capabilities, ("extensions",))


def _remove(capabilities: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return these capabilities without the one at `path`."""
    name, rest = path[0], path[1:]
    if name not in capabilities:
        return capabilities
    if rest:
        return {**capabilities, name: _remove(capabilities[name], rest)}
    return {other: value for other, value in capabilities.items() if other != name}


@dataclass(frozen=True, slots=True)
class Peer:
    """The peer as seen by one request. It is frozen, so that a later request can't change the view of an earlier
    one."""

    version: Version
    capabilities: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] | None = None
    """The peer's name for itself: untrusted, for display only."""
    log_level: str | None = None
    """The lowest level of log messages to send, or None for no messages."""
    principal: Principal | None = None
    """The principal from the transport; sessions, subscriptions and signed state belong to it."""
    session: int | None = None
    """The number of its session among all sessions of this server, over all replicas."""

    @property
    def owner(self) -> str | None:
        """The owner of data that outlasts a request: the authenticated principal, or the session. None for a request
        without a session: anyone who knows the name of its data can access it."""
        if self.principal is not None:
            return self.principal.key
        return None if self.session is None else f"session {self.session}"

    def own_list(self, name: str) -> str:
        """Return the name of a list that differs between principals, so that a cursor of one is invalid for
        another."""
        return name if self.principal is None else f"{name}:{self.principal.key}"

    @property
    def has_handshake(self) -> bool:
        """True if information about the peer from one request remains valid for the next, because it has completed a
        handshake."""
        return not self.version.stateless

    @property
    def version_date(self) -> str:
        """The version it uses, as a date, for display: use the other properties to check abilities."""
        return self.version.date

    @property
    def may_request_tasks(self) -> bool:
        """True if the peer may request a task with `params.task`."""
        return self.version.task_requests

    def can(self, *path: str) -> bool:
        """Return True if the peer declared this capability, e.g. `can("sampling", "tools")`."""
        # An empty object declares a capability: most capabilities are written as `{}`.
        return find_capability(self.capabilities, path) is not None

    def wants_log(self, level: str) -> bool:
        """Return True if the peer should receive a message of this level."""
        return self.log_level is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(self.log_level)
