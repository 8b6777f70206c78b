"""Detects a pooler in transaction mode, with which a PostgreSQL process serves other clients between this server's
transactions.

Everything works with such a pooler, with two exceptions: LISTEN, whose notices would reach another client, and a
transaction that waits for the next call, which would take one of the pooler's few connections from other clients.
"""

from collections.abc import Awaitable, Callable
from contextlib import closing

import anyio

from servers.common.sql.errors import SqlError
from servers.postgres.engine.deadline import Deadline
from servers.postgres.engine.link import Link

_BACKEND = "SELECT pg_catalog.pg_backend_pid()"
_TEST_ROUNDS = 3
"""Number of rounds of the test, since other clients may interfere with one of them."""
_SECONDS = 3.0
"""Seconds within which a pooler must provide two connections. A pooler that provides only one may be of either
kind."""


class NoTransactionsError(SqlError):
    """Raised for a pooler that lets no transaction begin."""

    def __init__(self) -> None:
        reason = "its pooler does not support transactions, like PgBouncer with pool_mode = statement"
        super().__init__("unavailable", reason, "Set pool_mode to transaction or session.")


async def is_shared(connect: Callable[[], Awaitable[Link]]) -> bool:
    """Test with two connections whether they reach the same process; True if that is unclear.

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
            # If the database were unreachable, this connection would fail.
            with closing(await connect()):
                raise NoTransactionsError from None
    with anyio.move_on_after(_SECONDS):
        with closing(await connect()) as first, closing(await connect()) as second:
            return await _uses_one_process(first, second)
    return True


async def _uses_one_process(first: Link, second: Link) -> bool:
    """Return True if one process serves both connections, or several processes serve one."""
    deadline = Deadline(_SECONDS)
    seen = set()
    for _ in range(_TEST_ROUNDS):
        seen.update(await first.ask(_BACKEND, deadline=deadline))
        async with second.transaction(deadline):
            if not seen.isdisjoint(await second.ask(_BACKEND, deadline=deadline)):
                return True
            # While the second connection occupies a process, the first one needs another.
            seen.update(await first.ask(_BACKEND, deadline=deadline))
        if len(seen) > 1:
            return True
    return False
