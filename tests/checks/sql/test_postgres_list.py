"""Known faults of other servers, tried through the protocol: names of tables, and changes that no client
waits for any more.

Changes disguised as queries and statements that take too long or too much are in
attacks.py; locks are in test_strain.py, and values, marks, pages and watching with the
tests of the server. Faults with files don't apply: PostgreSQL has none.
"""

from typing import Any

import anyio
import pytest

from tests.servers.peers import Peer
from tests.servers.postgres.databases import Database
from tests.servers.postgres.serving import served
from tests.wire import PATIENCE


async def begin(peer: Peer, id_: int, tool: str, **arguments: Any) -> None:
    params = {"name": tool, "arguments": arguments}
    await peer.wire.send({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params})


async def wait_until(database: Database, question: str) -> None:
    """Waits until a query of the superuser returns true."""
    with anyio.fail_after(PATIENCE):
        while database.run(question) != [(True,)]:
            await anyio.lowlevel.checkpoint()


async def test_any_table_name_is_supported(database: Database) -> None:
    names = ['a"b', "a]b", "a`b", "a'b", "a b", "🗄", "select", "x; DROP TABLE customer", "%", "a.b", "\u202e\x1b[2K"]
    async with served(database.reader) as peer:
        for name in names:
            one = '"' + name.replace('"', '""') + '"'
            database.run(f"CREATE TABLE {one} ({one} text); INSERT INTO {one} VALUES ('here')")
            database.run(f"GRANT SELECT ON {one} TO reader")
            data = await peer.data("read_query", query=f"SELECT * FROM {one}")
            assert (data["columns"][0], data["rows"]) == (name, [["here"]])
            assert "not_found" not in await peer.text("describe_table", table_name=name, sample=1), name
            assert "not_found" not in await peer.text("describe_table", table_name=one, sample=1), name
    assert database.run("SELECT count(*) FROM customer") == [(100,)]


@pytest.mark.parametrize("end", ["cancel", "close", "terminate", "kill"])
async def test_an_abandoned_change_is_rolled_back(database: Database, end: str) -> None:
    both = [
        "UPDATE review SET stars = 1",
        "UPDATE category SET name = name || (SELECT count(*) FROM generate_series(1, 1e11))",
    ]
    updating = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'UPDATE category%' AND state = 'active')"
    async with served("--allow-write", database.owner) as peer:
        await begin(peer, 1_000, "write_query", query=both)
        await wait_until(database, updating)
        match end:
            case "cancel":
                await peer.wire.notify("notifications/cancelled", {"requestId": 1_000})
                # The only writer is free again.
                await peer.data("write_query", query="UPDATE category SET name = 'x' WHERE id = -1")
            case "close":
                await peer.wire.close_stdin()
                await peer.wire.wait(PATIENCE)
            case "terminate":
                peer.wire.terminate()
                await peer.wire.wait(PATIENCE)
            case _:
                peer.wire.kill()
                await peer.wire.wait(PATIENCE)
        if end != "kill":  # else PostgreSQL notices only when the statement returns rows
            await wait_until(database, updating.replace("SELECT EXISTS", "SELECT NOT EXISTS"))
    assert database.run("SELECT max(stars) FROM review") == [(5,)]
