"""`--confirm` and other rules for changes, as far as they are specific to PostgreSQL.

The rules of all engines are tested in `servers/common/sql/features`."""

import pytest

from servers.postgres.server import app
from tests.servers.peers import AskedPeer, wired_inside
from tests.servers.postgres.databases import READER, Database
from tests.servers.postgres.serving import inside
from tests.wire import STATELESS


@pytest.mark.parametrize("era", [pytest.param("2025-11-25", marks=pytest.mark.slow), STATELESS])
async def test_the_user_confirms_a_change_while_no_lock_is_held(database: Database, era: str) -> None:
    def write() -> None:
        database.run("SET lock_timeout = '10s'; INSERT INTO refund VALUES (3, 3, 1, 1) ON CONFLICT DO NOTHING")

    async with wired_inside(app, "--allow-write", "--confirm", database.owner, era=era) as wire:
        peer = AskedPeer(wire, era, "accept decline accept accept decline")  # type: ignore[arg-type]
        wire.answers["elicitation/create"] = peer.answer
        query = {"query": "DELETE FROM refund WHERE id = $1", "parameters": [1]}
        assert (await peer.text("write_query", **query)).startswith("committed; ")
        assert (await peer.text("write_query", query="DROP TABLE refund")).startswith("declined: ")
        assert (await peer.text("import_csv", table="new", csv="a\n1\n2\n")).startswith("2 rows imported")
        peer.meanwhile = write
        text = await peer.text("write_query", query="DELETE FROM refund")
    assert text.startswith("declined: " if era == STATELESS else "changed: ")
    assert peer.questions[:4] == [
        f"Change {database.name}? 1 row changes (refund):\nDELETE FROM refund WHERE id = $1 -- [1]",
        f"Change {database.name}? the schema changes:\nDROP TABLE refund",
        f"Change {database.name}? the schema changes and 2 rows change (new):\nimport a CSV into new",
        f"Change {database.name}? 1 row changes (refund):\nDELETE FROM refund",
    ]
    assert database.run("SELECT (SELECT count(*) FROM refund), (SELECT count(*) FROM new)") == [(2, 2)]


ROW_LEVEL = f"""
    ALTER TABLE refund ENABLE ROW LEVEL SECURITY;
    CREATE POLICY mine ON refund FOR SELECT TO {READER} USING (id = 1);
    GRANT SELECT ON refund TO {READER}"""


async def test_row_level_security_needs_the_option_named_in_the_refusal(database: Database) -> None:
    async with inside("--allow-write", database.owner) as peer:
        refused = await peer.text("write_query", query=ROW_LEVEL)
    assert refused == (
        "refused: statement 1: the statement is not allowed: row-level security is the operator's decision. "
        "The operator can allow it with --allow-ddl policies."
    )
    database.run("INSERT INTO refund VALUES (3, 3, 1, 1) ON CONFLICT DO NOTHING")
    async with inside("--allow-write", "--allow-ddl", "policies", "--allow-ddl", "grants", database.owner) as peer:
        assert (await peer.text("write_query", query=ROW_LEVEL)).startswith("committed; ")
    assert database.run("SELECT DISTINCT id FROM refund", user=READER) == [(1,)]


async def test_a_script_with_atomic_function_bodies_is_one_transaction(database: Database) -> None:
    body = "SELECT 1; SELECT CASE WHEN true THEN 2 END;"
    script = f"CREATE FUNCTION two() RETURNS int BEGIN ATOMIC {body} END; SELECT two() + :more; DELETE FROM refund"
    async with inside("--allow-write", database.owner) as peer:
        done = await peer.data("write_query", query=script, parameters={"more": 3})
    assert [one.get("rows") for one in done["statements"]] == [None, [[5]], None]


async def test_a_write_through_read_query_names_the_way_to_write(database: Database) -> None:
    changes = "DELETE FROM refund", "WITH gone AS (DELETE FROM refund RETURNING 1) SELECT 1", "DROP TABLE refund"
    async with inside("--allow-write", database.owner) as peer:
        for query in changes:
            assert (await peer.text("read_query", query=query)).endswith("changes the database. Use write_query.")
    async with inside(database.owner) as peer:
        for query in changes:
            error = await peer.text("read_query", query=query)
            assert error.endswith("The operator can allow changes with --allow-write, or :rw after the URL.")


async def test_create_index_concurrently_gets_advice_to_omit_it(database: Database) -> None:
    async with inside("--allow-write", database.owner) as peer:
        error = await peer.error("write_query", query="CREATE INDEX CONCURRENTLY i ON customer (name)")
    assert error.endswith("Omit CONCURRENTLY: the statements of one call are one transaction.")


DEFERRED = """
    SET CONSTRAINTS ALL DEFERRED;
    INSERT INTO late VALUES (2, 3);
    INSERT INTO late VALUES (3, NULL)"""


async def test_constraints_are_deferred_to_the_end_of_a_call(database: Database) -> None:
    database.run("CREATE TABLE late (id int PRIMARY KEY, next int REFERENCES late DEFERRABLE)", user="owner")
    async with inside("--allow-write", database.owner) as peer:
        for dry_run in (True, False):
            done = await peer.text("write_query", query=DEFERRED, dry_run=dry_run)
            assert done.startswith("dry run: " if dry_run else "committed; ")
        missing = await peer.error(
            "write_query", query="SET CONSTRAINTS ALL DEFERRED; INSERT INTO late VALUES (4, 5)"
        )
    assert missing.startswith("constraint: ")
    assert database.run("SELECT count(*) FROM late") == [(2,)]
