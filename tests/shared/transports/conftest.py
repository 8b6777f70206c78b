from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from shared.server.server import Server
from shared.testing import replicas
from tests.redis_stores import InRedis
from tests.shared.transports.http.http_wire import Site, Two, listening, make_server, served_meanwhile


@pytest.fixture(scope="module")
def standing() -> Iterator[Site]:
    """A server shared by those tests of a file that leave no state in it."""
    with served_meanwhile() as site:
        yield site


@pytest.fixture
def two(request: pytest.FixtureRequest) -> Two:
    """Two runs at two endpoints with a shared store: in memory, and with `IN_BOTH` also in Redis."""
    in_redis = getattr(request, "param", "memory") == "redis"
    stores = InRedis(request.getfixturevalue("redis_server")) if in_redis else None

    @asynccontextmanager
    async def opened(app: Server[Any] | None = None, **options: Any) -> AsyncIterator[tuple[Site, Site]]:
        async with (
            replicas(app or make_server(), 2, stores) as (one, other),
            listening(one, **options) as here,
            listening(other, **options) as there,
        ):
            yield here, there

    return opened
