"""How much of what was written to a connection its peer has not taken: tells a slow peer from one that is gone."""

import asyncio
import sys
from contextlib import suppress

try:
    import fcntl
    import termios
except ImportError:  # not on Windows
    _IOCTL = _OUTQ = None
else:
    _IOCTL, _OUTQ = getattr(fcntl, "ioctl", None), getattr(termios, "TIOCOUTQ", None)

__all__ = ["backlog"]


def backlog(transport: asyncio.Transport) -> int:
    """Bytes that wait in our buffer and, where it tells, in the system's, which may hold megabytes. It falls as the
    peer reads, whether or not there is room for more."""
    socket = transport.get_extra_info("socket")
    return transport.get_write_buffer_size() + (0 if socket is None else _held(socket.fileno()))


def _held(descriptor: int) -> int:
    """Bytes that the system has not sent, or of which it has no acknowledgement yet (tcp(7), SIOCOUTQ)."""
    if _IOCTL is not None and _OUTQ is not None and descriptor >= 0:
        with suppress(OSError):  # not every system tells it of sockets
            return int.from_bytes(_IOCTL(descriptor, _OUTQ, bytes(4)), sys.byteorder)
    return 0
