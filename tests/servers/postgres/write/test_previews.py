"""Dry runs, which show changes and make none."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.write.results import ResponseLimits
from tests.postgres_server import PostgresServer
from tests.servers.postgres.databases import Database, copy_sample
from tests.servers.postgres.writing import LIMITS, Writing, writing

_TABLES = """
SELECT oid::regclass::text, query_to_xml(format('SELECT count(*) FROM %s', oid::regclass), true, true, '')::text
FROM pg_class WHERE relkind = 'r' AND oid >= 16384 ORDER BY 1
"""
KEY = "CREATE TABLE t (a integer PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'one'), (2, 'two')"


@pytest.fixture(scope="module")
def shared_database(postgres: PostgresServer) -> Database:
    """A copy of the sample with a table `t`, for all tests, none of which changes it."""
    database = copy_sample(postgres, "kept")
    for statement in KEY.split("; "):
        database.run(statement, user="owner")
    return database


@pytest.fixture
async def db(shared_database: Database) -> AsyncIterator[Writing]:
    """The database, which must be unchanged after the test."""
    before = shared_database.run(_TABLES)
    async with writing(shared_database.owner) as db:
        yield db
    assert shared_database.run(_TABLES) == before
    assert db.commits == []


async def changes(db: Writing, *queries: str, limits: ResponseLimits = LIMITS) -> dict[str, Any]:
    """Returns the changes by table: the count of each kind, and the rows."""
    done = await db.dry_run(*queries, limits=limits)
    assert not done["committed"]
    return {one["table"]: (one["counts"], one.get("rows", [])) for one in done.get("changes", ())}


CHANGES: list[tuple[str, Any]] = [
    ("INSERT INTO t VALUES (3, 'x')", ({"inserted": 1}, [(None, (3, "x"))])),
    ("UPDATE t SET b = 'x' WHERE a = 1", ({"updated": 1}, [((1, "one"), (1, "x"))])),
    ("DELETE FROM t WHERE a = 2", ({"deleted": 1}, [((2, "two"), None)])),
    ("UPDATE t SET a = 5 WHERE a = 1", ({"updated": 1}, [((1, "one"), None), (None, (5, "one"))])),
    (
        "INSERT INTO t VALUES (2, 'x'), (3, 'y') ON CONFLICT (a) DO UPDATE SET b = 'z'",
        ({"inserted": 1, "updated": 1}, [((2, "two"), (2, "z")), (None, (3, "y"))]),
    ),
]


async def test_a_dry_run_shows_rows_before_and_after(db: Writing) -> None:
    assert [(query, (await changes(db, query))["t"]) for query, _ in CHANGES] == CHANGES


async def test_rows_without_a_key_are_shown_as_deleted_and_inserted(db: Writing) -> None:
    shown = await changes(db, "UPDATE no_key SET b = 'z' WHERE a = 1")
    was, now = ((1, "x"), None), (None, (1, "z"))
    assert shown == {"no_key": ({"updated": 2}, [was, was, now, now])}


async def test_changes_by_triggers_and_foreign_keys_are_shown(db: Writing) -> None:
    shown = await changes(
        db,
        "UPDATE warehouse.stock SET quantity = 0 WHERE sku = 'SKU-0001'",
        "DELETE FROM warehouse.stock WHERE sku = 'SKU-0001'",
    )
    assert shown["warehouse.stock"] == ({"updated": 1, "deleted": 1}, [(("B", 2, "SKU-0001", 1), None)])
    counts, ((before, after),) = shown["warehouse.movement"]
    assert (counts, before, after[1:3]) == ({"inserted": 1}, None, ("SKU-0001", -1))


async def test_rows_that_are_only_locked_are_not_shown(db: Writing) -> None:
    update = "UPDATE category SET name = 'all of it' WHERE id = 1"
    shown = await changes(db, "INSERT INTO category VALUES (5, 2, 'new')", update)
    rows = [((1, None, "all"), (1, None, "all of it")), (None, (5, 2, "new"))]
    assert shown == {"category": ({"inserted": 1, "updated": 1}, rows)}


async def test_rows_of_a_subtransaction_are_shown(db: Writing) -> None:
    body = "BEGIN INSERT INTO public.t VALUES (9, 'nine'); EXCEPTION WHEN division_by_zero THEN NULL; END"
    make = f"CREATE FUNCTION part() RETURNS void LANGUAGE plpgsql AS '{body.replace(chr(39), chr(39) * 2)}'"
    assert await changes(db, make, "SELECT part()") == {"t": ({"inserted": 1}, [(None, (9, "nine"))])}


async def test_rows_of_a_new_table_are_shown(db: Writing) -> None:
    shown = await changes(db, "CREATE TABLE made (a integer)", "INSERT INTO made VALUES (1), (2)")
    assert shown == {"made": ({"inserted": 2}, [(None, (1,)), (None, (2,))])}


async def test_an_altered_or_truncated_table_has_a_note_instead_of_rows(db: Writing) -> None:
    done = await db.dry_run(
        "TRUNCATE t", "ALTER TABLE review ADD note text DEFAULT 'x'", "UPDATE review SET stars = 1"
    )
    review, t = done["changes"]
    assert (t["counts"], review["counts"]) == ({"deleted": 2}, {"updated": 2})
    assert "rows" not in t
    assert "rows" not in review
    assert "alter or truncate" in t["note"]


async def test_the_first_ten_of_many_rows_are_shown_before_and_after(db: Writing) -> None:
    done = await db.dry_run("UPDATE customer SET mood = 'sad'", "DELETE FROM payment WHERE order_id > 5")
    customer, payment = done["changes"]
    assert customer["counts"] == {"updated": 100}
    assert customer["truncated"]
    assert [(before[0], after[0], after[3]) for before, after in customer["rows"]] == [
        (number, number, "sad") for number in range(1, 11)
    ]
    assert len(payment["rows"]) == 10


async def test_long_values_are_cut(db: Writing) -> None:
    shown = await changes(db, "DELETE FROM document WHERE id = 1")
    (((_, _, body, scan), _),) = shown["document"][1]
    assert body == {"type": "text", "bytes": 200_000, "value": "0123456789" * 20, "truncated": True}
    assert scan["bytes"] == 100_000


async def test_a_small_answer_shows_fewer_rows(db: Writing) -> None:
    small = ResponseLimits(AnswerLimits(1_000, 4_000, 1_000), 500_000)
    counts, rows = (await changes(db, "UPDATE customer SET mood = 'sad'", limits=small))["customer"]
    assert counts == {"updated": 100}
    assert 0 < len(rows) < 10


async def test_names_are_quoted_as_in_sql(db: Writing) -> None:
    shown = await changes(db, 'UPDATE "Upper Case" SET "SELECT" = \'z\' WHERE "Id" = 1')
    assert shown == {'"Upper Case"': ({"updated": 1}, [((1, "a", "b", "c"), (1, "z", "b", "c"))])}
