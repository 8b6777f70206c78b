"""What a killed writer left half done is undone where writing is allowed, and told where it is not."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from servers.sql.errors import SqlError
from servers.sqlite.engine.database import Database, Source, open_databases
from servers.sqlite.engine.limits import Limits
from tests.servers.sqlite.killed import ROWS, leave_hot_journal, make

ALL = "SELECT value, count(*) FROM rows GROUP BY value"
TOLD = "a program was killed while it changed the database"


async def values(database: Database) -> Sequence[tuple[int, int]]:
    found: list[tuple[int, int]] = await database.read(lambda connection, _: connection.execute(ALL).fetchall())
    return found


async def test_a_server_that_may_write_reads_on_where_another_program_is_killed(tmp_path: Path) -> None:
    file = make(tmp_path / "data.db")
    async with open_databases([Source("data", file, True)], Limits(), 2) as databases:
        database = databases.get("data")
        assert await values(database) == [(0, ROWS)]
        leave_hot_journal(file)
        assert await values(database) == [(0, ROWS)]
        assert not Path(f"{file}-journal").exists()


async def test_a_server_that_may_not_write_says_why_reads_fail(tmp_path: Path) -> None:
    file = make(tmp_path / "data.db")
    async with open_databases([Source("data", file, False)], Limits(), 2) as databases:
        leave_hot_journal(file)
        with pytest.raises(SqlError, match=TOLD) as raised:
            await values(databases.get("data"))
    assert raised.value.code == "unfinished"
