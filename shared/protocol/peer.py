"""Who sent a request and what it can do: the one result of both lifecycles."""

from dataclasses import dataclass, field
from typing import Any

from .identity import Principal
from .versions import Version

__all__ = ["LOG_LEVELS", "Peer"]

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""RFC 5424 severities, mildest first (2025-11-25, Utilities, Logging)."""


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
    """Whom the transport authenticated; sessions, subscriptions and sealed state belong to it."""

    session: int | None = None
    """Which of all sessions of this server, over all its replicas, it shook hands in."""

    @property
    def owner(self) -> str | None:
        """To whom belongs what outlasts a request: to whom the transport authenticated, else to the session. None for
        a request that stands for itself: there whoever knows the name of such a thing may have it."""
        if self.principal is not None:
            return self.principal.key
        return None if self.session is None else f"session {self.session}"

    @property
    def lasts(self) -> bool:
        """Whether what is learned of it in one request holds in the next: it shook hands."""
        return not self.version.stateless

    def can(self, *path: str) -> bool:
        """Whether it declared this capability, e.g. `can("sampling", "tools")`."""
        node: Any = self.capabilities
        for name in path:
            if not isinstance(node, dict) or node.get(name) is None:
                return False
            node = node[name]
        return True

    def wants_log(self, level: str) -> bool:
        """Whether a message of this level should reach it."""
        return self.log_level is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(self.log_level)
