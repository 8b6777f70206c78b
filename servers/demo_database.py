"""What the demo does through the SQLite server."""

import sqlite3
from contextlib import closing
from pathlib import Path

from shared.client.client import Client

from .telling import call

__all__ = ["arguments", "work"]

_SHOP = """
PRAGMA journal_mode = WAL;
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customers, total REAL NOT NULL CHECK (total > 0)
);
INSERT INTO customers (name) VALUES ('Ada'), ('Grace'), ('Mary');
INSERT INTO orders (customer, total) VALUES (1, 12.5), (1, 7.25), (2, 99);
"""


def arguments(folder: Path) -> list[str]:
    """Makes the database of a shop in `folder`; how the server is started over it."""
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.executescript(_SHOP)
    return ["--allow-write", str(folder / "shop.db")]


async def work(client: Client, _: Path) -> None:
    """Asks a question."""
    query = "SELECT name, sum(total) AS total FROM orders JOIN customers ON customers.id = customer "
    await call(client, "read_query", query=f"{query}WHERE total > ? GROUP BY 1 ORDER BY 2 DESC", parameters=[10])
