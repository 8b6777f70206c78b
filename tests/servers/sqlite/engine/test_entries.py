"""The tables and views of a database, read in one snapshot."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.schema.records import Entry
from servers.sqlite.engine.deadline import StatementDeadline
from servers.sqlite.engine.entries import (
    build_schema_sql,
    find_options,
    get_entry,
    hold_snapshot,
    list_all_entries,
    list_entries,
)
from tests.servers.sqlite.schemas import SHOP, made


@pytest.fixture
def reader(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


def test_a_snapshot_in_wal_mode_hides_concurrent_changes(file: Path, reader: sqlite3.Connection) -> None:
    with hold_snapshot(reader, StatementDeadline(5, 1)):
        before = list_entries(reader)
        made(file, "CREATE TABLE other (x);")
        assert list_entries(reader) == before
    assert len(list_entries(reader)) == len(before) + 1


def test_a_snapshot_without_wal_blocks_writers(file: Path, reader: sqlite3.Connection) -> None:
    made(file, "PRAGMA journal_mode = DELETE;")
    with closing(sqlite3.connect(file, timeout=0)) as writer:
        with hold_snapshot(reader, StatementDeadline(5, 1)), pytest.raises(sqlite3.OperationalError, match="locked"):
            writer.execute("CREATE TABLE other (x)")
        writer.execute("CREATE TABLE other (x)")


def test_a_snapshot_ends_with_its_block(file: Path, reader: sqlite3.Connection) -> None:
    with pytest.raises(ZeroDivisionError), hold_snapshot(reader, StatementDeadline(5, 1)):
        _ = 1 / 0
    made(file, "CREATE TABLE other (x);")
    assert len(list_entries(reader)) == 2


def test_a_name_outside_utf8_is_listed_with_replacement_characters(tmp_path: Path) -> None:
    path = made(tmp_path / "odd.db", "CREATE TABLE t_x (a);")
    path.write_bytes(path.read_bytes().replace(b"t_x", b"t\xffx"))
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        assert [one.name for one in list_entries(connection)] == ["t\ufffdx"]
        with pytest.raises(SqlError) as raised:
            get_entry(connection, "t\ufffdx")
    assert raised.value.code == "not_found"


def test_shadow_tables_are_recognized_as_sqlite_does(tmp_path: Path) -> None:
    script = """
        CREATE VIRTUAL TABLE a USING fts3(x);
        CREATE VIRTUAL TABLE "b c" USING FTS4(x);
        CREATE VIRTUAL TABLE d using fts5(x);
        CREATE VIRTUAL TABLE e USING\n"rtree"(id, x, y);
        CREATE TABLE e_data (x); CREATE TABLE d_other (x); CREATE VIEW d_view AS SELECT 1; CREATE TABLE f_data (x);
    """
    with closing(sqlite3.connect(made(tmp_path / "virtual.db", script))) as connection:
        kinds_by_name = {(one.name, one.kind) for one in list_all_entries(connection)}
        kinds = "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND name <> 'sqlite_schema'"
        assert kinds_by_name == set(connection.execute(kinds))


def test_table_options_are_the_words_after_the_columns() -> None:
    ends: dict[str, list[str]] = {
        "(x INT)": [],
        "(x INT) STRICT": ["STRICT"],
        "(x INT PRIMARY KEY) without/* ) */ rowid , strict -- )": ["WITHOUT", "ROWID", "STRICT"],
        "(x INT CHECK (x <> ') STRICT')) -- STRICT": [],
        '([) STRICT] INT, ") STRICT " INT, `) STRICT`` ` INT)': [],
    }
    for end, options in ends.items():
        sql = f"CREATE TABLE t {end}"
        assert find_options(Entry("t", "table", sql)) == options
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute(sql)
            flags = connection.execute("SELECT wr, strict FROM pragma_table_list('t')").fetchone()
        assert flags == ("ROWID" in options, "STRICT" in options)


def test_the_schema_sql_recreates_the_schema(tmp_path: Path) -> None:
    with closing(sqlite3.connect(made(tmp_path / "shop.db", SHOP))) as connection:
        script = build_schema_sql(100_000, connection, StatementDeadline(5, 1))
    assert "CHECK (total > 0)" in script
    with closing(sqlite3.connect(made(tmp_path / "copy.db", script))) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    assert names >= {"customers", "orders", "items", "large", "names", "notes", "guard"}


def test_long_schema_sql_is_cut_with_a_count_of_the_rest(tmp_path: Path) -> None:
    tables = "".join(f"CREATE TABLE t{n} ({'x' * 40});" for n in range(300))
    with closing(sqlite3.connect(made(tmp_path / "big.db", f"BEGIN; {tables} COMMIT;"))) as connection:
        script = build_schema_sql(10_000, connection, StatementDeadline(5, 1))
    assert len(script) < 11_000
    assert script.splitlines()[-2] == f"-- {300 - script.count('CREATE TABLE')} more statements did not fit"
