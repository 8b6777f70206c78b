"""The socket that accepts HTTP connections. It is opened without loading a web server."""

import socket

BACKLOG = 2_048
"""Maximum number of connections that wait in the system to be accepted."""
LINGER_SECONDS = 1.0
"""Seconds for which a worker or a replica that is about to end still answers on its connections. Each answer closes
its connection, so that the client opens a new one."""


def listen(host: str, port: int, backlog: int = BACKLOG) -> socket.socket:
    """Open a listening socket. For port 0 the system chooses a free one. Raises OSError if it is taken."""
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is given explicitly, because asyncio turns Nagle's algorithm off only for sockets that say that
    # they are TCP.
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
