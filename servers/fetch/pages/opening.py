"""Opens what it takes to fetch when the first page is wanted.

A host starts every server and waits for it, but most conversations need no page; and what fetches and reads pages
takes longer to load than all else here.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

if TYPE_CHECKING:
    from servers.fetch.pages.fetcher import Fetcher

__all__ = ["Opening", "opening"]

Open = Callable[..., AbstractAsyncContextManager["Fetcher"]]


class Opening:
    """The fetcher, from the first use on."""

    def __init__(self, arguments: tuple[Any, ...], tasks: TaskGroup, stack: AsyncExitStack) -> None:
        self._arguments, self._tasks, self._stack = arguments, tasks, stack
        self._lock = anyio.Lock()
        self._fetcher: Fetcher | None = None

    async def fetcher(self) -> "Fetcher":
        """The fetcher, as soon as it is open."""
        async with self._lock:
            if self._fetcher is None:
                # It takes a third of a second, during which others are answered.
                open_fetcher = await to_thread.run_sync(_loaded)
                self._fetcher = await self._stack.enter_async_context(open_fetcher(*self._arguments))
                # What reads pages is loaded in a process of its own, while the first one comes.
                self._tasks.start_soon(self._fetcher.reader.warm)
            return self._fetcher


@asynccontextmanager
async def opening(*arguments: Any) -> AsyncIterator[Opening]:
    """What opens the fetcher when it is first needed, with the arguments of `open_fetcher`; closes it at the end of
    the block."""
    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        yield Opening(arguments, tasks, stack)
        tasks.cancel_scope.cancel()


def _loaded() -> Open:
    from servers.fetch.pages.fetcher import open_fetcher  # noqa: PLC0415 (see above)

    return open_fetcher
