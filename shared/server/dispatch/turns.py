"""The turns of clients to work in threads. Their total number is limited, and clients take turns, so that a busy
client delays only itself."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

MAX_CONCURRENT = 4
"""Maximum number of threads that work at the same time. More would not be faster, since only one thread at a time
executes Python code. And each of them delays short work, and the event loop, by a few milliseconds whenever Python
switches threads."""


class Turns:
    """The turns of clients in one event loop: those that are taken, and those that wait."""

    def __init__(self, at_once: int = MAX_CONCURRENT, per_client: int | None = None) -> None:
        """`at_once` is the maximum number of turns that are taken at the same time. `per_client` is the maximum for
        one client if there are several, by default one less, so that a turn is left for others."""
        self._at_once = at_once
        self._per_client = max(at_once - 1 if per_client is None else per_client, 1)
        self._working: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @property
    def waiting(self) -> int:
        """The number of turns that wait."""
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def acquire(self, client: str) -> AsyncIterator[None]:
        """Wait for a turn of `client`, and hold it during the block. The name "" means that there is only one client,
        which may take all turns."""
        if self._can_start(client) and client not in self._waiting:
            self._working[client] += 1
        else:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(client, deque()).append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.cancelled():
                    self._start_next()  # removes the cancelled turn from the queue
                else:  # the turn was given when the task had already been cancelled
                    self._finish(client)
                raise
        try:
            yield
        finally:
            self._finish(client)

    def _can_start(self, client: str) -> bool:
        limit = self._per_client if client else self._at_once
        return self._working.total() < self._at_once and self._working.get(client, 0) < limit

    def _finish(self, client: str) -> None:
        self._working[client] -= 1
        if not self._working[client]:
            del self._working[client]
        self._start_next()

    def _start_next(self) -> None:
        """Give free turns to the clients that have waited longest. Each then moves to the end of the queue."""
        for client, queue in list(self._waiting.items()):
            while queue and queue[0].cancelled():
                queue.popleft()
            if queue and self._can_start(client):
                queue.popleft().set_result(None)
                self._working[client] += 1
                self._waiting[client] = self._waiting.pop(client)
            if not queue:
                del self._waiting[client]
