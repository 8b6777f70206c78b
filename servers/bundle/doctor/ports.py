"""Is a port free?"""

import errno
import os
import socket
from collections.abc import Iterator

from .findings import Finding, fault

__all__ = ["check_port"]


def check_port(host: str, port: str, where: str) -> Iterator[Finding]:
    """Tries to listen there, for a moment. Which program has the port can't be told."""
    if not port.isdecimal() or int(port) > 65535:
        yield fault(where, f"{port} is no port", "give a number from 0 to 65535")
        return
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as listener:
            if os.name == "posix":
                # As a server does: a port that was closed a moment ago is free.
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            yield fault(where, f"port {port} of {host} is taken", "end what listens there, or give another --port")
        else:
            yield fault(
                where, f"nobody can listen on {host} port {port}: {error.strerror}", "give another --host or --port"
            )
