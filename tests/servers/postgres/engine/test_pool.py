"""The connections to a database."""

import anyio
import pytest

from servers.common.sql.errors import SqlError
from servers.postgres.engine.connecting import OpeningError
from tests.postgres_server import PostgresServer, short_folder
from tests.servers.postgres.engines import make_pool, soon

_OPEN = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mcp-bundle-postgres'"


async def test_connections_are_opened_when_they_are_needed_and_closed_at_the_end(postgres: PostgresServer) -> None:
    pool = make_pool(postgres.url(), size=5)
    before = postgres.run(_OPEN)[0][0]
    for _ in range(3):
        async with pool.lent():
            assert postgres.run(_OPEN) == [(before + 1,)]
    async with pool.lent():
        await pool.close()
    with anyio.fail_after(10):
        while postgres.run(_OPEN) != [(before,)]:
            await anyio.lowlevel.checkpoint()


async def test_nobody_waits_for_ever_and_who_is_cancelled_takes_nothing(postgres: PostgresServer) -> None:
    pool, patient = make_pool(postgres.url(), size=1, seconds=0.1), make_pool(postgres.url(), size=1)
    async with pool.lent(), patient.lent():
        with pytest.raises(SqlError) as caught:
            await pool.take()
        with anyio.move_on_after(0.01):
            await patient.take()
    assert caught.value.code == "busy"
    assert patient.is_free
    await pool.close()
    await patient.close()


async def test_a_connection_in_a_transaction_is_not_lent_again(postgres: PostgresServer) -> None:
    pool = make_pool(postgres.url())
    link = await pool.take()
    await link.begin(soon())
    pool.give(link)
    assert link.is_broken
    async with pool.lent() as other:
        assert not other.in_transaction
    await pool.close()


@pytest.mark.slow
async def test_a_server_that_was_started_again_is_not_noticed(postgres: PostgresServer) -> None:
    pool = make_pool(postgres.url())
    async with pool.lent() as link:
        backend = link.backend
    postgres.restart(kill=True)
    async with pool.lent() as link:
        assert await link.ask("SELECT 1", deadline=soon()) == [(1,)]
        assert link.backend != backend
    await pool.close()


async def test_a_server_that_is_gone_is_unavailable(postgres: PostgresServer) -> None:
    with short_folder() as folder:
        pool = make_pool(PostgresServer(folder).url(), size=1)
        with pytest.raises(OpeningError) as caught:
            await pool.take()
        assert caught.value.code == "unavailable"
        assert str(folder) not in str(caught.value)
        assert str(folder) in caught.value.words
        assert pool.is_free
