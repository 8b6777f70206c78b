"""Who is who: what a server says of itself, whom it serves, and who sent a request and what it can do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

from .records import record
from .types.base import Implementation
from .types.client import LogLevel
from .versions import NEWEST, V2024_11_05, Version

LOG_LEVELS = get_args(LogLevel)
"""RFC 5424 severities, mildest first (2025-11-25, Utilities, Logging)."""


def declared(capabilities: Any, path: Sequence[str]) -> Any:
    """What stands at `path` among `capabilities`; None where nothing does. They may be of any shape."""
    for name in path:
        capabilities = capabilities.get(name) if isinstance(capabilities, dict) else None
    return capabilities


@record
class LogMessage:
    """What `notifications/message` tells (2025-11-25, Utilities, Logging)."""

    level: LogLevel
    data: Any
    """A text, or any other JSON. Never secrets."""
    logger: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """The params of the notification."""
        named = {} if self.logger is None else {"logger": self.logger}
        return {"level": self.level, **named, "data": self.data}


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody whom a transport has authenticated. Two of one key are the same, whatever their tokens allow."""

    key: str
    """Who that is, as a short name that may be logged, unique over all who issue tokens. Sessions, signed states, and
    what is kept for later calls belong to it."""
    name: str = field(default="", compare=False)
    """What the settings of an operator call it."""
    scopes: frozenset[str] | None = field(default=None, compare=False)
    """What the token of this request allows (RFC 6749, section 3.3); None for everything."""
    client: str | None = field(default=None, compare=False)
    """The program that acts for it, as the issuer of the token calls that."""
    expires: float | None = field(default=None, compare=False)
    """When the token ceases to be valid, in seconds since 1970; None for never."""
    is_revoked: Callable[[], bool] | None = field(default=None, compare=False)
    """Says whether the token was taken back, where that can be told without asking anybody."""


@record
class Span:
    """Whom a capability is declared to: peers of the versions from `first` to `last`."""

    first: Version = V2024_11_05
    last: Version = NEWEST
    principals_only: bool = False
    """Nobody else than those that a transport has authenticated."""

    def has(self, version: Version, principal: Principal | None) -> bool:
        """Whether a peer of that version, which is `principal`, is told of it."""
        fits = self.first.order <= version.order <= self.last.order
        return fits and not (self.principals_only and principal is None)

    def united(self, other: "Span") -> "Span":
        """All whom one of the two has."""
        first = min(self.first, other.first, key=lambda version: version.order)
        last = max(self.last, other.last, key=lambda version: version.order)
        return Span(first, last, self.principals_only and other.principals_only)


EVERYWHERE = Span()
"""All peers are told."""


@dataclass(frozen=True)
class Identity:
    """Name, instructions and capabilities, in the newest version's words; `shaping` fits them to older ones."""

    implementation: Implementation
    instructions: str | None = None
    """How to use the server, for the model; hosts cut it at 2 KiB."""
    capabilities: dict[str, Any] = field(default_factory=dict)
    spans: Mapping[tuple[str, ...], Span] = field(default_factory=dict)
    """Whom a capability is declared to, by its path; one that has no span, to everybody."""
    log_level: LogLevel | None = "info"
    """The mildest level that peers with a handshake get before they ask for one, which is the server's choice; None
    for no log messages at all."""
    standing: Mapping[str, LogMessage] = field(default_factory=dict)
    """What holds at this time, and is told to who asks for a level; it changes while the server runs."""

    @cached_property
    def server_info(self) -> dict[str, Any]:
        """The implementation as on the wire."""
        return self.implementation.to_wire()

    def has(self, path: tuple[str, ...]) -> bool:
        """Whether the capability `path` is declared."""
        return declared(self.capabilities, path) not in (None, False)

    def capabilities_in(self, version: Version, principal: Principal | None = None) -> dict[str, Any]:
        """What a peer of that `version`, which is `principal`, is told it can do.

        The map of extensions is in the schema of 2026-07-28 only; older versions allow capabilities they don't know,
        and the hosts of extensions speak those versions. So all get it, but for those whose methods came later.
        """
        told = self.capabilities
        for path, span in self.spans.items():
            if span is not EVERYWHERE and not span.has(version, principal):
                told = _without(told, path)
        # An empty map says nothing, and old clients need not see it.
        return told if told.get("extensions", True) else _without(told, ("extensions",))


def _without(capabilities: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """These capabilities but for what stands at `path`."""
    name, rest = path[0], path[1:]
    if name not in capabilities:
        return capabilities
    if rest:
        return {**capabilities, name: _without(capabilities[name], rest)}
    return {other: value for other, value in capabilities.items() if other != name}


@dataclass(frozen=True, slots=True)
class Peer:
    """The other side as one request sees it; frozen, so that a later request can't change an earlier one's."""

    version: Version
    capabilities: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] | None = None
    """What the peer calls itself: untrusted, for display only."""
    log_level: str | None = None
    """The mildest level it wants, or None for no log messages at all."""
    principal: Principal | None = None
    """Whom the transport authenticated; sessions, subscriptions and signed state belong to it."""
    session: int | None = None
    """Which of all sessions of this server, over all its replicas, it shook hands in."""

    @property
    def owner(self) -> str | None:
        """To whom belongs what outlasts a request: to whom the transport authenticated, else to the session. None for
        a request that stands for itself: there whoever knows the name of such a thing may have it."""
        if self.principal is not None:
            return self.principal.key
        return None if self.session is None else f"session {self.session}"

    def own_list(self, name: str) -> str:
        """What a list of that name is called which is another one for each principal, so that nobody goes on in it by
        the cursor of somebody else."""
        return name if self.principal is None else f"{name}:{self.principal.key}"

    @property
    def lasts(self) -> bool:
        """Whether what is learned of it in one request holds in the next: it shook hands."""
        return not self.version.stateless

    @property
    def speaks(self) -> str:
        """The version it speaks, as it is written, for people who look: what it can do is told by the others."""
        return self.version.date

    @property
    def may_request_tasks(self) -> bool:
        """Whether it may ask for a task by `params.task`."""
        return self.version.task_requests

    def can(self, *path: str) -> bool:
        """Whether it declared this capability, e.g. `can("sampling", "tools")`."""
        # An empty object declares it: `{}` is how most capabilities are written.
        return declared(self.capabilities, path) is not None

    def wants_log(self, level: str) -> bool:
        """Whether a message of this level should reach it."""
        return self.log_level is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(self.log_level)
