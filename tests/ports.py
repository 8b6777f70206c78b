"""Ports for servers that don't accept 0, don't report their port, or return to an earlier one."""

import random
import socket

__all__ = ["free_port"]

HOST = "127.0.0.1"
LOWEST, HIGHEST = 10_000, 32_767
"""Below those that systems hand out by themselves (Linux from 32,768, others from 49,152): there a connection, or the
server of another test, may have the port while its own is being started anew."""

_given: set[int] = set()


def free_port() -> int:
    """Returns a free loopback port that was not returned before."""
    while True:
        port = random.SystemRandom().randint(LOWEST, HIGHEST)  # tests in other processes search too
        if port in _given:
            continue
        try:
            with socket.create_server((HOST, port)):
                _given.add(port)
                return port
        except OSError:
            continue
