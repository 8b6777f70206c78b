"""The number of written bytes that a peer has not read, which distinguishes a slow peer from a dead peer, and a limit
on this number over all peers."""

import asyncio
import logging
import sys
import time
from collections import Counter
from contextlib import suppress

from ..limits.client_shares import network_of

try:
    import fcntl
    import termios
except ImportError:  # not on Windows
    _IOCTL = _OUTQ = None
else:
    _IOCTL, _OUTQ = getattr(fcntl, "ioctl", None), getattr(termios, "TIOCOUTQ", None)


log = logging.getLogger("shared.transports.http")

UNREAD = 64 * 1_048_576
"""Maximum number of bytes that wait for all clients of a listener, except for small answers, which systems buffer."""
_LOG_SECONDS = 60.0
"""Seconds between two log records of connections that were cut off."""


def backlog(transport: asyncio.Transport) -> int:
    """Return the bytes that wait in our buffer and, if available, in the system's, which may be megabytes. The number
    falls as the peer reads, whether or not there is room for more."""
    socket, size = transport.get_extra_info("socket"), transport.get_write_buffer_size()
    if socket is None or socket.fileno() < 0 or _IOCTL is None or _OUTQ is None:
        return size
    with suppress(OSError):  # not every system supports it for sockets
        # Bytes that the system has not sent, or that are not yet acknowledged (tcp(7), SIOCOUTQ).
        size += int.from_bytes(_IOCTL(socket.fileno(), _OUTQ, bytes(4)), sys.byteorder)
    return size


class Unread:
    """The bytes that wait for slow clients in the buffers of one listener. If there are too many, connections from
    the address with the most unread bytes are closed, oldest first."""

    def __init__(self, limit: int = UNREAD) -> None:
        self._limit = limit
        self._waiting: dict[asyncio.Transport, tuple[str, int]] = {}
        self._by_address: Counter[str] = Counter()
        self._logged = -_LOG_SECONDS

    def add(self, transport: asyncio.Transport, size: int) -> None:
        """Count the `size` bytes that wait for the client of `transport`, until `remove`."""
        self.remove(transport)
        peer = transport.get_extra_info("peername")
        address = network_of(peer[0]) if isinstance(peer, tuple) else ""
        self._waiting[transport] = address, size
        self._by_address[address] += size
        while self._by_address.total() > self._limit:
            self._cut()

    def remove(self, transport: asyncio.Transport) -> None:
        """Stop counting the bytes, which were read or dropped."""
        address, size = self._waiting.pop(transport, ("", 0))
        self._by_address[address] -= size
        if not self._by_address[address]:
            del self._by_address[address]

    def _cut(self) -> None:
        address = max(self._by_address, key=self._by_address.__getitem__)
        size = self._by_address[address]
        transport = next(transport for transport, (of, _) in self._waiting.items() if of == address)
        self.remove(transport)
        transport.abort()
        now = time.monotonic()
        if now - self._logged >= _LOG_SECONDS:
            self._logged = now
            log.warning("connections of %s are cut off: %d bytes wait for it", address, size)


class Upgraded(asyncio.Protocol):
    """A protocol that takes over a connection."""

    unread: Unread | None = None
    """The unread bytes of the listener, set before `connection_made`."""
