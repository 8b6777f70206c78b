"""The number of bytes that were written to a peer and that it has not read. It shows whether a peer is slow or dead.
The sum over all peers is limited."""

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
"""Maximum number of bytes that wait in this process for all clients of a listener. Beyond it, clients that do not
read are disconnected. Small answers wait in the system's buffers, and do not count."""
CHECK_SECONDS = 2.0
"""Seconds between two checks of how much clients read, while more than `MAX_UNREAD_BYTES` bytes wait."""
_MIN_READ_BYTES = 65_536
"""Bytes that a client must read between two checks."""
_LOG_SECONDS = 60.0
"""Seconds between two log records of disconnected clients."""


def backlog(transport: asyncio.Transport) -> int:
    """Return the number of bytes that wait for the peer in the process's buffer and, if available, in the system's,
    which may contain megabytes. The number falls whenever the peer reads."""
    socket, size = transport.get_extra_info("socket"), transport.get_write_buffer_size()
    if socket is None or socket.fileno() < 0 or _IOCTL is None or _OUTQ is None:
        return size
    with suppress(OSError):  # not every system supports it for sockets
        # Bytes that the system has not sent, or that are not yet acknowledged (tcp(7), SIOCOUTQ).
        size += int.from_bytes(_IOCTL(socket.fileno(), _OUTQ, bytes(4)), sys.byteorder)
    return size


@dataclass(slots=True)
class _WaitingBytes:
    """The bytes that wait for the client of one connection. `copies` and `size` are the number of copies in memory,
    and their total size."""

    address: str
    copies: int
    size: int
    unread: int
    """The bytes that the client had not read when they were last counted."""
    counted_at: float
    """The time of that count, on the event loop's clock."""


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
        """Count the bytes in the buffer of `transport` until `remove`. They are in memory `copies` times."""
        self.remove(transport)
        peer, loop = transport.get_extra_info("peername"), asyncio.get_running_loop()
        address = network_of(peer[0]) if isinstance(peer, tuple) else ""
        size = copies * transport.get_write_buffer_size()
        self._waiting[transport] = _WaitingBytes(address, copies, size, backlog(transport), loop.time())
        self._by_address[address] += size
        if self._timer is None and self._exceeds_limit:
            self._timer = loop.call_later(CHECK_SECONDS, self._abort_stalled)

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
        """Disconnect clients that have read too little since the last check, until the limit is met."""
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
            self._timer = loop.call_later(CHECK_SECONDS, self._abort_stalled)

    def _has_stalled(self, transport: asyncio.Transport, now: float) -> bool:
        waiting = self._waiting[transport]
        if now - waiting.counted_at < CHECK_SECONDS:
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
