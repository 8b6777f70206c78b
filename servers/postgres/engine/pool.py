"""A pool of connections to one database, opened when they are first needed, and lent to one call at a time."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager

import anyio

from servers.common.sql import pool
from servers.common.sql.errors import SqlError
from servers.postgres.engine.connecting import OpeningError
from servers.postgres.engine.deadline import Deadline
from servers.postgres.engine.link import Link

_PROBE_SECONDS = 3.0
"""Seconds within which an idle connection must respond; a pooler may lack a server connection for longer."""

_Prepare = Callable[[Link, float | None], Awaitable[object]]
"""The first message on a connection, with the seconds within which it must be answered."""


class Pool(pool.Pool[Link]):
    """A pool of at most `size` connections. A caller waits at most `seconds` for one. Close it at the end.

    An idle connection that broke, for example because the server was restarted, is replaced before it is lent. The
    first message changes nothing, so it can be sent twice.
    """

    def __init__(self, make: Callable[[], Awaitable[Link]], size: int, seconds: float) -> None:
        super().__init__(size, seconds)
        self._make = make
        self._idle: list[Link] = []
        self._all: set[Link] = set()
        self._is_closed = False

    async def take(self) -> Link:
        """Take a connection that responds. Raises SqlError, including `busy` if none is returned in time."""

        async def ask(link: Link, patience: float | None) -> None:
            await link.ask("SELECT 1", deadline=Deadline(self._max_wait if patience is None else patience))

        return await self._take(ask, Deadline(self._max_wait))

    async def begin(self, deadline: Deadline, mode: str = "READ ONLY") -> Link:
        """Take a connection and begin a transaction on it. Raises SqlError with code `busy` if none is returned in
        time."""

        async def begin(link: Link, patience: float | None) -> None:
            await link.begin(deadline, mode, patience=patience)

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
        # The state of a connection in a transaction is unknown.
        if self._is_closed or link.is_broken or link.in_transaction:
            self._drop(link)
        else:
            self._idle.append(link)
        self._slots.release()

    async def close(self) -> None:
        """Close all connections, including lent ones."""
        self._is_closed = True
        for link in [*self._all]:
            self._drop(link)

    async def _take(self, prepare: _Prepare, deadline: Deadline) -> Link:
        await self._wait()
        with ExitStack() as on_failure:
            on_failure.callback(self._slots.release)
            link = await self._reuse(prepare) or await self._open(prepare, deadline)
            on_failure.pop_all()
            return link

    async def _reuse(self, prepare: _Prepare) -> Link | None:
        """Prepare and return an idle connection; None if no connection is idle, or it broke."""
        if not self._idle:
            return None
        link = self._idle.pop()
        with ExitStack() as on_failure:
            on_failure.callback(self._drop, link)
            try:
                await prepare(link, None if link.is_shared else _PROBE_SECONDS)
            except SqlError:
                # The others probably broke with it.
                while self._idle:
                    self._drop(self._idle.pop())
                return None
            on_failure.pop_all()
            return link

    async def _open(self, prepare: _Prepare, deadline: Deadline) -> Link:
        with ExitStack() as on_failure:
            try:
                with anyio.fail_after(deadline.left):
                    link = await self._make()
            except TimeoutError:
                raise OpeningError("it did not answer in time") from None
            self._all.add(link)
            on_failure.callback(self._drop, link)
            await prepare(link, None)
            on_failure.pop_all()
            return link

    def _drop(self, link: Link) -> None:
        self._all.discard(link)
        link.close()
