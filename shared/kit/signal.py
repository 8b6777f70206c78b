"""Waiting for something to change."""

import asyncio

__all__ = ["Signal"]


class Signal:
    """Wakes everybody who waits at that moment; they look for themselves whether it concerns them.

    Thousands of sessions have a few each, and each message wakes some: unlike an event this takes no memory while
    nobody waits, and need not be replaced after use. It is for one event loop, without threads.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: tuple[asyncio.Future[None], ...] = ()

    async def wait(self) -> None:
        """Waits for the next `wake`."""
        future = asyncio.get_running_loop().create_future()
        self._waiting = (*self._waiting, future)
        try:
            await future
        finally:
            if self._waiting:
                self._waiting = tuple(one for one in self._waiting if one is not future)

    def wake(self) -> None:
        """Wakes all who wait."""
        waiting, self._waiting = self._waiting, ()
        for future in waiting:
            if not future.done():
                future.set_result(None)
