"""Long-running calls: tasks, progress, rollback after cancellation, and log messages about locks."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from servers.common.sql.exports import Exports
from servers.common.sql.features import context
from servers.common.sql.features.context import job_of, report_progress
from servers.common.sql.importing.files import file_opener, find_version, text_opener
from servers.common.sql.importing.imports import Import
from servers.common.sql.importing.tables import FormatRequest
from servers.common.sql.jobs import Job, JobProgress
from servers.common.sql.query.query import Query
from servers.common.sql.write.consent import Consent
from servers.sqlite.database import SqliteDatabase
from servers.sqlite.query.snapshots import Snapshots
from servers.sqlite.server import app
from servers.sqlite.settings import Settings
from servers.sqlite.write import importing
from servers.sqlite.write.backups import back_up
from servers.sqlite.write.session import write
from tests.servers.reports import both_eras, reading
from tests.servers.sqlite.writing import opened
from tests.shared.server.peer import Peer, talking

ENDLESS = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT count(*) FROM n"
CSV = "n\n" + "1\n" * 3_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with a table `quick`, and a table `slow` whose first insert never ends."""
    path = tmp_path / "data.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "PRAGMA journal_mode = wal; CREATE TABLE quick (n); CREATE TABLE slow (n);"
            f"CREATE TRIGGER slowly AFTER INSERT ON slow BEGIN SELECT ({ENDLESS}); END;"
        )
    return path


@asynccontextmanager
async def served(path: Path, **settings: Any) -> AsyncIterator[Peer]:
    async with talking(app, settings=Settings(databases=[path], allow_write=True, **settings)) as peer:
        yield peer


async def start_task(peer: Peer, tool: str, **arguments: Any) -> str:
    """Start a call as a task, and return its id."""
    params = {"name": tool, "arguments": arguments, "task": {}}
    id_: str = (await peer.request("tools/call", params))["result"]["task"]["taskId"]
    return id_


async def task_texts(peer: Peer, task: str) -> str:
    """The texts of the result of a task."""
    answer = await peer.request("tasks/result", {"taskId": task})
    return "\n".join(block.get("text", "") for block in answer["result"]["content"])


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    return rows


async def test_long_running_tools_return_the_same_result_as_tasks(path: Path, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    async with served(path, files=tmp_path / "files") as peer:
        imported = await task_texts(peer, await start_task(peer, "import_csv", table="quick", csv=CSV))
        read = await task_texts(peer, await start_task(peer, "read_query", query="SELECT 3"))
        backed_up = await task_texts(peer, await start_task(peer, "backup"))
        exported = await task_texts(peer, await start_task(peer, "export", query="SELECT 1 UNION SELECT 2"))
    assert imported.startswith("3,000 rows imported into an existing table")
    assert count(path, "quick") == 3_000
    assert "\n[3]\n" in read
    assert "integrity check" in backed_up
    assert "2 rows, " in exported


async def test_a_cancelled_import_is_rolled_back_and_blocks_no_other_call(path: Path) -> None:
    async with served(path) as peer:
        task = await start_task(peer, "import_csv", table="slow", csv=CSV)
        assert "\n[0]\n" in await peer.text("read_query", query="SELECT count(*) FROM slow")
        cancelled = await peer.request("tasks/cancel", {"taskId": task})
        assert cancelled["result"]["status"] == "cancelled"
        assert (await peer.text("write_query", query="INSERT INTO quick VALUES (1)")).startswith("committed")
    assert (count(path, "slow"), count(path, "quick")) == (0, 1)


async def test_an_import_task_is_rolled_back_when_the_server_stops(path: Path) -> None:
    async with served(path) as peer:
        await start_task(peer, "import_csv", table="slow", csv=CSV)
    assert count(path, "slow") == 0


# Time limits and progress


class Caller:
    """A context that records progress reports."""

    def __init__(self, may_be_task: bool = False) -> None:
        self.may_be_task = may_be_task
        self.budget = SimpleNamespace(seconds=3_600)
        self.state = self
        self.settings = Settings(databases=[Path("data.db")], timeout=20)
        self.reports: list[JobProgress] = []
        self.enough = anyio.Event()

    async def progress(self, done: int, total: int | None, words: str) -> None:
        self.reports.append(JobProgress(done, total, words))
        self.enough.set()


def test_only_a_task_may_run_longer_than_the_statement_timeout() -> None:
    task: Any = Caller(True)
    statement: Any = Caller(False)
    assert (job_of(task).timeout, job_of(statement).timeout) == (3_600, 20)


async def test_progress_is_reported_only_while_it_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "_REPORT_SECONDS", 0)  # or the test would wait half a second
    job, caller = Job(20), Caller()
    job.progress = JobProgress(5, 10, "rows")

    async def work() -> str:
        await caller.enough.wait()
        return "done"

    told: Any = caller
    assert await report_progress(told, job, work) == "done"
    assert caller.reports == [(5, 10, "rows")]


@pytest.mark.parametrize("table", ["quick", "new"])
async def test_an_import_reports_its_progress(path: Path, tmp_path: Path, table: str) -> None:
    (tmp_path / "rows.csv").write_text(CSV)
    for opener in (text_opener(CSV), file_opener(tmp_path, "rows.csv", find_version(tmp_path, "rows.csv"))):
        job = Job(20)
        async with opened(path) as database:
            work = partial(importing.import_csv, Import(table, opener, FormatRequest()), Consent())
            await write(database, work, job)
            await write(database, lambda session: session.connection.execute("DROP TABLE IF EXISTS new"))
        assert job.progress == JobProgress(2 * len(CSV), 2 * len(CSV), "3,000 rows imported")


async def test_exports_and_backups_report_their_progress(path: Path, tmp_path: Path) -> None:
    exporting, copying = Job(20), Job(20)
    query = Query(ENDLESS.replace("FROM n)", "FROM n LIMIT 2500)").replace("count(*)", "n"), ())
    async with opened(path) as database:
        with Exports(1_000_000) as exports:
            await exports.make(SqliteDatabase(database, Snapshots()), query, "csv", None, exporting)
        await database.read(partial(back_up, tmp_path, "data"), copying)
    assert exporting.progress == JobProgress(2_500, None, "2,500 rows")
    assert copying.progress is not None
    assert (copying.progress.done, copying.progress.message) == (copying.progress.total, "copying")


@both_eras
async def test_a_locked_database_is_logged(tmp_path: Path, era: str) -> None:
    file = tmp_path / "data.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("CREATE TABLE numbers (n)")
        async with reading(app, "--allow-write", "--busy-timeout", "0", file, era=era) as client:
            other.execute("BEGIN EXCLUSIVE")
            messages = [
                await client.messages_of_tool("read_query", query="SELECT * FROM numbers"),
                await client.messages_of_tool("write_query", query="INSERT INTO numbers VALUES (1)"),
                await client.messages_of("resources/list"),
            ]
    locked = "the database 'data' is locked by another process; waited 0 s for it"
    assert messages == [[("warning", locked)]] * 3
