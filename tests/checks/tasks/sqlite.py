"""Tasks on a database; the peer is the archived official server."""

import csv
import io
import re
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.checks.tasks.session import Session
from tests.checks.tasks.task import Script, Task

DATABASE = "shop.db"
"""Beside the folders of the tasks: one server has one database, with tables of each task's own."""
CUSTOMERS = "".join(f"{n},Customer {n},{n * 1.5}\n" for n in range(1, 21))


def shop(folder: Path) -> None:
    """A shop of three tables, as new."""
    with closing(sqlite3.connect(folder.parent / DATABASE)) as connection, connection:
        for table in ("orders", "customers", "products", "visits"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT)")
        connection.execute("CREATE TABLE products (id INTEGER PRIMARY KEY, title TEXT, price REAL, stock INTEGER)")
        connection.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers,"
            " product_id INTEGER REFERENCES products, count INTEGER)"
        )
        people = [(n, f"Customer {n}", ("Ulm", "Bonn")[n % 2]) for n in range(1, 301)]
        connection.executemany("INSERT INTO customers VALUES (?, ?, ?)", people)
        goods = [(n, f"Product {n}", n * 2.5, n) for n in range(1, 21)]
        connection.executemany("INSERT INTO products VALUES (?, ?, ?, ?)", goods)
        sold = [(n, n % 7 + 1, n % 20 + 1, n % 3 + 1) for n in range(1, 201)]
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", sold)


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder.parent / DATABASE)) as connection:
        return connection.execute(query).fetchall()


def query(sql: str) -> Script:
    return lambda session, _: session.call("read_query", query=sql)


def write(*statements: str) -> Script:
    """Several statements: ours takes them at once, the peer one after another."""

    def run(session: Session, _: Path) -> str:
        for one in statements:
            session.call("write_query", query=one)
        return ""

    return run


def overview_theirs(session: Session, _: Path) -> str:
    tables = re.findall(r"'name': '(\w+)'", session.call("list_tables"))
    return "\n".join(table + session.call("describe_table", table_name=table) for table in tables)


def best_ours(session: Session, folder: Path) -> str:
    session.call("describe_database")
    return query(BEST)(session, folder)


def best_theirs(session: Session, folder: Path) -> str:
    overview_theirs(session, folder)
    return query(BEST)(session, folder)


BEST = (
    "SELECT c.name, sum(o.count * p.price) AS spent FROM orders o JOIN customers c ON c.id = o.customer_id"
    " JOIN products p ON p.id = o.product_id GROUP BY c.id ORDER BY spent DESC LIMIT 1"
)


def import_ours(session: Session, _: Path) -> str:
    return session.call("import_csv", table_name="visits", csv=f"id,name,minutes\n{CUSTOMERS}")


def import_theirs(session: Session, _: Path) -> str:
    session.call("create_table", query="CREATE TABLE visits (id INTEGER, name TEXT, minutes REAL)")
    values = ", ".join(f"({row[0]}, '{row[1]}', {row[2]})" for row in csv.reader(io.StringIO(CUSTOMERS)))
    return session.call("write_query", query=f"INSERT INTO visits VALUES {values}")


def find_theirs(session: Session, folder: Path) -> str:
    text = overview_theirs(session, folder)
    return "products" if "'price'" in text else text


def all_names(session: Session, _: Path) -> str:
    return session.call("read_query", query="SELECT name FROM customers ORDER BY id", max_rows=300)


def is_best(folder: Path, text: str) -> bool:
    return str(rows(folder, BEST)[0][0]) in text


SELL = ("UPDATE products SET stock = stock - 1 WHERE id = 5", "INSERT INTO orders VALUES (999, 1, 5, 1)")

TASKS = (
    Task(
        "learn what a database holds", shop, lambda session, _: session.call("describe_database"), overview_theirs,
        lambda _, text: all(word in text for word in ("customers", "customer_id", "price")),
    ),
    Task("answer who spent most", shop, best_ours, best_theirs, is_best),
    Task("import a table and report", shop, import_ours, import_theirs,
         lambda folder, _: rows(folder, "SELECT count(*), sum(minutes) FROM visits") == [(20, 315.0)]),
    Task(
        "make two changes together", shop,
        lambda session, _: session.call("write_query", query="; ".join(SELL)), write(*SELL),
        lambda folder, _: rows(folder, "SELECT stock FROM products WHERE id = 5") == [(4,)]
        and rows(folder, "SELECT count(*) FROM orders WHERE id = 999") == [(1,)],
    ),
    Task(
        "find the table with prices", shop,
        lambda session, _: session.call("list_tables", search="price"), find_theirs,
        lambda _, text: "products" in text and "orders" not in text,
    ),
    Task(
        "list three hundred names", shop, all_names, query("SELECT name FROM customers ORDER BY id"),
        lambda _, text: "Customer 1" in text and "Customer 300" in text,
    ),
    Task(
        "see the extremes of a column", shop,
        lambda session, _: session.call("read_query", query="SELECT min(price), max(price) FROM products"),
        query("SELECT min(price), max(price) FROM products"), lambda _, text: "2.5" in text and "50" in text,
    ),
    Task(
        "see what a deletion would do", shop,
        lambda session, _: session.call("write_query", query="DELETE FROM orders WHERE count = 3", dry_run=True),
        query("SELECT count(*) FROM orders WHERE count = 3"),
        lambda folder, text: rows(folder, "SELECT count(*) FROM orders") == [(200,)] and "67" in text,
    ),
    Task("make an index", shop, write("CREATE INDEX by_customer ON orders (customer_id)"),
         write("CREATE INDEX by_customer ON orders (customer_id)"),
         lambda folder, _: rows(folder, "SELECT count(*) FROM sqlite_master WHERE name = 'by_customer'") == [(1,)]),
    Task(
        "see why a query is slow", shop,
        lambda session, _: session.call("explain_query", query="SELECT * FROM orders WHERE customer_id = 3"), None,
        lambda _, text: "orders" in text,
    ),
    Task(
        "hand over all rows as a file", shop,
        lambda session, _: session.read_resource(
            re.findall(r"sqlite-export:\S+", session.call("export", query="SELECT name FROM customers"))[0]
        ),
        None, lambda _, text: "Customer 300" in text,
    ),
    Task(
        "keep a finding", shop,
        lambda session, _: session.call("append_insight", insight="Ulm buys less."),
        lambda session, _: session.call("append_insight", insight="Ulm buys less."), lambda _, text: "added" in text,
    ),
)  # fmt: skip
