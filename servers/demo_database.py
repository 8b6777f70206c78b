"""What the demo does through the SQLite server."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio

from shared.client.client import Client

from .telling import call, say

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
_SPENT = """\
SELECT name, sum(total) AS spent FROM orders JOIN customers ON customers.id = customer
WHERE total > ? GROUP BY name ORDER BY spent DESC"""
_ORDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("INSERT INTO orders (customer, total) VALUES (3, 20)")
"""


def arguments(folder: Path) -> list[str]:
    """Makes the database of a shop in `folder`; how the server is started over it."""
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.executescript(_SHOP)
    return ["--allow-write", str(folder / "shop.db")]


async def work(client: Client, folder: Path) -> None:
    """Looks around, asks, sees what a change would do, and is told of a change by another program."""
    await call(client, "describe_database")
    await call(client, "explain_query", query=_SPENT, parameters=[10])
    await call(client, "read_query", query=_SPENT, parameters=[10])
    raised = "UPDATE orders SET total = total * 1.1 WHERE customer = ?"
    await call(client, "write_query", query=raised, parameters=[1], dry_run=True)
    await _watch(client, folder / "shop.db")


async def _watch(client: Client, file: Path) -> None:
    uri, told = "sqlite:///shop/orders", anyio.Event()

    def notice(method: str, params: dict[str, Any]) -> None:
        if method == "notifications/resources/updated" and not told.is_set():
            say(f"<- {method} {params['uri']}")
            told.set()

    async with client.subscribed([uri], notice):
        say(f"-> subscribed to {uri}; now another program writes to it")
        await anyio.run_process([sys.executable, "-c", _ORDER, str(file)])
        with anyio.fail_after(10):
            await told.wait()
    await call(client, "read_query", query="SELECT count(*) AS orders FROM orders")
