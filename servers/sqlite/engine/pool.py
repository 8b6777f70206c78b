"""Keeps a pool of connections to one database. It opens them when they are needed, and lends each to one call at a
time.

A connection may still be busy when it is returned, because its caller has stopped waiting. It is unavailable until
its work has ended. Another connection may be opened instead, so that the database can still be used. At most as many
connections as the size of the pool are replaced in this way, because the thread of each may run for hours.
"""

from collections.abc import Callable

from servers.common.sql import pool

from .connection import Connection


class Pool(pool.Pool[Connection]):
    """A pool of at most `size` connections, not counting unavailable ones. A caller waits for a free connection for
    `max_wait` seconds at most."""

    def __init__(self, make_connection: Callable[[], Connection], size: int, max_wait: float) -> None:
        super().__init__(size, max_wait)
        self._make_connection = make_connection
        self._idle: list[Connection] = []
        self._connections: set[Connection] = set()
        self._unavailable: set[Connection] = set()
        self.on_returned: Callable[[], None] = lambda: None
        """Called when a connection has been returned and its work is done."""

    async def take(self, preferred: Connection | None = None) -> Connection:
        """Return an idle or new connection, and the `preferred` one if it is idle. Raises SqlError, with code `busy`
        if no connection becomes free in time."""
        await self._wait()
        if self._idle:
            if preferred is not None and preferred in self._idle:
                self._idle.remove(preferred)
                idle = preferred
            else:
                idle = self._idle.pop()
            idle.lend()
            return idle
        connection = self._make_connection()
        try:
            await connection.open()
            self._connections.add(connection)
        finally:
            if connection not in self._connections:
                self._slots.release()
        return connection

    def give(self, connection: Connection) -> None:
        """Return a connection to the pool. One that is still busy becomes available when its work has ended."""

        def make_available() -> None:
            self.on_returned()
            self._idle.append(connection)
            if connection in self._unavailable:
                self._unavailable.remove(connection)
            else:
                self._slots.release()

        connection.when_idle(make_available)
        if connection not in self._idle and len(self._unavailable) < self.size:
            self._unavailable.add(connection)
            self._slots.release()

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            await connection.close()
