"""Connections in their threads, and how their work ends."""

import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

import anyio
import pytest

from servers.sql.errors import SqlError
from servers.sql.jobs import Job
from servers.sqlite.engine.connection import Connection
from servers.sqlite.engine.limits import Limits, StatementDeadline
from servers.sqlite.engine.pool import Pool
from tests.descriptors import descriptors

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
# One instruction that compares 900 characters at each of a million places: about a second, and never more than some.
UNSTOPPABLE = "SELECT hex(zeroblob(500000)) LIKE '%' || hex(zeroblob(450)) || '1%'"


@asynccontextmanager
async def connected(file: Path, **limits: float) -> AsyncIterator[Connection]:
    connection = Connection(file, "ro", Limits(**limits))  # type: ignore[arg-type]
    await connection.open()
    try:
        yield connection
    finally:
        await connection.close()


def ask(statement: str, connection: sqlite3.Connection, _: StatementDeadline) -> object:
    return connection.execute(statement).fetchone()


async def refusal(connection: Connection, statement: str) -> SqlError:
    with pytest.raises(SqlError) as raised:
        await connection.run(lambda raw, stop: ask(statement, raw, stop))
    return raised.value


@pytest.fixture
def locked(file: Path) -> Iterator[Path]:
    """A database without a write-ahead log that is locked by somebody else."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        yield file


async def test_a_statement_without_end_is_stopped(file: Path) -> None:
    async with connected(file, seconds=1) as connection:
        assert (await refusal(connection, ENDLESS)).code == "timeout"
        assert await connection.run(lambda raw, stop: ask("SELECT 1", raw, stop)) == (1,)


async def test_a_job_has_a_time_of_its_own(file: Path) -> None:
    counted = ENDLESS.replace("FROM c)", "FROM c LIMIT 100000)")
    async with connected(file, seconds=0) as connection:
        assert (await refusal(connection, counted)).code == "timeout"
        assert await connection.run(partial(ask, counted), job=Job(60)) == (100_000,)


async def test_an_instruction_without_end_is_answered_in_time(file: Path) -> None:
    """Within milliseconds; the statement that follows has all the time it wants."""
    idle = anyio.Event()
    async with connected(file, seconds=0.01) as connection:
        assert (await refusal(connection, UNSTOPPABLE)).code == "timeout"
        connection.when_idle(idle.set)
        assert not idle.is_set()
        with anyio.fail_after(60):
            await idle.wait()
        connection._limits = Limits()
        assert await connection.run(lambda raw, stop: ask("SELECT 1", raw, stop)) == (1,)


async def test_work_that_was_cancelled_stops_and_says_when(file: Path) -> None:
    idle = anyio.Event()
    with anyio.fail_after(30):
        async with connected(file) as connection:
            with anyio.move_on_after(0.01):
                await connection.run(lambda raw, stop: ask(ENDLESS, raw, stop))
            connection.when_idle(idle.set)
            await idle.wait()


def test_work_that_outlives_the_event_loop_ends_in_silence_and_closes_its_file(file: Path) -> None:
    """pytest fails where the exception of a thread is caught by nobody."""
    goes_on = threading.Event()

    async def leave_at_work() -> Connection:
        async with connected(file) as connection:
            with anyio.move_on_after(0):
                await connection.run(lambda _raw, _stop: goes_on.wait(60))
        return connection

    connection = anyio.run(leave_at_work)
    goes_on.set()
    connection._thread.join(60)
    assert not connection._thread.is_alive()
    assert not [link for link in descriptors() if str(file) in link]


async def test_a_lock_is_waited_for_and_then_told(locked: Path) -> None:
    connection = Connection(locked, "ro", Limits(busy_seconds=0.05))
    with pytest.raises(SqlError) as raised:
        await connection.open()
    assert raised.value.code == "busy"


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("SELECT * FROM nowhere", "bad_statement"),
        ("SELECT 1; SELECT 2", "bad_statement"),
        ("SELECT '\x00'", "bad_statement"),
        ("SELECT ?", "bad_parameters"),
        ("SELECT zeroblob(1e9)", "too_large"),
        ("DELETE FROM numbers", "refused"),
        ("SELECT " + "(" * 300 + "1" + ")" * 300, "bad_statement"),
    ],
)
async def test_what_sqlite_refuses_has_a_code(file: Path, statement: str, code: str) -> None:
    async with connected(file) as connection:
        assert (await refusal(connection, statement)).code == code


async def test_a_pool_gives_a_connection_again(file: Path) -> None:
    pool = Pool(lambda: Connection(file, "ro", Limits()), 2, 30)
    async with pool.lent() as one:
        pass
    async with pool.lent() as other:
        assert other is one
    await pool.close()


async def test_a_pool_gives_the_connection_that_is_wanted(file: Path) -> None:
    pool = Pool(lambda: Connection(file, "ro", Limits()), 2, 30)
    async with pool.lent() as one, pool.lent() as other:
        pass
    assert await pool.take(one) is one
    assert await pool.take(one) is other
    await pool.close()


async def test_a_pool_says_that_all_are_lent(file: Path) -> None:
    pool = Pool(lambda: Connection(file, "ro", Limits()), 1, 0.01)
    async with pool.lent():
        with pytest.raises(SqlError) as raised:
            await pool.take()
    await pool.close()
    assert raised.value.code == "busy"


async def test_connections_that_do_not_end_are_replaced_and_come_back(file: Path) -> None:
    pool = Pool(lambda: Connection(file, "ro", Limits(seconds=0.01)), 1, 60)
    stuck = []
    for _ in range(2):
        async with pool.lent() as connection:
            stuck.append(connection)
            assert (await refusal(connection, UNSTOPPABLE)).code == "timeout"
    with anyio.move_on_after(0.05) as waited:
        await pool.take()
    assert waited.cancelled_caught
    async with pool.lent() as again:
        assert again in stuck
    assert len(set(stuck)) == 2
    await pool.close()


async def test_a_pool_keeps_its_place_when_a_connection_can_not_be_opened(tmp_path: Path) -> None:
    pool = Pool(lambda: Connection(tmp_path / "nothing.db", "ro", Limits()), 1, 30)
    for _ in range(2):
        with pytest.raises(SqlError) as raised:
            await pool.take()
        assert raised.value.code == "not_found"
