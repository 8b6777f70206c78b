"""Serves principals with their own settings: each of them has its own run of the server.

So runs share nothing: neither files nor caches, cursors and subscriptions, nor listeners to changes. All of them open
and close with the run that they are part of.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from typing import Any

from pydantic import BaseModel

from ..contracts import Replica
from ..server.extension import Extension
from ..server.run import Run

NARROWING = "narrowing"
"""The name of the extension."""


class _Joined:
    """Stores that have already been joined: to the other replicas, the runs of one replica are one."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def join(self) -> AbstractAsyncContextManager[Replica]:
        """Return the existing replica."""
        return nullcontext(self._replica)


def narrowing(settings: Mapping[str, BaseModel | None]) -> Extension[Any]:
    """Return the extension that serves principals of these names by these settings, or for None by those of the run;
    `*` means all other names."""

    @asynccontextmanager
    async def living(running: Run[Any]) -> AsyncIterator[None]:
        replica = running.replication.replica
        stores = None if replica is None else _Joined(replica)
        async with AsyncExitStack() as opened:
            for name, own in settings.items():
                run = running
                if own is not None:
                    run = await opened.enter_async_context(running.parts.reopen(own, stores, without=NARROWING))
                running.parts.narrow(name, run)
            yield

    extension = Extension[Any](NARROWING)
    extension.lifespan = living
    return extension
