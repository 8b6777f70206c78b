"""Bridge to a third-party server, of any version and over any transport. It forwards every request and notification
in both directions, also if only one of client and server has sessions and the other is stateless."""

from .bridge import Bridge, CallRoute, bridge
from .upstream import Upstream

__all__ = ["Bridge", "CallRoute", "Upstream", "bridge"]
