"""The time limit of each kind of work on a database."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.importing.files import text_opener
from servers.common.sql.importing.imports import Import
from servers.common.sql.jobs import Job
from servers.common.sql.query.formats import ExportRequest
from servers.common.sql.query.query import Query
from servers.common.sql.write.consent import Consent
from servers.common.sql.write.results import Statement
from servers.sqlite.database import SqliteDatabase
from servers.sqlite.query.snapshots import Snapshots
from tests.servers.sqlite.writing import LIMITS, opened

ALL = Query("SELECT * FROM numbers", ())
DELETE = [Statement("DELETE FROM numbers")]
OVER = Job(0)

Act = Callable[[SqliteDatabase, Path], Awaitable[object]]
ACTS: dict[str, Act] = {
    "read": lambda database, _: database.read(ALL, LIMITS.rows, None, None, OVER),
    "export": lambda database, folder: database.export(ALL, ExportRequest(folder / "a.csv", "csv", 100_000), OVER),
    "execute": lambda database, _: database.execute(DELETE, LIMITS, Consent(), OVER, only_tables=False),
    "dry_run": lambda database, _: database.dry_run(DELETE, LIMITS, OVER),
    "import_csv": lambda database, _: database.import_csv(Import("new", text_opener("a\n1\n")), Consent(), OVER),
    "back_up": lambda database, folder: database.back_up(folder, OVER),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
async def test_work_stops_at_the_time_limit_of_its_job(file: Path, tmp_path: Path, act: Act) -> None:
    async with opened(file) as database:
        with pytest.raises(SqlError) as raised:
            await act(SqliteDatabase(database, Snapshots()), tmp_path)
    assert raised.value.code == "timeout"
