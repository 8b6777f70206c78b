"""The memory of large results that are being sent to clients, and the calls that wait while it is too much.

The HTTP transports count each large result until its client has read most of it. The size of a result is known only
after its call has run. So a call does not begin while many bytes of earlier results are being sent to its client. In
this way the results of a thousand requests that arrive together take a few megabytes at a time, not a gigabyte.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager

LARGE_RESULT_BYTES = 32_768
"""The minimum size in bytes of a result that is counted; smaller ones are limited by the number of connections."""


class Room:
    """The bytes of large results that are being sent, by client. A client to which none is being sent never waits."""

    def __init__(self, limit: int) -> None:
        """`limit` is the number of bytes for all clients, of which each may use half of what the others leave."""
        self._limit = limit
        self.used = 0
        """The number of bytes for all clients."""
        self._by_client: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def is_free(self, client: str) -> bool:
        """Return True if a call from `client` may begin."""
        # As in `Portions`, a client may use at most half of what the others leave.
        client_bytes = self._by_client.get(client, 0)
        return not client_bytes or client_bytes <= self._limit - self.used

    def add(self, client: str, size: int) -> None:
        """Count a result of `size` bytes for `client`, until `remove`."""
        self.used += size
        self._by_client[client] += size

    def remove(self, client: str, size: int) -> None:
        """Stop counting `size` bytes, which were sent or dropped."""
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
        """Wait until a call from `client` may begin, after those of its calls that have waited longer."""
        loop = asyncio.get_running_loop()
        while not self.is_free(client):
            turn = loop.create_future()
            self._waiting.setdefault(client, deque()).append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._wake_next()  # removes the cancelled turn from the queue, or gives it to the next call
                raise
        # The next call begins one turn of the event loop later, when most calls have a result, which is then counted.
        loop.call_soon(self._wake_next)

    def _wake_next(self) -> None:
        """Wake the first waiting call of each client whose calls may begin."""
        for client, queue in list(self._waiting.items()):
            while queue and queue[0].done():
                queue.popleft()
            if queue and self.is_free(client):
                queue.popleft().set_result(None)
            if not queue:
                del self._waiting[client]
