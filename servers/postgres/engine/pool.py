"""A pool of connections to one database, opened when they are first needed, and lent to one call at a time."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager

import anyio

from servers.common.sql import pool
from servers.common.sql.errors import SqlError

from .connecting import OpeningError
from .deadline import Deadline
from .link import Link

_PROBE_SECONDS = 3.0
"""Seconds within which an idle connection must respond. Behind a pooler that shares connections there is no such
limit, since the pooler may have no free connection to PostgreSQL for longer."""

_Prepare = Callable[[Link, float | None], Awaitable[object]]
"""Sends the first message on a connection. PostgreSQL must respond within the given number of seconds, if any."""


class Pool(pool.Pool[Link]):
    """A pool of at most `size` connections. A caller waits at most `max_wait` seconds for one. Close it at the end.

    An idle connection that broke, for example because PostgreSQL was restarted, is detected by the first message on
    it. This message changes nothing, so it is sent again on a new connection.
    """

    def __init__(self, open_link: Callable[[], Awaitable[Link]], size: int, max_wait: float) -> None:
        super().__init__(size, max_wait)
        self._open_link = open_link
        self._idle: list[Link] = []
        self._links: set[Link] = set()
        self._is_closed = False

    async def take(self) -> Link:
        """Take a connection that responds. Raises SqlError, with code `busy` if none becomes free in time."""

        async def ask(link: Link, probe_timeout: float | None) -> None:
            await link.ask("SELECT 1", deadline=Deadline(self._max_wait if probe_timeout is None else probe_timeout))

        return await self._take(ask, Deadline(self._max_wait))

    async def begin(self, deadline: Deadline, mode: str = "READ ONLY") -> Link:
        """Take a connection and begin a transaction on it. Raises SqlError: `busy` if none becomes free in time."""

        async def begin(link: Link, probe_timeout: float | None) -> None:
            await link.begin(deadline, mode, probe_timeout=probe_timeout)

        return await self._take(begin, deadline)

    @asynccontextmanager
    async def transaction(self, deadline: Deadline, mode: str = "READ ONLY") -> AsyncIterator[Link]:
        """Lend a connection in a transaction, which is rolled back at the end of the block. Raises SqlError."""
        link = await self.begin(deadline, mode)
        try:
            yield link
        finally:
            await self.end(link)

    async def end(self, link: Link) -> None:
        """Roll back the transaction of a connection, and return it to the pool."""
        with anyio.CancelScope(shield=True):
            try:
                await link.roll_back()
            finally:
                self.give(link)

    def give(self, link: Link) -> None:
        """Return a connection to the pool."""
        # A connection that is still in a transaction is not reused: its state is unknown.
        if self._is_closed or link.is_broken or link.in_transaction:
            self._drop(link)
        else:
            self._idle.append(link)
        self._slots.release()

    async def close(self) -> None:
        """Close all connections, including lent ones."""
        self._is_closed = True
        for link in [*self._links]:
            self._drop(link)

    async def _take(self, prepare: _Prepare, deadline: Deadline) -> Link:
        await self._wait()
        with ExitStack() as on_failure:
            on_failure.callback(self._slots.release)
            link = await self._reuse(prepare) or await self._open(prepare, deadline)
            on_failure.pop_all()
            return link

    async def _reuse(self, prepare: _Prepare) -> Link | None:
        """Prepare and return an idle connection; None if no connection is idle, or if it does not respond."""
        if not self._idle:
            return None
        link = self._idle.pop()
        with ExitStack() as on_failure:
            on_failure.callback(self._drop, link)
            try:
                await prepare(link, None if link.is_shared else _PROBE_SECONDS)
            except SqlError:
                # The other idle connections probably broke at the same time.
                while self._idle:
                    self._drop(self._idle.pop())
                return None
            on_failure.pop_all()
            return link

    async def _open(self, prepare: _Prepare, deadline: Deadline) -> Link:
        with ExitStack() as on_failure:
            try:
                with anyio.fail_after(deadline.left):
                    link = await self._open_link()
            except TimeoutError:
                raise OpeningError("it did not answer in time") from None
            self._links.add(link)
            on_failure.callback(self._drop, link)
            await prepare(link, None)
            on_failure.pop_all()
            return link

    def _drop(self, link: Link) -> None:
        self._links.discard(link)
        link.close()
