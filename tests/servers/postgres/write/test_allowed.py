"""The statements that a client may use to change a database."""

import pytest

from servers.common.sql.errors import SqlError
from servers.postgres.write.allowed import NO_MORE_DDL, AllowedDdl, check_change, check_table, parse_allowed

MAY = [
    "INSERT INTO t VALUES (1) RETURNING a",
    "  /* a */ -- b\n (WITH x AS (DELETE FROM t RETURNING 1) SELECT * FROM x)",
    "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
    "TABLE t",
    "TRUNCATE t CASCADE",
    "CALL p()",
    "EXPLAIN ANALYZE DELETE FROM t",
    "CREATE TEMP TABLE t (a integer) ON COMMIT DROP",
    'UPDATE t SET pg_settings = 1 WHERE "temp" = 2',
    "CREATE OR REPLACE RECURSIVE VIEW v (n) AS SELECT 1",
    "CREATE UNIQUE INDEX ON t (a)",
    "CREATE CONSTRAINT TRIGGER c AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
    "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
    "CREATE FUNCTION f() RETURNS integer LANGUAGE 'SQL' RETURN 1",
    "ALTER TABLE t ADD COLUMN owner text",
    "DROP MATERIALIZED VIEW v",
    "COMMENT ON COLUMN t.a IS 'x'",
    "SELECT setval('s', 1), nextval('s')",
    "SET CONSTRAINTS ALL DEFERRED",
    "SELECT 'pg_sleep(1)', 1 AS \"COPY\"",
]
REFUSED = [
    ("COMMIT", "one transaction"),
    ("(((ROLLBACK", "one transaction"),
    ("SAVEPOINT s", "one transaction"),
    ("PREPARE TRANSACTION 'x'", "nothing is kept"),
    ("COPY t FROM PROGRAM 'true'", "import_csv"),
    ("DO $$ BEGIN END $$", "Run the statements themselves"),
    ("SET ROLE postgres", "settings"),
    ("SET LOCAL search_path TO sales", "?search_path=NAME"),
    ("SET LOCAL TIME ZONE 'UTC'", "AT TIME ZONE"),
    ("SET statement_timeout = 0", "--timeout"),
    ("SET LOCAL session_replication_role = replica", "DEFERRED"),
    ("SET LOCAL work_mem = '1GB'", "ALTER ROLE"),
    ("IMPORT FOREIGN SCHEMA public FROM SERVER other INTO here", "foreign tables are up to the operator"),
    ("DISCARD ALL", "settings"),
    ("LISTEN x", "notifications"),
    ("EXECUTE p", "nothing is kept"),
    ("DECLARE c CURSOR FOR SELECT 1", "cursor"),
    ("VACUUM t", "maintenance"),
    ("LOAD 'x'", "maintenance"),
    ("GRANT ALL ON t TO PUBLIC", "--allow-ddl grants"),
    ("REVOKE SELECT (a) ON t FROM x", "--allow-ddl grants"),
    ("ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC", "--allow-ddl grants"),
    ("CREATE SCHEMA s CREATE TABLE t (a integer) GRANT ALL ON t TO PUBLIC", "--allow-ddl grants"),
    ("CREATE POLICY x ON t", "--allow-ddl policies"),
    ("ALTER TABLE t DISABLE ROW LEVEL SECURITY", "--allow-ddl policies"),
    ("COMMENT ON POLICY x ON t IS 'y'", "--allow-ddl policies"),
    ('CREATE EXTENSION IF NOT EXISTS "Vector"', "--allow-ddl extension=Vector"),
    ("DROP EXTENSION hstore", "--allow-ddl extension=hstore"),
    ("DROP ROLE x", "--allow-ddl roles"),
    ("CREATE USER x", "--allow-ddl roles"),
    ("REASSIGN OWNED BY a TO b", "rights"),
    ("SECURITY LABEL ON TABLE t IS 'x'", "rights"),
    ("LOCK t", "locks"),
    ("CREATE TEMP TABLE t (a integer)", "end with the call"),
    ("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1", "end with the call"),
    ("SELECT * INTO TEMP t FROM u", "end with the call"),
    ("UPDATE pg_settings SET setting = 1", "settings"),
    ('WITH x AS (SELECT 1) UPDATE ONLY pg_catalog."pg_settings" SET setting = 1', "settings"),
    ("selec 1", "statements of this kind"),
    ('"select" 1', "statements of this kind"),
]
OPERATORS = [
    "CREATE DATABASE x",
    "ALTER SYSTEM SET x = 1",
    "CREATE USER MAPPING FOR x SERVER y",
    "ALTER TABLESPACE x RENAME TO y",
    "CREATE SERVER x FOREIGN DATA WRAPPER y",
    "CREATE FOREIGN TABLE x (a integer) SERVER y",
    "DROP SUBSCRIPTION x",
    "CREATE PUBLICATION x",
    "CREATE EVENT TRIGGER x ON sql_drop EXECUTE FUNCTION f()",
    "DROP OWNED BY x",
    "CREATE OPERATOR + (FUNCTION = f)",
    "COMMENT ON DATABASE x IS 'y'",
]
"""Statements that affect more than the tables of a database."""
RIGHTS = [
    "ALTER TABLE t OWNER TO x",
    "GRANT x TO y",
    "REVOKE x FROM y CASCADE",
    "GRANT CONNECT ON DATABASE x TO y",
    "GRANT SET ON PARAMETER work_mem TO y",
    "ALTER FUNCTION f SECURITY DEFINER",
]
"""Statements that no option allows."""
EVERYTHING = AllowedDdl(True, True, frozenset({"vector", "hstore"}), True)
ALLOWED = [
    "CREATE POLICY x ON t USING (a = current_user)",
    "DROP POLICY x ON t",
    "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE t NO FORCE ROW LEVEL SECURITY",
    "GRANT SELECT (a, b), UPDATE ON TABLE t TO x WITH GRANT OPTION",
    "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA s GRANT SELECT ON TABLES TO x",
    "CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA s",
    'CREATE EXTENSION "vector"',
    "ALTER EXTENSION Vector UPDATE TO '2'",
    "DROP EXTENSION IF EXISTS hstore, vector CASCADE",
    "COMMENT ON EXTENSION hstore IS 'x'",
    "CREATE ROLE analyst",
    "CREATE USER analyst WITH LOGIN NOINHERIT PASSWORD 'x' VALID UNTIL '2030-01-01' CONNECTION LIMIT 5",
    "DROP ROLE IF EXISTS a, b",
    "COMMENT ON ROLE analyst IS 'x'",
]
"""Statements that run with every option."""
NOT_EVEN_SO = [
    ("CREATE EXTENSION dblink", "extension=dblink"),
    ("DROP EXTENSION hstore, dblink", "extension=dblink"),
    ("CREATE EXTENSION vector CASCADE", "does not name"),
    ("ALTER EXTENSION vector ADD TABLE t", "Use UPDATE"),
    ("CREATE POLICY x ON t USING (pg_sleep(1) IS NULL)", "pg_sleep()"),
    ("CREATE ROLE x SUPERUSER", "with SUPERUSER"),
    ("CREATE ROLE x WITH LOGIN BYPASSRLS", "with BYPASSRLS"),
    ("CREATE ROLE x IN ROLE pg_read_server_files", "with IN"),
    ("CREATE ROLE x ADMIN y", "with ADMIN"),
    ('CREATE ROLE x "superuser"', 'with "superuser"'),
    ("ALTER ROLE x PASSWORD 'y'", "not altered"),
    ("CREATE USER MAPPING FOR x SERVER y", "is up to the operator"),
]
ACTS = [
    "SELECT pg_sleep(1)",
    "INSERT INTO t SELECT dblink('a', 'b')",
    "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_catalog.pg_sleep (1); END $$",
    "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'SELECT \"lo_import\"(''x'')'",
]
"""Functions that act outside the transaction, also nested ones."""
LANGUAGES = ["plpython3u", '"C"', "'internal'"]


def why_refused(sql: str, allowed: AllowedDdl = NO_MORE_DDL) -> str:
    with pytest.raises(SqlError) as caught:
        check_change(sql, allowed)
    assert caught.value.code == "refused"
    return str(caught.value)


def test_changes_of_data_and_schema_are_allowed() -> None:
    assert all(check_change(sql) for sql in MAY)


def test_other_statements_are_refused_with_the_reason() -> None:
    made = [f"CREATE FUNCTION f() RETURNS integer LANGUAGE {language} AS 'x'" for language in LANGUAGES]
    reasons = [
        *REFUSED,
        *((sql, "is up to the operator") for sql in OPERATORS),
        *((sql, "The operator can run it with psql") for sql in RIGHTS),
        *((sql, "SQL and PL/pgSQL") for sql in made),
        *((sql, "()") for sql in ACTS),
        # A name with escapes could be the name of a function.
        ('SELECT U&"pg\\005fsleep"(1)', "U&"),
    ]
    assert [(sql, reason) for sql, reason in reasons if reason not in why_refused(sql)] == []


def test_allow_ddl_allows_only_its_statements() -> None:
    assert all(check_change(sql, EVERYTHING) for sql in ALLOWED)
    refused = [*NOT_EVEN_SO, *((sql, "The operator can run it with psql") for sql in RIGHTS)]
    assert [(sql, reason) for sql, reason in refused if reason not in why_refused(sql, EVERYTHING)] == []


def test_allow_ddl_accepts_known_words_only() -> None:
    assert parse_allowed(["policies", "grants", "roles", "extension=hstore", "extension=vector"]) == EVERYTHING
    for odd, reason in (("rights", "not one of policies"), ("extension=", "no name")):
        with pytest.raises(ValueError, match=reason):
            parse_allowed([odd])


def test_create_table_runs_only_permanent_create_table() -> None:
    for sql in ("CREATE TABLE t (a integer)", "CREATE UNLOGGED TABLE t AS SELECT 1"):
        check_table(check_change(sql))
    for sql in ("CREATE TEMP TABLE t ()", "CREATE VIEW v AS SELECT 1", "SELECT 1", "DROP TABLE t"):
        with pytest.raises(SqlError) as caught:
            check_table(check_change(sql))
        assert caught.value.code == "refused"
