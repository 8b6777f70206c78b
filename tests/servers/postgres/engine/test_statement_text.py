"""The text of statements: split as PostgreSQL does, and refused if it acts outside the transaction."""

import time
from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.common.sql.errors import SqlError
from servers.postgres.engine.statement_text import (
    Statement,
    bind_named,
    check_reads,
    find_kind,
    find_name,
    find_parameters,
    split_statements,
)
from tests.postgres_server import PostgresServer

READS = [
    "SELECT 1",
    "  -- a comment\n /* and /* another */ */ ((select 1))",
    "with a as (select 1) select * from a;",
    "VALUES (1), (2) ; -- the end",
    "table pg_class",
    "EXPLAIN SELECT 1",
    "show all",
    "SELECT 'pg_sleep(1)', $$pg_sleep(1)$$, E'\\'pg_sleep(1)'",
    "SELECT pg_sleep FROM (SELECT 1 AS pg_sleep) AS a",
    'SELECT 1 AS "lo_get" -- pg_sleep(1)',
    "EXPLAIN (ANALYZE, VERBOSE on) (SELECT 1 AS into)",
    "WITH http_log(n) AS (VALUES (1)) TABLE http_log",
    "WITH update AS (SELECT 1), delete(n) AS (SELECT 2) SELECT max(n) delete FROM update, delete",
    "SELECT max(update), (delete) FROM (SELECT 1 AS update, 2 AS delete) AS a",
    "SELECT * FROM rights WHERE (update AND insert) OR (delete IS NULL)",
]
REFUSED = [
    "INSERT INTO t VALUES (1)",
    "/* SELECT */ DELETE FROM t",
    "DO $$ BEGIN END $$",
    "COPY t TO PROGRAM 'true'",
    "CALL p()",
    "SET role = 'postgres'",
    "BEGIN",
    "COMMIT",
    "LISTEN x",
    "PREPARE p AS SELECT 1",
    "SELECT pg_sleep(1)",
    "SELECT PG_SLEEP (1)",
    "SELECT pg_catalog . pg_sleep /* x */ -- y\n (1)",
    'SELECT "pg_sleep"(1)',
    'SELECT U&"pg\\005fsleep"(1)',
    "SELECT * FROM pg_read_file('/etc/passwd')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT dblink_exec('host=elsewhere', 'x')",
    "SELECT * FROM http_get('http://elsewhere/')",
    "SELECT set_config('role', 'postgres', true)",
    "SELECT query_to_xml('SELECT 1', true, true, '')",
    "EXPLAIN ANALYZE SELECT pg_advisory_lock(1)",
    "SELECT E'a'\n'\\'', pg_sleep(1), ''",
    "SELECT 'a' \n '\\', pg_sleep(1), ''",
    "SELECT 1 AS a$b$, pg_sleep(1), 1 AS c$b$",
    "SELECT 1--pg\n, pg_sleep(1)",
    "SELECT 1 */**/ 2, pg_sleep(1)",
    "SELECT\u00a0pg_sleep(1)",
    "'SELECT'",
    "WITH a AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM a",
    "WITH a AS NOT MATERIALIZED (update /* x */ t SET a = 1) SELECT 1",
    "WITH a AS (SELECT 1), update AS (SELECT 2) DELETE FROM t",
    "EXPLAIN ANALYZE WITH a(n) AS (SELECT 1) update t SET n = 2",
    "SELECT 1 INTO t",
    "EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1",
    "EXPLAIN (ANALYZE, FORMAT json) INSERT INTO t SELECT 1",
    "EXPLAIN ANALYZE EXECUTE p",
]


def get_refusal_code(sql: str) -> str:
    """Returns the code of the refusal of a statement, or an empty text if it may run."""
    try:
        check_reads(sql)
    except SqlError as error:
        return error.code
    return ""


def test_only_single_reading_statements_may_run() -> None:
    none = ["SELECT 1; SELECT 2", "SELECT 1;;x", "", " ; ", "SELECT 'a", 'SELECT "a', "/* a", "$$a"]
    expected = dict.fromkeys(READS, "") | dict.fromkeys(REFUSED, "refused") | dict.fromkeys(none, "bad_statement")
    assert {sql: get_refusal_code(sql) for sql in expected} == expected


def test_the_body_omits_trailing_semicolons_and_comments() -> None:
    for sql in ("SELECT 1 ;; -- a\n/* b */", "SELECT 1 /* c */", "SELECT 1--"):
        assert Statement(sql).body == "SELECT 1"


def test_named_parameters_become_numbered() -> None:
    sql = "SELECT :a, ':b', b::text, :a, :c_1 -- :d"
    assert find_parameters(sql) == [":a", ":c_1"]
    assert bind_named(sql, {"c_1": 2, "a": 1}) == ("SELECT $1, ':b', b::text, $1, $2 -- :d", [1, 2])


def test_the_colon_of_an_array_slice_begins_no_parameter() -> None:
    sql = 'SELECT a[1:size], a[low:f(2)][(1):"b"], a[:n], ARRAY[1,:m] WHERE :o'
    assert find_parameters(sql) == [":n", ":m", ":o"]
    assert bind_named("SELECT a[1:size], :n", {"n": 1}) == ("SELECT a[1:size], $1", [1])


def test_find_name_returns_the_name_at_a_position() -> None:
    names = {
        "SELECT ^Absent FROM t": "absent",
        'SELECT * FROM ^shop."My ""table" AS a': 'My "table',
        "SELECT ^t.a, b": "a",
        "SELECT ^absent(1)": "absent",
        "SELECT 1 ^+ 'x'": None,
        "SELECT a^": None,
    }
    assert {sql: find_name(sql.replace("^", ""), sql.index("^")) for sql in names} == names


def test_missing_and_unknown_named_parameters_are_errors() -> None:
    for values in ({}, {"a": 1, "b": 2}):
        with pytest.raises(SqlError) as caught:
            bind_named("SELECT :a", values)
        assert caught.value.code == "bad_parameters"


def test_the_kind_of_a_statement_is_its_first_word() -> None:
    kinds = {"((select 1)": "SELECT", "-- x\nupdate t": "UPDATE", "'a": "OTHER", "": "OTHER", "foo": "OTHER"}
    assert {sql: find_kind(sql) for sql in kinds} == kinds


PARTS = ["(", "'", "''", "/*", "/**/", "$a$", "$$", '"', '""', "E'\\", "E'a'\n", "--", "-", "--\n"]
PARTS += ["a.", "1e", ":a", "U&", "\n", "é", "$1"]


@pytest.mark.parametrize("length", [20_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_a_long_text_takes_linear_time(length: int) -> None:
    """The limit is ten times the CPU time of the longest text; quadratic time would take minutes."""
    for part in PARTS:
        text = (part * length)[:length]
        began = time.process_time()
        with pytest.raises(SqlError):
            check_reads("(" + text[:-1])
        assert time.process_time() - began < length / 40_000, part


@pytest.mark.slow
@given(st.lists(st.sampled_from([*PARTS, "a", "1", " ", "\\", "E", "''", "*/", "+", "@"]), max_size=12).map("".join))
def test_string_literals_end_as_in_postgresql(cluster: psycopg.Connection[tuple[str]], text: str) -> None:
    try:
        statement = Statement(f"SELECT {text}\n, '|pg_sleep|'")
    except SqlError:
        return
    strings = [statement.text(token) for token in statement.tokens if token.kind == "string"]
    with cluster.transaction(force_rollback=True):
        try:
            row = cluster.execute(statement.body.encode()).fetchone()
        except psycopg.Error:
            return
    assert row is not None
    assert (strings[-1] == "'|pg_sleep|'") == (row[-1] == "|pg_sleep|")


@pytest.fixture(scope="module")
def cluster(postgres: PostgresServer) -> Iterator[psycopg.Connection[tuple[str]]]:
    with postgres.connect() as connection:
        connection.execute("SET statement_timeout = 1000")
        yield connection


ATOMIC = "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 2 END; END"


def test_a_script_is_split_as_psql_does() -> None:
    assert {script: split_statements(script) for script in SCRIPTS} == SCRIPTS


SCRIPTS = {
    "": [],
    " ; -- a\n;": [],
    "SELECT 1": ["SELECT 1"],
    "SELECT 1; ;\nSELECT 2 ; -- b; c": ["SELECT 1", "SELECT 2"],
    "SELECT ';', $a$;$a$, \";\" /* ; /* ; */ */; SELECT 2": ["SELECT ';', $a$;$a$, \";\"", "SELECT 2"],
    "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2); SELECT 3": [
        "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2)",
        "SELECT 3",
    ],
    f"{ATOMIC}; SELECT 3": [ATOMIC, "SELECT 3"],
    "BEGIN; SELECT 1; END": ["BEGIN", "SELECT 1", "END"],
}
