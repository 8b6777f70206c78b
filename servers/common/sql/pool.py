"""A pool of connections to one database, each of which is lent to one call at a time.

This module limits the number of connections and the wait for one. Each engine opens and checks its own connections.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import anyio

from servers.common.sql.errors import SqlError

C = TypeVar("C")


class Pool(ABC, Generic[C]):
    """A pool of at most `size` connections. A caller waits at most `max_wait` seconds for one."""

    def __init__(self, size: int, max_wait: float) -> None:
        self.size = size
        self._max_wait = max_wait
        self._slots = anyio.Semaphore(size)
        self.on_exhausted: Callable[[], Awaitable[None]] | None = None
        """Called if all connections are lent, to free one that only holds the remaining rows of a cursor."""

    @property
    def is_free(self) -> bool:
        """True if a caller would not have to wait."""
        return self._slots.value > 0

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[C]:
        """Lend a connection for the block. Raises SqlError with code `busy` if none is returned in time."""
        connection = await self.take()
        try:
            yield connection
        finally:
            self.give(connection)

    @abstractmethod
    async def take(self) -> C:
        """Take a connection, which `give` returns. An engine awaits `_wait` first. Raises SqlError with code `busy`
        if none becomes free in time."""

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
