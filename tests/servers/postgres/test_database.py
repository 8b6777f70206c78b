"""S14: what other sessions and the tools do to a database is told to who subscribes, also where triggers tell of it.

The eras and what is told of a URI are with `servers.common.sql.features.resources`, the ways to watch with `watch`.
"""

import pytest
from anyio import to_thread

from tests.servers.postgres.databases import Database
from tests.servers.postgres.serving import inside

UPDATED = "notifications/resources/updated"
both_ways = pytest.mark.parametrize(
    ("options", "triggers"), [((), 0), pytest.param(("--watch-triggers",), 1, marks=pytest.mark.slow)]
)


@both_ways
async def test_s14_what_others_and_the_tools_change_is_told_once(
    database: Database, options: tuple[str, ...], triggers: int
) -> None:
    uri = f"postgres:///{database.name}/category"
    burst = "; ".join(f"INSERT INTO category VALUES ({n}, 1, {n})" for n in range(100, 150))
    database.run(f"GRANT CREATE ON DATABASE {database.name} TO owner")
    async with inside("--allow-write", *options, database.owner) as peer:
        await peer.request("resources/subscribe", uri=uri)
        await peer.data("write_query", query=["DELETE FROM review", "UPDATE category SET name = name || '!'"])
        await peer.call("write_query", query="UPDATE customer SET mood = 'sad'")
        told = [await peer.client.other(UPDATED)]
        await to_thread.run_sync(database.run, burst)
        told.append(await peer.client.other(UPDATED))
        assert peer.client.others == []
    assert [message["params"]["uri"] for message in told] == [uri, uri]
    made = "SELECT count(DISTINCT tgname) FROM pg_trigger WHERE tgname = 'mcp_watch'"
    assert database.run(made) == [(triggers,)]


async def test_a_list_for_in_is_told_how_an_array_is_compared(sample: Database) -> None:
    async with inside(sample.reader) as peer:
        error = await peer.error("read_query", query="SELECT 1 FROM customer WHERE id IN ($1)", parameters=[[1, 2]])
        rows = await peer.data("read_query", query="SELECT 1 FROM customer WHERE id = ANY ($1)", parameters=[[1, 2]])
    assert error.endswith("A list becomes an array: write = ANY($1) instead of IN ($1).")
    assert len(rows["rows"]) == 2
