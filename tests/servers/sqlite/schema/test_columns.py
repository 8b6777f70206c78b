"""Descriptions of tables with generated names."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.schema.table import TableRequest
from servers.common.sql.uris import join_key
from servers.sqlite.engine.deadline import StatementDeadline
from servers.sqlite.engine.sql import quote
from servers.sqlite.query.rows import find_row
from servers.sqlite.schema.table import describe

ROOM = AnswerLimits(10, 100_000, 10_000)

any_name = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=30)


@pytest.mark.slow
@given(any_name, any_name)
def test_tables_and_columns_of_any_name_are_described(table: str, column: str) -> None:
    assume(not table.lower().startswith("sqlite_"))
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE {quote(table)} ({quote(column)} TEXT PRIMARY KEY)")
        connection.execute(f"INSERT INTO {quote(table)} VALUES (?)", [column])
        description = describe(TableRequest(table, 1, True), ROOM, connection, StatementDeadline(5, 1))
        row = find_row(table, join_key([column]), ROOM, connection, StatementDeadline(5, 1))
    assert (description["name"], description["columns"][0]["name"]) == (table, column)
    assert description["sample"] == {"columns": [column], "rows": [(column,)]}
    assert description["statistics"] is not None
    assert description["statistics"]["columns"][0]["min"] == column
    assert row["rows"] == [(column,)]
