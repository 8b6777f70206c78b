"""All tools through PgBouncer: they work as usual, and leave no state to the next client of the connection."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from servers.common.sql.errors import SqlError
from servers.postgres.engine.deadline import Limits
from servers.postgres.engine.transactions import TransactionStart
from tests.pgbouncer import PgBouncer, pooling
from tests.servers.postgres.databases import Database
from tests.servers.postgres.serving import inside
from tests.servers.postgres.writing import Writing, writing

READS = "SELECT id FROM category ORDER BY id"
LEFT = """
    SELECT (SELECT string_agg(name, ' ') FROM pg_settings
        WHERE source = 'session' AND name NOT IN ('application_name', 'client_encoding')), current_user::text,
        (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
        (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_cursors),
        (SELECT count(*) FROM pg_listening_channels()), (SELECT count(*) FROM pg_class WHERE relpersistence = 't')"""
"""The state of a session, without the settings that PgBouncer makes for each client."""


@pytest.fixture
def pooler(database: Database) -> Iterator[PgBouncer]:
    """A pooler with one connection for all clients that log in as the owner, so that each passes it to the next."""
    with pooling(database.server, "transaction", size=2) as pooler:
        yield pooler


def read_session_state(pooler: PgBouncer, database: Database) -> tuple[object, ...]:
    """Returns the session state that another client of the pooler sees."""
    # Both at once, so that each uses one of the two connections.
    with (
        pooler.connect(database.name, "owner") as one,
        pooler.connect(database.name, "owner") as other,
        one.transaction(),
        other.transaction(),
    ):
        seen = {connection.execute(LEFT.encode()).fetchone() for connection in (one, other)}
    (same,) = seen
    assert same is not None
    return same


@pytest.mark.parametrize("mode", ["session", "transaction"])
async def test_reading_tools_work_through_a_pooler_and_leave_no_state(
    database: Database, mode: str, tmp_path: Path
) -> None:
    with pooling(database.server, mode) as pooler:
        before = read_session_state(pooler, database)
        url = pooler.url(database.name, "owner")
        async with inside("--readers", "2", url) as peer:
            page = await peer.data("read_query", query=READS, max_rows=2)
            rest = await peer.data("read_query", query=READS, cursor=page["next_cursor"])
            assert (len(page["rows"] + rest["rows"]), rest["changed"]) == (5, False)
            spans = await peer.data("read_query", query="SELECT interval '36 hours', $1::bytea", parameters=["\\x00"])
            assert spans["rows"][0][0] == "PT36H"
            for tool, arguments in (
                ("list_tables", {}),
                ("describe_table", {"table_name": "product"}),
                ("describe_database", {}),
                ("explain_query", {"query": "SELECT * FROM product WHERE category = $1"}),
                ("explain_query", {"query": "SELECT * FROM product", "analyze": True}),
                ("check_health", {}),
                ("export", {"query": READS, "format": "csv"}),
            ):
                assert "isError" not in await peer.call(tool, **arguments)
            for uri in ("schema", "category", "category/1"):
                assert "result" in await peer.request("resources/read", uri=f"postgres:///{database.name}/{uri}")
            assert "refused" in await peer.error("read_query", query="SELECT nextval('customer_id_seq')")
            assert "bad_statement" in await peer.error("explain_query", query="SELECT $1 FROM nowhere")
        assert read_session_state(pooler, database) == before


async def test_writing_tools_commit_through_a_pooler_and_leave_no_state(
    database: Database, pooler: PgBouncer
) -> None:
    before = read_session_state(pooler, database)
    async with inside("--allow-write", pooler.url(database.name, "owner")) as peer:
        preview = await peer.data("write_query", query="DELETE FROM refund", dry_run=True)
        done = await peer.data("write_query", query="INSERT INTO customer (name) VALUES ('Ada')")
        await peer.text("import_csv", table="player", csv="name,born\nAda,1815\n")
        await peer.text("create_table", query="CREATE TABLE game (id integer PRIMARY KEY)")
    assert (preview["changes"][0]["counts"], done["committed"]) == ({"deleted": 2}, True)
    assert database.run("SELECT born FROM player") == [(1815,)]
    assert read_session_state(pooler, database) == before


@pytest.fixture
async def db(database: Database, pooler: PgBouncer) -> AsyncIterator[Writing]:
    """A database with write access through the pooler."""
    async with writing(f"{pooler.url(database.name, 'owner')}&pgbouncer=true", Limits()) as db:
        yield db


async def test_session_state_set_by_a_function_is_refused_or_reset(
    db: Writing, database: Database, pooler: PgBouncer
) -> None:
    database.run("GRANT reader TO owner")
    before = read_session_state(pooler, database)
    codes = {}
    for statement in ("SET work_mem = 777", "SET ROLE reader", "LISTEN x", "CREATE TEMP TABLE t ()"):
        body = f"$$ BEGIN EXECUTE '{statement}'; END $$"
        await db.execute(f"CREATE OR REPLACE FUNCTION leave() RETURNS void LANGUAGE plpgsql AS {body}")
        try:
            await db.execute("SELECT leave()")
        except SqlError as error:
            codes[statement] = error.code
        assert read_session_state(pooler, database) == before, statement
    assert codes == {"SET work_mem = 777": "refused", "SET ROLE reader": "refused"}


async def test_lastval_and_the_random_seed_do_not_reach_other_clients(
    db: Writing, database: Database, pooler: PgBouncer
) -> None:
    await db.execute("INSERT INTO customer (name) VALUES ('Ada')", "SELECT setseed(0.5)")
    with pooler.connect(database.name, "owner") as other, pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        other.execute("SELECT lastval()")
    seeded = database.run("SELECT random() FROM setseed(0.5)")
    with pooler.connect(database.name, "owner") as other:
        assert other.execute("SELECT random()").fetchall() != seeded


@pytest.mark.parametrize(("operator", "milliseconds"), [({}, 2_000), ({"lock_timeout": "500"}, 500)])
def test_a_transaction_waits_for_a_lock_for_the_busy_timeout(operator: dict[str, str], milliseconds: int) -> None:
    start = TransactionStart(Limits(30, 2), operator, checks_client=False).format("READ ONLY", 1)
    assert f"SET LOCAL lock_timeout = '{milliseconds}'" in start
