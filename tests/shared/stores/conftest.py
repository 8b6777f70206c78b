"""The stores under test: each contract test runs with all of them."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

import pytest

from shared.contracts import Replica, Stores
from shared.stores import memory
from tests.clock import forward
from tests.quiet import quiet
from tests.redis_stores import InRedis


class Kind(Stores, Protocol):
    """Stores whose time the test controls."""

    async def let_pass(self, seconds: float) -> None:
        """Lets so many seconds pass for stored data."""


class InMemory(memory.Stores):
    async def let_pass(self, seconds: float) -> None:
        forward(seconds)
        await quiet()


@asynccontextmanager
async def joined(made: Stores, count: int) -> AsyncIterator[list[Replica]]:
    async with AsyncExitStack() as leaving:
        yield [await leaving.enter_async_context(made.join()) for _ in range(count)]


async def rest(*replicas: Replica) -> None:
    """Waits until all replicas have run their operations and received their news."""
    for one in (*replicas, *replicas):
        link: Any = getattr(one, "link", None)
        if link is not None:
            await link.ask("look")
    await quiet()


@pytest.fixture(params=["memory", "redis"])
def stores(request: pytest.FixtureRequest) -> Kind:
    if request.param == "memory":
        return InMemory()
    return InRedis(request.getfixturevalue("redis_server"))
