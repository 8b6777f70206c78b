"""A server of databases, as a process or in the test's process, and its client of one era."""

import sys
from functools import partial
from pathlib import Path

from servers.postgres.server import app
from tests.servers import peers
from tests.servers.peers import ERAS, Peer

__all__ = ["ERAS", "Peer", "command", "inside", "served"]


def command(*options: str | Path) -> list[str]:
    """Returns the command that starts a server with these options."""
    return [sys.executable, "-m", "servers.postgres", *map(str, options)]


served = partial(peers.served, command())
inside = partial(peers.inside, app)
"""Serves databases in the test's process."""
