"""Whether a process of PostgreSQL serves other clients between our transactions, as behind a pooler in transaction
mode.

All that is done here works either way. What does not is LISTEN, whose notices would reach somebody else, and a
transaction that waits for the next call, for it takes one of the few connections of the pooler from others.
"""

from collections.abc import Awaitable, Callable
from contextlib import closing

import anyio

from servers.common.sql.errors import SqlError
from servers.postgres.engine.deadline import Deadline
from servers.postgres.engine.link import Link

_BACKEND = "SELECT pg_catalog.pg_backend_pid()"
_ROUNDS = 3
"""Somebody else may take part in one of them."""
_SECONDS = 3.0
"""In which a pooler has to give two connections; one that has only one for us may be of either kind."""


class NoTransactionsError(SqlError):
    """A pooler lets no transaction begin."""

    def __init__(self) -> None:
        reason = "its pooler carries no transactions, as PgBouncer with pool_mode = statement"
        super().__init__("unavailable", reason, "Set pool_mode to transaction or session.")


async def is_shared(connect: Callable[[], Awaitable[Link]]) -> bool:
    """Looks with two connections whether they come to the same process; unsure is as if they did.

    Raises NoTransactionsError where the pooler lets no transaction begin, and other SqlErrors.
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
        # A database that is away would not let this connection be made.
        with closing(await connect()):
            raise NoTransactionsError from None


async def _meet(first: Link, second: Link) -> bool:
    """Whether one is served by a process that serves the other, or by several."""
    deadline = Deadline(_SECONDS)
    seen = set()
    for _ in range(_ROUNDS):
        seen.update(await first.ask(_BACKEND, deadline=deadline))
        async with second.transaction(deadline):
            if not seen.isdisjoint(await second.ask(_BACKEND, deadline=deadline)):
                return True
            # While the second one has a process for itself, the first one has to have another.
            seen.update(await first.ask(_BACKEND, deadline=deadline))
        if len(seen) > 1:
            return True
    return False
