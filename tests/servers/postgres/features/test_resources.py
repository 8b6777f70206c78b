"""S14: what other sessions do to a database is told to who subscribes, in each era, with triggers and without."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.servers.postgres.databases import Database
from tests.servers.postgres.serving import served
from tests.wire import STATELESS, with_envelope

pytestmark = pytest.mark.slow
both_eras = pytest.mark.parametrize("era", ["2025-11-25", STATELESS])
both_ways = pytest.mark.parametrize(
    "options", [(), ("--allow-write", "--watch-triggers")], ids=["polled", "triggers"]
)

LISTING = "notifications/resources/list_changed"
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


@both_eras
@both_ways
async def test_s14_a_change_of_another_session_is_told_once(
    database: Database, era: str, options: tuple[str, ...]
) -> None:
    base = f"postgres:///{database.name}"
    uris = [f"{base}/category", f"{base}/customer", f"{base}/schema"]
    async with subscribed(era, uris, *options, database.owner) as told:
        database.run(INSERT)
        assert await told() == f"{base}/category"
        database.run("CREATE TABLE more (x int)")
        # A second notification of what was told before would be among these.
        assert {await told(), await told()} == {f"{base}/schema", LISTING}
        database.run("UPDATE customer SET mood = 'happy' WHERE id = 1")
        assert await told() == f"{base}/customer"


@both_ways
async def test_s14_a_burst_is_told_once_and_then_a_query_has_its_rows(
    database: Database, options: tuple[str, ...]
) -> None:
    uri = f"postgres:///{database.name}/category"
    async with served(*options, database.owner) as peer:
        await peer.request("resources/subscribe", uri=uri)
        database.run(
            "; ".join(["BEGIN", *(f"INSERT INTO category VALUES ({n}, 1, {n})" for n in range(100, 150)), "COMMIT"])
        )
        assert (await peer.wire.receive())["params"]["uri"] == uri
        found = await peer.data("read_query", query="SELECT count(*) FROM category WHERE id >= 100")
        database.run("DELETE FROM category WHERE id >= 100")
        assert (await peer.wire.receive())["params"]["uri"] == uri
    assert found["rows"] == [[50]]
    assert peer.wire.notifications == []


async def test_what_the_tools_write_is_told_once(database: Database) -> None:
    uri = f"postgres:///{database.name}/category"
    async with served("--allow-write", database.owner) as peer:
        await peer.request("resources/subscribe", uri=uri)
        await peer.data("write_query", query=[INSERT, "UPDATE category SET name = name || '!'"])
        await peer.call("write_query", query="DELETE FROM review")
        while len(peer.wire.notifications) < 1:
            peer.wire.notifications.append(await peer.wire.receive())
        database.run("DELETE FROM category WHERE id = 100")
        peer.wire.notifications.append(await peer.wire.receive())
    assert [message["params"]["uri"] for message in peer.wire.notifications] == [uri, uri]
