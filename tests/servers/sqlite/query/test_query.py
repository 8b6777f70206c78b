"""Running a query on a connection."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.query.query import Query
from servers.sqlite.engine.deadline import StatementDeadline
from servers.sqlite.query.query import run_query

ROOM = AnswerLimits(10, 10_000, 100)


class UnlockingDeadline(StatementDeadline):
    """A deadline that releases the lock of another connection once the query waits for it."""

    def __init__(self, other: sqlite3.Connection) -> None:
        super().__init__(10, 10)
        self._other = other

    def pause(self) -> bool:
        self._other.execute("COMMIT")
        return True


@pytest.mark.parametrize("query", ["SELECT n FROM number", "PRAGMA user_version"])
def test_a_query_waits_for_the_lock_of_another_process(tmp_path: Path, query: str) -> None:
    file = tmp_path / "a.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("CREATE TABLE number AS SELECT 7 AS n")
        other.execute("PRAGMA user_version = 7")
        with closing(sqlite3.connect(file, isolation_level=None, timeout=0)) as connection:
            other.execute("BEGIN EXCLUSIVE")
            assert run_query(Query(query, []), ROOM, connection, UnlockingDeadline(other)).page.rows == [(7,)]


@pytest.mark.parametrize("query", ["SHOW TABLES", "DESCRIBE t", ".schema t", "\\d"])
def test_a_command_of_another_program_suggests_the_schema_tools(query: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(SqlError) as caught:
        run_query(Query(query, []), ROOM, connection, StatementDeadline(10, 10))
    assert caught.value.suggestion == "list_tables and describe_table describe the schema."
