"""What a killed writer left half done is undone where writing is allowed, and told where it is not."""

from pathlib import Path

import pytest

from servers.common.sql.errors import SqlError
from servers.sqlite.engine.database import Source, open_databases
from servers.sqlite.engine.deadline import Limits
from tests.servers.sqlite.killed import ROWS, TOLD, leave_hot_journal, make, values


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
