"""Declared types of columns, parameters, and splitting of scripts."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from servers.sqlite.engine.deadline import Limits, StatementDeadline
from servers.sqlite.engine.opening import OpenOptions, open_database
from servers.sqlite.engine.sql import find_declared_types, find_first_word, find_parameters, split_statements

TYPES: dict[str, list[str | None] | None] = {
    "SELECT n, name FROM numbers": ["INTEGER", "VARCHAR(20)"],
    "SELECT name AS n, n + 1 FROM numbers WHERE n > ? AND name <> :name": ["VARCHAR(20)", None],
    "SELECT '?', \":a\", [@b], n FROM (SELECT 1 AS ':a', 2 AS '@b', n FROM numbers) -- ?": None,
    "SELECT n FROM numbers WHERE n = ?1 OR n = $a -- an end without a line": ["INTEGER"],
    "VALUES (1)": [None],
    "PRAGMA table_info(numbers)": [],
    "EXPLAIN SELECT 1": [],
    "SELECT 1; DROP TABLE numbers": [],
    "DELETE FROM numbers": [],
    "SELECT * FROM nowhere": [],
}


def test_declared_types_are_those_of_the_tables(file: Path) -> None:
    with closing(open_database(OpenOptions(file, "views", Limits()), lambda: False)) as connection:
        for query, types in TYPES.items():
            declared = find_declared_types(query, connection, StatementDeadline(1, 1))
            assert declared == types if types is not None else declared[-1] == "INTEGER"
            assert connection.execute("SELECT count(*) FROM sqlite_temp_schema").fetchone() == (0,)


def test_declared_types_follow_a_schema_change_by_another_process(file: Path) -> None:
    connection = open_database(OpenOptions(file, "views", Limits()), lambda: False)
    with closing(connection), closing(sqlite3.connect(file)) as other:
        for kind in ("TEXT", "VARCHAR(30)"):
            with other:
                other.execute("DROP TABLE IF EXISTS t")
                other.execute(f"CREATE TABLE t (a {kind})")
            assert find_declared_types("SELECT a FROM t", connection, StatementDeadline(1, 1)) == [kind]


def test_a_locked_database_has_no_declared_types(tmp_path: Path) -> None:
    file = tmp_path / "locked.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("CREATE TABLE t (a TEXT)")
        with closing(open_database(OpenOptions(file, "views", Limits()), lambda: False)) as connection:
            other.execute("BEGIN EXCLUSIVE")
            assert find_declared_types("SELECT a FROM t", connection, StatementDeadline(1, 0)) == []


def test_the_connection_for_views_changes_no_database(file: Path) -> None:
    before = file.read_bytes()
    connection = open_database(OpenOptions(file, "views", Limits()), lambda: False)
    with closing(connection):
        for statement in ("DELETE FROM numbers", "CREATE TABLE t (a)", "CREATE TEMP TABLE t (a)"):
            with pytest.raises(sqlite3.Error):
                connection.execute(statement)
    assert file.read_bytes() == before


def test_parameters_in_texts_names_and_comments_are_ignored() -> None:
    query = "SELECT :a, ':b', \":c\", [:d], `:e`, ?, ?2, @f, $g /* :h */ FROM t -- :i"
    assert find_parameters(query) == [":a", "?", "?2", "@f", "$g"]


FIRST_WORDS = {
    "vacuum": "VACUUM",
    "/* a */ -- b\n ;Vacuum INTO 'x'": "VACUUM",
    "VALUES(1)": "VALUES",
    "(SELECT 1)": "",
    "-- VACUUM": "",
    "/* VACUUM": "",
    "": "",
}


def test_the_first_word_is_the_one_after_comments() -> None:
    assert {statement: find_first_word(statement) for statement in FIRST_WORDS} == FIRST_WORDS


TRIGGER = "CREATE TEMP TRIGGER a AFTER INSERT ON t BEGIN SELECT CASE 1 WHEN 1 THEN 2 END; DELETE FROM u; END"
SCRIPTS = {
    "": [],
    " ; -- a\n;": [],
    "SELECT 1": ["SELECT 1"],
    "SELECT 1; ;\nSELECT 2 ; -- b; c": ["SELECT 1", "SELECT 2"],
    "SELECT ';', \";\", `;`, [;] /* ; */; SELECT 2": ["SELECT ';', \";\", `;`, [;] /* ; */", "SELECT 2"],
    f"{TRIGGER}; SELECT 3": [TRIGGER, "SELECT 3"],
    f"EXPLAIN {TRIGGER};SELECT 3": [f"EXPLAIN {TRIGGER}", "SELECT 3"],
    "BEGIN; SELECT 1; END; +": ["BEGIN", "SELECT 1", "END", "+"],
    "SELECT 'a; SELECT 2": ["SELECT 'a; SELECT 2"],
}


def test_a_script_is_split_as_sqlite_does() -> None:
    assert {script: split_statements(script) for script in SCRIPTS} == SCRIPTS


@pytest.mark.parametrize("piece", ["[", "'", '"', "`", "/*", "a;", "--"])
def test_a_long_script_is_split_in_linear_time(piece: str) -> None:
    began = time.thread_time()
    split_statements(piece * 100_000)
    assert time.thread_time() - began < 2
