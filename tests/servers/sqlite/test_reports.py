"""What the user is told by log messages, in both eras, and what nobody is told who did not ask."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from servers.sqlite.server import app
from servers.sqlite.watch import watch
from tests.servers.reports import POLLED, RefusedNotices, both_eras, reading

ALL = "SELECT * FROM numbers"
LOCKED = "the database 'data' is locked by another process; waited 0 s for it"


@both_eras
async def test_a_result_that_a_limit_cut_is_told(file: Path, era: str) -> None:
    async with reading(app, "--max-rows", "10", file, era=era) as client:
        told = await client.told_by("read_query", query=ALL)
    assert told == [("info", "a result of the database 'data' was cut: 10 rows shown")]


@both_eras
async def test_a_result_of_as_many_rows_as_were_asked_for_is_no_news(file: Path, era: str) -> None:
    async with reading(app, file, era=era) as client:
        assert await client.told_by("read_query", query=ALL, max_rows=10) == []


@both_eras
@pytest.mark.parametrize("what", ["read", "write", "list"])
async def test_a_database_that_is_locked_is_told(tmp_path: Path, era: str, what: str) -> None:
    file = tmp_path / "data.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("CREATE TABLE numbers (n)")
        async with reading(app, "--allow-write", "--busy-timeout", "0", file, era=era) as client:
            other.execute("BEGIN EXCLUSIVE")
            if what == "read":
                told = await client.told_by("read_query", query=ALL)
            elif what == "write":
                told = await client.told_by("write_query", query="INSERT INTO numbers VALUES (1)")
            else:
                told = await client.told("resources/list")
    assert told == [("warning", LOCKED)]


@both_eras
async def test_who_asks_for_no_level_is_told_nothing(file: Path, era: str) -> None:
    async with reading(app, "--max-rows", "10", file, era=era, level=None) as client:
        assert await client.told_by("read_query", query=ALL) == []


async def test_a_session_is_told_that_what_it_watches_is_polled(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "Notices", RefusedNotices)
    async with reading(app, file) as client:
        await client.peer.request("resources/subscribe", {"uri": "sqlite:///data"})
        assert await client.told_next() == ("notice", POLLED)
