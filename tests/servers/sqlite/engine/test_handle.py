"""The hot journal of a killed writer: rolled back with write access, reported without."""

from pathlib import Path

import pytest

from servers.common.sql.errors import SqlError
from servers.sqlite.engine.database import Source, open_databases
from servers.sqlite.engine.deadline import Limits
from tests.servers.sqlite.killed import ROWS, TOLD, leave_hot_journal, make, values


async def test_a_writing_server_rolls_back_the_journal_of_a_killed_program(tmp_path: Path) -> None:
    file = make(tmp_path / "data.db")
    async with open_databases([Source("data", file, True)], Limits(), 2) as databases:
        database = databases.get("data")
        assert await values(database) == [(0, ROWS)]
        leave_hot_journal(file)
        assert await values(database) == [(0, ROWS)]
        assert not Path(f"{file}-journal").exists()


async def test_a_read_only_server_reports_a_hot_journal_as_unfinished(tmp_path: Path) -> None:
    file = make(tmp_path / "data.db")
    async with open_databases([Source("data", file, False)], Limits(), 2) as databases:
        leave_hot_journal(file)
        with pytest.raises(SqlError, match=TOLD) as raised:
            await values(databases.get("data"))
    assert raised.value.code == "unfinished"
