"""A change in one transaction beside concurrent readers, writers and locks."""

import sqlite3
import threading
from contextlib import AsyncExitStack, closing
from functools import partial
from pathlib import Path

import anyio
import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.query.query import Query
from servers.common.sql.write.consent import Figures
from servers.sqlite.engine.database import Database
from servers.sqlite.engine.deadline import Limits, StatementDeadline
from servers.sqlite.query.query import run_query
from servers.sqlite.write.session import Session, write
from tests.servers.sqlite.writing import counting as database
from tests.servers.sqlite.writing import execute, opened
from tests.wire import PATIENCE

MODES = pytest.mark.parametrize("mode", ["wal", "delete"])


@MODES
async def test_concurrent_writers_lose_no_change(tmp_path: Path, mode: str) -> None:
    async def count(path: Path) -> None:
        # With a rollback journal, a writer may have to wait until the other is done with all its changes.
        async with opened(path, Limits(busy_timeout=30)) as mine:
            for _ in range(10):
                await execute(mine, "UPDATE counter SET n = n + 1", "INSERT INTO rows SELECT 1, n FROM counter")

    with database(tmp_path, mode) as db:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count, tmp_path / "data.db")
            tasks.start_soon(count, tmp_path / "data.db")
        assert db.execute("SELECT n FROM rows ORDER BY n").fetchall() == [(n,) for n in range(1, 21)]


@MODES
@pytest.mark.parametrize("act", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
async def test_a_lasting_lock_is_a_busy_error_after_the_timeout(tmp_path: Path, mode: str, act: str) -> None:
    with database(tmp_path, mode) as db:
        async with opened(tmp_path / "data.db", Limits(busy_timeout=0.05)) as mine:
            db.execute(act)
            with anyio.fail_after(4), pytest.raises(SqlError) as raised:
                await execute(mine, "DELETE FROM rows")
            db.execute("ROLLBACK")
            await execute(mine, "DELETE FROM rows")
    assert raised.value.code == "busy"


@pytest.fixture
def lock_events(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """An event set when a connection waits for a lock, and an event that the test sets when it releases the lock."""
    waits, free, plain = threading.Event(), threading.Event(), StatementDeadline.pause

    def pause(self: StatementDeadline) -> bool:
        waits.set()
        return free.wait(PATIENCE) and plain(self)

    monkeypatch.setattr(StatementDeadline, "pause", pause)
    return waits, free


READ = partial(run_query, Query("SELECT n FROM counter", ()), AnswerLimits(10, 10_000, 1_000))


@pytest.mark.parametrize("act", ["write", "read"])
@pytest.mark.parametrize("there", [False, True], ids=["comes", "is there"])
async def test_new_and_existing_connections_wait_for_a_lock(
    tmp_path: Path, lock_events: tuple[threading.Event, threading.Event], there: bool, act: str
) -> None:
    waits, free = lock_events

    async def ask(mine: Database) -> None:
        if act == "write":
            await execute(mine, "UPDATE counter SET n = 5")
        else:
            assert list((await mine.read(READ)).page.rows) == [(0,)]

    async def come() -> None:
        async with opened(tmp_path / "data.db") as mine:
            await ask(mine)

    with database(tmp_path, "delete") as db:
        async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
            mine = await stack.enter_async_context(opened(tmp_path / "data.db")) if there else None
            if mine is not None:
                await execute(mine, "DELETE FROM rows")
            db.execute("BEGIN EXCLUSIVE")
            tasks.start_soon(come if mine is None else partial(ask, mine))
            assert await anyio.to_thread.run_sync(waits.wait, PATIENCE)
            db.execute("COMMIT")
            free.set()


async def test_a_commit_without_wal_waits_for_a_reader(tmp_path: Path) -> None:
    def refused() -> bool:
        with closing(sqlite3.connect(tmp_path / "data.db", timeout=0)) as connection:
            try:
                connection.execute("SELECT n FROM counter").fetchall()
            except sqlite3.OperationalError:
                return True
        return False

    with database(tmp_path, "delete") as db:
        db.execute("INSERT INTO rows VALUES (1, 1), (1, 2)")
        reading = db.execute("SELECT * FROM rows")
        async with opened(tmp_path / "data.db") as mine, anyio.create_task_group() as tasks:
            tasks.start_soon(execute, mine, "DELETE FROM rows")
            # While a commit waits, no new reader can begin.
            with anyio.fail_after(PATIENCE):
                while not refused():
                    await anyio.sleep(0)
            assert len(reading.fetchall()) == 2
        assert db.execute("SELECT count(*) FROM rows").fetchone() == (0,)


async def test_a_commit_blocked_by_a_reader_is_rolled_back_after_the_timeout(tmp_path: Path) -> None:
    with database(tmp_path, "delete") as db:
        db.execute("INSERT INTO rows VALUES (1, 1), (1, 2)")
        reading = db.execute("SELECT * FROM rows")
        async with opened(tmp_path / "data.db", Limits(busy_timeout=0.05)) as mine:
            with pytest.raises(SqlError) as raised:
                await execute(mine, "DELETE FROM rows")
            reading.close()
            await execute(mine, "UPDATE counter SET n = 5")
        assert raised.value.code == "busy"
        assert db.execute("SELECT count(*), (SELECT n FROM counter) FROM rows").fetchone() == (2, 5)


async def test_readers_see_the_last_commit_during_a_change(tmp_path: Path) -> None:
    changed, seen = threading.Event(), threading.Event()

    def change(session: Session) -> None:
        with session.transaction():
            session.connection.execute("UPDATE counter SET n = 5")
            changed.set()
            assert seen.wait(PATIENCE)
            session.commit(Figures(1, (1,), ("numbers",), False))

    with database(tmp_path):
        async with opened(tmp_path / "data.db") as mine, anyio.create_task_group() as tasks:
            tasks.start_soon(write, mine, change)
            await anyio.to_thread.run_sync(partial(changed.wait, PATIENCE))
            rows = [
                await mine.read(lambda connection, _: connection.execute("SELECT n FROM counter").fetchone())
                for _ in range(20)
            ]
            seen.set()
    assert rows == [(0,)] * 20


async def test_a_timeout_during_the_commit_has_an_unknown_outcome(tmp_path: Path) -> None:
    over = threading.Event()

    def commit(session: Session) -> None:
        with session.deadline.mark_committing():
            assert over.wait(PATIENCE)

    with database(tmp_path):
        async with opened(tmp_path / "data.db", Limits(timeout=0.1)) as mine:
            with pytest.raises(SqlError) as raised:
                await write(mine, commit)
            over.set()
    assert (raised.value.code, raised.value.suggestion) == ("timeout", "Check whether they were made.")
