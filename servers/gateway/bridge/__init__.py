"""Bridge to a third-party server, of any version and over any transport: it forwards every request, question and
notification, within both eras and between them."""

from .bridge import Bridge, SessionKind, bridge
from .upstream import Upstream

__all__ = ["Bridge", "SessionKind", "Upstream", "bridge"]
