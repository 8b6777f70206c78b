"""Indexes that `explain_query` simulates."""

from pathlib import Path

import pytest

from tests.servers.sqlite.schemas import dump, made
from tests.servers.sqlite.serving import inside

TABLES = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, placed TEXT);
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);
CREATE VIRTUAL TABLE texts USING fts5(body);
CREATE VIEW names AS SELECT name FROM customers;
CREATE INDEX by_name ON customers (name);"""
QUERY = "SELECT * FROM orders WHERE customer = ? AND placed > ?"
INDEX = "CREATE INDEX by_customer ON orders (customer, placed)"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return made(tmp_path / "shop.db", TABLES)


async def test_a_plan_shows_the_effect_of_an_index_without_creating_it(shop: Path) -> None:
    before = dump(shop)
    async with inside(shop) as peer:
        without = await peer.text("explain_query", query=QUERY)
        tried = await peer.text("explain_query", query=f"{INDEX};\n{QUERY};")
        given = await peer.text("explain_query", query=f"{INDEX}; {QUERY}", parameters=[1, "2024"])
    assert "scanned in full: orders" in without
    for plan in (tried, given):
        assert "SEARCH orders USING COVERING INDEX by_customer (customer=? AND placed>?)" in plan
        assert "tried on an empty copy of the schema; no index was created\nthere are no statistics" in plan
        assert "scanned in full" not in plan
    assert dump(shop) == before


async def test_a_simulated_index_uses_the_statistics_of_the_database(shop: Path) -> None:
    # Every order has the same customer, so an index on it is useless.
    rows = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 500)"
    made(shop, f"INSERT INTO orders {rows} SELECT x, 7, x FROM n; CREATE INDEX same ON orders (customer); ANALYZE")
    query = "SELECT * FROM orders WHERE customer = 7 AND placed = 'x'"
    async with inside(shop) as peer:
        plan = await peer.text("explain_query", query=f"CREATE INDEX by_day ON orders (placed); {query}")
    assert "by_day (placed=?)" in plan
    assert "no statistics" not in plan


async def test_only_create_index_is_simulated(shop: Path) -> None:
    refused = {
        "DROP TABLE orders; SELECT 1": "Only CREATE INDEX, which is only simulated, may come before",
        f"{INDEX}; DELETE FROM orders": "it changes the database",
        f"{INDEX}; SELECT load_extension('x')": "it calls load_extension()",
        f"CREATE INDEX x ON orders (absent); {QUERY}": "no such column: absent",
        f"{INDEX}; {INDEX}; {QUERY}": "already exists",
    }
    async with inside(shop) as peer:
        for query, reason in refused.items():
            assert reason in await peer.error("explain_query", query=query)
    async with inside("--hide", "customers.name", shop) as peer:
        assert "has hidden parts" in await peer.error("explain_query", query=f"{INDEX}; SELECT 1 FROM orders")
