"""A server of a database, as a process or in the test's process, and its client of one era."""

import sys
from functools import partial

from servers.sqlite.server import app
from tests.servers import peers
from tests.servers.peers import ERAS, Peer

__all__ = ["ERAS", "Peer", "inside", "served"]

served = partial(peers.served, [sys.executable, "-m", "servers.sqlite"])
inside = partial(peers.inside, app)
"""Serves a database in the test's process."""
