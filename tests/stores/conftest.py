"""The stores that keep to the contracts: each test runs with all of them."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from shared.contracts import Replica, Stores
from shared.stores import memory

KINDS: dict[str, Callable[[], Stores]] = {"memory": memory.Stores}


@asynccontextmanager
async def joined(made: Stores, count: int) -> AsyncIterator[list[Replica]]:
    async with AsyncExitStack() as leaving:
        yield [await leaving.enter_async_context(made.join()) for _ in range(count)]


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest) -> Stores:
    return KINDS[request.param]()
