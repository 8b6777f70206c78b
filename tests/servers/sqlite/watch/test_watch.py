"""Watching databases: updates and their number."""

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.common.notices import Notices
from servers.common.sql.watch import LISTING, watch_events
from servers.sqlite.engine.database import Database, Source, open_databases
from servers.sqlite.engine.deadline import Limits
from servers.sqlite.server import app
from servers.sqlite.watch import watch
from servers.sqlite.watch.watch import Watch
from tests.servers.reports import POLLED, RefusedNotices, reading
from tests.servers.sqlite.others import elsewhere

DATABASE, SCHEMA = "sqlite:///data", "sqlite:///data/schema"
NUMBERS, OTHER, VIEW = "sqlite:///data/numbers", "sqlite:///data/other", "sqlite:///data/few"
INSERT = "INSERT INTO numbers VALUES (NULL, 'new')"


class Watching:
    """A watch, and its updates."""

    def __init__(self, watch: Watch, database: Database, updates: Any) -> None:
        self.watch = watch
        self.database = database
        self._updates = updates

    async def begin(self, *uris: str) -> list[str]:
        return [await self.watch.begin(uri) for uri in uris]

    async def next_updates(self, count: int = 1) -> list[str]:
        """Returns the sorted keys of the next updates."""
        with anyio.fail_after(30):
            return sorted([await self._updates.receive() for _ in range(count)])

    async def write(self, statement: str, *tables: str, defines: bool = False) -> None:
        """Writes as the tools do."""
        async with self.database.writer() as connection:
            await connection.run(lambda connection, _: connection.execute(statement).fetchall())
            self.database.on_committed(tables, defines)


@asynccontextmanager
async def watching(file: Path, *uris: str, writable: bool = False) -> AsyncIterator[Watching]:
    send, receive = anyio.create_memory_object_stream[str](1_000)
    source = Source("data", file, writable)
    with send, receive:
        async with open_databases([source], Limits(), 2) as databases, anyio.create_task_group() as tasks:
            made = Watch(databases, tasks, send.send_nowait, lambda: send.send_nowait(LISTING))
            watched = Watching(made, databases.get("data"), receive)
            await watched.begin(*uris)
            yield watched
            tasks.cancel_scope.cancel()


@pytest.fixture(params=["WAL", pytest.param("DELETE", marks=pytest.mark.slow)])
def base(file: Path, request: pytest.FixtureRequest) -> Path:
    """A database in each journal mode, with another table and a view."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA journal_mode = {request.param}")
        connection.execute("CREATE TABLE other (x)")
        connection.execute("CREATE VIEW few AS SELECT * FROM numbers LIMIT 3")
    return file


@pytest.mark.parametrize("writable", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_rows_changed_by_another_process_update_tables_but_not_the_schema(base: Path, writable: bool) -> None:
    async with watching(base, NUMBERS, SCHEMA, DATABASE, writable=writable) as watched:
        await elsewhere(base, INSERT)
        assert await watched.next_updates(2) == [DATABASE, NUMBERS]
        await elsewhere(base, "UPDATE numbers SET name = 'x' WHERE n = 1")
        assert await watched.next_updates(2) == [DATABASE, NUMBERS]


@pytest.mark.parametrize("writable", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_a_table_created_by_another_process_updates_schema_and_listing(base: Path, writable: bool) -> None:
    async with watching(base, SCHEMA, writable=writable) as watched:
        await watched.watch.watch_table_list()
        await elsewhere(base, "CREATE TABLE more (x)")
        assert await watched.next_updates(2) == [LISTING, SCHEMA]


async def test_a_burst_of_writes_sends_few_updates(file: Path) -> None:
    async with watching(file, NUMBERS, OTHER, SCHEMA, writable=True) as watched:
        for _ in range(50):
            await watched.write(INSERT, "numbers")
        await watched.write("CREATE TABLE more (x)", defines=True)
        updates: list[str] = []
        while SCHEMA not in updates:
            updates += await watched.next_updates()
    assert updates.count(NUMBERS) < 10


@pytest.mark.slow
async def test_the_last_commit_of_a_burst_sends_an_update(base: Path) -> None:
    async with watching(base, NUMBERS, SCHEMA) as watched:
        await elsewhere(base, *[INSERT] * 200, "CREATE TABLE more (x)")
        updates = []
        while SCHEMA not in updates:
            updates += await watched.next_updates()


@pytest.mark.slow
async def test_a_change_without_a_file_event_is_noticed(file: Path, tmp_path: Path) -> None:
    # Writes through another hard link send events only for the directory of that link.
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    (tmp_path / "far").mkdir()
    os.link(file, tmp_path / "far" / "data.db")
    async with watching(file, NUMBERS) as watched:
        for _ in range(2):
            await elsewhere(tmp_path / "far" / "data.db", INSERT)
            assert await watched.next_updates() == [NUMBERS]


async def test_a_write_by_the_server_sends_one_update(base: Path) -> None:
    async with watching(base, NUMBERS, OTHER, writable=True) as watched:
        for _ in range(3):
            await watched.write(INSERT, "Numbers")
            assert await watched.next_updates() == [NUMBERS]
        # The file events of these writes must not send another update before this.
        await watched.write("INSERT INTO other VALUES (1)", "other")
        assert await watched.next_updates() == [OTHER]


async def test_a_write_by_the_server_does_not_hide_one_by_another_process(base: Path) -> None:
    async with watching(base, NUMBERS, OTHER, writable=True) as watched:
        async with watched.database.writer():
            await elsewhere(base, "INSERT INTO other VALUES (1)")
            watched.database.on_committed(["numbers"], False)
        assert await watched.next_updates(2) == [NUMBERS, OTHER]


async def test_a_change_by_another_process_after_a_write_by_the_server_sends_an_update(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watching(base, NUMBERS, writable=True) as watched:
        watched_database = watched.watch._watched["data"]
        find_changes = watched_database._find_changes

        async def late() -> set[str]:
            monkeypatch.setattr(watched_database, "_find_changes", find_changes)
            await elsewhere(base, INSERT)
            return await find_changes()

        monkeypatch.setattr(watched_database, "_find_changes", late)
        await watched.write(INSERT, "numbers")
        assert await watched.next_updates(2) == [NUMBERS, NUMBERS]


async def test_a_view_is_updated_with_every_table(base: Path) -> None:
    async with watching(base, VIEW, OTHER, writable=True) as watched:
        await watched.write(INSERT, "numbers")
        assert await watched.next_updates() == [VIEW]


async def test_a_schema_change_by_the_server_sends_one_update_of_everything(base: Path) -> None:
    async with watching(base, SCHEMA, NUMBERS, writable=True) as watched:
        await watched.write("CREATE TABLE more (x)", defines=True)
        assert await watched.next_updates(2) == [NUMBERS, SCHEMA]
        await watched.write(INSERT, "numbers")
        assert await watched.next_updates() == [NUMBERS]
        await elsewhere(base, INSERT)
        assert await watched.next_updates() == [NUMBERS]


async def test_a_replacement_of_the_file_sends_updates_and_is_read(base: Path) -> None:
    fresh = base.with_name("fresh.db")
    with closing(sqlite3.connect(fresh)) as connection, connection:
        connection.execute("CREATE TABLE numbers (n)")
    with closing(sqlite3.connect(base)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    async with watching(base, NUMBERS, SCHEMA) as watched:
        fresh.replace(base)
        assert await watched.next_updates(2) == [NUMBERS, SCHEMA]
        query = "SELECT count(*) FROM numbers"
        assert await watched.database.read(lambda connection, _: connection.execute(query).fetchone()) == (0,)
        await elsewhere(base, "INSERT INTO numbers VALUES (1)")
        assert await watched.next_updates() == [NUMBERS]


async def test_a_session_gets_a_notice_that_the_database_is_polled(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "Notices", RefusedNotices)  # the system refuses no watch while few exist
    async with reading(app, file) as client:
        await client.peer.request("resources/subscribe", {"uri": "sqlite:///data"})
        assert await client.next_message() == ("notice", POLLED)


@pytest.mark.slow
async def test_a_locked_database_is_watched(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        async with watching(file) as watched:
            connection.execute("BEGIN EXCLUSIVE")
            await watched.begin(NUMBERS)
            connection.execute(INSERT)
            connection.execute("COMMIT")
            assert await watched.next_updates() == [NUMBERS]


async def test_after_the_last_unsubscription_no_file_is_watched(base: Path) -> None:
    async with watching(base, NUMBERS, OTHER) as watched:
        watched.watch.end(NUMBERS)
        await elsewhere(base, INSERT)
        assert await watched.next_updates() == [OTHER]
        watched.watch.end(OTHER)
        while (
            not watched.watch._notices.has_no_watch
        ):  # waits for the end, because the absence of an update can't be awaited
            await anyio.lowlevel.checkpoint()
        assert watched.watch.health == {"watched": 0, "degraded": False}


async def test_the_tasks_of_a_watch_end_with_its_last_key(file: Path) -> None:
    async with open_databases([Source("data", file, False)], Limits(), 2) as databases:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:  # the group ends with the last of its tasks
                watch = Watch(databases, tasks, lambda _: None, lambda: None)
                for key in [await watch.begin(NUMBERS), await watch.begin(SCHEMA)]:
                    watch.end(key)


async def test_a_refused_file_watch_falls_back_to_polling(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def refusing(_directories: list[str]) -> Any:
        raise OSError("inotify watch limit reached")

    notices = Notices(refusing)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_events, notices, [str(tmp_path)], print)
        with anyio.fail_after(30):
            while not notices.is_polling:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert "inotify watch limit reached" in caplog.text
