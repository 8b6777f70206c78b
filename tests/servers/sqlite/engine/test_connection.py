"""Connections in their threads: timeouts, cancellation and errors."""

import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

import anyio
import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.jobs import Job
from servers.sqlite.engine.connection import Connection
from servers.sqlite.engine.deadline import Limits, StatementDeadline
from tests.descriptors import descriptors

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
# One instruction that compares 900 characters at each of many places, and takes some tenths of a second.
UNSTOPPABLE = "SELECT hex(zeroblob(120000)) LIKE '%' || hex(zeroblob(450)) || '1%'"


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
    """A database without WAL that another connection has locked."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        yield file


async def test_an_endless_statement_times_out(file: Path) -> None:
    async with connected(file, timeout=0.1) as connection:
        assert (await refusal(connection, ENDLESS)).code == "timeout"
        assert await connection.run(lambda raw, stop: ask("SELECT 1", raw, stop)) == (1,)


async def test_a_job_may_have_its_own_time_limit(file: Path) -> None:
    counted = ENDLESS.replace("FROM c)", "FROM c LIMIT 100000)")
    async with connected(file, timeout=0) as connection:
        assert (await refusal(connection, counted)).code == "timeout"
        assert await connection.run(partial(ask, counted), job=Job(60)) == (100_000,)


async def test_an_uninterruptible_instruction_times_out_at_once(file: Path) -> None:
    """The error comes within milliseconds; the next statement has its own time limit."""
    idle = anyio.Event()
    async with connected(file, timeout=0.01) as connection:
        assert (await refusal(connection, UNSTOPPABLE)).code == "timeout"
        connection.when_idle(idle.set)
        assert not idle.is_set()
        with anyio.fail_after(60):
            await idle.wait()
        assert await connection.run(lambda raw, stop: ask("SELECT 1", raw, stop), job=Job(60)) == (1,)


async def test_cancelled_work_stops_and_calls_when_idle(file: Path) -> None:
    idle = anyio.Event()
    with anyio.fail_after(30):
        async with connected(file) as connection:
            with anyio.move_on_after(0.01):
                await connection.run(lambda raw, stop: ask(ENDLESS, raw, stop))
            connection.when_idle(idle.set)
            await idle.wait()


def test_work_beyond_the_event_loop_ends_without_error_and_closes_its_file(file: Path) -> None:
    """pytest fails on an uncaught exception of a thread."""
    goes_on = threading.Event()

    async def leave_at_work() -> Connection:
        async with connected(file) as connection:
            with anyio.move_on_after(0):
                await connection.run(lambda _raw, _stop: goes_on.wait(60))
        return connection

    connection = anyio.run(leave_at_work)
    goes_on.set()
    connection._thread.join(60)  # the thread of aiosqlite, whose end nothing else shows
    assert not connection._thread.is_alive()
    assert not [link for link in descriptors() if str(file) in link]


async def test_a_lock_beyond_the_busy_timeout_is_a_busy_error(locked: Path) -> None:
    connection = Connection(locked, "ro", Limits(busy_timeout=0.05))
    with pytest.raises(SqlError) as raised:
        await connection.open()
    assert raised.value.code == "busy"


async def test_each_sqlite_error_has_a_code(file: Path) -> None:
    codes = {
        "SELECT * FROM nowhere": "bad_statement",
        "SELECT 1; SELECT 2": "bad_statement",
        "SELECT '\x00'": "bad_statement",
        "SELECT ?": "bad_parameters",
        "SELECT zeroblob(1e9)": "too_large",
        "DELETE FROM numbers": "refused",
        "SELECT " + "(" * 300 + "1" + ")" * 300: "bad_statement",
    }
    async with connected(file) as connection:
        assert {statement: (await refusal(connection, statement)).code for statement in codes} == codes
