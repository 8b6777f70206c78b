"""The number of written bytes that a peer has not read, which distinguishes a slow peer from a dead peer, and a limit
on this number over all peers."""

import asyncio
import logging
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

from ..limits.client_shares import network_of

try:
    import fcntl
    import termios
except ImportError:  # not on Windows
    _IOCTL = _OUTQ = None
else:
    _IOCTL, _OUTQ = getattr(fcntl, "ioctl", None), getattr(termios, "TIOCOUTQ", None)


log = logging.getLogger("shared.transports.http")

MAX_UNREAD_BYTES = 64 * 1_048_576
"""Number of bytes that may wait for all clients of a listener, except for small answers, which systems buffer. Above
it, clients that do not read are cut off."""
PAUSE_SECONDS = 2.0
"""Seconds for which a client may read too little while more than `MAX_UNREAD_BYTES` bytes wait."""
_MIN_READ_BYTES = 65_536
"""Bytes that a client must read in that time."""
_LOG_SECONDS = 60.0
"""Seconds between two log records of connections that were cut off."""


def backlog(transport: asyncio.Transport) -> int:
    """Return the number of bytes waiting in the process's buffer and, if available, in the system's, which may be
    megabytes. The number falls as the peer reads, whether or not there is room for more."""
    socket, size = transport.get_extra_info("socket"), transport.get_write_buffer_size()
    if socket is None or socket.fileno() < 0 or _IOCTL is None or _OUTQ is None:
        return size
    with suppress(OSError):  # not every system supports it for sockets
        # Bytes that the system has not sent, or that are not yet acknowledged (tcp(7), SIOCOUTQ).
        size += int.from_bytes(_IOCTL(socket.fileno(), _OUTQ, bytes(4)), sys.byteorder)
    return size


@dataclass(slots=True)
class _WaitingBytes:
    """The bytes that wait for the client of one connection."""

    address: str
    copies: int
    size: int
    unread: int
    """The bytes that the client had not read when they were last counted."""
    counted_at: float
    """The time of that count, by the clock of the event loop."""


class Unread:
    """The bytes that wait for slow clients in the buffers of one listener. While there are too many, connections
    whose clients read nearly nothing are closed: first those of the address with the most bytes, oldest first. A
    client that reads gets an answer of any size."""

    def __init__(self, limit: int = MAX_UNREAD_BYTES) -> None:
        self._limit = limit
        self._waiting: dict[asyncio.Transport, _WaitingBytes] = {}
        self._by_address: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._logged_at = -_LOG_SECONDS

    def add(self, transport: asyncio.Transport, copies: int = 1) -> None:
        """Count the bytes in the buffer of `transport`, of which there are as many `copies` in memory, until
        `remove`."""
        self.remove(transport)
        peer, loop = transport.get_extra_info("peername"), asyncio.get_running_loop()
        address = network_of(peer[0]) if isinstance(peer, tuple) else ""
        size = copies * transport.get_write_buffer_size()
        self._waiting[transport] = _WaitingBytes(address, copies, size, backlog(transport), loop.time())
        self._by_address[address] += size
        if self._timer is None and self._exceeds_limit:
            self._timer = loop.call_later(PAUSE_SECONDS, self._abort_stalled)

    def remove(self, transport: asyncio.Transport) -> None:
        """Stop counting the bytes, which were read or dropped."""
        waiting = self._waiting.pop(transport, None)
        if waiting is not None:
            self._by_address[waiting.address] -= waiting.size
            if not self._by_address[waiting.address]:
                del self._by_address[waiting.address]
        if self._timer is not None and not self._exceeds_limit:
            self._timer.cancel()
            self._timer = None

    @property
    def _exceeds_limit(self) -> bool:
        return self._by_address.total() > self._limit

    def _abort_stalled(self) -> None:
        """Cut off clients that have read too little since they were last looked at, while too much waits."""
        self._timer, loop = None, asyncio.get_running_loop()
        stalled = [transport for transport in self._waiting if self._has_stalled(transport, loop.time())]
        size_by_address = self._by_address.copy()
        for transport in sorted(
            stalled, key=lambda stalled_transport: -size_by_address[self._waiting[stalled_transport].address]
        ):
            if self._exceeds_limit:
                address = self._waiting[transport].address
                size = self._by_address[address]
                self.remove(transport)
                transport.abort()
                now = time.monotonic()
                if now - self._logged_at >= _LOG_SECONDS:
                    self._logged_at = now
                    log.warning("connections from %s are closed: it has not read %d bytes", address, size)
        if self._exceeds_limit:
            self._timer = loop.call_later(PAUSE_SECONDS, self._abort_stalled)

    def _has_stalled(self, transport: asyncio.Transport, now: float) -> bool:
        waiting = self._waiting[transport]
        if now - waiting.counted_at < PAUSE_SECONDS:
            return False  # its client has not had time to read
        previous, waiting.unread, waiting.counted_at = waiting.unread, backlog(transport), now
        size = waiting.copies * transport.get_write_buffer_size()
        self._by_address[waiting.address] += size - waiting.size
        waiting.size = size
        return previous - waiting.unread < _MIN_READ_BYTES


class UpgradedProtocol(asyncio.Protocol):
    """A protocol that takes over a connection."""

    unread: Unread | None = None
    """The unread bytes of the listener, set before `connection_made`."""
