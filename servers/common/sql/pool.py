"""The base class of pools, which lend each connection to a database to one call at a time.

It limits the number of connections and the wait for one. The subclass of each engine opens and checks connections.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import anyio

from .errors import SqlError

C = TypeVar("C")


class Pool(ABC, Generic[C]):
    """A pool of at most `size` connections. A caller waits for a free connection for `max_wait` seconds at most."""

    def __init__(self, size: int, max_wait: float) -> None:
        self.size = size
        self._max_wait = max_wait
        self._slots = anyio.Semaphore(size)
        self.on_exhausted: Callable[[], Awaitable[None]] | None = None
        """Called if no connection is free. It may free one that is only kept for the remaining rows of a cursor."""

    @property
    def is_free(self) -> bool:
        """True if a caller would not have to wait."""
        return self._slots.value > 0

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[C]:
        """Lend a connection for the block. Raises SqlError, with code `busy` if none becomes free in time."""
        connection = await self.take()
        try:
            yield connection
        finally:
            self.give(connection)

    @abstractmethod
    async def take(self) -> C:
        """Take a connection from the pool. The caller must return it with `give`. Implementations must first await
        `_wait`. Raises SqlError, with code `busy` if no connection becomes free in time."""

    @abstractmethod
    def give(self, connection: C) -> None:
        """Return a connection to the pool."""

    async def _wait(self) -> None:
        """Wait for a free connection. Raises SqlError with code `busy`."""
        if self._slots.value == 0 and self.on_exhausted is not None:
            await self.on_exhausted()
        try:
            self._slots.acquire_nowait()
        except anyio.WouldBlock:
            try:
                with anyio.fail_after(self._max_wait):
                    await self._slots.acquire()
            except TimeoutError:
                reason = "all connections to the database are in use"
                raise SqlError("busy", reason, "Try again when other queries have finished.") from None
