"""The server as a process, spoken to over a pipe."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.servers.peers import Peer
from tests.wire import STATELESS, Wire

__all__ = ["served"]


@asynccontextmanager
async def served(*options: str, era: str = "2025-11-25") -> AsyncIterator[Peer]:
    """A server started with these options, which may reach this machine."""
    allowed = ["--allow-private", "127.0.0.1:*"]
    async with Wire([sys.executable, "-m", "servers.fetch", *allowed, *options]) as wire:
        if era != STATELESS:
            await wire.initialize(era)
        yield Peer(wire, era)
