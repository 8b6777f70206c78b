"""The workers that pages are read in: so many at once, and callers in the order they came."""

import anyio

from servers.fetch.reading.frames import Head
from servers.fetch.reading.kinds import KindName
from servers.fetch.reading.process import Limits, Worker

__all__ = ["Pool"]


class Pool:
    """At most `size` workers, of which only those have a process that were needed at the same time."""

    def __init__(self, size: int, limits: Limits) -> None:
        self._slots = anyio.Semaphore(size)
        self._workers = [Worker(limits) for _ in range(size)]
        self._idle = [*self._workers]

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes there are."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    async def warm(self, kind: KindName) -> None:
        """Starts one process, where there is none, for the first page to come."""
        if not self.pids and self._idle:
            await self._idle[-1].prepare(kind)

    async def ask(self, kind: KindName, head: Head, body: bytes) -> tuple[Head, bytes]:
        """What a worker answers. Raises FetchError `unreadable`."""
        async with self._slots:
            # The one that was used last: it is likely to have a process.
            worker = self._idle.pop()
            try:
                return await worker.ask(kind, head, body)
            finally:
                self._idle.append(worker)

    async def close(self) -> None:
        """Ends all processes."""
        for worker in self._workers:
            await worker.end()
