"""The socket that HTTP connections come to. Nothing of a web server is loaded for it."""

import socket

BACKLOG = 2_048
"""Connections that the system holds until they are accepted."""
LINGER_SECONDS = 1.0
"""How long a worker or a replica that is to end answers on the connections that it has, asking each client to open a
new one."""


def listen(host: str, port: int, backlog: int = BACKLOG) -> socket.socket:
    """A socket that listens; on port 0 the system chooses a free one. Raises OSError where it can't be had."""
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named: asyncio turns Nagle's delay off only where it sees that a socket is TCP.
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
