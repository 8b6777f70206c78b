"""A server process over a database, and a client that speaks to it in one era."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.servers.peers import ERAS, Peer
from tests.wire import STATELESS, Wire

__all__ = ["ERAS", "Peer", "served"]


@asynccontextmanager
async def served(*options: str | Path, era: str = "2025-11-25") -> AsyncIterator[Peer]:
    """A server started with these options."""
    async with Wire([sys.executable, "-m", "servers.sqlite", *map(str, options)]) as wire:
        if era != STATELESS:
            await wire.initialize(era)
        yield Peer(wire, era)
