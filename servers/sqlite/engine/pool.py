"""The readers of one database: connections that are opened when they are first needed, and lent one call each.

A connection that is still at work when it is given back, because its caller would not wait for it any longer, is
missing until it is done. Others are opened in its place, so that a database can be asked all the same; but no more
than there are places, for each such connection has a thread that may be at work for hours.
"""

from collections.abc import Callable

from servers.common.sql import pool
from servers.sqlite.engine.connection import Connection


class Pool(pool.Pool[Connection]):
    """At most `size` connections, besides those that are missing. A caller waits `seconds` at most for one."""

    def __init__(self, make: Callable[[], Connection], size: int, seconds: float) -> None:
        super().__init__(size, seconds)
        self._make = make
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._missing: set[Connection] = set()
        self.on_returned: Callable[[], None] = lambda: None
        """Called when a connection has come back, its work done."""

    async def take(self, wanted: Connection | None = None) -> Connection:
        """A connection, `wanted` itself where that is idle. Raises SqlError `busy` where none comes back."""
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

    def _returned(self, connection: Connection) -> None:
        self.on_returned()
        self._idle.append(connection)
        if connection in self._missing:
            self._missing.remove(connection)
        else:
            self._slots.release()
