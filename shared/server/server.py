"""`Server`: an author's declaration of a server. Each call to `open` begins a run of it, with its own settings.

    server = Server[Files](Implementation(name="filesystem", version="1"), settings=Settings)

    @server.lifespan
    async def open_files(opening: Opening) -> AsyncIterator[Files]:
        async with Files.open(opening.settings.roots, opening.changes.resource) as files:
            yield files

The first `open` freezes the declaration: from then on, declarations raise. A run that needs different features
changes its own copy, `opening.features`, in the lifespan.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from .declaration import Declaration, NoSettings
from .dispatch.limits import CallLimits, Limits
from .extension import Extension
from .features import State
from .run import Run
from .running import Opening, prepare

if TYPE_CHECKING:
    from ..contracts import Stores

__all__ = ["NoSettings", "Server"]


class Server(Declaration[State]):
    """A server as its author declares it. It may be open several times at once, with different settings."""

    @asynccontextmanager
    async def open(
        self,
        settings: BaseModel | None = None,
        *,
        limits: Limits | None = None,
        budget: CallLimits | None = None,
        stores: "Stores | None" = None,
        extensions: Sequence[Extension[Any]] = (),
    ) -> AsyncIterator[Run[State]]:
        """Run the server until the end of the block, with `settings` or the default ones, and yield the run. The
        lifespan is entered first, and left when all calls have ended; its exceptions are raised here. `limits` and
        `budget` are the limits on one peer and on one call, by default those of the declaration. Runs that are open
        with the same `stores` are replicas, each of which serves the sessions of all. `extensions` are added to those
        that the author declared."""
        self.freeze()
        settings = self.settings_model() if settings is None else settings
        run = prepare(self, settings, limits or self.limits, budget or self.budget, extensions)

        def reopen(
            settings: BaseModel, stores: "Stores | None", *, without_extension: str
        ) -> AbstractAsyncContextManager[Run[State]]:
            others = [extension for extension in extensions if extension.name != without_extension]
            calls = run.calls
            return self.open(settings, limits=calls.limits, budget=calls.budget, stores=stores, extensions=others)

        run.parts.reopen = reopen
        joining = nullcontext() if stores is None else stores.join()
        async with AsyncExitStack() as stack:
            replica = await stack.enter_async_context(joining)
            if replica is not None:
                run.replication.join(replica)
            run.state = await stack.enter_async_context(self.open_lifespan(Opening(run)))
            stack.push_async_callback(run.calls.close)
            for extension in run.extensions:
                if extension.lifespan is not None:
                    run.opened[extension.name] = await stack.enter_async_context(extension.lifespan(run))
            stack.callback(run.stop)
            yield run
