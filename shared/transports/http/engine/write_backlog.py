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


def backlog(transport: asyncio.Transport) -> int:
    """Bytes that wait in our buffer and, where it tells, in the system's, which may hold megabytes. It falls as the
    peer reads, whether or not there is room for more."""
    socket, size = transport.get_extra_info("socket"), transport.get_write_buffer_size()
    if socket is None or socket.fileno() < 0 or _IOCTL is None or _OUTQ is None:
        return size
    with suppress(OSError):  # not every system tells it of sockets
        # What the system has not sent, or has no acknowledgement of yet (tcp(7), SIOCOUTQ).
        size += int.from_bytes(_IOCTL(socket.fileno(), _OUTQ, bytes(4)), sys.byteorder)
    return size
