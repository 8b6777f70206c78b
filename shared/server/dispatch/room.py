"""The bytes of large results on their way to clients, and the calls that wait while there are too many.

Transports over HTTP count each large result until its client has read most of it. The size of a result is not known
before the call has run. So calls do not begin while many bytes of their client are on the way: a thousand requests at
once have a few megabytes of results in memory, and not a gigabyte.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager

LARGE_RESULT_BYTES = 32_768
"""The minimum size in bytes of a result that takes room; smaller results are bounded by the number of connections."""


class Room:
    """The room for large results of all clients. A client that has none on the way never waits."""

    def __init__(self, limit: int) -> None:
        """Clients wait once `limit` bytes are in use; one client may use half of it."""
        self._limit = limit
        self.used = 0
        """The bytes in use."""
        self._by_client: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def is_free(self, client: str) -> bool:
        """Return True if a call of `client` may begin."""
        # As in `Portions`, each client may have half of the free part.
        own = self._by_client.get(client, 0)
        return not own or own <= self._limit - self.used

    def add(self, client: str, size: int) -> None:
        """Count a result of `size` bytes for `client`, until `remove`."""
        self.used += size
        self._by_client[client] += size

    def remove(self, client: str, size: int) -> None:
        """Stop counting `size` bytes, which are sent or dropped."""
        self.used -= size
        self._by_client[client] -= size
        if not self._by_client[client]:
            del self._by_client[client]
        self._wake_next()

    @contextmanager
    def use(self, client: str, size: int) -> Iterator[None]:
        """Count a result of `size` bytes during the block."""
        self.add(client, size)
        try:
            yield
        finally:
            self.remove(client, size)

    async def wait(self, client: str) -> None:
        """Wait until a call of `client` may begin, after those that have waited longer."""
        loop = asyncio.get_running_loop()
        while not self.is_free(client):
            turn = loop.create_future()
            self._waiting.setdefault(client, deque()).append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._wake_next()  # drops the cancelled turn from the queue, or passes on one that was given
                raise
        # The next call begins after this one has run for a turn of the loop, in which most results become ready.
        loop.call_soon(self._wake_next)

    def _wake_next(self) -> None:
        """Let the first waiting call of each client begin that may."""
        for client, queue in list(self._waiting.items()):
            while queue and queue[0].done():
                queue.popleft()
            if queue and self.is_free(client):
                queue.popleft().set_result(None)
            if not queue:
                del self._waiting[client]
