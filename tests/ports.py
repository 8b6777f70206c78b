"""Ports for servers that take no 0, that don't say which they got, or that come back to the one that they had."""

import random
import socket

__all__ = ["free_port"]

HOST = "127.0.0.1"
LOWEST, HIGHEST = 10_000, 32_767
"""Below those that systems hand out by themselves (Linux from 32,768, others from 49,152): there a connection, or the
server of another test, may have the port while its own is being started anew."""

_given: set[int] = set()


def free_port() -> int:
    """A port of loopback that nobody has, and that was not given before."""
    while True:
        port = random.SystemRandom().randint(LOWEST, HIGHEST)  # tests in other processes seek as well
        if port in _given:
            continue
        try:
            with socket.create_server((HOST, port)):
                _given.add(port)
                return port
        except OSError:
            continue
