"""Questions to a database, as the parts that look at its catalog and its rows ask them."""

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
    """A connection of its own in a transaction that only reads, after these `statements`."""
    link = await open_link(parse_target(url, writable=False), Limits())
    deadline = Deadline(30)
    for one in statements:
        await link.run(one, deadline=deadline)
    async with link.transaction(deadline):
        yield Session(partial(link.ask, deadline=deadline), partial(link.run, deadline=deadline), Types())
    link.close()


@asynccontextmanager
async def asking(url: str, *statements: str) -> AsyncIterator[Ask]:
    """The same for questions to the catalog alone."""
    async with looking(url, *statements) as session:
        yield session.ask
