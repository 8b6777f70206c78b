"""The schema as SQL: run in an empty database, it gives the same pg_dump as the original."""

import difflib
import subprocess

import pytest

from servers.postgres.schema.script import read_schema
from tests.postgres_server import require_postgres
from tests.servers.postgres.asking import asking
from tests.servers.postgres.databases import Database

ODD = """
CREATE TYPE span_of_reals AS RANGE (SUBTYPE = double precision);
CREATE DOMAIN code AS text COLLATE "C" DEFAULT 'x' NOT NULL CHECK (VALUE <> '') CHECK (length(VALUE) < 9);
CREATE SEQUENCE ticket START 5 INCREMENT 5 MAXVALUE 100 CYCLE;
CREATE UNLOGGED TABLE scratch (id integer DEFAULT nextval('ticket'), c code, r span_of_reals, t text COLLATE "C");
CREATE FUNCTION double(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2';
CREATE TABLE doubled (n integer, twice integer DEFAULT double(2), CHECK (double(n) > 0) NO INHERIT)
  WITH (fillfactor=70);
CREATE FUNCTION words_of(doubled) RETURNS text LANGUAGE sql AS 'SELECT $1.n::text';
CREATE VIEW first_made AS SELECT 1 AS x;
CREATE VIEW second_made AS SELECT 2 AS x;
CREATE OR REPLACE VIEW first_made AS SELECT x FROM second_made;
CREATE MATERIALIZED VIEW unread AS SELECT n FROM doubled WITH NO DATA;
CREATE RULE no_delete AS ON DELETE TO doubled DO INSTEAD NOTHING;
CREATE TABLE many (at date, kind text, n integer, PRIMARY KEY (at, kind)) PARTITION BY LIST (kind);
CREATE INDEX many_n ON many (n);
CREATE TABLE many_a PARTITION OF many FOR VALUES IN ('a') PARTITION BY RANGE (at);
CREATE TABLE many_a_old PARTITION OF many_a (CHECK (n > 0)) FOR VALUES FROM (MINVALUE) TO ('2020-01-01');
ALTER TABLE doubled ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY mine ON doubled AS RESTRICTIVE FOR UPDATE TO reader, public USING (n > 1) WITH CHECK (n > 2);
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER touched BEFORE INSERT ON doubled FOR EACH ROW EXECUTE FUNCTION touch();
CREATE TRIGGER touched BEFORE INSERT ON many FOR EACH ROW EXECUTE FUNCTION touch();
ALTER TABLE doubled DISABLE TRIGGER touched;
CREATE TABLE "from" ("select" integer PRIMARY KEY, "Über" text UNIQUE NULLS NOT DISTINCT);
COMMENT ON COLUMN "from"."Über" IS E'it''s \\\\ a "comment"';
COMMENT ON INDEX many_n IS 'of numbers';
"""


@pytest.mark.slow
async def test_the_script_recreates_the_schema(database: Database) -> None:
    database.run(ODD, user="owner")
    async with asking(database.owner) as ask:
        script = await read_schema(1_000_000, ask)
    copy = f"{database.name}_again"
    database.server.run(f"CREATE DATABASE {copy} OWNER owner")
    try:
        database.server.run("ALTER SCHEMA public OWNER TO owner", dbname=copy)
        database.server.run(script, dbname=copy, user="owner")
        assert compare(dump(database.server.url(copy)), dump(database.server.url(database.name))) == []
    finally:
        database.server.run(f"DROP DATABASE {copy}")


def compare(made: list[str], expected: list[str]) -> list[str]:
    """Returns the lines that differ."""
    return [line for line in difflib.unified_diff(expected, made, n=0, lineterm="") if not line.startswith("@@")]


def dump(url: str) -> list[str]:
    """Returns the schema as pg_dump writes it."""
    words = [require_postgres() / "pg_dump", "--schema-only", "--no-owner", "--no-privileges", url]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True)
    # The first and last lines contain a random key of each run.
    return [line for line in done.stdout.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]


async def test_the_script_omits_unusable_schemas_and_counts_omitted_statements(sample: Database) -> None:
    async with asking(sample.reader) as ask:
        script, short = await read_schema(1_000_000, ask), await read_schema(1_000, ask)
    assert "warehouse.stock" in script
    assert "payroll" not in script
    assert len(short.encode()) < 1_200
    assert "more statements did not fit" in short


async def test_objects_of_an_extension_are_created_by_the_extension(database: Database) -> None:
    database.run("CREATE EXTENSION pg_stat_statements")
    async with asking(database.owner) as ask:
        script = await read_schema(1_000_000, ask)
    assert "CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public;" in script
    assert script.count("pg_stat_statements") == 1
