"""Reading rows of tables by their keys."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.uris import join_key
from servers.sqlite.engine.deadline import StatementDeadline
from servers.sqlite.query import rows
from tests.servers.sqlite.schemas import SHOP, made

LIMITS = AnswerLimits(100, 100_000, 10_000)


@contextmanager
def reading(path: Path, script: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(made(path, script))) as connection:
        yield connection


def find(connection: sqlite3.Connection, table: str, key: str) -> dict[str, Any]:
    """Returns the row with that key, and the columns of the key."""
    result = rows.find_row(table, key, LIMITS, connection, StatementDeadline(5, 1))
    (row,) = result["rows"]
    return {"key": result["key"], **dict(zip(result["columns"], row, strict=True))}


def is_missing(connection: sqlite3.Connection, table: str, key: str) -> bool:
    with pytest.raises(SqlError) as raised:
        find(connection, table, key)
    return raised.value.code == "not_found"


def test_first_rows_and_next_query_follow_the_order_of_the_key(tmp_path: Path) -> None:
    made_rows = "WITH RECURSIVE c(x) AS (SELECT 250 UNION ALL SELECT x - 1 FROM c WHERE x > 1)"
    script = f"CREATE TABLE t (k TEXT PRIMARY KEY, v); {made_rows} INSERT INTO t (k) SELECT printf('%03d', x) FROM c;"
    with reading(tmp_path / "t.db", script) as connection:
        result = rows.read_first_rows("t", LIMITS, connection, StatementDeadline(5, 1))
        assert result["next_query"] is not None
        rest = connection.execute(result["next_query"]).fetchall()
    assert [row[0] for row in [*result["rows"], *rest]] == [f"{n:03}" for n in range(1, 201)]


def test_a_view_has_rows_and_no_keys(tmp_path: Path) -> None:
    with reading(tmp_path / "shop.db", SHOP) as connection:
        result = rows.read_first_rows("names", LIMITS, connection, StatementDeadline(5, 1))
        assert is_missing(connection, "names", "1")
    assert (result["rows"], result["key"], result["next_query"]) == ([("Ada",), ("Grace",), ("Ada",)], [], None)


def test_a_row_is_read_by_a_composite_key_or_rowid_with_generated_columns(tmp_path: Path) -> None:
    with reading(tmp_path / "shop.db", SHOP) as connection:
        order, item = find(connection, "orders", "10"), find(connection, "items", "10,2")
        assert is_missing(connection, "items", "10")
        assert is_missing(connection, "items", "10,2,3")
    with reading(tmp_path / "t.db", "CREATE TABLE t (rowid TEXT); INSERT INTO t VALUES ('a'), ('b');") as connection:
        assert find(connection, "t", "2") == {"key": ["_rowid_"], "rowid": "b"}
    assert order == {"key": ["id"], "id": 10, "customer_id": 1, "total": 8.0, "tax": 2.0, "gross": 10.0}
    assert (item["key"], item["name"]) == (["order_id", "line"], "cup")


KEYS = {
    "'a,b/c?d#e%41'": join_key(["a,b/c?d#e%41"]),
    "'a,b'": "a,b",
    "'007'": "007",
    "7": "7",
    "-7": "-7",
    "1.5": "1.5",
    "9223372036854775807": "9223372036854775807",
    "x'00ff'": "x'00ff'",
    "'\N{ROBOT FACE} x'": join_key(["\N{ROBOT FACE} x"]),
}


@pytest.mark.parametrize("type_", ["", "TEXT", "BLOB"])
def test_a_key_of_any_type_finds_its_row(tmp_path: Path, type_: str) -> None:
    values = ", ".join(f"({value}, {number})" for number, value in enumerate(KEYS))
    script = f"CREATE TABLE t (k {type_} PRIMARY KEY, v); INSERT INTO t VALUES {values}, ('other', -1);"
    with reading(tmp_path / "t.db", script) as connection:
        assert [find(connection, "t", key)["v"] for key in KEYS.values()] == list(range(len(KEYS)))


def test_a_numeric_text_key_finds_no_other_spelling(tmp_path: Path) -> None:
    with reading(
        tmp_path / "t.db", "CREATE TABLE t (k TEXT PRIMARY KEY); INSERT INTO t VALUES ('5'), ('1.5');"
    ) as one:
        assert is_missing(one, "t", "05")
        assert is_missing(one, "t", "1.50")
