"""The two sides of a session in requests: the `Identity` of the server, and the `Peer`, with its `Principal`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

from .records import frozen_record, record
from .types.base import Implementation
from .types.client import LogLevel
from .versions import NEWEST, V2024_11_05, Version

LOG_LEVELS = get_args(LogLevel)
"""The severities of RFC 5424, the least severe first (2025-11-25, Utilities, Logging)."""


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
    """A string or any other JSON, without secrets."""
    logger: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the params of the notification."""
        logger = {} if self.logger is None else {"logger": self.logger}
        return {"level": self.level, **logger, "data": self.data}


@frozen_record
class Principal:
    """An authenticated sender. Principals with the same key are equal, even if their tokens have different scopes."""

    key: str
    """A short name, unique over all issuers of tokens, which may be logged. Sessions, signed states, and data stored
    for later calls belong to the principal with this key."""
    name: str = ""
    """The name in the operator's settings."""
    scopes: frozenset[str] | None = None
    """The scopes of this request's token (RFC 6749, section 3.3); None if the token allows everything."""
    client: str | None = None
    """The program that acts on the principal's behalf, as named by the issuer of the token."""
    expires: float | None = None
    """The time at which the token expires, in seconds since 1970; None for never."""
    is_revoked: Callable[[], bool] | None = None
    """A function that returns True if the token is known to be revoked; it makes no request."""

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Principal) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)


@record
class Audience:
    """The peers to which a capability is declared: those with a protocol version from `first` to `last`."""

    first: Version = V2024_11_05
    last: Version = NEWEST
    principals_only: bool = False
    """True if the capability is declared only to authenticated peers."""

    def includes(self, version: Version, principal: Principal | None) -> bool:
        """Return True if the capability is declared to a peer of that version with that `principal`."""
        is_in_range = self.first.order <= version.order <= self.last.order
        return is_in_range and not (self.principals_only and principal is None)

    def union(self, other: "Audience") -> "Audience":
        """Return the narrowest audience that includes both."""
        first = min(self.first, other.first, key=lambda version: version.order)
        last = max(self.last, other.last, key=lambda version: version.order)
        return Audience(first, last, self.principals_only and other.principals_only)


ALL_PEERS = Audience()
"""All peers."""


@dataclass(frozen=True, eq=False, repr=False)
class Identity:
    """A server's description of itself, in the form of the newest version; `shaping.py` converts it to older ones."""

    implementation: Implementation
    instructions: str | None = None
    """Instructions for the model about the use of the server; hosts cut them off after 2 KiB."""
    capabilities: dict[str, Any] = field(default_factory=dict)
    audiences: Mapping[tuple[str, ...], Audience] = field(default_factory=dict)
    """The peers to which a capability is declared, by its path. One without an entry is declared to all peers."""
    log_level: LogLevel | None = "info"
    """The lowest level of log messages that a peer with a handshake receives before it sets a level; None for no log
    messages at all."""
    conditions: Mapping[str, LogMessage] = field(default_factory=dict)
    """Messages about conditions that hold at present, such as a server that can't be reached, by name. A peer
    receives them when it sets a level. They change while the server runs."""

    @cached_property
    def server_info(self) -> dict[str, Any]:
        """The implementation in the form that is sent."""
        return self.implementation.to_wire()

    def has(self, path: tuple[str, ...]) -> bool:
        """Return True if the capability `path` is declared."""
        return find_capability(self.capabilities, path) not in (None, False)

    def capabilities_for(self, version: Version, principal: Principal | None = None) -> dict[str, Any]:
        """Return the capabilities for a peer of that `version` with that `principal`.

        Only the schema of 2026-07-28 has the field `extensions`. But older versions allow unknown capabilities, and
        hosts that support extensions use these versions, so peers of all versions receive it. Extensions whose
        methods exist only in newer versions have a narrower audience.
        """
        capabilities = self.capabilities
        for path, audience in self.audiences.items():
            if audience is not ALL_PEERS and not audience.includes(version, principal):
                capabilities = _remove(capabilities, path)
        # An empty `extensions` means nothing, so old clients, which don't know the field, don't receive it.
        return capabilities if capabilities.get("extensions", True) else _remove(capabilities, ("extensions",))


def _remove(capabilities: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return `capabilities` without the one at `path`."""
    name, rest = path[0], path[1:]
    if name not in capabilities:
        return capabilities
    if rest:
        return {**capabilities, name: _remove(capabilities[name], rest)}
    return {other: value for other, value in capabilities.items() if other != name}


@frozen_record
class Peer:
    """The peer as one request sees it. It is frozen, so a later request, such as one that sets the log level, doesn't
    change what an earlier one sees."""

    version: Version
    capabilities: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] | None = None
    """The peer's description of itself, with `name` and `version`: untrusted, for display only."""
    log_level: str | None = None
    """The lowest level of log messages to send, or None for no messages."""
    principal: Principal | None = None
    """The authenticated sender, from the transport; it owns the session, its subscriptions and its signed states."""
    session: int | None = None
    """The number of its session, unique over all replicas; None without a session."""

    @property
    def owner(self) -> str | None:
        """The owner of data that outlives the request: the principal, or without authentication the session. None if
        there is neither: anyone who knows the name of the data can then access it."""
        if self.principal is not None:
            return self.principal.key
        return None if self.session is None else f"session {self.session}"

    def name_for_principal(self, name: str) -> str:
        """Return the name under which to sign cursors of a list that differs between principals, so that a cursor of
        one principal is invalid for another."""
        return name if self.principal is None else f"{name}:{self.principal.key}"

    @property
    def has_handshake(self) -> bool:
        """True if the peer's version has `initialize`, so that what it declared there applies to all requests."""
        return not self.version.stateless

    @property
    def version_date(self) -> str:
        """The date of its protocol version, for display. Code reads the other properties."""
        return self.version.date

    @property
    def may_request_tasks(self) -> bool:
        """True if the peer may request a task with `params.task`."""
        return self.version.task_requests

    def can(self, *path: str) -> bool:
        """Return True if the peer declared the capability at `path`, e.g. `can("sampling", "tools")`."""
        # Most capabilities are declared as `{}`, so an empty object counts.
        return find_capability(self.capabilities, path) is not None

    def wants_log(self, level: str) -> bool:
        """Return True if the peer should receive a message of this level."""
        return self.log_level is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(self.log_level)
