"""What statements may do, on real databases opened as the server opens them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from servers.sqlite.engine.limits import Limits
from servers.sqlite.engine.opening import Mode, OpenOptions, open_database
from servers.sqlite.engine.policy import Policy

READS = [
    "SELECT * FROM numbers",
    "WITH some AS (SELECT n FROM numbers) SELECT count(*) FROM some",
    "VALUES (1), (2)",
    "EXPLAIN SELECT 1",
    "EXPLAIN QUERY PLAN SELECT * FROM numbers",
    "PRAGMA table_info(numbers)",
    "PRAGMA user_version",
    "PRAGMA Table_Info(numbers)",
    "SELECT name FROM pragma_table_info('numbers')",
    "SELECT value FROM json_each('[1, 2]')",
    "SELECT * FROM words WHERE words MATCH 'one'",
    "SELECT * FROM names",
    "/* a comment */ SELECT 1",
    "\ufeffSELECT 1",
]
CHANGES = [
    "INSERT INTO numbers VALUES (-1, 'x')",
    "UPDATE numbers SET name = 'x'",
    "DELETE FROM numbers",
    "REPLACE INTO numbers VALUES (1, 'x')",
    "WITH some AS (SELECT 1) DELETE FROM numbers",
    "/* a comment */ DELETE FROM numbers",
    "EXPLAIN DELETE FROM numbers",
    "INSERT INTO words VALUES ('two')",
    "CREATE TABLE t (a)",
    "CREATE TABLE copied AS SELECT * FROM numbers",
    "CREATE VIEW v AS SELECT 1",
    "CREATE INDEX i ON numbers (name)",
    "CREATE TRIGGER g AFTER INSERT ON numbers BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE more USING fts5 (a)",
    "CREATE VIRTUAL TABLE more USING FTS5 (a)",
    "ALTER TABLE numbers RENAME TO others",
    "ALTER TABLE numbers ADD COLUMN more",
    "DROP TABLE numbers",
    "DROP VIEW names",
    "REINDEX",
    "ANALYZE",
]
NEVER = [
    "ATTACH 'other.db' AS other",
    "ATTACH ':memory:' AS other",
    "DETACH main",
    "VACUUM",
    "VACUUM INTO 'other.db'",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s",
    "RELEASE s",
    "PRAGMA writable_schema = ON",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA query_only = OFF",
    "PRAGMA user_version = 1",
    "PRAGMA trusted_schema = ON",
    "PRAGMA hard_heap_limit = 0",
    "PRAGMA temp_store_directory = '/'",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA database_list",
    "PRAGMA optimize",
    "SELECT * FROM pragma_database_list",
    "SELECT load_extension('x')",
    "SELECT Load_Extension('x')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT * FROM dbstat",
    "SELECT * FROM sqlite_stmt",
    "CREATE TEMP TABLE t (a)",
    "CREATE TEMP VIEW v AS SELECT 1",
    "CREATE TEMP TRIGGER g AFTER INSERT ON numbers BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE statistics USING dbstat",
    "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 0, '')",
    "UPDATE sqlite_schema SET sql = ''",
    "DELETE FROM sqlite_schema",
]


@pytest.fixture
def full(file: Path) -> Path:
    """A database that also has a view and a full-text index."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE VIEW names AS SELECT name FROM numbers")
        connection.execute("CREATE VIRTUAL TABLE words USING fts5 (word)")
        connection.execute("INSERT INTO words VALUES ('one')")
    return file


def opened(path: Path, mode: Mode) -> Iterator[tuple[sqlite3.Connection, Policy]]:
    connection = open_database(OpenOptions(path, mode, Limits()), lambda: False)
    with closing(connection):
        yield connection, connection.policy


@pytest.fixture
def reader(full: Path) -> Iterator[tuple[sqlite3.Connection, Policy]]:
    yield from opened(full, "ro")


@pytest.fixture
def writer(full: Path) -> Iterator[tuple[sqlite3.Connection, Policy]]:
    yield from opened(full, "rw")


@pytest.mark.parametrize("statement", READS)
def test_a_reader_may(reader: tuple[sqlite3.Connection, Policy], statement: str) -> None:
    reader[0].execute(statement).fetchall()
    assert reader[1].refused is None


@pytest.mark.parametrize("statement", CHANGES + NEVER)
def test_a_reader_may_not(reader: tuple[sqlite3.Connection, Policy], full: Path, statement: str) -> None:
    before = full.read_bytes()
    with pytest.raises(sqlite3.Error):
        reader[0].execute(statement).fetchall()
    assert full.read_bytes() == before


@pytest.mark.parametrize("statement", READS + CHANGES)
def test_a_writer_may(writer: tuple[sqlite3.Connection, Policy], statement: str) -> None:
    writer[0].execute(statement).fetchall()
    assert writer[1].refused is None


@pytest.mark.parametrize("statement", NEVER)
def test_a_writer_may_not(writer: tuple[sqlite3.Connection, Policy], statement: str) -> None:
    with pytest.raises(sqlite3.Error):
        writer[0].execute(statement).fetchall()


def test_a_table_that_is_called_like_a_closed_module_can_be_read(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE DBSTAT (a)")
    for connection, _ in opened(file, "ro"):
        assert connection.execute("SELECT * FROM dbstat").fetchall() == []


def test_it_knows_the_tables_that_a_statement_changes(writer: tuple[sqlite3.Connection, Policy]) -> None:
    connection, policy = writer
    connection.execute("CREATE TABLE log (name)")
    connection.execute("CREATE TRIGGER g AFTER INSERT ON numbers BEGIN INSERT INTO log VALUES (new.name); END")
    policy.forget()
    connection.execute("INSERT INTO numbers VALUES (-1, 'x')")
    assert policy.changed == {"numbers", "log"}
    assert not policy.defines


def test_what_sqlite_notes_for_itself_is_no_change_of_a_table(writer: tuple[sqlite3.Connection, Policy]) -> None:
    connection, policy = writer
    connection.execute("CREATE TABLE counted (n INTEGER PRIMARY KEY AUTOINCREMENT)")
    policy.forget()
    connection.execute("INSERT INTO counted DEFAULT VALUES")
    connection.execute("DELETE FROM sqlite_sequence")
    assert policy.changed == {"counted"}


@pytest.fixture
def in_capitals(file: Path) -> Path:
    """A database of names and words of SQL that are written large."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE VIRTUAL TABLE PAGES USING DBSTAT")
        connection.execute("CREATE VIRTUAL TABLE WORDS USING FTS5 (WORD)")
        connection.execute("CREATE TABLE SLOW (A, B AS (INSTR(A, 'x')))")
    return file


@pytest.mark.parametrize("table", ["PAGES", "pages", "Pages"])
def test_a_closed_virtual_table_is_closed_in_any_case(in_capitals: Path, table: str) -> None:
    for connection, policy in opened(in_capitals, "ro"):
        with pytest.raises(sqlite3.DatabaseError):
            connection.execute(f"SELECT * FROM {table}")
        assert policy.refused == "it reads a virtual table that is not on the list"


def test_an_open_virtual_table_is_open_in_any_case(in_capitals: Path) -> None:
    for connection, _ in opened(in_capitals, "ro"):
        assert connection.execute("SELECT * FROM words").fetchall() == []


def test_what_cant_be_interrupted_is_known_in_any_case(in_capitals: Path) -> None:
    for connection, policy in opened(in_capitals, "ro"):
        with pytest.raises(sqlite3.DatabaseError):
            connection.execute("SELECT b FROM slow")
        assert policy.uninterruptible
