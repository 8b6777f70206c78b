"""The limits on the connections of a process, and of one address.

Each connection uses a file descriptor. Once they run out, no connection is accepted, so a thousand idle connections
from one address would lock out all other clients.
"""

import logging
import sys
import time
from collections import Counter
from contextlib import suppress

from ..limits.client_shares import network_of

try:
    import resource
except ImportError:  # on Windows, where there is no such limit
    resource = None  # type: ignore[assignment]

log = logging.getLogger("shared.transports.http")

_MAX_DESCRIPTORS = 65_536
"""The number of file descriptors that a process requests from the system."""
_RESERVED_DESCRIPTORS = 256
"""File descriptors reserved for files, databases and other programs."""
_LOG_SECONDS = 60.0
"""Seconds between two log records of refused connections."""


class Capacity:
    """The connections of one process. One address, or one IPv6 network, may hold at most seven eighths of them."""

    def __init__(self, connections: int) -> None:
        self._limit = connections
        self._address_limit = connections - connections // 8
        self._count = 0
        self._by_address: Counter[str] = Counter()
        self._logged_at = -_LOG_SECONDS

    def acquire(self, address: str) -> bool:
        """Count one connection and return True, unless its address already holds too many."""
        address = network_of(address)
        if self._by_address[address] < self._address_limit and self._count < self._limit:
            self._by_address[address] += 1
            self._count += 1
            return True
        now = time.monotonic()
        if now - self._logged_at >= _LOG_SECONDS:
            self._logged_at = now
            count = self._by_address[address]
            log.warning("no more connections from %s are accepted: it has %d of %d", address, count, self._count)
        return False

    def release(self, address: str) -> None:
        """Record the end of one connection."""
        address = network_of(address)
        self._count -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]


def max_connections() -> int:
    """Raise the soft limit of file descriptors, and return the number of connections that this process may hold."""
    descriptors = _MAX_DESCRIPTORS
    if sys.platform != "win32" and resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        target = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MAX_DESCRIPTORS)
        if soft != resource.RLIM_INFINITY and soft < target:
            # macOS refuses more than a limit of its own, which `hard` does not show.
            with suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        descriptors = _MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else min(soft, _MAX_DESCRIPTORS)
    # Connections get at least half of the descriptors: macOS, for example, gives a process only 256.
    return max(descriptors - _RESERVED_DESCRIPTORS, descriptors // 2)
