"""Queries that go on: with the very same rows, or with a word that they are not."""

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


def numbers(found: RowsAndCursor) -> list[int]:
    return [n for (n,) in found.answer.page.rows]


def delete_first(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM numbers WHERE n < 5")


async def test_a_query_that_is_kept_no_more_says_whether_the_database_was_changed(file: Path) -> None:
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


async def test_a_query_goes_on_at_the_connection_that_can_tell_whether_the_database_was_changed(file: Path) -> None:
    async with opened(file, kept_seconds=0, readers=2) as (database, snapshots):
        first = await snapshots.read(database, ALL, TEN, None, None)
        await anyio.wait_all_tasks_blocked()
        for connection in [await database.readers.take(), await database.readers.take()]:
            database.readers.give(connection)  # the other one last, so it would be the next
        second = await snapshots.read(database, ALL, TEN, None, first.cursor)
    assert (numbers(second), second.changed) == (list(range(10, 20)), False)


async def test_a_query_that_needs_a_connection_takes_that_of_a_kept_one(file: Path) -> None:
    async with opened(file, readers=1) as (database, snapshots):
        first = await snapshots.read(database, ALL, TEN, None, None)
        await snapshots.read(database, Query("SELECT 1", ()), TEN, None, None)
        second = await snapshots.read(database, ALL, TEN, None, first.cursor)
    assert (numbers(second), second.changed) == (list(range(10, 20)), False)


async def test_kept_queries_leave_half_of_the_connections(file: Path) -> None:
    async with opened(file) as (database, snapshots):
        for _ in range(10):
            last = await snapshots.read(database, ALL, TEN, None, None)
        # Nobody may have to press for it.
        database.readers.on_exhausted = None
        async with database.readers.lend(), database.readers.lend():
            assert not database.readers.is_free
            second = await snapshots.read(database, ALL, TEN, None, last.cursor)
        assert numbers(second) == list(range(10, 20))


async def test_a_database_keeps_its_queries_whatever_another_one_keeps(file: Path) -> None:
    other = Database(Source("other", file, False), Limits(), 2)
    async with opened(file, readers=2) as (database, snapshots):
        for kept in (database, other):
            await snapshots.read(kept, ALL, TEN, None, None)
        for kept in (database, other):
            async with kept.readers.lend():
                assert not kept.readers.is_free
    await other.close()


async def test_a_cursor_is_good_only_for_whom_it_was_given_and_for_its_parameters(file: Path) -> None:
    asked = Query("SELECT n FROM numbers WHERE n > ?", (1,))
    async with opened(file) as (database, snapshots):
        first = await snapshots.read(database, asked, TEN, "one", None)
        for query, who in ((asked, "other"), (asked._replace(parameters=(2,)), "one")):
            with pytest.raises(SqlError) as raised:
                await snapshots.read(database, query, TEN, who, first.cursor)
            assert raised.value.code == "bad_cursor"


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
async def test_a_cut_query_does_not_keep_a_writer_out(file: Path, mode: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
    async with opened(file) as (database, snapshots):
        await snapshots.read(database, ALL, TEN, None, None)
        delete_first(file)
        found = await snapshots.read(database, Query("SELECT count(*) FROM numbers", ()), TEN, None, None)
    assert numbers(found) == [995]


async def test_nothing_is_open_at_the_end(file: Path) -> None:
    before = settled_descriptors()
    async with opened(file) as (database, snapshots):
        await snapshots.read(database, ALL, TEN, None, None)
        await snapshots.read(database, ALL, TEN, None, None)
    assert left_open(before) == []
    assert snapshots
