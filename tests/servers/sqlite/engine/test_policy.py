"""The policy for statements, on databases opened as the server opens them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from servers.sqlite.engine.deadline import Limits
from servers.sqlite.engine.opening import Mode, OpenOptions, open_database
from servers.sqlite.engine.policy import Policy, find_module
from tests.servers.sqlite.attacks import CHANGES, EXTRA, NEVER, READS
from tests.servers.sqlite.schemas import made

Opened = tuple[sqlite3.Connection, Policy]


@contextmanager
def opened(path: Path, mode: Mode) -> Iterator[Opened]:
    with closing(open_database(OpenOptions(path, mode, Limits()), lambda: False)) as connection:
        yield connection, connection.policy


@pytest.fixture
def writer(file: Path) -> Iterator[Opened]:
    with opened(made(file, EXTRA), "rw") as held:
        yield held


def is_allowed(connection: sqlite3.Connection, statement: str, folder: Path) -> bool:
    """Returns True if the statement runs."""
    try:
        connection.execute(statement.format(folder=folder)).fetchall()
    except (sqlite3.Error, sqlite3.Warning):
        return False
    return True


def test_a_writer_changes_only_its_database(file: Path, tmp_path: Path) -> None:
    untouched, path = made(file, EXTRA).read_bytes(), tmp_path / "copy.db"

    def is_done(statement: str) -> bool:
        path.write_bytes(untouched)
        with opened(path, "rw") as (connection, policy):
            return is_allowed(connection, statement, tmp_path) and policy.refusal is None

    assert [one for one in (*READS, *CHANGES) if not is_done(one)] == []
    assert [one for one in NEVER if is_done(one)] == []


def test_a_table_named_like_a_forbidden_module_can_be_read(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE DBSTAT (a)")
    with opened(file, "ro") as (connection, _):
        assert connection.execute("SELECT * FROM dbstat").fetchall() == []


def test_the_policy_records_the_changed_tables(writer: Opened) -> None:
    connection, policy = writer
    connection.execute("CREATE TABLE log (name)")
    connection.execute("CREATE TRIGGER g AFTER INSERT ON numbers BEGIN INSERT INTO log VALUES (new.name); END")
    policy.reset()
    connection.execute("INSERT INTO numbers VALUES (-1, 'x')")
    assert policy.changed == {"numbers", "log"}
    assert not policy.changes_schema


def test_changes_to_internal_tables_are_not_recorded(writer: Opened) -> None:
    connection, policy = writer
    connection.execute("CREATE TABLE counted (n INTEGER PRIMARY KEY AUTOINCREMENT)")
    policy.reset()
    connection.execute("INSERT INTO counted DEFAULT VALUES")
    connection.execute("DELETE FROM sqlite_sequence")
    assert policy.changed == {"counted"}


@pytest.fixture
def capitals_database(file: Path) -> Path:
    """A database whose schema is written in capitals."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE VIRTUAL TABLE PAGES USING DBSTAT")
        connection.execute("CREATE VIRTUAL TABLE WORDS USING FTS5 (WORD)")
        connection.execute("CREATE TABLE SLOW (A, B AS (INSTR(A, 'x')))")
    return file


def test_virtual_table_modules_are_matched_case_insensitively(capitals_database: Path) -> None:
    for table in ("PAGES", "pages", "Pages"):
        with opened(capitals_database, "ro") as (connection, policy):
            with pytest.raises(sqlite3.DatabaseError):
                connection.execute(f"SELECT * FROM {table}")
            assert policy.refusal == "it reads a virtual table that is not allowed"
    with opened(capitals_database, "ro") as (connection, _):
        assert connection.execute("SELECT * FROM words").fetchall() == []


@pytest.mark.parametrize(
    ("rest", "module"),
    [
        ('"a ""b"USING fts5(x)', "fts5"),
        ("[a b] using[FTS4](x)", "fts4"),
        ("a -- USING csv\n  USING /* csv */ 'fts5'(x)", "fts5"),
        ("a /* USING fts5 */ USING csv /**/ USING fts5", "csv"),
        ('"a"" USING fts5("USING/***/csv', "csv"),
        ("a /* USING fts5", ""),
    ],
)
def test_the_module_of_a_virtual_table_is_found(rest: str, module: str) -> None:
    assert find_module(f"CREATE VIRTUAL TABLE {rest}") == module


def test_uninterruptible_functions_are_matched_case_insensitively(capitals_database: Path) -> None:
    with opened(capitals_database, "ro") as (connection, policy):
        with pytest.raises(sqlite3.DatabaseError):
            connection.execute("SELECT b FROM slow")
        assert policy.uninterruptible


def test_a_module_may_declare_its_table_on_a_read_only_connection(file: Path) -> None:
    with opened(file, "ro") as (connection, policy):
        # SQLite reports this for the declaration of a virtual table with a primary key.
        assert policy(sqlite3.SQLITE_INSERT, "sqlite_master", None, "main", None) == sqlite3.SQLITE_OK
        assert policy(sqlite3.SQLITE_INSERT, "numbers", None, "main", None) == sqlite3.SQLITE_DENY
        for statement in (
            "INSERT INTO sqlite_master (name) VALUES ('x')",
            "CREATE TABLE x (a)",
            "CREATE INDEX x ON numbers (n)",
        ):
            with pytest.raises(sqlite3.Error):
                connection.execute(statement)
