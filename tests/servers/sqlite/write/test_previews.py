"""Dry runs, which show changes and make none."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.write.results import ResponseLimits
from tests.servers.sqlite.writing import LIMITS, SCHEMA, dry_run, execute, opened


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A database that must be unchanged after the test."""
    path = tmp_path / "data.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
        before = list(connection.iterdump())
        yield path
        assert list(connection.iterdump()) == before


async def changes(path: Path, *queries: str, limits: ResponseLimits = LIMITS) -> dict[str, Any]:
    """Returns the changes by table: the count of each kind, and the rows."""
    async with opened(path) as database:
        done = await dry_run(database, *queries, limits=limits)
    assert not done["committed"]
    return {one["table"]: (_counts(one), list(one.get("rows", ()))) for one in done.get("changes", ())}


def _counts(change: Any) -> tuple[int, ...]:
    return tuple(change["counts"].get(word, 0) for word in ("inserted", "updated", "deleted"))


CHANGES = [
    ("INSERT INTO t (b) VALUES ('x')", {"t": ((1, 0, 0), [(None, (3, "x"))])}),
    ("UPDATE t SET b = 'x' WHERE a = 1", {"t": ((0, 1, 0), [((1, "one"), (1, "x"))])}),
    ("DELETE FROM t WHERE a = 2", {"t": ((0, 0, 1), [((2, "two"), None)])}),
    (
        "DELETE FROM t",
        {
            "t": ((0, 0, 2), [((1, "one"), None), ((2, "two"), None)]),
            "child": ((0, 0, 2), [((1, 1), None), ((2, 1), None)]),
        },
    ),
    (
        "REPLACE INTO t VALUES (2, 'new')",
        {"t": ((1, 0, 1), [((2, "two"), None), (None, (2, "new"))])},
    ),
    (
        "INSERT INTO t VALUES (2, 'x') ON CONFLICT DO UPDATE SET b = 'y'",
        {"t": ((0, 1, 0), [((2, "two"), (2, "y"))])},
    ),
    (
        "INSERT INTO keyed VALUES ('k', 1)",
        {"keyed": ((1, 0, 0), [(None, ("k", 1))]), "log": ((1, 0, 0), [(None, ("k",))])},
    ),
    ("INSERT INTO docs VALUES ('text')", {"docs": ((0, 0, 0), [])}),
    ("INSERT OR IGNORE INTO t VALUES (1, 'x')", {}),
    ("SELECT * FROM t", {}),
    ("EXPLAIN DELETE FROM t", {}),
    ("DROP TABLE child", {}),
]


async def test_a_dry_run_shows_rows_before_and_after(path: Path) -> None:
    assert [(query, await changes(path, query)) for query, _ in CHANGES] == CHANGES


async def test_a_dry_run_of_several_statements_shows_all_changes(path: Path) -> None:
    queries = ["UPDATE t SET b = 'x' WHERE a = 1", "ALTER TABLE t RENAME COLUMN b TO c", "DELETE FROM t WHERE a = 2"]
    async with opened(path) as database:
        done = await dry_run(database, *queries)
    assert [(one["columns"], one["rows"]) for one in done["changes"]] == [
        (("a", "b"), [((1, "one"), (1, "x"))]),
        (("a", "c"), [((2, "two"), None)]),
    ]


async def test_a_virtual_table_is_noted_and_later_changes_are_shown(path: Path) -> None:
    async with opened(path) as database:
        done = await dry_run(
            database, "INSERT INTO docs VALUES ('a')", "DELETE FROM docs", "DELETE FROM t WHERE a = 2"
        )
    docs, t = sorted(done["changes"], key=lambda one: one["table"])
    assert (_counts(docs), docs["note"]) == ((0, 0, 0), "a virtual table, whose rows are not shown")
    assert (_counts(t), list(t["rows"])) == ((0, 0, 1), [((2, "two"), None)])


async def test_rows_deleted_by_replace_are_not_shown_beside_delete_triggers(path: Path) -> None:
    async with opened(path) as database:
        done = await dry_run(
            database, "INSERT INTO keyed VALUES ('k', 1)", "CREATE TRIGGER d AFTER DELETE ON keyed BEGIN "
            "INSERT INTO log VALUES ('deleted'); END", "REPLACE INTO keyed VALUES ('k', 2)",
            "SELECT count(*) FROM log WHERE said = 'deleted'",
        )  # fmt: skip
    assert done["statements"][3]["rows"] == [(0,)]
    assert done["changes"][0]["note"].startswith("rows that REPLACE deletes are not shown")


async def test_values_are_shown_as_stored(path: Path) -> None:
    values = "x'00FF', CAST(x'FF41' AS TEXT), 9007199254740993, 1e999, NULL, 1.5, ''"
    shown = await changes(path, "CREATE TABLE v (a, b, c, d, e, f, g)", f"INSERT INTO v VALUES ({values})")
    assert shown["v"][1][0][1] == (
        {"type": "blob", "bytes": 2, "base64": "AP8="},
        {"type": "text", "bytes": 2, "base64": "/0E="},
        {"type": "integer", "value": "9007199254740993"},
        {"type": "real", "value": "Infinity"},
        None,
        1.5,
        "",
    )


async def test_tables_with_special_names_are_shown(path: Path) -> None:
    shown = await changes(path, 'CREATE TABLE "a "" ]💥" ("b "" [" INTEGER)', 'INSERT INTO "a "" ]💥" VALUES (1)')
    assert shown == {'a " ]💥': ((1, 0, 0), [(None, (1,))])}


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
async def test_text_of_a_utf_16_database_is_shown(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "wide.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA encoding = '{encoding}'")
        connection.execute("CREATE TABLE t (a)")
    assert await changes(path, "INSERT INTO t VALUES ('ä€💥')") == {"t": ((1, 0, 0), [(None, ("ä€💥",))])}


async def test_tables_named_like_internal_ones_are_shown(path: Path) -> None:
    names = ("pragma_table_list", "pragma_table_xinfo", "main", "temp")
    for name in names:
        queries = f"CREATE TABLE {name} (schema, name, type, hidden)", f"INSERT INTO {name} (name) VALUES (1)"
        assert await changes(path, *queries) == {name: ((1, 0, 0), [(None, (None, 1, None, None))])}


async def test_shown_rows_are_limited_but_counts_are_complete(path: Path) -> None:
    numbers = "WITH RECURSIVE n(n) AS (SELECT 10 UNION ALL SELECT n + 1 FROM n LIMIT 5000)"
    ((counts, rows),) = (await changes(path, f"{numbers} INSERT INTO t SELECT n, n FROM n")).values()
    assert (counts, len(rows)) == ((5_000, 0, 0), 10)


async def test_the_size_of_shown_rows_is_limited(path: Path) -> None:
    queries = [f"CREATE TABLE w{n} (a, b)" for n in range(20)]
    queries += [f"INSERT INTO w{n} VALUES (hex(zeroblob(9999)), 1), (hex(zeroblob(9999)), 2)" for n in range(20)]
    shown = await changes(path, *queries, limits=LIMITS._replace(rows=AnswerLimits(1_000, 4_000, 10_000)))
    assert sum(len(rows) for _, rows in shown.values()) < 10
    assert sum(counts[0] for counts, _ in shown.values()) == 40


async def test_columns_beyond_the_argument_limit_are_cut(path: Path) -> None:
    columns = ", ".join(f"c{n}" for n in range(200))
    values = ", ".join("1" for _ in range(200))
    shown = await changes(path, f"CREATE TABLE wide ({columns})", f"INSERT INTO wide VALUES ({values})")
    assert shown["wide"][1] == [(None, (1,) * 60)]


async def test_a_failed_dry_run_leaves_no_triggers(path: Path) -> None:
    async with opened(path) as database:
        with pytest.raises(SqlError, match="UNIQUE"):
            await dry_run(database, "INSERT INTO docs VALUES ('a')", "INSERT INTO t VALUES (1, 'x')")
        with pytest.raises(SqlError, match="UNIQUE"):
            await dry_run(database, "DELETE FROM child", "INSERT INTO t VALUES (1, 'x')")
        done: Any = await execute(database, "SELECT name FROM sqlite_temp_schema WHERE type = 'trigger'")
    assert not done["statements"][0]["rows"]
