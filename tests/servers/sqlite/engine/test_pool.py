"""The pool of connections, and connections that return late."""

from pathlib import Path

import anyio
import pytest

from servers.common.sql.errors import SqlError
from servers.sqlite.engine.connection import Connection
from servers.sqlite.engine.deadline import Limits
from servers.sqlite.engine.pool import Pool
from tests.servers.sqlite.engine.test_connection import UNSTOPPABLE, refusal


async def test_a_pool_reuses_connections_and_lends_the_preferred_one(file: Path) -> None:
    pool = Pool(lambda: Connection(file, "ro", Limits()), 2, 30)
    async with pool.lend() as one:
        pass
    async with pool.lend() as again, pool.lend() as other:
        assert again is one
    assert await pool.take(one) is one
    assert await pool.take(one) is other
    await pool.close()


async def test_a_pool_without_a_free_connection_is_busy(file: Path) -> None:
    pool = Pool(lambda: Connection(file, "ro", Limits()), 1, 0.01)
    async with pool.lend():
        with pytest.raises(SqlError) as raised:
            await pool.take()
    await pool.close()
    assert raised.value.code == "busy"


@pytest.mark.slow
async def test_stuck_connections_are_replaced_and_return_later(file: Path) -> None:
    lasting = UNSTOPPABLE.replace("120000", "480000")  # long enough that it still runs on a busy machine
    pool = Pool(lambda: Connection(file, "ro", Limits(timeout=0.01)), 1, 60)
    stuck: list[Connection] = []
    returned: list[bool] = []
    pool.on_returned = lambda: returned.append(True)
    for _ in range(2):
        async with pool.lend() as connection:
            stuck.append(connection)
            assert (await refusal(connection, lasting)).code == "timeout"
    with anyio.move_on_after(0.05) as waited:
        await pool.take()
    assert waited.cancelled_caught
    while len(returned) < 2:
        await anyio.sleep(0.01)
    async with pool.lend() as again:
        assert again in stuck
        with anyio.move_on_after(0.05) as waited:  # both connections are back, but the pool lends one at a time
            await pool.take()
        assert waited.cancelled_caught
    assert len(set(stuck)) == 2
    await pool.close()


async def test_a_connection_that_fails_to_open_frees_its_place(tmp_path: Path) -> None:
    pool = Pool(lambda: Connection(tmp_path / "nothing.db", "ro", Limits()), 1, 30)
    for _ in range(2):
        with pytest.raises(SqlError) as raised:
            await pool.take()
        assert raised.value.code == "not_found"
