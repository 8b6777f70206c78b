"""Bridge to a third-party server, of any version and over any transport: it forwards every request and notification
in both directions, also between a client and a server of different eras (with sessions, or stateless)."""

from .bridge import Bridge, SessionKind, bridge
from .upstream import Upstream

__all__ = ["Bridge", "SessionKind", "Upstream", "bridge"]
