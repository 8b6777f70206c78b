"""Serving principals by settings of their own: each of them has a run of the server to itself.

So nothing that a run knows can come to another: neither its files nor its caches, cursors and subscriptions, nor who
listens to its changes. All of them open and close with the run that they are part of.
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
    """Stores that were joined already: the runs of one replica are one to the others."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def join(self) -> AbstractAsyncContextManager[Replica]:
        """The replica that there is."""
        return nullcontext(self._replica)


def narrowing(settings: Mapping[str, BaseModel | None]) -> Extension[Any]:
    """The extension that has principals of these names be served by these settings, or None by those of the run; `*`
    names all others."""

    @asynccontextmanager
    async def living(running: Run[Any]) -> AsyncIterator[None]:
        replica = running.replication.replica
        stores = None if replica is None else _Joined(replica)
        async with AsyncExitStack() as opened:
            for name, own in settings.items():
                one = running
                if own is not None:
                    one = await opened.enter_async_context(running.parts.reopen(own, stores, without=NARROWING))
                running.parts.narrow(name, one)
            yield

    extension = Extension[Any](NARROWING)
    extension.lifespan = living
    return extension
