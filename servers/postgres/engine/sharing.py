"""Detection of a pooler in transaction mode, where a process of PostgreSQL serves other clients between our
transactions.

Everything here works with such a pooler, with two exceptions: LISTEN, whose notices would reach another client, and a
transaction that waits for the next call, which would take one of the pooler's few connections from others.
"""

from collections.abc import Awaitable, Callable
from contextlib import closing

import anyio

from servers.common.sql.errors import SqlError
from servers.postgres.engine.deadline import Deadline
from servers.postgres.engine.link import Link

_BACKEND = "SELECT pg_catalog.pg_backend_pid()"
_ROUNDS = 3
"""Rounds of the test, since other clients may interfere with one of them."""
_SECONDS = 3.0
"""Seconds in which a pooler has to give two connections; a pooler with only one for us may be of either kind."""


class NoTransactionsError(SqlError):
    """A pooler that lets no transaction begin."""

    def __init__(self) -> None:
        reason = "its pooler carries no transactions, as PgBouncer with pool_mode = statement"
        super().__init__("unavailable", reason, "Set pool_mode to transaction or session.")


async def is_shared(connect: Callable[[], Awaitable[Link]]) -> bool:
    """Test with two connections whether they reach the same process; True if that is unclear.

    Raises NoTransactionsError if the pooler lets no transaction begin, and other SqlErrors.
    """
    with closing(await connect()) as first:
        if not first.is_pooled:
            return False
        await _check_transactions(first, connect)
    with anyio.move_on_after(_SECONDS):
        with closing(await connect()) as first, closing(await connect()) as second:
            return await _meet(first, second)
    return True


async def _check_transactions(link: Link, connect: Callable[[], Awaitable[Link]]) -> None:
    deadline = Deadline(link.limits.seconds)
    try:
        async with link.transaction(deadline):
            await link.ask(_BACKEND, deadline=deadline)
    except SqlError:
        if not link.is_broken:
            raise
        # If the database were unreachable, this connection would fail.
        with closing(await connect()):
            raise NoTransactionsError from None


async def _meet(first: Link, second: Link) -> bool:
    """Return True if both connections are served by the same process, or one by several."""
    deadline = Deadline(_SECONDS)
    seen = set()
    for _ in range(_ROUNDS):
        seen.update(await first.ask(_BACKEND, deadline=deadline))
        async with second.transaction(deadline):
            if not seen.isdisjoint(await second.ask(_BACKEND, deadline=deadline)):
                return True
            # While the second one has a process of its own, the first one needs another.
            seen.update(await first.ask(_BACKEND, deadline=deadline))
        if len(seen) > 1:
            return True
    return False
