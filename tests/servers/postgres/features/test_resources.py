"""S14: what other sessions do to a database is told to who subscribes, in each era, with triggers and without."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio import to_thread

from tests.servers.postgres.databases import Database
from tests.servers.postgres.serving import inside, served
from tests.wire import STATELESS, with_envelope

both_eras = pytest.mark.parametrize("era", ["2025-11-25", STATELESS])
both_ways = pytest.mark.parametrize(
    "options", [(), ("--allow-write", "--watch-triggers")], ids=["polled", "triggers"]
)

LISTING, UPDATED = "notifications/resources/list_changed", "notifications/resources/updated"
INSERT = "INSERT INTO category VALUES (100, 1, 'new')"

Told = Callable[[], Awaitable[str]]
"""Waits for the next notification: the URI of what was updated, or the method that tells of a list."""


@asynccontextmanager
async def subscribed(era: str, uris: list[str], *options: str) -> AsyncIterator[Told]:
    """A client that subscribes to these URIs and to the list of resources."""
    async with served(*options, era=era) as peer:
        if peer.stateless:
            wanted = {"resourceSubscriptions": uris, "resourcesListChanged": True}
            params = with_envelope({"notifications": wanted})
            await peer.wire.send({"jsonrpc": "2.0", "id": "L", "method": "subscriptions/listen", "params": params})
            assert (await peer.wire.receive())["params"]["notifications"] == wanted
        else:
            await peer.request("resources/list")
            for uri in uris:
                assert (await peer.request("resources/subscribe", uri=uri))["result"] == {}

        async def told() -> str:
            with anyio.fail_after(30):
                message = peer.wire.notifications.pop(0) if peer.wire.notifications else await peer.wire.receive()
            uri: str = message.get("params", {}).get("uri", message["method"])
            return uri

        yield told


@pytest.mark.slow
@both_eras
@both_ways
async def test_s14_changes_of_another_session_are_told_once_and_a_burst_is_one(
    database: Database, era: str, options: tuple[str, ...]
) -> None:
    base = f"postgres:///{database.name}"
    uris = [f"{base}/category", f"{base}/customer", f"{base}/schema"]
    burst = [f"INSERT INTO category VALUES ({n}, 1, {n})" for n in range(100, 150)]
    async with subscribed(era, uris, *options, database.owner) as told:
        database.run("; ".join(["BEGIN", *burst, "COMMIT"]))
        assert await told() == f"{base}/category"
        database.run("CREATE TABLE more (x int)")
        # A second notification of what was told before would be among these.
        assert {await told(), await told()} == {f"{base}/schema", LISTING}
        database.run("UPDATE customer SET mood = 'happy' WHERE id = 1")
        assert await told() == f"{base}/customer"


async def test_what_the_tools_write_is_told_once(database: Database) -> None:
    uri = f"postgres:///{database.name}/category"
    async with inside("--allow-write", database.owner) as peer:
        await peer.request("resources/subscribe", uri=uri)
        await peer.data("write_query", query=[INSERT, "UPDATE category SET name = name || '!'"])
        await peer.call("write_query", query="DELETE FROM review")
        told = [await peer.client.other(UPDATED)]
        await to_thread.run_sync(database.run, "DELETE FROM category WHERE id = 100")
        told.append(await peer.client.other(UPDATED))
    assert [message["params"]["uri"] for message in told] == [uri, uri]
