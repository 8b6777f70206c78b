"""Statements that change a database: effects, results and refusals."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from servers.common.sql.errors import SqlError
from servers.sqlite.engine.deadline import Limits
from tests.servers.sqlite.attacks import EXTRA, NEVER
from tests.servers.sqlite.schemas import made
from tests.servers.sqlite.serving import inside
from tests.servers.sqlite.writing import SCHEMA, execute, opened


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "data.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(SCHEMA)
        yield connection


def rows(db: sqlite3.Connection, query: str) -> list[Any]:
    return db.execute(query).fetchall()


async def execute_one(path: Path, query: str) -> Any:
    """Returns the result of one statement."""
    async with opened(path) as database:
        done: Any = await execute(database, query)
    return done["statements"][0]


# Effects and results


EFFECTS = [
    ("INSERT INTO t (b) VALUES ('x'), ('y')", 2, 4, ["t"]),
    ("WITH new(b) AS (SELECT 'x') INSERT INTO t (b) SELECT b FROM new", 1, 3, ["t"]),
    ("/* a comment */ REPLACE INTO t VALUES (1, 'new')", 1, 1, ["child", "t"]),
    ("INSERT INTO t VALUES (1, 'x') ON CONFLICT DO UPDATE SET b = 'x'", 1, None, ["t"]),
    ("INSERT OR IGNORE INTO t VALUES (1, 'x')", 0, None, []),
    ("INSERT INTO keyed VALUES ('k', 1)", 1, None, ["keyed", "log"]),
    ("DELETE FROM t WHERE a = 1", 1, None, ["child", "t"]),
    ("UPDATE t SET b = b || '!'", 2, None, ["t"]),
    ("UPDATE t SET b = 1 WHERE a = 9", 0, None, []),
    ("SELECT * FROM t", 0, None, []),
    ("EXPLAIN DELETE FROM t", 0, None, []),
    ("CREATE TABLE copy AS SELECT * FROM t", 0, None, []),
    ("-- nothing", 0, None, []),
]


async def test_the_effect_of_each_statement_is_reported(tmp_path: Path, db: sqlite3.Connection) -> None:
    script, effects = "\n".join(db.iterdump()), []
    for query, *_ in EFFECTS:
        path = made(tmp_path / f"{len(effects)}.db", script)
        result = await execute_one(path, query)
        effects.append((query, result["affected"], result.get("last_insert_rowid"), list(result.get("tables", ()))))
    assert effects == EFFECTS


async def test_a_large_rowid_is_exact(tmp_path: Path, db: sqlite3.Connection) -> None:
    result = await execute_one(tmp_path / "data.db", "INSERT INTO t VALUES (9007199254740993, 'x')")
    assert result["last_insert_rowid"] == {"type": "integer", "value": "9007199254740993"}


async def test_a_select_stops_at_the_row_limit(tmp_path: Path, db: sqlite3.Connection) -> None:
    endless = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT n FROM n"
    result = await execute_one(tmp_path / "data.db", endless)
    assert (len(result["rows"]), result["truncated"]) == (1_000, True)


async def test_rows_of_returning_are_cut_but_all_changes_are_made(tmp_path: Path, db: sqlite3.Connection) -> None:
    many = (
        "WITH RECURSIVE n(n) AS (SELECT 10 UNION ALL SELECT n + 1 FROM n LIMIT 2000) INSERT INTO t SELECT n, n FROM n"
    )
    result = await execute_one(tmp_path / "data.db", f"{many} RETURNING *")
    assert (result["affected"], len(result["rows"]), result["truncated"]) == (2_000, 1_000, True)
    assert rows(db, "SELECT count(*) FROM t") == [(2_002,)]


async def test_the_cells_of_a_later_statement_are_whole(tmp_path: Path, db: sqlite3.Connection) -> None:
    async with opened(tmp_path / "data.db") as database:
        done: Any = await execute(database, "SELECT 'abc'", "SELECT 'abc'")
    assert [list(map(list, statement["rows"])) for statement in done["statements"]] == [[["abc"]]] * 2


# All or nothing


@pytest.mark.parametrize(
    ("last", "code"),
    [
        ("INSERT INTO t VALUES (1, 'x')", "constraint: statement 2: "),
        ("INSERT OR ROLLBACK INTO t VALUES (1, 'x')", "constraint: statement 2: "),
        ("INSERT INTO nowhere VALUES (1)", "bad_statement: statement 2: "),
        ("INSERT INTO child VALUES (9, 99)", "constraint: SQLite refuses it (SQLITE_CONSTRAINT_FOREIGNKEY)"),
        ("COMMIT", "refused: statement 2: "),
        (
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT max(n) FROM n",
            "timeout: statement 2: ",
        ),
    ],
)
async def test_a_failing_statement_rolls_back_all(
    tmp_path: Path, db: sqlite3.Connection, last: str, code: str
) -> None:
    async with opened(tmp_path / "data.db", Limits(timeout=0.2 if "timeout" in code else 20)) as database:
        with pytest.raises(SqlError) as raised:
            await execute(database, "DELETE FROM t WHERE a = 2", last)
        assert rows(db, "SELECT a FROM t") == [(1,), (2,)]
        await execute(database, "DELETE FROM t WHERE a = 1")
    assert f"{raised.value.code}: {raised.value}".startswith(code)
    assert rows(db, "SELECT a FROM t") == [(2,)]


# Refused statements


async def test_statements_beyond_the_database_or_the_transaction_are_refused(file: Path) -> None:
    made(file, EXTRA)
    with closing(sqlite3.connect(file)) as db:
        before = list(db.iterdump())
        async with opened(file) as database:
            for query in NEVER:
                for only_tables in (False, True):
                    with pytest.raises(SqlError) as raised:
                        await execute(database, query.format(folder=file.parent), only_tables=only_tables)
                    assert raised.value.code in ("refused", "bad_statement"), query
        assert list(db.iterdump()) == before
        assert db.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    assert {path.name for path in file.parent.iterdir()} <= {"data.db", "data.db-wal", "data.db-shm"}


async def test_triggers_and_views_are_limited_like_statements(tmp_path: Path, db: sqlite3.Connection) -> None:
    async with inside("--allow-write", tmp_path / "data.db") as peer:
        await peer.data(
            "write_query",
            query=[
                "CREATE TRIGGER x AFTER DELETE ON t BEGIN SELECT load_extension('x'); END",
                "CREATE VIEW y AS SELECT * FROM dbstat",
            ],
        )
        of_trigger = await peer.error("write_query", query="DELETE FROM t")
        of_view = await peer.error("write_query", query="INSERT INTO log SELECT name FROM y")
    assert of_trigger == "refused: the statement is not allowed: it calls load_extension()"
    assert of_view.startswith("refused: ") or 'unsafe use of virtual table "dbstat"' in of_view


async def test_full_text_search_works(tmp_path: Path, db: sqlite3.Connection) -> None:
    async with opened(tmp_path / "data.db") as database:
        data: Any = await execute(
            database,
            "DROP TABLE docs",
            "CREATE VIRTUAL TABLE docs USING fts5(body)",
            "INSERT INTO docs VALUES ('hello world'), ('good bye')",
            "DELETE FROM docs WHERE docs MATCH 'bye'",
            "INSERT INTO docs (docs) VALUES ('optimize')",
            "SELECT * FROM docs WHERE docs MATCH 'world OR bye'",
        )
        dropped: Any = await execute(database, "DROP TABLE docs")
    assert data["statements"][1] == {"affected": 0, "schema_changed": True}
    effects = [(one["affected"], one["tables"], "schema_changed" in one) for one in data["statements"][2:4]]
    assert effects == [(2, ("docs",), False), (1, ("docs",), False)]
    assert data["statements"][5]["rows"] == [("hello world",)]
    assert dropped["statements"][0]["schema_changed"]


async def test_triggers_and_views_may_use_full_text_tables(tmp_path: Path, db: sqlite3.Connection) -> None:
    db.executescript("""
        CREATE TRIGGER indexes AFTER INSERT ON t BEGIN INSERT INTO docs (rowid, body) VALUES (new.a, new.b); END;
        CREATE VIEW texts AS SELECT body FROM docs;""")
    async with opened(tmp_path / "data.db") as database:
        data: Any = await execute(database, "INSERT INTO t VALUES (3, 'three')", "SELECT * FROM texts")
    assert data["statements"][1]["rows"] == [("three",)]


async def test_a_schema_can_be_changed(tmp_path: Path, db: sqlite3.Connection) -> None:
    async with opened(tmp_path / "data.db") as database:
        data: Any = await execute(
            database,
            "ALTER TABLE t RENAME TO things",
            "ALTER TABLE things ADD COLUMN c",
            "ALTER TABLE things RENAME COLUMN c TO d",
            "ALTER TABLE things DROP COLUMN d",
            "CREATE INDEX i ON things (b)",
            "DROP INDEX i",
            "DROP VIEW seen",
            "DROP TRIGGER logs",
            "DROP TABLE keyed",
            "ANALYZE",
            "REINDEX",
        )
    assert ["schema_changed" in one for one in data["statements"]] == [True] * 10 + [False]


# create_table


async def test_create_table_runs_only_create_table(tmp_path: Path, db: sqlite3.Connection) -> None:
    async with opened(tmp_path / "data.db") as database:
        for query in (
            "CREATE TABLE new (a INTEGER PRIMARY KEY, b UNIQUE REFERENCES t)",
            " -- comment\n create  table IF NOT EXISTS new (a PRIMARY KEY) WITHOUT ROWID",
            "CREATE TABLE new AS SELECT * FROM t",
        ):
            done: Any = await execute(database, query, only_tables=True)
            assert (done["committed"], done["statements"][0]["schema_changed"]) == (True, True)
            assert rows(db, "SELECT count(*) FROM pragma_table_info('new')") != [(0,)]
            db.execute("DROP TABLE new")
        before = list(db.iterdump())
        for query in (
            "DROP TABLE t",
            "/* CREATE TABLE */ DELETE FROM t",
            "CREATE INDEX i ON t (b)",
            'CREATE INDEX "sqlite_autoindex_t_2" ON t (b)',
            "CREATE VIEW v AS SELECT 1",
            "CREATE VIRTUAL TABLE v USING fts5(a)",
            "ALTER TABLE t ADD COLUMN c",
            "SELECT 1",
        ):
            with pytest.raises(SqlError) as raised:
                await execute(database, query, only_tables=True)
            assert raised.value.code == "refused" or "reserved for internal use" in raised.value.quoted[0]
    assert list(db.iterdump()) == before
