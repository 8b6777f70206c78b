"""How many connections a process may have, and one address of these.

Each takes a descriptor. Where these run out nobody is let in any more, so that a thousand idle connections of one
address would lock out all others.
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

_MOST = 65_536
"""Descriptors that a process asks the system for."""
_SPARED = 256
"""Those that are left for files, databases and other programs."""
_LOG_SECONDS = 60.0
"""Between two lines that say that connections are refused."""


class Capacity:
    """The connections of one process. One address, or one IPv6 network, has seven eighths of them at most."""

    def __init__(self, connections: int) -> None:
        self._most = connections
        self._most_of_one = connections - connections // 8
        self._taken = 0
        self._by_address: Counter[str] = Counter()
        self._logged = -_LOG_SECONDS

    def take(self, address: str) -> bool:
        """Lets one in, if its address may have one more."""
        address = network_of(address)
        if self._by_address[address] < self._most_of_one and self._taken < self._most:
            self._by_address[address] += 1
            self._taken += 1
            return True
        now = time.monotonic()
        if now - self._logged >= _LOG_SECONDS:
            self._logged = now
            count = self._by_address[address]
            log.warning("no more connections of %s are taken: it has %d of %d", address, count, self._taken)
        return False

    def give(self, address: str) -> None:
        """One has ended."""
        address = network_of(address)
        self._taken -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]


def connections_at_most() -> int:
    """How many connections this process may have, after it has raised its soft limit of descriptors."""
    descriptors = _MOST
    if sys.platform != "win32" and resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            with suppress(OSError, ValueError):  # macOS has a limit of its own below
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        descriptors = _MOST if soft == resource.RLIM_INFINITY else min(soft, _MOST)
    # Where there are few, connections have half of them: macOS gives a process 256.
    return max(descriptors - _SPARED, descriptors // 2)
