"""Serves principals with their own settings: each has its own run of the server.

The runs share nothing: no files, caches, cursors, subscriptions or listeners to changes. All of them open and close
with the run of which they are a part.
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
    """Stores that have already been joined: the other replicas see the runs of one replica as one."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def join(self) -> AbstractAsyncContextManager[Replica]:
        """Return the existing replica."""
        return nullcontext(self._replica)


def narrowing(settings: Mapping[str, BaseModel | None]) -> Extension[Any]:
    """Return the extension that serves principals with these names under these settings, or for None under the
    settings of the run; `*` means all other names."""

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
