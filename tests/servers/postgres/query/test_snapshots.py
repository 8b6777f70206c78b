"""Queries read in pages."""

import anyio
import pytest

from servers.common.sql.query.pages import AnswerLimits
from servers.postgres.engine.deadline import Limits
from tests.postgres_server import PostgresServer
from tests.servers.postgres.databases import Database
from tests.servers.postgres.engines import PAGE, Reader, reading

NUMBERS = "SELECT n FROM generate_series(1, 25) AS n"


async def read_all(reader: Reader, sql: str, limits: AnswerLimits = PAGE) -> list[int]:
    result = await reader.read(sql, limits=limits)
    rows = [*result.page.rows]
    while result.cursor is not None:
        result = await reader.read(sql, cursor=result.cursor, limits=limits)
        assert not result.changed
        rows += result.page.rows
    return [row[0] for row in rows]


async def test_pages_continue_for_any_form_of_query(postgres: PostgresServer) -> None:
    forms = (NUMBERS, f"({NUMBERS}) -- all", f"WITH a AS ({NUMBERS}) TABLE a ;", f"{NUMBERS} /* ; */")
    async with reading(postgres.url()) as reader:
        for sql in forms:
            assert await read_all(reader, sql) == [*range(1, 26)]


async def test_a_cursor_without_its_transaction_repeats_the_query(postgres: PostgresServer) -> None:
    async with reading(postgres.url()) as reader:
        first = await reader.read(NUMBERS)
        await reader.snapshots.release_oldest()
        second = await reader.read(NUMBERS, cursor=first.cursor)
        assert (second.page.rows[0], second.changed, second.has_more) == ((11,), False, True)


async def test_the_last_page_ends_the_transaction(postgres: PostgresServer) -> None:
    async with reading(postgres.url(), size=1) as reader:
        await read_all(reader, NUMBERS)
        assert reader.pool.is_free


async def test_an_open_snapshot_expires(postgres: PostgresServer) -> None:
    async with reading(postgres.url(), size=1, kept_seconds=0) as reader:
        await reader.read(NUMBERS)
        with anyio.fail_after(10):
            while not reader.pool.is_free:
                await anyio.lowlevel.checkpoint()


async def test_a_query_takes_the_connection_of_an_open_snapshot_if_none_is_free(postgres: PostgresServer) -> None:
    async with reading(postgres.url(), size=1) as reader:
        first = await reader.read(NUMBERS)
        await reader.read("SELECT 1")
        second = await reader.read(NUMBERS, cursor=first.cursor)
        assert second.page.rows[0] == (11,)


async def test_open_snapshots_use_at_most_half_of_the_connections(postgres: PostgresServer) -> None:
    async with reading(postgres.url(), size=4) as reader:
        for _ in range(4):
            await reader.read(NUMBERS)
        idle = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
        assert postgres.run(idle) == [(2,)]


@pytest.mark.slow
async def test_a_cursor_continues_after_a_crash_of_the_server(postgres: PostgresServer) -> None:
    async with reading(postgres.url()) as reader:
        first = await reader.read(NUMBERS)
        await reader.read("SELECT 1")
        postgres.restart(kill=True)
        second = await reader.read(NUMBERS, cursor=first.cursor)
        assert second.page.rows[0] == (11,)


async def test_a_cursor_is_valid_only_for_its_query_and_client(postgres: PostgresServer) -> None:
    async with reading(postgres.url()) as reader:
        first = await reader.read(NUMBERS)
        assert await reader.code_of(f"{NUMBERS} ", cursor=first.cursor) == "bad_cursor"
        assert await reader.code_of(NUMBERS, cursor=first.cursor, who="another") == "bad_cursor"
        for cursor in ("another-process1", "ä", "", f"{first.cursor}AAAA", "_" * 40):
            assert await reader.code_of(NUMBERS, cursor=cursor) == "bad_cursor"


async def test_another_replica_continues_a_cursor_and_reports_changes(database: Database) -> None:
    async with reading(database.reader) as here, reading(database.reader) as there, reading(database.reader) as last:
        first = await here.read(NUMBERS)
        second = await there.read(NUMBERS, cursor=first.cursor)
        database.run("DELETE FROM review")
        third = await last.read(NUMBERS, cursor=second.cursor)
    assert [row[0] for result in (first, second, third) for row in result.page.rows] == [*range(1, 26)]
    assert [result.changed for result in (first, second, third)] == [False, False, True]


@pytest.mark.slow
async def test_large_rows_are_paged_by_repeating_the_query(postgres: PostgresServer) -> None:
    sql = "SELECT repeat('x', 100000) || n FROM generate_series(1, 25) AS n"
    async with reading(postgres.url(), limits=Limits(value_bytes=500_000)) as reader:
        assert len(await read_all(reader, sql, AnswerLimits(10, 10_000, 100))) == 25


@pytest.mark.slow
async def test_many_pages_use_little_memory(postgres: PostgresServer) -> None:
    sql = "SELECT n, 'number ' || n FROM generate_series(1, 100000) AS n"
    async with reading(postgres.url()) as reader:
        assert await read_all(reader, sql, AnswerLimits(10_000, 900_000, 1_000)) == [*range(1, 100_001)]
