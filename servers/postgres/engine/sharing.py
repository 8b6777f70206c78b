"""Detects a pooler in transaction mode, which gives a PostgreSQL process to other clients between the transactions of
this program.

With such a pooler, this program uses neither LISTEN, whose notifications would reach another client, nor transactions
that stay open for the next call of a client, which would occupy the pooler's few connections.
"""

from collections.abc import Awaitable, Callable
from contextlib import closing

import anyio

from servers.common.sql.errors import SqlError

from .deadline import Deadline
from .link import Link

_BACKEND = "SELECT pg_catalog.pg_backend_pid()"
_TEST_ROUNDS = 3
"""Number of rounds of the test, since other clients may interfere with one of them."""
_TEST_TIMEOUT = 3.0
"""Seconds within which a pooler must provide two connections. If it does not, it counts as one that shares
connections."""


class NoTransactionsError(SqlError):
    """Raised for a pooler that lets no transaction begin."""

    def __init__(self) -> None:
        reason = "its pooler does not support transactions, like PgBouncer with pool_mode = statement"
        super().__init__("unavailable", reason, "Set pool_mode to transaction or session.")


async def is_shared(connect: Callable[[], Awaitable[Link]]) -> bool:
    """Return True if the pooler shares connections, or if that is unclear. The test is whether two connections reach
    the same process.

    Raises NoTransactionsError if the pooler lets no transaction begin, and other SqlErrors.
    """
    with closing(await connect()) as first:
        if not first.is_pooled:
            return False
        deadline = Deadline(first.limits.timeout)
        try:
            async with first.transaction(deadline):
                await first.ask(_BACKEND, deadline=deadline)
        except SqlError:
            if not first.is_broken:
                raise
            # If the database is unreachable, this raises its own error.
            with closing(await connect()):
                raise NoTransactionsError from None
    with anyio.move_on_after(_TEST_TIMEOUT):
        with closing(await connect()) as first, closing(await connect()) as second:
            return await _uses_one_process(first, second)
    return True


async def _uses_one_process(first: Link, second: Link) -> bool:
    """Return True if one process serves both connections, or several processes serve one connection."""
    deadline = Deadline(_TEST_TIMEOUT)
    backends = set()
    for _ in range(_TEST_ROUNDS):
        backends.update(await first.ask(_BACKEND, deadline=deadline))
        async with second.transaction(deadline):
            if not backends.isdisjoint(await second.ask(_BACKEND, deadline=deadline)):
                return True
            # While the second connection occupies a process, the first one needs another.
            backends.update(await first.ask(_BACKEND, deadline=deadline))
        if len(backends) > 1:
            return True
    return False
