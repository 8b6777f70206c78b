"""What the features work on. What it takes to fetch is opened when the first page is wanted.

A host starts every server and waits for it, but most conversations need no page; and what fetches and reads pages
takes longer to load than all else here.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from shared import Context
from shared.contracts import Blobs
from shared.server.dispatch.thread_limiter import Turns

from ..load.throttling import Stopwatch
from ..network.address_policy import Endpoint
from ..pages.snapshots import Snapshot, Snapshots, Wanted
from ..pages.watch import Watcher
from ..settings import Settings
from .reports import report_slow

if TYPE_CHECKING:
    from ..load.shared_cache import SharedEntries
    from ..pages.fetcher import Fetcher

    SharedSnapshots = SharedEntries[Snapshot]

Endpoints = Callable[[], Iterable[Endpoint]]

_SNAPSHOT_SECONDS = 900.0
"""How long a client may take to go on with a page at another replica."""


class LazyFetcher:
    """The fetcher, from the first use on."""

    def __init__(
        self, settings: Settings, endpoints: Endpoints, blobs: Blobs | None, tasks: TaskGroup, stack: AsyncExitStack
    ) -> None:
        self._settings, self._endpoints, self._blobs = settings, endpoints, blobs
        self._tasks, self._stack = tasks, stack
        self._lock = anyio.Lock()
        self._fetcher: Fetcher | None = None

    async def get(self) -> "Fetcher":
        """The fetcher, as soon as it is open."""
        async with self._lock:
            if self._fetcher is None:
                # It takes a third of a second, during which others are answered.
                open_fetcher = await to_thread.run_sync(_load)
                opened = open_fetcher(self._settings, self._endpoints, self._blobs)
                self._fetcher = await self._stack.enter_async_context(opened)
                # What reads pages is loaded in a process of its own, while the first one comes.
                self._tasks.start_soon(self._fetcher.reader.warm)
            return self._fetcher


def _load() -> Callable[[Settings, Endpoints, Blobs | None], AbstractAsyncContextManager["Fetcher"]]:
    from ..pages.fetcher import open_fetcher

    return open_fetcher


class State(NamedTuple):
    """What one run of the server has."""

    fetcher: LazyFetcher
    snapshots: Snapshots
    turns: Turns
    """Who may fetch."""
    shared: "SharedSnapshots | None"
    """The snapshots of other replicas, where there are any."""
    watcher: Watcher
    """Tells of changes of the pages that clients subscribe to."""


Ctx = Context[State]


@asynccontextmanager
async def open_state(
    settings: Settings, endpoints: Endpoints, blobs: Blobs | None, tell: Callable[[str], None]
) -> AsyncIterator[State]:
    """The state for the time of the block; `endpoints` tells what this server listens on itself, `blobs` are what
    its replicas keep for each other, where there are any; `tell` hears the URL of each watched page that changed."""
    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        fetcher = LazyFetcher(settings, endpoints, blobs, tasks, stack)
        # A client leaves a place for others at each site, and so in all.
        turns = Turns(settings.max_concurrent, settings.max_per_host - 1)
        shared: SharedSnapshots | None = None
        if blobs is not None:
            from ..load.shared_cache import SharedEntries

            shared = SharedEntries(blobs, "page", Snapshot, _SNAPSHOT_SECONDS)
        yield State(fetcher, Snapshots(), turns, shared, Watcher(fetcher.get, tell, tasks, settings.poll))
        tasks.cancel_scope.cancel()


async def snapshot_of(ctx: Ctx, wanted: Wanted, *, refresh: bool = False) -> Snapshot:
    """The page as it is now, which is kept to go on with. Raises FetchError."""
    fetcher = await ctx.state.fetcher.get()
    site = Stopwatch()
    try:
        async with ctx.turn(ctx.state.turns):
            snapshot = await fetcher.fetch(wanted, refresh=refresh, site=site)
    finally:
        # Behind the turn, which a client that does not read would hold.
        await report_slow(ctx, wanted.url, site.seconds)
    ctx.state.snapshots.put(ctx.owner, wanted, snapshot)
    shared, words = ctx.state.shared, _words(ctx, wanted)
    if shared is not None and snapshot.page.image:
        await shared.drop(*words)  # there is nothing to go on with
    elif shared is not None:
        await shared.put(snapshot, snapshot.weight, *words)
    return snapshot


async def kept_snapshot(ctx: Ctx, wanted: Wanted) -> Snapshot | None:
    """The page as this client was shown it before, here or by another replica; None where it is not kept."""
    # What the replicas have is what was shown last, wherever that was.
    shared = None if ctx.state.shared is None else await ctx.state.shared.get(*_words(ctx, wanted))
    return shared or ctx.state.snapshots.get(ctx.owner, wanted)


def _words(ctx: Ctx, wanted: Wanted) -> tuple[str, ...]:
    parts = ("" if part is None else f"={part}" for part in (wanted.section, wanted.pages))
    return (str(ctx.owner), wanted.url, wanted.format, *parts)
