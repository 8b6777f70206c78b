"""The pool of connections to a database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from servers.common.sql.errors import SqlError
from servers.postgres.engine.connecting import OpeningError
from servers.postgres.engine.pool import Pool
from tests.clock import forward
from tests.postgres_server import PostgresServer, short_folder
from tests.quiet import quiet
from tests.servers.postgres.engines import make_pool, soon
from tests.wire import PATIENCE


class Proxy:
    """A proxy between a client and a server, which forwards nothing once `is_open` is False."""

    port = 0
    is_open = True

    async def carry(self, source: SocketStream, target: SocketStream) -> None:
        async for data in source:
            if self.is_open:
                await target.send(data)
        await target.aclose()


@asynccontextmanager
async def run_proxy(socket: Path) -> AsyncIterator[Proxy]:
    """Runs a proxy on a loopback port to the `socket` of a server."""
    passage = Proxy()

    async def serve(client: SocketStream) -> None:
        async with client, await anyio.connect_unix(socket) as server, anyio.create_task_group() as tasks:
            tasks.start_soon(passage.carry, client, server)
            tasks.start_soon(passage.carry, server, client)

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        passage.port = listener.extra(SocketAttribute.local_port)
        group.start_soon(listener.serve, serve)
        yield passage
        group.cancel_scope.cancel()


_OPEN = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mcp-bundle-postgres'"


async def test_connections_are_opened_on_demand_and_closed_at_the_end(postgres: PostgresServer) -> None:
    pool = make_pool(postgres.url(), size=5)
    before = postgres.run(_OPEN)[0][0]
    for _ in range(3):
        async with pool.lend():
            assert postgres.run(_OPEN) == [(before + 1,)]
    async with pool.lend():
        await pool.close()
    with anyio.fail_after(10):
        while postgres.run(_OPEN) != [(before,)]:
            await anyio.lowlevel.checkpoint()


async def test_waiting_for_a_connection_times_out_and_can_be_cancelled(postgres: PostgresServer) -> None:
    pool = make_pool(postgres.url(), size=1, seconds=2 * PATIENCE)
    async with pool.lend():
        with anyio.move_on_after(0.01):
            await pool.take()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(refused, pool)
            await quiet()
            forward(2 * PATIENCE)
    assert pool.is_free
    await pool.close()


async def refused(pool: Pool) -> None:
    with pytest.raises(SqlError) as caught:
        await pool.take()
    assert caught.value.code == "busy"


async def test_a_connection_returned_in_a_transaction_is_not_reused(postgres: PostgresServer) -> None:
    pool = make_pool(postgres.url())
    link = await pool.take()
    await link.begin(soon())
    pool.give(link)
    assert link.is_broken
    async with pool.lend() as other:
        assert not other.in_transaction
    await pool.close()


@pytest.mark.slow
@pytest.mark.parametrize("kill", [False, True])
async def test_a_restart_of_the_server_causes_no_error(postgres: PostgresServer, kill: bool) -> None:
    pool = make_pool(postgres.url())
    async with pool.lend() as link:
        backend = link.backend
    postgres.restart(kill=kill)
    async with pool.transaction(soon()) as link:
        assert await link.ask("SELECT 1", deadline=soon()) == [(1,)]
        assert link.backend != backend
    await pool.close()


async def test_terminated_idle_connections_cause_no_error(postgres: PostgresServer) -> None:
    pool = make_pool(postgres.url(), size=3)
    async with pool.transaction(soon()) as one, pool.transaction(soon()) as two, pool.transaction(soon()):
        backends = [one.backend, two.backend]
    postgres.run("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", [backends])
    async with pool.transaction(soon(), "READ WRITE") as link:
        assert await link.ask("SELECT 1", deadline=soon()) == [(1,)]
        assert link.backend not in backends
    async with pool.lend() as link:
        assert await link.ask("SELECT 1", deadline=soon()) == [(1,)]
    await pool.close()


async def test_a_vanished_server_is_unavailable_within_the_deadline(postgres: PostgresServer) -> None:
    async with run_proxy(postgres.folder / ".s.PGSQL.5432") as passage:
        pool = make_pool(f"postgresql://postgres@127.0.0.1:{passage.port}/postgres", size=1)
        async with pool.transaction(soon()):
            pass
        passage.is_open = False
        with anyio.fail_after(2), pytest.raises(SqlError) as caught:
            await pool.begin(soon(0.2))
        assert (caught.value.code, pool.is_free) == ("unavailable", True)
        assert "LIMIT" not in str(caught.value)
        await pool.close()


async def test_a_server_that_vanishes_during_a_statement_is_unavailable(postgres: PostgresServer) -> None:
    async with run_proxy(postgres.folder / ".s.PGSQL.5432") as passage:
        pool = make_pool(f"postgresql://postgres@127.0.0.1:{passage.port}/postgres", size=1)
        link = await pool.begin(soon())
        passage.is_open = False
        with pytest.raises(SqlError) as caught:
            await link.run("SELECT 1", deadline=soon(0.1))
        assert (caught.value.code, link.is_broken) == ("unavailable", True)
        assert caught.value.suggestion.startswith("Try again later: ")
        await pool.close()


async def test_a_missing_server_is_unavailable(postgres: PostgresServer) -> None:
    with short_folder() as folder:
        pool = make_pool(PostgresServer(folder).url(), size=1)
        with pytest.raises(OpeningError) as caught:
            await pool.take()
        assert caught.value.code == "unavailable"
        assert str(folder) not in str(caught.value)
        assert str(folder) in caught.value.details
        assert pool.is_free
