"""Serves principals with settings of their own, by opening a run of the server for each.

The runs share nothing: no files, caches, cursors or subscriptions. They are opened and closed together with the main
run, of which they are parts (see `server/run.py`).
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
    """The stores of the main run, for its parts. To the other replicas, all runs of this process are one replica."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def join(self) -> AbstractAsyncContextManager[Replica]:
        """Return the replica of the main run."""
        return nullcontext(self._replica)


def narrowing(settings: Mapping[str, BaseModel | None]) -> Extension[Any]:
    """Return the extension that serves principals with their own `settings`, given by name; None for the settings of
    the main run. The name `*` stands for all other names."""

    @asynccontextmanager
    async def open_runs(main_run: Run[Any]) -> AsyncIterator[None]:
        replica = main_run.replication.replica
        stores = None if replica is None else _JoinedStores(replica)
        async with AsyncExitStack() as stack:
            for name, principal_settings in settings.items():
                run = main_run
                if principal_settings is not None:
                    run = await stack.enter_async_context(
                        main_run.parts.reopen(principal_settings, stores, without_extension=NARROWING)
                    )
                main_run.parts.narrow(name, run)
            yield

    extension = Extension[Any](NARROWING)
    extension.lifespan = open_runs
    return extension
