"""The connections to one database: opened when they are first needed, and lent one call each."""

import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

from servers.common.sql import pool
from servers.common.sql.errors import SqlError
from servers.postgres.engine.deadline import Deadline
from servers.postgres.engine.link import Link

_UNSURE = 30.0
"""Seconds of idleness after which a connection is tried first: what stands between may have forgotten it."""
_TRIAL = 3.0
"""Seconds that the trial may take."""


class Pool(pool.Pool[Link]):
    """At most `size` connections; a caller waits `seconds` at most for one. Close it at the end.

    An idle connection that the server has closed, because it was started again for one, is replaced before anybody
    is given it.
    """

    def __init__(self, make: Callable[[], Awaitable[Link]], size: int, seconds: float) -> None:
        super().__init__(size, seconds)
        self._make = make
        self._idle: list[tuple[Link, float]] = []
        self._all: set[Link] = set()
        self._closed = False

    async def take(self) -> Link:
        """A connection. Raises SqlError, `busy` where none comes back."""
        await self._wait()
        with ExitStack() as unless_taken:
            unless_taken.callback(self._slots.release)
            link = await self._find_idle()
            if link is None:
                link = await self._make()
                self._all.add(link)
            unless_taken.pop_all()
            return link

    def give(self, link: Link) -> None:
        """Takes a connection back. One in a transaction is closed, since nobody knows what is in it."""
        if self._closed or link.is_broken or link.in_transaction:
            self._drop(link)
        else:
            self._idle.append((link, time.monotonic()))
        self._slots.release()

    async def close(self) -> None:
        """Closes all connections, also those that are lent."""
        self._closed = True
        for link in [*self._all]:
            self._drop(link)

    async def _find_idle(self) -> Link | None:
        while self._idle:
            link, since = self._idle.pop()
            with ExitStack() as unless_good:
                unless_good.callback(self._drop, link)
                link.notice_end()
                if await _answers(link, since):
                    unless_good.pop_all()
                    return link
        return None

    def _drop(self, link: Link) -> None:
        self._all.discard(link)
        link.close()


async def _answers(link: Link, since: float) -> bool:
    if link.is_broken or time.monotonic() - since < _UNSURE:
        return not link.is_broken
    try:
        await link.run("SELECT 1", deadline=Deadline(_TRIAL))
    except SqlError:
        return False
    return not link.is_broken
