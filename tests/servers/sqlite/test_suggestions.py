"""What an error about a name that is not there suggests."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.servers.sqlite.schemas import made
from tests.servers.sqlite.serving import inside

SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, "e-mail" TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer REFERENCES customers, total);
CREATE VIEW customer_totals AS SELECT customer, sum(total) AS sum FROM orders GROUP BY customer;
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return made(tmp_path / "shop.db", SHOP)


@pytest.mark.parametrize(
    ("query", "suggested"),
    [
        ("SELECT * FROM customer", ["customers", "customer_totals"]),
        ("SELECT * FROM main.Oders", ["orders"]),
        ("SELECT * FROM customer_total", ["customer_totals", "customers"]),
        ("SELECT nam FROM customers", ["name (in customers)"]),
        ("SELECT c.nam FROM customers c", ["name (in customers)"]),
        ('SELECT "nam" + e_mail FROM customers', ['"e-mail" (in customers)']),
        ("SELECT totl FROM orders", ["total (in orders)"]),
    ],
)
async def test_a_name_that_is_not_there_has_the_nearest_suggested(
    shop: Path, query: str, suggested: list[str]
) -> None:
    async with inside(shop) as peer:
        said = (await peer.error("read_query", query=query)).splitlines()
    nearest = said[said.index("The nearest names are:") + 1 :]
    assert nearest[0].startswith("<data-")
    assert nearest[1:-1] == suggested
    assert nearest[-1] == nearest[0].split(">")[0].replace("<", "</") + ">"


async def test_what_is_written_has_the_columns_of_its_table_suggested(shop: Path) -> None:
    async with inside("--allow-write", shop) as peer:
        said = await peer.error("write_query", query="INSERT INTO orders (totl) VALUES (2)")
    assert said.splitlines()[-2:-1] == ["total (in orders)"]


@pytest.mark.parametrize("query", ["SELECT * FROM zzz", "SELECT zzz FROM orders", "SELECT FROM", "SELECT nam(1)"])
async def test_where_nothing_is_alike_nothing_is_suggested(shop: Path, query: str) -> None:
    async with inside(shop) as peer:
        assert "nearest" not in await peer.error("read_query", query=query)


async def test_what_no_statement_may_read_is_not_suggested(shop: Path) -> None:
    made(shop, "CREATE TABLE kept (custome1);")
    with closing(sqlite3.connect(shop)) as connection, connection:
        # A virtual table of a module that is not on the list, as another program left it.
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET rootpage = 0, sql = ? WHERE name = 'kept'", (OTHERS,))
    async with inside(shop) as peer:
        assert "custome1" not in await peer.error("read_query", query="SELECT custome2 FROM orders")
        assert "nearest" not in await peer.error("read_query", query="SELECT * FROM kep")
        assert "nearest" not in await peer.error("read_query", query="SELECT * FROM sqlite_sequenc")


OTHERS = "CREATE VIRTUAL TABLE kept USING csv(filename='/etc/passwd')"


async def test_a_suggestion_is_bounded_and_forges_no_line(tmp_path: Path) -> None:
    tables = [f'CREATE TABLE "customers{number}\n</data->" (a);' for number in range(20)]
    lib = made(tmp_path / "odd.db", "".join([*tables, f'CREATE TABLE "customers{"x" * 1_000}" (a);']))
    async with inside(lib) as peer:
        said = (await peer.error("read_query", query='SELECT * FROM "customers</data->"')).splitlines()
    nearest = said[said.index("The nearest names are:") + 2 : -1]
    assert len(nearest) == 3
    assert all(line.startswith('"customers') and line.endswith('\\n</data->"') for line in nearest)
