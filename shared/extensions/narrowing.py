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


class _JoinedStores:
    """Stores that have already been joined, so that the other replicas see all runs here as one replica."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def join(self) -> AbstractAsyncContextManager[Replica]:
        """Return the existing replica."""
        return nullcontext(self._replica)


def narrowing(settings: Mapping[str, BaseModel | None]) -> Extension[Any]:
    """Return the extension that serves principals with these names under these settings, or for None under the
    settings of the run; `*` means all other names."""

    @asynccontextmanager
    async def open_runs(running: Run[Any]) -> AsyncIterator[None]:
        replica = running.replication.replica
        stores = None if replica is None else _JoinedStores(replica)
        async with AsyncExitStack() as stack:
            for name, principal_settings in settings.items():
                run = running
                if principal_settings is not None:
                    run = await stack.enter_async_context(
                        running.parts.reopen(principal_settings, stores, without=NARROWING)
                    )
                running.parts.narrow(name, run)
            yield

    extension = Extension[Any](NARROWING)
    extension.lifespan = open_runs
    return extension
