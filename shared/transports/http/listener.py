"""The socket that accepts HTTP connections. It is opened without loading a web server."""

import socket

BACKLOG = 2_048
"""Connections that the system holds until they are accepted."""
LINGER_SECONDS = 1.0
"""Seconds for which a worker or a replica that is about to end still answers on its connections, asking each client
to open a new connection."""


def listen(host: str, port: int, backlog: int = BACKLOG) -> socket.socket:
    """Open a listening socket; for port 0 the system chooses a free one. Raises OSError if it is not available."""
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With an explicit protocol: asyncio turns Nagle's delay off only if it sees that a socket is TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(backlog)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener
