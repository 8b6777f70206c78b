"""`write_query` and `create_table` through the front door: what they do, tell and refuse."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from servers.sql.errors import SqlError
from servers.sqlite.engine.limits import Limits
from tests.servers.sqlite.serving import ERAS, inside, served
from tests.servers.sqlite.writing import SCHEMA, execute, opened


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "data.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(SCHEMA)
        yield connection


def rows(db: sqlite3.Connection, query: str) -> list[Any]:
    return db.execute(query).fetchall()


async def effect(path: Path, query: str) -> Any:
    """What is said of one statement."""
    async with opened(path) as database:
        done: Any = await execute(database, query)
    return done["statements"][0]


# What it does and says


@pytest.mark.parametrize("era", ERAS)
async def test_a_statement_is_done_and_told_in_both_forms(tmp_path: Path, db: sqlite3.Connection, era: str) -> None:
    async with served("--allow-write", tmp_path / "data.db", era=era) as peer:
        result = await peer.call("write_query", query="INSERT INTO t VALUES (?, ?) RETURNING b", parameters=[7, "x"])
    told = result["content"][0]["text"].splitlines()
    assert told[0].startswith("committed; ")
    assert told[2:5] == [
        "statement 1: 1 row affected; last_insert_rowid 7; tables t; 1 row returned",
        'columns ["b"]',
        '["x"]',
    ]
    if era >= "2025-06-18":
        data = result["structuredContent"]
        assert (data["committed"], data["statements"][0]["rows"]) == (True, [["x"]])
    assert rows(db, "SELECT * FROM t WHERE a = 7") == [(7, "x")]


@pytest.mark.parametrize(
    ("query", "affected", "rowid", "tables"),
    [
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
    ],
)
async def test_what_a_statement_did_is_told_truly(
    tmp_path: Path, db: sqlite3.Connection, query: str, affected: int, rowid: int | None, tables: list[str]
) -> None:
    said = await effect(tmp_path / "data.db", query)
    assert (said["affected"], said.get("last_insert_rowid"), list(said.get("tables", ()))) == (
        affected,
        rowid,
        tables,
    )


async def test_a_rowid_beyond_what_json_holds_is_exact(tmp_path: Path, db: sqlite3.Connection) -> None:
    said = await effect(tmp_path / "data.db", "INSERT INTO t VALUES (9007199254740993, 'x')")
    assert said["last_insert_rowid"] == {"type": "integer", "value": "9007199254740993"}


async def test_the_rows_of_a_select_are_given(tmp_path: Path, db: sqlite3.Connection) -> None:
    async with inside("--allow-write", tmp_path / "data.db") as peer:
        data = await peer.data("write_query", query="SELECT a FROM t ORDER BY a", max_rows=1)
    said = data["statements"][0]
    assert (said["columns"], said["rows"], said["truncated"]) == (["a"], [[1]], True)


async def test_a_select_is_not_run_to_its_end_where_its_rows_are_cut(tmp_path: Path, db: sqlite3.Connection) -> None:
    endless = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT n FROM n"
    said = await effect(tmp_path / "data.db", endless)
    assert (len(said["rows"]), said["truncated"]) == (1_000, True)


async def test_returned_rows_are_cut_and_all_changes_made(tmp_path: Path, db: sqlite3.Connection) -> None:
    many = (
        "WITH RECURSIVE n(n) AS (SELECT 10 UNION ALL SELECT n + 1 FROM n LIMIT 2000) INSERT INTO t SELECT n, n FROM n"
    )
    said = await effect(tmp_path / "data.db", f"{many} RETURNING *")
    assert (said["affected"], len(said["rows"]), said["truncated"]) == (2_000, 1_000, True)
    assert rows(db, "SELECT count(*) FROM t") == [(2_002,)]


async def test_the_rows_of_several_statements_share_one_answer(tmp_path: Path, db: sqlite3.Connection) -> None:
    async with served("--allow-write", "--max-page", "5000", tmp_path / "data.db") as peer:
        selects = ["SELECT hex(zeroblob(600))"] * 20
        data = await peer.data("write_query", query=selects)
    shown = [len(one["rows"]) for one in data["statements"]]
    assert 0 < sum(shown) < 5
    assert ["truncated" in one for one in data["statements"]] == [not count for count in shown]


async def test_a_list_is_done_with_parameters_for_each(tmp_path: Path, db: sqlite3.Connection) -> None:
    async with inside("--allow-write", tmp_path / "data.db") as peer:
        queries = ["INSERT INTO t VALUES (?, ?)", "INSERT INTO keyed VALUES (:k, 2)", "DELETE FROM log"]
        data = await peer.data("write_query", query=queries, parameters=[[5, "five"], {"k": "key"}, []])
    assert [one["affected"] for one in data["statements"]] == [1, 1, 1]
    assert rows(db, "SELECT b, (SELECT k FROM keyed), (SELECT count(*) FROM log) FROM t WHERE a = 5") == [
        ("five", "key", 0)
    ]


@pytest.mark.parametrize("parameters", [[[1, "x"]], {"a": 1}, [[1, "x"], 2]])
async def test_parameters_of_a_list_that_do_not_fit_are_refused(
    tmp_path: Path, db: sqlite3.Connection, parameters: Any
) -> None:
    async with inside("--allow-write", tmp_path / "data.db") as peer:
        queries = ["INSERT INTO t VALUES (?, ?)", "DELETE FROM t"]
        error = await peer.error("write_query", query=queries, parameters=parameters)
    assert error.startswith("bad_parameters: ")
    assert rows(db, "SELECT count(*) FROM t") == [(2,)]


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
async def test_s13_where_one_statement_fails_nothing_is_changed(
    tmp_path: Path, db: sqlite3.Connection, last: str, code: str
) -> None:
    async with opened(tmp_path / "data.db", Limits(seconds=2)) as database:
        with pytest.raises(SqlError) as raised:
            await execute(database, "DELETE FROM t WHERE a = 2", last)
        assert rows(db, "SELECT a FROM t") == [(1,), (2,)]
        await execute(database, "DELETE FROM t WHERE a = 1")
    assert f"{raised.value.code}: {raised.value}".startswith(code)
    assert rows(db, "SELECT a FROM t") == [(2,)]


@pytest.mark.parametrize("size", [150_000, 49_500])
async def test_an_answer_that_would_be_too_large_is_told_before_the_commit(
    tmp_path: Path, db: sqlite3.Connection, size: int
) -> None:
    long = "x" * size  # it stands in both forms of the answer, which has some words more
    async with served("--allow-write", "--max-result", "100000", tmp_path / "data.db") as peer:
        await peer.data("write_query", query=f'CREATE TABLE "{long}" (a)')
        error = await peer.error("write_query", query=f'INSERT INTO "{long}" VALUES (1)')
    assert error.startswith("too_large: ")
    assert rows(db, f'SELECT count(*) FROM "{long}"') == [(0,)]


async def test_a_database_that_is_read_only_is_not_changed(tmp_path: Path, db: sqlite3.Connection) -> None:
    async with inside("--db", f"a={tmp_path}/data.db:ro", "--db", f"b={tmp_path}/data.db:rw") as peer:
        error = await peer.error("write_query", query="DELETE FROM t", database="a")
        await peer.data("write_query", query="DELETE FROM t WHERE a = 1", database="b")
    assert error.startswith("read_only: the database 'a' may only be read")
    assert rows(db, "SELECT a FROM t") == [(2,)]


# What is refused

TEMPORARY = "CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END"


@pytest.mark.parametrize(
    "query",
    [
        "ATTACH '{}/other.db' AS other",
        "DETACH main",
        "VACUUM",
        "VACUUM INTO '{}/other.db'",
        "PRAGMA writable_schema = ON",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA foreign_keys = OFF",
        "PRAGMA query_only = ON",
        "PRAGMA trusted_schema = ON",
        "PRAGMA user_version = 3",
        "PRAGMA wal_checkpoint",
        "PRAGMA optimize",
        "CREATE TEMP TABLE x (a)",
        "CREATE TABLE temp.x (a)",
        "CREATE TEMP VIEW x AS SELECT 1",
        TEMPORARY,
        "CREATE TRIGGER temp.x AFTER INSERT ON t BEGIN SELECT 1; END",
        "SELECT load_extension('x')",
        "CREATE TABLE x AS SELECT fts3_tokenizer('simple')",
        "CREATE VIRTUAL TABLE x USING dbstat",
        "CREATE VIRTUAL TABLE x USING csv(filename = '/etc/passwd')",
        "CREATE VIRTUAL TABLE temp.x USING fts5(a)",
        "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 2, '')",
        "UPDATE sqlite_schema SET sql = ''",
        "DELETE FROM sqlite_master",
        "BEGIN",
        "COMMIT",
        "END",
        "ROLLBACK",
        "SAVEPOINT x",
        "RELEASE x",
        "SELECT 1; DELETE FROM t",
        "\0DELETE FROM t",
        "/* SELECT */ ATTACH ':memory:' AS x",
        "\u00a0DELETE FROM t",
    ],
)
async def test_s4_s5_what_reaches_beyond_the_database_or_the_transaction_is_refused(
    tmp_path: Path, db: sqlite3.Connection, query: str
) -> None:
    before = list(db.iterdump())
    async with opened(tmp_path / "data.db") as database:
        with pytest.raises(SqlError) as raised:
            await execute(database, query.format(tmp_path))
    assert raised.value.code in ("refused", "bad_statement")
    assert list(db.iterdump()) == before
    assert rows(db, "PRAGMA journal_mode") == [("wal",)]
    assert {path.name for path in tmp_path.iterdir()} <= {"data.db", "data.db-wal", "data.db-shm"}


async def test_s4_a_trigger_and_a_view_can_do_no_more_than_a_statement(
    tmp_path: Path, db: sqlite3.Connection
) -> None:
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
    told = [(one["affected"], one["tables"], "schema_changed" in one) for one in data["statements"][2:4]]
    assert told == [(2, ("docs",), False), (1, ("docs",), False)]
    assert data["statements"][5]["rows"] == [("hello world",)]
    assert dropped["statements"][0]["schema_changed"]


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


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE new (a INTEGER PRIMARY KEY, b UNIQUE REFERENCES t)",
        " -- comment\n create  table IF NOT EXISTS new (a PRIMARY KEY) WITHOUT ROWID",
        "CREATE TABLE new AS SELECT * FROM t",
    ],
)
async def test_create_table_makes_a_table(tmp_path: Path, db: sqlite3.Connection, query: str) -> None:
    async with opened(tmp_path / "data.db") as database:
        done: Any = await execute(database, query, only_tables=True)
    assert (done["committed"], done["statements"][0]["schema_changed"]) == (True, True)
    assert rows(db, "SELECT count(*) FROM pragma_table_info('new')") != [(0,)]


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE t",
        "/* CREATE TABLE */ DELETE FROM t",
        "CREATE INDEX i ON t (b)",
        'CREATE INDEX "sqlite_autoindex_t_2" ON t (b)',
        "CREATE VIEW v AS SELECT 1",
        "CREATE VIRTUAL TABLE v USING fts5(a)",
        "ALTER TABLE t ADD COLUMN c",
        "SELECT 1",
        TEMPORARY,
    ],
)
async def test_create_table_does_nothing_else(tmp_path: Path, db: sqlite3.Connection, query: str) -> None:
    before = list(db.iterdump())
    async with opened(tmp_path / "data.db") as database:
        with pytest.raises(SqlError) as raised:
            await execute(database, query, only_tables=True)
    assert raised.value.code == "refused" or "reserved for internal use" in raised.value.quoted[0]
    assert list(db.iterdump()) == before


async def test_create_table_is_a_tool_of_its_own(tmp_path: Path, db: sqlite3.Connection) -> None:
    async with inside("--allow-write", tmp_path / "data.db") as peer:
        text = await peer.text("create_table", query="CREATE TABLE new (a)")
        error = await peer.error("create_table", query="DROP TABLE new")
    assert text.splitlines()[2] == "statement 1: 0 rows affected; the schema changed"
    assert error == "refused: the statement is not allowed: it does something else than CREATE TABLE"
