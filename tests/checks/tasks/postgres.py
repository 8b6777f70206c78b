"""Tasks on a PostgreSQL database; the peer is dbhub, which runs several statements at once, too."""

import csv
import io
from pathlib import Path

import psycopg

from tests.checks.tasks.session import Session
from tests.checks.tasks.sqlite import BEST, CUSTOMERS, SELL
from tests.checks.tasks.task import Script, Task
from tests.postgres_server import new_database

URL = "url"
"""A file with the URL of the database, beside the folders of the tasks."""
SHOP = """
DROP TABLE IF EXISTS orders, customers, products, visits;
CREATE TABLE customers (id integer PRIMARY KEY, name text, city text);
CREATE TABLE products (id integer PRIMARY KEY, title text, price numeric, stock integer);
CREATE TABLE orders (
    id integer PRIMARY KEY, customer_id integer REFERENCES customers, product_id integer REFERENCES products,
    count integer
);
INSERT INTO customers SELECT n, 'Customer ' || n, (ARRAY['Ulm', 'Bonn'])[n % 2 + 1] FROM generate_series(1, 300) n;
INSERT INTO products SELECT n, 'Product ' || n, n * 2.5, n FROM generate_series(1, 20) n;
INSERT INTO orders SELECT n, n % 7 + 1, n % 20 + 1, n % 3 + 1 FROM generate_series(1, 200) n;
"""


def make_database(folder: Path) -> str:
    """Return the URL of a new database, and write it into `folder`. Skips where PostgreSQL is not installed."""
    url = new_database()
    (folder / URL).write_text(url)
    return url


def shop(folder: Path) -> None:
    """A shop of three tables, as new."""
    with psycopg.connect((folder.parent / URL).read_text(), autocommit=True) as connection:
        connection.execute(SHOP)


def value(folder: Path, query: str) -> object:
    """Return the one value of a query."""
    with psycopg.connect((folder.parent / URL).read_text()) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def ours(tool: str, **arguments: object) -> Script:
    return lambda session, _: session.call(tool, **arguments)


def theirs(sql: str) -> Script:
    return lambda session, _: session.call("execute_sql", sql=sql)


def objects(kind: str, **arguments: str) -> Script:
    return lambda session, _: session.call("search_objects", object_type=kind, **arguments)


def best_ours(session: Session, _: Path) -> str:
    session.call("describe_database")
    return session.call("read_query", query=BEST)


def best_theirs(session: Session, _: Path) -> str:
    session.call("search_objects", object_type="table", detail_level="full")
    return session.call("execute_sql", sql=BEST)


def import_statements() -> str:
    rows = ", ".join(f"({row[0]}, '{row[1]}', {row[2]})" for row in csv.reader(io.StringIO(CUSTOMERS)))
    return f"CREATE TABLE visits (id integer, name text, minutes numeric); INSERT INTO visits VALUES {rows}"


NAMES = "SELECT name FROM customers ORDER BY id"
SLOW = "SELECT * FROM orders WHERE customer_id = 3"
INDEX = "CREATE INDEX by_customer ON orders (customer_id)"

TASKS = (
    Task(
        "learn what a database holds", shop, ours("describe_database"), objects("table", detail_level="full"),
        lambda _, text: all(word in text for word in ("customers", "customer_id", "price")),
    ),
    Task("answer who spent most", shop, best_ours, best_theirs,
         lambda folder, text: str(value(folder, BEST)) in text),
    Task(
        "import a table and report", shop,
        ours("import_csv", table_name="visits", csv=f"id,name,minutes\n{CUSTOMERS}"), theirs(import_statements()),
        lambda folder, _: value(folder, "SELECT count(*) || ' ' || sum(minutes) FROM visits") == "20 315.0",
    ),
    Task(
        "make two changes together", shop, ours("write_query", query="; ".join(SELL)),
        theirs("; ".join(("BEGIN", *SELL, "COMMIT"))),
        lambda folder, _: value(folder, "SELECT stock FROM products WHERE id = 5") == 4
        and value(folder, "SELECT count(*) FROM orders WHERE id = 999") == 1,
    ),
    Task(
        "find the table with prices", shop, ours("list_tables", search="price"),
        objects("column", pattern="%price%"), lambda _, text: "products" in text and "orders" not in text,
    ),
    Task(
        "list three hundred names", shop, ours("read_query", query=NAMES, max_rows=300), theirs(NAMES),
        lambda _, text: "Customer 1" in text and "Customer 300" in text,
    ),
    Task(
        "see what a deletion would do", shop,
        ours("write_query", query="DELETE FROM orders WHERE count = 3", dry_run=True),
        theirs("SELECT count(*) FROM orders WHERE count = 3"),
        lambda folder, text: value(folder, "SELECT count(*) FROM orders") == 200 and "67" in text,
    ),
    Task("make an index", shop, ours("write_query", query=INDEX), theirs(INDEX),
         lambda folder, _: value(folder, "SELECT count(*) FROM pg_indexes WHERE indexname = 'by_customer'") == 1),
    Task("see why a query is slow", shop, ours("explain_query", query=SLOW), theirs(f"EXPLAIN {SLOW}"),
         lambda _, text: "Seq Scan on orders" in text),
    Task("see how a server is", shop, ours("check_health"), None, lambda _, text: "autovacuum is off" in text),
)  # fmt: skip
