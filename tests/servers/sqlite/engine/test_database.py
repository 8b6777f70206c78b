"""The connections to one database after a replacement of its file, and the demo database."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from servers.common.sql.errors import SqlError
from servers.sqlite.engine import database as sqlite_database
from servers.sqlite.engine.database import Database, Source, make_sample, open_databases
from servers.sqlite.engine.deadline import Limits
from tests.servers.sqlite.serving import inside

ALL = "SELECT a FROM t ORDER BY a"


def make(file: Path, *values: int, kind: str = "INTEGER") -> Path:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"CREATE TABLE t (a {kind})")
        connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
    return file


async def rows(database: Database) -> list[tuple[int]]:
    values: list[tuple[int]] = await database.read(lambda connection, _: connection.execute(ALL).fetchall())
    return values


@asynccontextmanager
async def opened(file: Path) -> AsyncIterator[Database]:
    async with open_databases([Source("data", file, True)], Limits(), 2) as databases:
        yield databases.get("data")


async def test_readers_open_the_file_that_replaced_the_database(tmp_path: Path) -> None:
    file = make(tmp_path / "data.db", 1)
    async with opened(file) as database:
        before = await rows(database), database.openings
        make(tmp_path / "new.db", 2, 3).replace(file)
        assert await rows(database) == [(2,), (3,)]
        assert before == ([(1,)], 0)
        assert database.openings == 1


async def test_types_found_while_the_file_is_replaced_are_not_used_for_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make(tmp_path / "data.db", 1)
    async with opened(file) as database:
        find = sqlite_database.find_declared_types

        def find_and_reopen(*arguments: Any) -> list[str | None]:
            types = find(*arguments)
            database.openings += 1
            return types

        monkeypatch.setattr(sqlite_database, "find_declared_types", find_and_reopen)
        await database.find_declared_types(ALL, 1)
        assert database.declared_types(ALL, 1) is None


async def test_the_writer_opens_the_file_that_replaced_the_database(tmp_path: Path) -> None:
    file = make(tmp_path / "data.db", 1)
    async with opened(file) as database:
        for value in (7, 8):
            async with database.writer() as connection:
                insert = f"INSERT INTO t VALUES ({value})"
                await connection.run(lambda raw, _, insert=insert: raw.execute(insert).fetchall())
            make(tmp_path / "new.db", value).replace(file)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute(ALL).fetchall() == [(8,)]


async def test_work_in_progress_stays_on_its_file(tmp_path: Path) -> None:
    file = make(tmp_path / "data.db", 1)
    async with opened(file) as database, database.writer() as connection:
        await connection.run(lambda raw, _: raw.execute(ALL).fetchall())
        make(tmp_path / "new.db", 2).replace(file)
        assert await connection.run(lambda raw, _: raw.execute(ALL).fetchall()) == [(1,)]


async def test_a_missing_file_is_an_error_until_it_is_back(tmp_path: Path) -> None:
    file = make(tmp_path / "data.db", 1)
    async with opened(file) as database:
        file.rename(tmp_path / "aside.db")
        with pytest.raises(SqlError, match=r"there is no file data\.db"):
            await rows(database)
        (tmp_path / "aside.db").rename(file)
        assert await rows(database) == [(1,)]


async def test_a_cursor_reports_changed_after_a_replacement_of_the_file(tmp_path: Path) -> None:
    file = make(tmp_path / "data.db", 1, 2, 3)
    async with inside("--readers", "1", file) as peer:
        first = await peer.data("read_query", query=ALL, max_rows=1)
        make(tmp_path / "new.db", 5, 6, 7, kind="REAL").replace(file)
        second = await peer.data("read_query", query=ALL, cursor=first["next_cursor"])
    assert (second["rows"], second["changed"]) == ([[6.0], [7.0]], True)
    assert (first["declared"][0], second["declared"][0]) == ("INTEGER", "REAL")


# The demo database


def test_the_demo_database_satisfies_its_constraints(tmp_path: Path) -> None:
    make_sample(tmp_path / "a.db")
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_the_demo_database_is_deterministic(tmp_path: Path) -> None:
    dumps = []
    for name in ("a.db", "b.db"):
        make_sample(tmp_path / name)
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            dumps.append(list(connection.iterdump()))
    assert dumps[0] == dumps[1]


def test_a_demo_database_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="can't be created"):
        make_sample(tmp_path / "missing" / "a.db")
