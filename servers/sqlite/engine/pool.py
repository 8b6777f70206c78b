"""The readers of one database: connections that are opened when they are first needed, and lent one call each.

A connection that is still at work when it is given back, because its caller would not wait for it any longer, is
missing until it is done. Others are opened in its place, so that a database can be asked all the same; but no more
than there are places, for each such connection has a thread that may be at work for hours.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from servers.common.sql.errors import SqlError
from servers.sqlite.engine.connection import Connection


class Pool:
    """At most `size` connections, besides those that are missing. A caller waits `seconds` at most for one."""

    def __init__(self, make: Callable[[], Connection], size: int, seconds: float) -> None:
        self.size = size
        self._make = make
        self._seconds = seconds
        self._slots = anyio.Semaphore(size)
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._missing: set[Connection] = set()
        self.on_exhausted: Callable[[], Awaitable[None]] | None = None
        """Called where all connections are lent, to have one given back that is merely kept."""
        self.on_returned: Callable[[], None] = lambda: None
        """Called when a connection has come back, its work done."""

    @property
    def is_free(self) -> bool:
        """Whether a caller would not have to wait."""
        return self._slots.value > 0

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[Connection]:
        """A connection for the time of the block."""
        connection = await self.take()
        try:
            yield connection
        finally:
            self.give(connection)

    async def take(self, wanted: Connection | None = None) -> Connection:
        """A connection, `wanted` itself where that is idle. Raises SqlError `busy` where none comes back."""
        if self._slots.value == 0 and self.on_exhausted is not None:
            await self.on_exhausted()
        try:
            self._slots.acquire_nowait()
        except anyio.WouldBlock:
            await self._wait()
        if self._idle:
            if wanted is not None and wanted in self._idle:
                self._idle.remove(wanted)
                idle = wanted
            else:
                idle = self._idle.pop()
            idle.lend()
            return idle
        connection = self._make()
        try:
            await connection.open()
            self._all.add(connection)
        finally:
            if connection not in self._all:
                self._slots.release()
        return connection

    def give(self, connection: Connection) -> None:
        """Takes a connection back. One that is still at work, because nobody waited for it, comes back by itself."""
        connection.when_idle(lambda: self._returned(connection))
        if connection not in self._idle and len(self._missing) < self.size:
            self._missing.add(connection)
            self._slots.release()

    async def close(self) -> None:
        """Closes all connections."""
        for connection in self._all:
            await connection.close()

    async def _wait(self) -> None:
        try:
            with anyio.fail_after(self._seconds):
                await self._slots.acquire()
        except TimeoutError:
            reason = "all connections to the database are at work"
            raise SqlError("busy", reason, "Try again when other queries have ended.") from None

    def _returned(self, connection: Connection) -> None:
        self.on_returned()
        self._idle.append(connection)
        if connection in self._missing:
            self._missing.remove(connection)
        else:
            self._slots.release()
