"""Statements that change a database in one transaction: results, errors and consent."""

from collections.abc import AsyncIterator

import anyio
import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.write.consent import Consent, Figures
from servers.postgres.engine.deadline import Limits
from tests.servers.postgres.databases import Database
from tests.servers.postgres.engines import soon
from tests.servers.postgres.writing import Writing, writing

REVIEWS = "TRUNCATE review; INSERT INTO review VALUES (1, 'SKU-0001', 5, NULL), (2, 'SKU-0001', 1, NULL)"

STATE = """
    SELECT current_user::text, current_setting('work_mem'), coalesce(current_setting('our.secret', true), ''),
        (SELECT count(*) FROM pg_class WHERE relpersistence = 't'),
        (SELECT count(*) FROM pg_listening_channels())"""


@pytest.fixture
async def db(workshop: Database) -> AsyncIterator[Writing]:
    """A database shared by all tests, with the same two reviews at the start of each."""
    workshop.run(REVIEWS)
    async with writing(workshop.owner) as db:
        yield db


async def get_error(db: Writing, *queries: str, only_tables: bool = False) -> SqlError:
    with pytest.raises(SqlError) as caught:
        await db.execute(*queries, only_tables=only_tables)
    return caught.value


EFFECTS: list[tuple[str, int, list[str]]] = [
    ("INSERT INTO review VALUES (9, 'SKU-0002', 1, NULL), (8, 'SKU-0002', 1, NULL)", 2, ["review"]),
    ("UPDATE category SET name = upper(name) WHERE id < 3", 2, ["category"]),
    ("DELETE FROM review", 2, ["review"]),
    ("TRUNCATE review", 2, ["review"]),
    ("WITH gone AS (DELETE FROM review RETURNING 1) SELECT count(*) FROM gone", 2, ["review"]),
    ("SELECT 1", 0, []),
    ("UPDATE review SET stars = 1 WHERE false", 0, []),
]


async def test_affected_rows_and_tables_are_reported(db: Writing, workshop: Database) -> None:
    effects = []
    for query, *_ in EFFECTS:
        (done,) = (await db.execute(query))["statements"]
        assert "schema_changed" not in done
        effects.append((query, done["affected"], list(done.get("tables", []))))
        workshop.run(
            "TRUNCATE review; INSERT INTO review SELECT n, 'SKU-000' || n, n, NULL FROM generate_series(1, 2) n"
        )
    assert effects == EFFECTS


async def test_tables_changed_by_triggers_and_foreign_keys_are_named_not_counted(
    db: Writing,
) -> None:
    queries = [
        "UPDATE warehouse.stock SET quantity = quantity + 1 WHERE sku = 'SKU-0001'",
        "DELETE FROM warehouse.shelf WHERE hall = 'A' AND number = 1",
    ]
    updated, deleted = (await db.execute(*queries))["statements"]
    assert (updated["affected"], list(updated["tables"])) == (1, ["warehouse.movement", "warehouse.stock"])
    assert (deleted["affected"], list(deleted["tables"])) == (1, ["warehouse.shelf", "warehouse.stock"])


async def test_a_schema_change_is_reported(db: Writing) -> None:
    queries = [
        "CREATE TABLE made AS SELECT 1 AS a",
        "SELECT 1 AS a INTO other",
        "ALTER TABLE review ADD note text",
        "CREATE VIEW seen AS SELECT 1",
        "DROP VIEW cheap",
        "COMMENT ON TABLE review IS 'x'",
    ]
    for query in queries:
        (done,) = (await db.execute(query))["statements"]
        assert done["schema_changed"]
    assert [commit.schema_changed for commit in db.commits] == [True] * len(queries)


async def test_a_skipped_statement_has_a_notice_and_no_schema_change(db: Writing) -> None:
    results = []
    for query in (
        "CREATE TABLE IF NOT EXISTS review (a integer)",
        "DROP VIEW IF EXISTS nonesuch",
        "DROP SCHEMA IF EXISTS nonesuch",
        "CREATE SEQUENCE IF NOT EXISTS numbers",
        "CREATE FUNCTION one() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "DROP FUNCTION IF EXISTS one(), nonesuch()",
        "DELETE FROM review WHERE false",
    ):
        (done,) = (await db.execute(query))["statements"]
        results.append(("schema_changed" in done, list(done.get("notices", ()))))
    assert results == [
        (False, ['relation "review" already exists, skipping']),
        (False, ['view "nonesuch" does not exist, skipping']),
        (False, ['schema "nonesuch" does not exist, skipping']),
        (True, []),
        (True, []),
        (True, ["function nonesuch() does not exist, skipping"]),
        (False, []),
    ]


async def test_the_first_notices_of_a_function_are_returned(db: Writing) -> None:
    await db.execute(
        "CREATE FUNCTION counted() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN FOR n IN 1..30 LOOP "
        "RAISE NOTICE 'row %', n; END LOOP; RETURN 1; END $$"
    )
    (done,) = (await db.execute("SELECT counted()"))["statements"]
    assert list(done["notices"]) == [*(f"row {n}" for n in range(1, 21)), "there were more"]


async def test_returned_rows_are_json_values(db: Writing) -> None:
    query = "INSERT INTO review VALUES ($1, $2, $3, NULL) RETURNING customer, sku, '{1,2}'::integer[] AS list"
    (done,) = (await db.execute(query, parameters=[[9, "SKU-0002", 1]]))["statements"]
    assert (done["columns"], done["rows"]) == (("customer", "sku", "list"), [(9, "SKU-0002", [1, 2])])


async def test_rows_of_returning_are_cut_but_all_changes_are_made(db: Writing) -> None:
    query = "INSERT INTO category SELECT n, 1, 'c' || n FROM generate_series(100, 2099) n RETURNING id"
    (done,) = (await db.execute(query))["statements"]
    assert done["affected"] == 2_000
    assert len(done["rows"]) == 1_000
    assert done["truncated"]


async def test_changes_of_an_earlier_call_are_not_counted_again(db: Writing) -> None:
    for _ in range(2):
        await get_error(db, "DELETE FROM review", "SELECT 1 / 0")
    (done,) = (await db.execute("UPDATE category SET name = upper(name)"))["statements"]
    assert list(done["tables"]) == ["category", "company"]


async def test_a_failing_statement_rolls_back_all(db: Writing, workshop: Database) -> None:
    failed = await get_error(db, "DELETE FROM review", "SELECT 1 / 0")
    refused = await get_error(db, "DELETE FROM review", "COMMIT", "SELECT 1 / 0")
    assert [error.code for error in (failed, refused)] == ["bad_value", "refused"]
    assert {error.reason[:13] for error in (failed, refused)} == {"statement 2: "}
    assert workshop.run("SELECT count(*) FROM review") == [(2,)]
    assert db.commits == []


async def test_a_deferred_constraint_fails_before_anything_is_committed(db: Writing) -> None:
    with pytest.raises(SqlError) as caught:
        await db.dry_run("INSERT INTO refund (order_id, line, sum) VALUES (999999, 1, 1)")
    assert caught.value.code == "constraint"


@pytest.mark.slow
async def test_a_commit_updates_the_statistics_at_once(database: Database) -> None:
    async with writing(database.owner) as db:
        if db.writer.version < 150_000:
            pytest.skip("versions before 15 count later: apt install postgresql")
        for count in (2, 4, 6):
            await db.execute("UPDATE review SET stars = 2")
            assert database.run("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'review'") == [(count,)]


async def test_an_unknown_name_has_the_nearest_suggested(db: Writing) -> None:
    error = await get_error(db, "DELETE FROM reviw")
    assert error.code == "bad_statement"
    assert "\nreview\n" in error.suggestion


async def test_a_commit_is_announced_once_with_its_tables(db: Writing) -> None:
    await db.execute("DELETE FROM review", "UPDATE company SET vat = 'x'")
    (commit,) = db.commits
    assert (commit.tables, commit.schema_changed, commit.backend) == ({"company", "review"}, False, db.writer.backend)


@pytest.mark.slow
async def test_nothing_changes_before_consent_to_the_figures(database: Database) -> None:
    async with writing(database.owner) as db:
        query = "DELETE FROM warehouse.shelf WHERE hall = 'A' AND number = 1"
        figures = await db.ask_first(query, consent=Consent(5))
        assert isinstance(figures, Figures)
        assert (figures.affected, figures.tables, figures.schema_changed) == (
            (1,),
            ("warehouse.shelf", "warehouse.stock"),
            False,
        )
        assert figures.rows > 5
        assert database.run("SELECT count(*) FROM warehouse.shelf") == [(10,)]
        await db.execute(query, consent=Consent(5, figures))
        assert database.run("SELECT count(*) FROM warehouse.shelf") == [(9,)]


async def test_create_table_as_fills_the_table(db: Writing) -> None:
    await db.execute("CREATE TABLE filled AS SELECT * FROM review", only_tables=True)
    assert db.commits[0].tables == {"filled"}


async def test_create_table_changes_no_rows_of_other_tables(db: Writing, workshop: Database) -> None:
    await db.execute(
        "CREATE FUNCTION empty_it() RETURNS integer LANGUAGE sql AS 'DELETE FROM public.review RETURNING 1'"
    )
    error = await get_error(db, "CREATE TABLE emptied AS SELECT empty_it()", only_tables=True)
    assert error.code == "refused"
    assert workshop.run("SELECT count(*) FROM review") == [(2,)]


async def test_session_state_set_by_a_function_is_reset_for_the_next_call(workshop: Database) -> None:
    left = ("SET work_mem = 777", "SET our.secret = 1", "LISTEN x", "CREATE TEMP TABLE t ()", "SET ROLE reader")
    workshop.run("GRANT reader TO owner")
    async with writing(workshop.owner) as db:
        before = await db.writer.ask(STATE, deadline=soon())
        for statement in left:
            body = f"$$ BEGIN EXECUTE '{statement}'; END $$"
            await db.execute(f"CREATE OR REPLACE FUNCTION leave() RETURNS void LANGUAGE plpgsql AS {body}")
            await db.execute("SELECT leave()")
            assert await db.writer.ask(STATE, deadline=soon()) == before, statement


async def test_a_lasting_lock_of_another_session_is_a_busy_error(workshop: Database) -> None:
    async with writing(workshop.owner, Limits(busy_timeout=0.05)) as db:
        with workshop.server.connect(workshop.name) as other, other.transaction():
            other.execute("LOCK review")
            error = await get_error(db, "DELETE FROM review")
        assert error.code == "busy"
        await db.execute("DELETE FROM review")


@pytest.mark.slow
async def test_a_commit_on_a_broken_connection_has_an_unknown_outcome(database: Database) -> None:
    # The commit waits for a replica that does not exist.
    database.run(f"ALTER ROLE owner IN DATABASE {database.name} SET synchronous_commit = on")
    database.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    database.run("SELECT pg_reload_conf()")
    try:
        async with writing(database.owner) as db, anyio.create_task_group() as tasks:
            tasks.start_soon(_end_waiting, database, db.writer.backend)
            error = await get_error(db, "DELETE FROM review")
    finally:
        database.run("ALTER SYSTEM RESET synchronous_standby_names")
        database.run("SELECT pg_reload_conf()")
    assert error.code == "unavailable"
    assert "may or may not have been made" in error.reason


async def _end_waiting(database: Database, backend: int) -> None:
    buffered = (
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = {backend} AND wait_event = 'SyncRep'"
    )
    while not await anyio.to_thread.run_sync(database.run, buffered):
        await anyio.lowlevel.checkpoint()
