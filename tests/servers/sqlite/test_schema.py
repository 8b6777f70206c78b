"""What is asked of a schema, whatever its names."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from servers.sqlite.engine.limits import Stop
from servers.sqlite.engine.sql import quoted
from servers.sqlite.query.pages import Room
from servers.sqlite.query.rows import row_of
from servers.sqlite.schema.parts import indexes, row_estimates
from servers.sqlite.schema.table import Wanted, describe
from servers.sqlite.uris import key_of
from tests.servers.sqlite.schemas import SHOP, made

ROOM = Room(10, 100_000, 10_000)

any_name = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=30)


def test_estimates_are_of_tables_and_not_of_parts_of_them(tmp_path: Path) -> None:
    with closing(sqlite3.connect(made(tmp_path / "shop.db", SHOP))) as connection:
        assert row_estimates(connection)["orders"] == 2


def test_indexes_are_those_of_one_table_or_of_all(tmp_path: Path) -> None:
    with closing(sqlite3.connect(made(tmp_path / "shop.db", SHOP))) as connection:
        assert {table for table, _ in indexes(connection)} >= {"customers", "items", "orders"}
        assert [index["name"] for _, index in indexes(connection, "orders")] == ["large"]


@pytest.mark.slow
@given(any_name, any_name)
def test_s6_any_names_of_table_and_column_are_described(table: str, column: str) -> None:
    assume(not table.lower().startswith("sqlite_"))
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE {quoted(table)} ({quoted(column)} TEXT PRIMARY KEY)")
        connection.execute(f"INSERT INTO {quoted(table)} VALUES (?)", [column])
        found = describe(Wanted(table, 1, True), ROOM, connection, Stop(5, 1))
        row = row_of(table, key_of([column]), ROOM, connection, Stop(5, 1))
    assert (found["name"], found["columns"][0]["name"]) == (table, column)
    assert found["sample"] == {"columns": [column], "rows": [(column,)]}
    assert found["statistics"] is not None
    assert found["statistics"]["columns"][0]["min"] == column
    assert row["rows"] == [(column,)]
