"""Any server of ours as three replicas behind one URL, for those who know nothing of replicas."""

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.checks.replicas.cluster import Replicas
from tests.checks.replicas.proxy import balanced, find_nginx
from tests.npm import Unavailable
from tests.redis_server import RedisServer, require_redis

__all__ = ["replicated"]

COUNT = 3


@asynccontextmanager
async def replicated(
    commands: Mapping[str, Sequence[str]], environment: Mapping[str, str] | None = None, *, is_silent: bool = True
) -> AsyncIterator[str]:
    """The base URL beneath which each path, "/" or "/NAME/", leads to three replicas of that command, a request to
    each of them in turn. Raises Unavailable where there is no Redis or no nginx here, and AssertionError where one of
    them that `is_silent` had something to complain of."""
    try:
        require_redis(), find_nginx()
    except (pytest.skip.Exception, pytest.fail.Exception) as reason:
        raise Unavailable(str(reason)) from reason
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        redis = RedisServer(folder)
        redis.start()
        stack.callback(redis.stop)
        running, ports = [], {}
        for number, (path, command) in enumerate(commands.items()):
            said = folder / str(number)
            said.mkdir()
            prefix = ["--store-prefix", f"mcp{number}:"]
            replicas = Replicas([*command, *prefix], COUNT, said, redis=redis, environment=environment)
            for one in replicas.all:
                one.start()
            running.append(replicas)
            ports[path] = replicas.ports
        for replicas in running:
            await stack.enter_async_context(replicas.running())
        yield stack.enter_context(balanced(ports))
        said = "".join(replicas.said() for replicas in running)
        complaints = [line for line in said.splitlines() if not line.startswith("listening on ")]
        assert not (is_silent and complaints), "\n".join(complaints)
