"""Queries that continue in the same snapshot, or report that the database changed."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

import anyio
import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.query.query import Query
from servers.sqlite.engine.database import Database, Source
from servers.sqlite.engine.deadline import Limits
from servers.sqlite.query import snapshots as snapshots_module
from servers.sqlite.query.snapshots import RowsAndCursor, Snapshots
from tests.descriptors import left_open, settled_descriptors

ALL = Query("SELECT n FROM numbers ORDER BY n", ())
TEN = AnswerLimits(10, 100_000, 1_000)


@asynccontextmanager
async def opened(file: Path, kept_seconds: float = 30, readers: int = 4) -> AsyncIterator[tuple[Database, Snapshots]]:
    database, snapshots = Database(Source("data", file, False), Limits(), readers), Snapshots(kept_seconds)
    database.readers.on_exhausted = partial(snapshots.release_oldest, database)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(snapshots.run)
        yield database, snapshots
        tasks.cancel_scope.cancel()
    await database.close()


def numbers(result: RowsAndCursor) -> list[int]:
    return [n for (n,) in result.answer.page.rows]


def delete_first(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM numbers WHERE n < 5")


async def test_a_query_repeated_after_expiry_reports_changes(file: Path) -> None:
    async with opened(file, kept_seconds=0, readers=1) as (database, snapshots):
        first = await snapshots.read(database, ALL, TEN, None, None)
        await anyio.wait_all_tasks_blocked()
        second = await snapshots.read(database, ALL, TEN, None, first.cursor)
        await anyio.wait_all_tasks_blocked()
        delete_first(file)
        third = await snapshots.read(database, ALL, TEN, None, second.cursor)
        await anyio.wait_all_tasks_blocked()
        fourth = await snapshots.read(database, ALL, TEN, None, third.cursor)
    assert (numbers(second), second.changed) == (list(range(10, 20)), False)
    assert (numbers(third), third.changed) == (list(range(25, 35)), True)
    assert fourth.changed


async def test_a_query_continues_on_its_connection_to_detect_changes(file: Path) -> None:
    async with opened(file, kept_seconds=0, readers=2) as (database, snapshots):
        first = await snapshots.read(database, ALL, TEN, None, None)
        await anyio.wait_all_tasks_blocked()
        for connection in [await database.readers.take(), await database.readers.take()]:
            database.readers.give(connection)  # the other connection last, so that the pool would lend it next
        second = await snapshots.read(database, ALL, TEN, None, first.cursor)
    assert (numbers(second), second.changed) == (list(range(10, 20)), False)


async def test_a_query_takes_the_connection_of_an_open_snapshot_if_none_is_free(file: Path) -> None:
    async with opened(file, readers=1) as (database, snapshots):
        first = await snapshots.read(database, ALL, TEN, None, None)
        await snapshots.read(database, Query("SELECT 1", ()), TEN, None, None)
        second = await snapshots.read(database, ALL, TEN, None, first.cursor)
    assert (numbers(second), second.changed) == (list(range(10, 20)), False)


async def test_open_snapshots_leave_half_of_the_connections_free(file: Path) -> None:
    async with opened(file) as (database, snapshots):
        for _ in range(10):
            last = await snapshots.read(database, ALL, TEN, None, None)
        # The pool must not need to ask for connections back.
        database.readers.on_exhausted = None
        async with database.readers.lend(), database.readers.lend():
            assert not database.readers.is_free
            second = await snapshots.read(database, ALL, TEN, None, last.cursor)
        assert numbers(second) == list(range(10, 20))


async def test_a_snapshot_that_can_not_be_ended_gives_its_connection_back(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise SqlError("io_error", "the file is gone")

    async with opened(file, readers=1) as (database, snapshots):
        await snapshots.read(database, ALL, TEN, None, None)
        monkeypatch.setattr(snapshots_module, "_close", fail)
        with pytest.raises(SqlError, match="the file is gone"):
            await snapshots.release_oldest(database)
        assert database.readers.is_free


async def test_each_database_has_its_own_open_snapshots(file: Path) -> None:
    other = Database(Source("other", file, False), Limits(), 2)
    async with opened(file, readers=2) as (database, snapshots):
        for each in (other, database):
            await snapshots.read(each, ALL, TEN, None, None)
        for each in (database, other):
            async with each.readers.lend():
                assert not each.readers.is_free
        with anyio.fail_after(20):
            async with database.readers.lend(), database.readers.lend():
                assert other.readers._slots.value == 1
    await other.close()


async def test_a_cursor_is_valid_only_for_its_client_and_parameters(file: Path) -> None:
    original = Query("SELECT n FROM numbers WHERE n > ?", (1,))
    async with opened(file) as (database, snapshots):
        first = await snapshots.read(database, original, TEN, "one", None)
        for query, who in ((original, "other"), (original._replace(parameters=(2,)), "one")):
            with pytest.raises(SqlError) as raised:
                await snapshots.read(database, query, TEN, who, first.cursor)
            assert raised.value.code == "bad_cursor"


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
async def test_an_open_snapshot_does_not_block_writers(file: Path, mode: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
    async with opened(file) as (database, snapshots):
        await snapshots.read(database, ALL, TEN, None, None)
        delete_first(file)
        result = await snapshots.read(database, Query("SELECT count(*) FROM numbers", ()), TEN, None, None)
    assert numbers(result) == [995]


async def test_closing_leaves_no_open_file(file: Path) -> None:
    before = settled_descriptors()
    async with opened(file) as (database, snapshots):
        await snapshots.read(database, ALL, TEN, None, None)
        await snapshots.read(database, ALL, TEN, None, None)
    assert left_open(before) == []
    assert snapshots
