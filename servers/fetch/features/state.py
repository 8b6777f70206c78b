"""The state of the server. The components that fetch pages are opened when the first page is requested.

Hosts start every server and wait for it, but most conversations need no page, and the modules that fetch and read
pages take longer to import than all other modules of this server.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from shared import Context
from shared.contracts import Blobs
from shared.server.dispatch.turns import Turns

from ..load.throttling import Stopwatch
from ..network.address_policy import Endpoint
from ..pages.snapshots import PageRequest, Snapshot, Snapshots
from ..pages.watch import Watcher
from ..settings import Settings
from .reports import report_slow

if TYPE_CHECKING:
    from ..load.shared_cache import SharedEntries
    from ..pages.fetcher import Fetcher

    SharedSnapshots = SharedEntries[Snapshot]

Endpoints = Callable[[], Iterable[Endpoint]]

_SNAPSHOT_SECONDS = 900.0
"""Seconds during which a client can continue a page at another replica."""


class LazyFetcher:
    """The fetcher, opened at its first use."""

    def __init__(
        self, settings: Settings, endpoints: Endpoints, blobs: Blobs | None, tasks: TaskGroup, stack: AsyncExitStack
    ) -> None:
        self._settings, self._endpoints, self._blobs = settings, endpoints, blobs
        self._tasks, self._stack = tasks, stack
        self._lock = anyio.Lock()
        self._fetcher: Fetcher | None = None

    async def get(self) -> "Fetcher":
        """Return the open fetcher."""
        async with self._lock:
            if self._fetcher is None:
                # The import takes a third of a second, during which other calls continue.
                open_fetcher = await to_thread.run_sync(_import_fetcher)
                opened = open_fetcher(self._settings, self._endpoints, self._blobs)
                self._fetcher = await self._stack.enter_async_context(opened)
                # The process of the reader starts while the first page is fetched.
                self._tasks.start_soon(self._fetcher.reader.warm)
            return self._fetcher


def _import_fetcher() -> Callable[[Settings, Endpoints, Blobs | None], AbstractAsyncContextManager["Fetcher"]]:
    from ..pages.fetcher import open_fetcher

    return open_fetcher


class State(NamedTuple):
    """The state of one run of the server."""

    fetcher: LazyFetcher
    snapshots: Snapshots
    turns: Turns
    """The queue in which clients take turns to fetch."""
    shared: "SharedSnapshots | None"
    """The snapshots of other replicas, if there are any."""
    watcher: Watcher
    """Reports changes to the pages that clients subscribe to."""


Ctx = Context[State]


@asynccontextmanager
async def open_state(
    settings: Settings, endpoints: Endpoints, blobs: Blobs | None, report_change: Callable[[str], None]
) -> AsyncIterator[State]:
    """Open the state for the duration of the block. `endpoints` returns this server's own endpoints. `blobs` is the
    store of data that the replicas share, if any. `report_change` is called with the URL of each watched page that
    has changed.
    """
    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        fetcher = LazyFetcher(settings, endpoints, blobs, tasks, stack)
        # At each site, one client leaves a slot for other clients, and therefore also overall.
        turns = Turns(settings.max_concurrent, settings.max_per_host - 1)
        shared: SharedSnapshots | None = None
        if blobs is not None:
            from ..load.shared_cache import SharedEntries

            shared = SharedEntries(blobs, "page", Snapshot, _SNAPSHOT_SECONDS)
        yield State(fetcher, Snapshots(), turns, shared, Watcher(fetcher.get, report_change, tasks, settings.poll))
        tasks.cancel_scope.cancel()


async def fetch_snapshot(ctx: Ctx, request: PageRequest, *, refresh: bool = False) -> Snapshot:
    """Return the current page, and store it so that the client can continue it. Raises FetchError."""
    fetcher = await ctx.state.fetcher.get()
    site = Stopwatch()
    try:
        async with ctx.turn(ctx.state.turns):
            snapshot = await fetcher.fetch(request, refresh=refresh, site=site)
    finally:
        # The report comes after the turn: a client that does not read its log messages would prolong the turn.
        await report_slow(ctx, request.url, site.seconds)
    ctx.state.snapshots.put(ctx.owner, request, snapshot)
    shared, key = ctx.state.shared, _make_key(ctx, request)
    if shared is not None and snapshot.page.image:
        await shared.drop(*key)  # an image has no further pieces
    elif shared is not None:
        await shared.put(snapshot, snapshot.weight, *key)
    return snapshot


async def find_stored_snapshot(ctx: Ctx, request: PageRequest) -> Snapshot | None:
    """Return the page as it was shown to this client before, by this or another replica; None if it is not stored."""
    # The shared snapshot is the last one shown, by any replica.
    shared = None if ctx.state.shared is None else await ctx.state.shared.get(*_make_key(ctx, request))
    return shared or ctx.state.snapshots.get(ctx.owner, request)


def _make_key(ctx: Ctx, request: PageRequest) -> tuple[str, ...]:
    parts = ("" if part is None else f"={part}" for part in (request.section, request.pages))
    return (str(ctx.owner), request.url, request.format, *parts)
