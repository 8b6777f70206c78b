"""Reading rows of tables by their keys."""

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import AnswerLimits
from servers.postgres.query.rows import find_keys, find_row, read_first_rows
from tests.servers.postgres.asking import looking
from tests.servers.postgres.databases import Database

LIMITS = AnswerLimits(100, 200_000, 1_000)


async def test_first_rows_are_in_the_order_of_their_key(workshop: Database) -> None:
    workshop.run("UPDATE category SET name = 'everything' WHERE id = 1")
    async with looking(workshop.reader) as session:
        result = await read_first_rows("category", LIMITS._replace(rows=3), session)
    assert result == {
        "table": "category",
        "key": ["id"],
        "columns": ["id", "parent", "name"],
        "rows": [(1, None, "everything"), (2, 1, "books"), (3, 1, "tools")],
        "next_query": "SELECT * FROM category ORDER BY id LIMIT 3 OFFSET 3",
    }


async def test_rows_stop_at_the_size_limit(sample: Database) -> None:
    async with looking(sample.reader) as session:
        result = await read_first_rows("order", AnswerLimits(1_000, 20_000, 1_000), session)
        whole = await read_first_rows("order", AnswerLimits(1_000, 1_000_000, 1_000), session)
    assert 50 < len(result["rows"]) < 500
    given = len(result["rows"])
    assert result["next_query"] == f'SELECT * FROM "order" ORDER BY id LIMIT 1000 OFFSET {given}'
    assert (len(whole["rows"]), whole["next_query"]) == (1_000, None)
    assert [row[0] for row in whole["rows"]] == [*range(1, 1_001)]


async def test_a_long_value_is_cut(sample: Database) -> None:
    async with looking(sample.reader) as session:
        result = await read_first_rows("document", LIMITS, session)
    assert result["rows"][0][2]["truncated"]
    assert result["rows"][0][3]["bytes"] == 100_000


async def test_tables_without_a_key_have_first_rows(sample: Database) -> None:
    async with looking(sample.reader) as session:
        for table, rows in (("no_key", 3), ("nothing", 0), ("sale", 100), ("best_customer", 10)):
            result = await read_first_rows(table, LIMITS, session)
            assert (result["key"], len(result["rows"])) == ([], rows)
            with pytest.raises(SqlError, match="no row has such a key"):
                await find_row(table, "1", LIMITS, session)


async def test_a_unique_index_of_not_null_columns_is_a_key(workshop: Database) -> None:
    workshop.run(
        "CREATE TABLE coded (code text NOT NULL, other text UNIQUE, low text NOT NULL, late text NOT NULL);"
        "CREATE UNIQUE INDEX ON coded (low) WHERE low <> ''; CREATE UNIQUE INDEX ON coded (lower(low));"
        "ALTER TABLE coded ADD UNIQUE (late) DEFERRABLE; INSERT INTO coded VALUES ('a', 'b', 'c', 'd')",
        user="owner",
    )
    async with looking(workshop.owner) as session:
        assert (await read_first_rows("coded", LIMITS, session))["key"] == []
    workshop.run("ALTER TABLE coded ADD UNIQUE (code)", user="owner")
    async with looking(workshop.owner) as session:
        assert (await find_row("coded", "a", LIMITS, session))["key"] == ["code"]


@pytest.mark.slow
async def test_rows_that_grow_large_are_fetched_singly(database: Database) -> None:
    database.run(
        "CREATE TABLE growing AS SELECT n, repeat('x', 900000) AS t FROM generate_series(1, 60) AS n;"
        "ALTER TABLE growing ADD PRIMARY KEY (n)",
        user="owner",
    )
    async with looking(database.owner) as session:
        result = await read_first_rows("growing", LIMITS._replace(cell_bytes=100), session)
    assert [row[0] for row in result["rows"]] == [*range(1, 61)]


FOUND = [
    ("customer", "7", 7),
    ("product", "SKU-0007", "SKU-0007"),
    ("review", "1,SKU-0001", 1),
    ("warehouse.shelf", "A,3", "A"),
    ("payment", "c4ca4238-a0b9-2382-0dcc-509a6f75849b", "c4ca4238-a0b9-2382-0dcc-509a6f75849b"),
    ("a/b.c%d?e#f", "one%2Ftwo", "one/two"),
    ("a/b.c%d?e#f", "50%20%25", "50 %"),
    ("visit", "2024-01-01,1", "2024-01-01"),
]
MISSING = [
    ("customer", "1000"),
    ("customer", "1 OR true"),
    ("customer", "99999999999999999999"),
    ("customer", "%00"),
    ("product", "SKU-0001-and-more"),
    ("review", "1"),
    ("payment", "no-uuid"),
    ("visit", "2024-13-45,1"),
]
TYPED: list[tuple[str, str, list[str], int]] = [
    ("customer", "", ["1", "2", "3"], 100),
    ("customer", "9", ["9", "90", "91"], 11),
    ("product", "SKU-001", ["SKU-0010", "SKU-0011", "SKU-0012"], 10),
    ("review", "1,SKU", ["1,SKU-0001"], 1),
    ("review", "1", ["1,SKU-0001"], 1),
    ("a/b.c%d?e#f", "one%2F", ["one%2Ftwo"], 1),
    ("no_key", "1", [], 0),
    ("customer", "x'; --", [], 0),
    ("customer", "\0", [], 0),
]


async def test_a_row_is_read_by_its_exact_key_only(sample: Database) -> None:
    async with looking(sample.reader) as session:
        result = [(table, key, await find_row(table, key, LIMITS, session)) for table, key, _ in FOUND]
    assert [(table, key, one["rows"][0][0]) for table, key, one in result] == FOUND
    assert {one["next_query"] for *_, one in result} == {None}
    for table, key in MISSING:  # some of them abort the transaction
        async with looking(sample.reader) as session:
            with pytest.raises(SqlError) as caught:
                await find_row(table, key, LIMITS, session)
        assert caught.value.code == "not_found"


async def test_key_completions_start_with_the_typed_text(sample: Database) -> None:
    for table, typed, first, count in TYPED:
        async with looking(sample.reader) as session:
            result = await find_keys(table, typed, session)
        assert (result[:3], len(result)) == (first, count), (table, typed)
