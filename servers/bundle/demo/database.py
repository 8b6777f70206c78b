"""What the demo does through the SQLite server."""

import sys
from pathlib import Path
from typing import Any

import anyio

from shared.client.client import Client

from ...sqlite.engine.temporary import make_sample
from .telling import Teller

__all__ = ["arguments", "work"]

_SPENT = """\
SELECT customer, count(*) AS orders, round(sum(total), 2) AS spent FROM sales
WHERE placed >= ? GROUP BY customer ORDER BY spent DESC LIMIT 3"""
_RAISED = "UPDATE products SET cents = cents * 11 / 10 WHERE category = ?"
_ORDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("INSERT INTO orders (customer_id, placed) VALUES (16, '2025-12-31')")
"""


def arguments(folder: Path) -> list[str]:
    """Makes the database of a shop in `folder`; how the server is started over it."""
    make_sample(folder / "shop.db")
    return ["--allow-write", str(folder / "shop.db")]


async def work(client: Client, folder: Path, teller: Teller) -> None:
    """Looks around, asks, sees what a change would do, and is told of a change by another program."""
    described = await teller.call(client, "describe_database")
    tables = [line.split()[1] for line in described if line.startswith("table ")]
    teller.sum_up("describe_database", f"{len(tables)} tables: {', '.join(tables)}")
    await teller.call(client, "explain_query", query=_SPENT, parameters=["2025-07-01"])
    spent = await teller.call(client, "read_query", query=_SPENT, parameters=["2025-07-01"])
    first = next(line for line in spent if line.startswith("["))
    teller.sum_up("read_query", f"who spent most: {first}")
    change = await teller.call(client, "write_query", query=_RAISED, parameters=["cocoa"], dry_run=True)
    teller.sum_up("write_query", f"dry run: {change[0]}")
    await _watch(client, folder / "shop.db", teller)


async def _watch(client: Client, file: Path, teller: Teller) -> None:
    uri, told = "sqlite:///shop/orders", anyio.Event()

    def notice(method: str, params: dict[str, Any]) -> None:
        if method == "notifications/resources/updated" and not told.is_set():
            teller.show(f"<- {method} {params['uri']}")
            told.set()

    async with client.subscribed([uri], notice):
        teller.show(f"-> subscribed to {uri}; now another program writes to it")
        await anyio.run_process([sys.executable, "-c", _ORDER, str(file)])
        with anyio.fail_after(10):
            await told.wait()
    await teller.call(client, "read_query", query="SELECT count(*) AS orders FROM orders")
    teller.sum_up("subscription", f"another program changed {file.name}, and the client was told")
