"""A server over databases, as a process or within that of the test, and a client that speaks to it in one era."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from servers.postgres.server import app
from tests.servers import peers
from tests.servers.peers import ERAS, InnerPeer, Peer
from tests.wire import STATELESS, Wire

__all__ = ["ERAS", "Peer", "command", "inside", "served"]


def command(*options: str | Path) -> list[str]:
    """How a server is started with these options."""
    return [sys.executable, "-m", "servers.postgres", *map(str, options)]


@asynccontextmanager
async def served(*options: str | Path, era: str = "2025-11-25") -> AsyncIterator[Peer]:
    """A server process started with these options."""
    async with Wire(command(*options)) as wire:
        if era != STATELESS:
            await wire.initialize(era)
        yield Peer(wire, era)


@asynccontextmanager
async def inside(*options: str | Path, era: str = "2025-11-25") -> AsyncIterator[InnerPeer]:
    """A server with these options, without a process of its own."""
    async with peers.inside(app, *options, era=era) as peer:
        yield peer
