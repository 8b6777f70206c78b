"""A server of others, of any version and over any transport, as one of this package: every request, question and
notice passes, in both eras and between them."""

from .bridge import Bridge, Place, bridge
from .upstream import Upstream

__all__ = ["Bridge", "Place", "Upstream", "bridge"]
