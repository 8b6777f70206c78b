"""Finding tables by name, and suggestions for unknown names."""

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.texts import NEEDS_QUOTES, ONLY_NAMES
from servers.postgres.errors import PostgresError
from servers.postgres.schema.names import find_relation, suggest_names
from tests.servers.postgres.asking import asking
from tests.servers.postgres.databases import Database
from tests.servers.postgres.serving import inside

NAMES = [
    ("customer", "customer"),
    ("Customer", "customer"),
    ('"order"', '"order"'),
    ("order", '"order"'),
    ("public.order", '"order"'),
    ("Upper Case", '"Upper Case"'),
    ('"Upper Case"', '"Upper Case"'),
    ("upper case", '"Upper Case"'),
    ("warehouse.stock", "warehouse.stock"),
    ('Warehouse."stock"', "warehouse.stock"),
    ("stock", "warehouse.stock"),
    ("document", "document"),
    ("warehouse.document", "warehouse.document"),
    ("a/b.c%d?e#f", '"a/b.c%d?e#f"'),
    ("🐘 of a'b\"c", '"🐘 of a\'b""c"'),
    (" visit ", "visit"),
    ("pg_stat_activity", "pg_stat_activity"),
    ("public.Upper Case", '"Upper Case"'),
]
NEAR = {"costumer": "customer", "stok": "warehouse.stock", "x' OR true --": "", "salary": "sale", "a\0b": ""}
WRONG: list[tuple[str, list[str]]] = [
    ("SELECT * FROM costumer", ["customer"]),
    ("SELECT * FROM stok", ["warehouse.stock"]),
    ("SELECT naem FROM customer", ["name (in customer)"]),
    ("SELECT c.naem FROM customer AS c", ["name (in customer)"]),
    ('SELECT id FROM "Upper Case"', ['"Id" (in "Upper Case")']),
    ("SELECT mod FROM customer", ["mood (in customer)"]),
    ("SELECT quantety FROM no_key", ["quantity (in order_line, warehouse.low, warehouse.stock)"]),
    ("SELECT lowwer('A')", ["lower", "power", "lower_inf"]),
    ("SELECT btrim(1)", ["btrim(bytea,bytea)", "btrim(text)", "btrim(text,text)"]),
    ("SELECT sum FROM salary", ["sale"]),
    ("SELECT 1 + ", []),
]


async def test_a_table_is_found_by_any_valid_spelling(sample: Database) -> None:
    async with asking(sample.reader) as ask:
        assert [(wanted, (await find_relation(ask, wanted)).name) for wanted, _ in NAMES] == NAMES


async def test_a_table_may_have_capitals_outside_of_ascii(workshop: Database) -> None:
    workshop.run('CREATE TABLE "Über" ()', user="owner")
    async with asking(workshop.owner) as ask:
        assert (await find_relation(ask, "Über")).name == (await find_relation(ask, '"Über"')).name == '"Über"'


async def test_a_table_name_may_include_its_database(sample: Database) -> None:
    async with asking(sample.reader) as ask:
        assert (await find_relation(ask, f"{sample.name}.warehouse.stock")).name == "warehouse.stock"
        with pytest.raises(SqlError, match="there is no table or view with that name"):
            await find_relation(ask, "elsewhere.warehouse.stock")


async def test_a_name_that_matches_two_tables_is_ambiguous(workshop: Database) -> None:
    workshop.run('CREATE TABLE "Twin" (); CREATE TABLE "TWIN" ()', user="owner")
    async with asking(workshop.owner) as ask:
        with pytest.raises(SqlError) as caught:
            await find_relation(ask, "twin")
        assert (await find_relation(ask, "Twin")).name == '"Twin"'
    assert caught.value.code == "ambiguous"
    assert '"TWIN"\n"Twin"' in str(caught.value)


async def test_a_missing_table_has_the_nearest_names_suggested(sample: Database) -> None:
    none = "there is no table or view with that name. list_tables lists those that exist."
    for wanted, near in NEAR.items():
        async with asking(sample.reader) as ask:
            with pytest.raises(SqlError) as caught:
                await find_relation(ask, wanted)
        assert caught.value.code == "not_found"
        lines = str(caught.value).splitlines()
        assert lines[2:-1] == [near] if near else lines == [none]


async def test_an_unknown_name_in_a_query_has_the_nearest_suggested(sample: Database) -> None:
    results = []
    for sql, _ in WRONG:
        async with asking(sample.reader) as ask:
            with pytest.raises(PostgresError) as caught:
                await ask(sql)
        async with asking(sample.reader) as ask:
            suggestion = await suggest_names(ask, caught.value.state, sql, caught.value.position)
        results.append((sql, suggestion.splitlines()[2:-1]))
    assert results == WRONG


async def test_a_text_in_double_quotes_gets_advice_on_single_quotes(sample: Database) -> None:
    suggestions = []
    for sql in ('SELECT 1 FROM customer WHERE name = "Ada"', "SELECT 1 FROM customer WHERE name = Ada"):
        async with asking(sample.reader) as ask:
            with pytest.raises(PostgresError) as caught:
                await ask(sql)
        async with asking(sample.reader) as ask:
            suggestions.append(await suggest_names(ask, caught.value.state, sql, caught.value.position))
    assert [one.startswith(ONLY_NAMES) for one in suggestions] == [True, False]


@pytest.mark.parametrize(("sql", "name"), [("SELECT * FROM Order", '"order"'), ("SELECT * FROM where", "")])
async def test_a_name_that_needs_quotes_is_suggested_with_them(sample: Database, sql: str, name: str) -> None:
    async with inside(sample.reader) as peer:
        lines = (await peer.error("read_query", query=sql)).splitlines()
    assert [line for line in lines if line in (NEEDS_QUOTES, name)] == ([NEEDS_QUOTES, name] if name else [])
