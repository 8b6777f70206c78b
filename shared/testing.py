"""Helpers for tests of servers: a server and a client in one process, connected by a pair of queues, and several runs
of one server that share their state, like replicas on several machines.

    async with connect_memory(server) as client:
        result = await client.call_tool("roll", {"sides": 20})

    async with connected(server) as end:
        await end.send_bytes(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}')

Both also accept a run of a server that is already open.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from typing import Any

import anyio
from pydantic import BaseModel

from .client.client import Client
from .client.options import ClientOptions
from .contracts import Stores
from .extensions.dialects import DIALECTS
from .protocol.identity import Principal
from .server.dispatch.connection import serve
from .server.run import Run
from .server.server import Server
from .stores import memory
from .transports.memory import MemoryTransport, memory_pair

__all__ = ["connect_memory", "connected", "replicas"]


@asynccontextmanager
async def connect_memory(
    server: Server[Any] | Run[Any],
    options: ClientOptions | None = None,
    *,
    settings: BaseModel | None = None,
    principal: Principal | None = None,
) -> AsyncIterator[Client]:
    """Yield a client of a server in this process; `server`, `settings` and `principal` are as in `connected`. Raises
    the errors of entering a `Client`, and those of the server's lifespan."""
    async with connected(server, settings, principal=principal) as end, Client(end, options) as client:
        yield client


@asynccontextmanager
async def connected(
    server: Server[Any] | Run[Any],
    settings: BaseModel | None = None,
    *,
    principal: Principal | None = None,
    dialects: bool = False,
) -> AsyncIterator[MemoryTransport]:
    """Yield the client's end of a connection to a server. A `Server` is opened for the block, with `settings` or the
    defaults; a `Run` is open already. `principal` is the sender of all messages. `dialects` enables the dialects
    (`shared/protocol/wire/dialects`). The connection ends cleanly with the block.

    A single exception is raised unchanged, not in a group.
    """
    ours, theirs = memory_pair(dialects=dialects)

    async def run(running: Run[Any]) -> None:
        await serve(running, theirs, principal=principal)
        theirs.close()

    try:
        extensions = [DIALECTS] if dialects else []
        opening = nullcontext(server) if isinstance(server, Run) else server.open(settings, extensions=extensions)
        async with opening as running, anyio.create_task_group() as tasks:
            tasks.start_soon(run, running)
            try:
                yield ours
            finally:
                ours.close()
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from group.exceptions[0].__cause__
    finally:
        theirs.close()


@asynccontextmanager
async def replicas(server: Server[Any], count: int, stores: Stores | None = None) -> AsyncIterator[list[Run[Any]]]:
    """Yield `count` runs of a server, with its default settings, that share `stores`, by default one in memory. So
    the HTTP endpoint of each run serves the sessions of all."""
    stores = stores or memory.Stores()
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(server.open(stores=stores)) for _ in range(count)]
