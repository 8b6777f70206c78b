"""One connection: statements, limits, timeouts and notifications."""

import os
import signal
from collections.abc import AsyncIterator

import anyio
import pytest

from servers.common.sql.errors import SqlError
from servers.postgres.engine.deadline import Deadline, Limits
from servers.postgres.engine.link import Link, open_link
from servers.postgres.engine.target import parse_target
from tests.postgres_server import PostgresServer
from tests.servers.postgres.engines import soon


@pytest.fixture
async def link(postgres: PostgresServer) -> AsyncIterator[Link]:
    link = await open_link(parse_target(postgres.url(), False), Limits(value_bytes=1_000_000))
    yield link
    link.close()


async def test_run_returns_values_as_postgresql_text(link: Link) -> None:
    result = await link.run("SELECT 1 AS n, NULL, 'x' || $1", [b"y"], deadline=soon())
    assert result.rows == [(b"1", None, b"xy")]
    assert [column.name for column in result.columns] == ["n", "?column?", "?column?"]
    assert result.tag == "SELECT 1"


async def test_ask_returns_python_values(link: Link) -> None:
    sql = "SELECT 1, 2.5::float8, true, NULL, ARRAY['a\"b', NULL, 'c,d'], '1 2'::int2vector, 3::numeric, $1::int[]"
    rows = await link.ask(sql, [4, None], deadline=soon())
    assert rows == [(1, 2.5, True, None, ['a"b', None, "c,d"], [1, 2], 3, [4, None])]


async def test_a_second_statement_and_a_nul_in_a_value_are_refused(link: Link) -> None:
    codes = {("SELECT 1; SELECT 2", b""): "bad_statement", ("SELECT $1", b"a\0b"): "bad_parameters"}
    for (sql, value), code in codes.items():
        with pytest.raises(SqlError) as caught:
            await link.run(sql, [value] if value else [], deadline=soon())
        assert caught.value.code == code


async def test_a_timeout_stops_the_statement_and_keeps_the_connection(link: Link) -> None:
    with pytest.raises(SqlError) as caught:
        await link.run("SELECT pg_sleep(60)", deadline=soon(0.05))
    assert caught.value.code == "timeout"
    assert await link.ask("SELECT 1", deadline=soon()) == [(1,)]


async def test_a_cancelled_caller_stops_the_statement(link: Link, postgres: PostgresServer) -> None:
    with anyio.move_on_after(0.05):
        await link.run("SELECT pg_sleep(60)", deadline=soon())
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'"
    assert postgres.run(sleeping) == [(0,)]
    assert await link.ask("SELECT 1", deadline=soon()) == [(1,)]


async def test_rows_beyond_the_memory_limit_stop_the_statement(link: Link) -> None:
    with pytest.raises(SqlError) as caught:
        await link.run(
            "SELECT repeat('x', 1000) FROM generate_series(1, 9999) a, generate_series(1, 9999) b", deadline=soon()
        )
    assert caught.value.code == "too_large"
    assert not link.is_broken


async def test_rows_beyond_max_bytes_are_dropped(link: Link) -> None:
    result = await link.run(
        "SELECT repeat('x', 1000) FROM generate_series(1, 5000)", deadline=soon(), max_bytes=10_000
    )
    assert (result.is_truncated, len(result.rows), result.tag) == (True, 9, "SELECT 5000")


@pytest.mark.slow
async def test_a_row_that_is_too_large_is_refused_while_it_arrives(link: Link) -> None:
    """Breaks the connection, unless libpq reads faster than the server writes."""
    with pytest.raises(SqlError) as caught:
        await link.run("SELECT repeat('x', 100000000)", deadline=soon())
    assert caught.value.code == "too_large"
    assert link.is_broken or (await link.run("SELECT 1", deadline=soon())).rows == [(b"1",)]


async def test_a_row_that_is_too_large_is_refused_after_arrival(postgres: PostgresServer) -> None:
    link = await open_link(parse_target(postgres.url(), False), Limits(value_bytes=1_000))
    with pytest.raises(SqlError) as caught:
        await link.run("SELECT repeat('x', 5000)", deadline=soon(), max_bytes=10)
    assert caught.value.code == "too_large"
    assert not link.is_broken
    link.close()


@pytest.mark.slow
async def test_a_server_that_does_not_cancel_is_disconnected(link: Link) -> None:
    backend = link.backend
    os.kill(backend, signal.SIGSTOP)
    try:
        with pytest.raises(SqlError) as caught:
            await link.run("SELECT 1", deadline=soon(0.01))
    finally:
        os.kill(backend, signal.SIGCONT)
    assert caught.value.code == "timeout"
    assert link.is_broken


async def test_a_reader_cannot_write_or_copy(link: Link) -> None:
    for statement in ("CREATE TABLE t (n int)", "COPY (SELECT 1) TO STDOUT"):
        with pytest.raises(SqlError) as caught:
            async with link.transaction(soon()):
                await link.run(statement, deadline=soon())
        assert caught.value.code == "refused"


async def test_a_transaction_leaves_no_settings_or_locks(link: Link) -> None:
    async with link.transaction(soon()):
        await link.run("SELECT set_config('work_mem', '7MB', false), pg_advisory_lock(1)", deadline=soon())
    (result,) = await link.ask(
        "SELECT current_setting('work_mem'), count(*) FROM pg_locks WHERE locktype = 'advisory'", deadline=soon()
    )
    assert result == ("4MB", 0)


async def test_a_job_raises_the_statement_timeout(postgres: PostgresServer) -> None:
    link = await open_link(parse_target(postgres.url(), False), Limits(timeout=1))
    async with link.transaction(Deadline(100)):
        assert await link.ask("SELECT current_setting('statement_timeout')", deadline=soon()) == [("105s",)]
    link.close()


async def test_a_connection_that_the_server_closed_is_broken(link: Link, postgres: PostgresServer) -> None:
    with pytest.raises(SqlError) as caught:
        await link.run("SELECT pg_terminate_backend(pg_backend_pid())", deadline=soon())
    assert caught.value.code == "unavailable"
    assert link.is_broken


async def test_notifications_are_received(link: Link, postgres: PostgresServer) -> None:
    await link.run("LISTEN news", deadline=soon())
    postgres.run("NOTIFY news, 'it rains'")
    await link.wait_for_notifications()
    assert [one.extra for one in link.notifications] == [b"it rains"]
