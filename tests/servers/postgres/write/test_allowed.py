"""Which statements a client may change a database with."""

import pytest

from servers.postgres.write.allowed import check_change, check_table
from servers.sql.errors import SqlError


def why_refused(sql: str) -> str:
    with pytest.raises(SqlError) as caught:
        check_change(sql)
    assert caught.value.code == "refused"
    return str(caught.value)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1) RETURNING a",
        "  /* a */ -- b\n (WITH x AS (DELETE FROM t RETURNING 1) SELECT * FROM x)",
        "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
        "TABLE t",
        "TRUNCATE t CASCADE",
        "CALL p()",
        "EXPLAIN ANALYZE DELETE FROM t",
        "CREATE TEMP TABLE t (a integer)",
        "CREATE OR REPLACE RECURSIVE VIEW v (n) AS SELECT 1",
        "CREATE UNIQUE INDEX ON t (a)",
        "CREATE CONSTRAINT TRIGGER c AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
        "CREATE FUNCTION f() RETURNS integer LANGUAGE 'SQL' RETURN 1",
        "ALTER TABLE t ADD COLUMN owner text",
        "DROP MATERIALIZED VIEW v",
        "COMMENT ON COLUMN t.a IS 'x'",
        "SELECT setval('s', 1), nextval('s')",
        "SELECT 'pg_sleep(1)', 1 AS \"COPY\"",
    ],
)
def test_data_and_the_schema_may_be_changed(sql: str) -> None:
    assert check_change(sql)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("COMMIT", "one transaction"),
        ("(((ROLLBACK", "one transaction"),
        ("SAVEPOINT s", "one transaction"),
        ("PREPARE TRANSACTION 'x'", "nothing is kept"),
        ("COPY t FROM PROGRAM 'true'", "import_csv"),
        ("DO $$ BEGIN END $$", "Run the statements themselves"),
        ("SET ROLE postgres", "settings"),
        ("DISCARD ALL", "settings"),
        ("LISTEN x", "notifications"),
        ("EXECUTE p", "nothing is kept"),
        ("DECLARE c CURSOR FOR SELECT 1", "cursor"),
        ("VACUUM t", "upkeep"),
        ("LOAD 'x'", "upkeep"),
        ("GRANT ALL ON t TO PUBLIC", "rights"),
        ("REASSIGN OWNED BY a TO b", "rights"),
        ("SECURITY LABEL ON TABLE t IS 'x'", "rights"),
        ("LOCK t", "locks"),
        ("selec 1", "none of those"),
        ('"select" 1', "none of those"),
    ],
)
def test_other_statements_are_refused_with_the_reason(sql: str, reason: str) -> None:
    assert reason in why_refused(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE DATABASE x",
        "ALTER SYSTEM SET x = 1",
        "DROP ROLE x",
        "CREATE USER x",
        "ALTER TABLESPACE x RENAME TO y",
        "CREATE EXTENSION dblink",
        "CREATE SERVER x FOREIGN DATA WRAPPER y",
        "CREATE FOREIGN TABLE x (a integer) SERVER y",
        "DROP SUBSCRIPTION x",
        "CREATE PUBLICATION x",
        "CREATE EVENT TRIGGER x ON sql_drop EXECUTE FUNCTION f()",
        "CREATE POLICY x ON t",
        "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC",
        "DROP OWNED BY x",
        "CREATE OPERATOR + (FUNCTION = f)",
        "COMMENT ON DATABASE x IS 'y'",
    ],
)
def test_what_is_more_than_tables_of_one_database_is_the_operators(sql: str) -> None:
    assert "is the operator's" in why_refused(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t OWNER TO x",
        "ALTER TABLE t DISABLE ROW LEVEL SECURITY",
        "CREATE SCHEMA s CREATE TABLE t (a integer) GRANT ALL ON t TO PUBLIC",
        "ALTER FUNCTION f SECURITY DEFINER",
    ],
)
def test_rights_are_not_changed_by_a_definition(sql: str) -> None:
    assert "rights are the operator's" in why_refused(sql)


@pytest.mark.parametrize("language", ["plpython3u", '"C"', "'internal'"])
def test_functions_are_made_in_sql_and_plpgsql_only(language: str) -> None:
    assert "SQL and PL/pgSQL" in why_refused(f"CREATE FUNCTION f() RETURNS integer LANGUAGE {language} AS 'x'")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT pg_sleep(1)",
        "INSERT INTO t SELECT dblink('a', 'b')",
        "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_catalog.pg_sleep (1); END $$",
        "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'SELECT \"lo_import\"(''x'')'",
    ],
)
def test_functions_that_act_beside_a_transaction_are_refused_also_within_others(sql: str) -> None:
    assert "()" in why_refused(sql)


def test_names_with_escapes_are_refused_for_they_could_be_those_of_functions() -> None:
    assert "U&" in why_refused('SELECT U&"pg\\005fsleep"(1)')


@pytest.mark.parametrize("sql", ["CREATE TABLE t (a integer)", "CREATE UNLOGGED TABLE t AS SELECT 1"])
def test_a_table_that_stays_may_be_made(sql: str) -> None:
    check_table(check_change(sql))


@pytest.mark.parametrize("sql", ["CREATE TEMP TABLE t ()", "CREATE VIEW v AS SELECT 1", "SELECT 1", "DROP TABLE t"])
def test_anything_else_is_no_create_table(sql: str) -> None:
    with pytest.raises(SqlError) as caught:
        check_table(check_change(sql))
    assert caught.value.code == "refused"
