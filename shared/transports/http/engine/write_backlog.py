"""The number of written bytes that a peer has not read, which distinguishes a slow peer from a dead one."""

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
    """Return the bytes that wait in our buffer and, if available, in the system's, which may be megabytes. The number
    falls as the peer reads, whether or not there is room for more."""
    socket, size = transport.get_extra_info("socket"), transport.get_write_buffer_size()
    if socket is None or socket.fileno() < 0 or _IOCTL is None or _OUTQ is None:
        return size
    with suppress(OSError):  # not every system supports it for sockets
        # Bytes that the system has not sent, or that are not yet acknowledged (tcp(7), SIOCOUTQ).
        size += int.from_bytes(_IOCTL(socket.fileno(), _OUTQ, bytes(4)), sys.byteorder)
    return size
