"""Exports as files of one process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.exports import Export, Exports
from servers.common.sql.jobs import Job
from servers.common.sql.query.formats import ExportRequest
from servers.common.sql.query.query import Query
from servers.sqlite.database import SqliteDatabase
from servers.sqlite.engine.database import Source, open_databases
from servers.sqlite.engine.deadline import Limits
from servers.sqlite.query.snapshots import Snapshots

ALL = Query("SELECT n FROM numbers", ())
ENDLESS = Query("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c", ())
WRONG, DELETES = Query("SELECT nothing", ()), Query("DELETE FROM numbers", ())


class Exporting:
    """The exports and their database."""

    def __init__(self, exports: Exports, database: SqliteDatabase) -> None:
        self.exports = exports
        self.database = database

    async def make(self, query: Query = ALL, owner: str | None = None) -> Export:
        return await self.exports.make(self.database, query, "csv", owner)

    @property
    def files(self) -> list[Path]:
        assert self.exports._directory is not None  # nothing else shows where the directory is
        return list(self.exports._directory.iterdir())


@asynccontextmanager
async def exporting(file: Path, *, max_bytes: int = 1_000_000, seconds: float = 10.0) -> AsyncIterator[Exporting]:
    limits = Limits(timeout=seconds)
    async with open_databases([Source("data", file, False)], limits, 2) as databases:
        with Exports(max_bytes) as exports:
            yield Exporting(exports, SqliteDatabase(databases.get("data"), Snapshots()))


async def test_a_failed_export_leaves_no_file(file: Path) -> None:
    codes = {ENDLESS: "too_large", WRONG: "bad_statement", DELETES: "refused"}
    async with exporting(file, max_bytes=100_000) as exporter:
        for query, code in codes.items():
            with pytest.raises(SqlError) as caught:
                await exporter.make(query)
            assert (caught.value.code, exporter.files) == (code, [])
    async with exporting(file, max_bytes=10**12, seconds=0.1) as exporter:
        with pytest.raises(SqlError) as caught:
            await exporter.make(ENDLESS)
        assert (caught.value.code, exporter.files) == ("timeout", [])


async def test_a_cancelled_export_leaves_no_file(file: Path) -> None:
    async with exporting(file, max_bytes=10**12) as exporter:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(exporter.make, ENDLESS)
            while exporter.exports._directory is None or not exporter.files:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(30):
            while exporter.files:
                await anyio.lowlevel.checkpoint()


class Killed(SqliteDatabase):
    """A database whose worker process is killed while it writes an export."""

    async def export(self, query: Query, request: ExportRequest, job: Job | None = None) -> tuple[int, int]:
        """Write the beginning of the file."""
        request.path.write_text("n\n")
        raise SqlError("interrupted", "the process has ended")


async def test_an_export_whose_process_was_killed_leaves_no_file(file: Path) -> None:
    async with exporting(file) as exporter:
        await exporter.make()
        exporter.database.__class__ = Killed
        with pytest.raises(SqlError):
            await exporter.make()
        assert len(exporter.files) == 1


async def test_the_oldest_export_is_removed_over_the_limit(file: Path) -> None:
    async with exporting(file) as exporter:
        made = [await exporter.make() for _ in range(18)]
        assert {file.name for file in exporter.files} == {export.name for export in made[2:]}
        with pytest.raises(SqlError, match="no such export"):
            exporter.exports.get(made[1].name, None)
        with pytest.raises(SqlError, match="no longer exists"):
            await exporter.exports.read(made[1], 0, 1)


async def test_only_its_owner_finds_an_export_and_the_directory_ends_with_the_server(file: Path) -> None:
    async with exporting(file) as exporter:
        made = await exporter.make(owner="me")
        assert exporter.exports.get(made.name, "me") == made
        for other in ("you", None):
            with pytest.raises(SqlError, match="no such export"):
                exporter.exports.get(made.name, other)
        (left,) = exporter.files
        assert left.parent.stat().st_mode & 0o077 == 0
    assert not left.parent.exists()


async def test_exports_of_an_owner_remove_none_of_another(file: Path) -> None:
    async with exporting(file) as exporter:
        mine = await exporter.make(owner="me")
        for _ in range(20):
            await exporter.make(owner="you")
        assert exporter.exports.get(mine.name, "me") == mine
        assert len(exporter.files) == 17


@pytest.mark.slow
async def test_the_owner_of_most_exports_loses_the_oldest(file: Path) -> None:
    async with exporting(file) as exporter:
        most = [await exporter.make(owner="most") for _ in range(5)]
        others = [await exporter.make(owner=f"other {number}") for number in range(60)]
        assert len(exporter.files) == 64
        assert exporter.exports.get(others[0].name, "other 0") == others[0]
        with pytest.raises(SqlError, match="no such export"):
            exporter.exports.get(most[0].name, "most")
