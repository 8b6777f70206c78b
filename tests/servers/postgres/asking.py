"""Read-only transactions for tests of catalog and row queries."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from servers.postgres.catalog import Session, Types
from servers.postgres.engine.deadline import Deadline, Limits
from servers.postgres.engine.link import Ask, open_link
from servers.postgres.engine.target import parse_target

__all__ = ["asking", "looking"]


@asynccontextmanager
async def looking(url: str, *statements: str) -> AsyncIterator[Session]:
    """Yields a new connection in a read-only transaction, after running `statements`."""
    link = await open_link(parse_target(url, writable=False), Limits())
    deadline = Deadline(30)
    for one in statements:
        await link.run(one, deadline=deadline)
    async with link.transaction(deadline):
        yield Session(partial(link.ask, deadline=deadline), partial(link.run, deadline=deadline), Types())
    link.close()


@asynccontextmanager
async def asking(url: str, *statements: str) -> AsyncIterator[Ask]:
    """Yields the method that runs a catalog query in such a transaction."""
    async with looking(url, *statements) as session:
        yield session.ask
