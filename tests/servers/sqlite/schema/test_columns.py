"""What is asked of a schema, whatever its names."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from servers.sql.pages import AnswerLimits
from servers.sql.schema.table import TableRequest
from servers.sql.uris import join_key
from servers.sqlite.engine.limits import StatementDeadline
from servers.sqlite.engine.sql import quote
from servers.sqlite.query.rows import find_row
from servers.sqlite.schema.columns import read_indexes, read_row_estimates
from servers.sqlite.schema.table import describe
from tests.servers.sqlite.schemas import SHOP, made

ROOM = AnswerLimits(10, 100_000, 10_000)

any_name = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=30)


def test_estimates_are_of_tables_and_not_of_parts_of_them(tmp_path: Path) -> None:
    with closing(sqlite3.connect(made(tmp_path / "shop.db", SHOP))) as connection:
        assert read_row_estimates(connection)["orders"] == 2


def test_indexes_are_those_of_one_table_or_of_all(tmp_path: Path) -> None:
    with closing(sqlite3.connect(made(tmp_path / "shop.db", SHOP))) as connection:
        assert {table for table, _ in read_indexes(connection)} >= {"customers", "items", "orders"}
        assert [index["name"] for _, index in read_indexes(connection, "orders")] == ["large"]


@pytest.mark.slow
@given(any_name, any_name)
def test_s6_any_names_of_table_and_column_are_described(table: str, column: str) -> None:
    assume(not table.lower().startswith("sqlite_"))
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE {quote(table)} ({quote(column)} TEXT PRIMARY KEY)")
        connection.execute(f"INSERT INTO {quote(table)} VALUES (?)", [column])
        found = describe(TableRequest(table, 1, True), ROOM, connection, StatementDeadline(5, 1))
        row = find_row(table, join_key([column]), ROOM, connection, StatementDeadline(5, 1))
    assert (found["name"], found["columns"][0]["name"]) == (table, column)
    assert found["sample"] == {"columns": [column], "rows": [(column,)]}
    assert found["statistics"] is not None
    assert found["statistics"]["columns"][0]["min"] == column
    assert row["rows"] == [(column,)]
