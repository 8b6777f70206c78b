"""Subscriptions through the front door: what clients of both eras are told, over stdio and over HTTP."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from servers.sqlite.server import app as server
from tests.servers.sqlite.others import elsewhere
from tests.servers.sqlite.serving import served
from tests.shared.transports.http.http_wire import Json, Site, events
from tests.wire import start_http, with_envelope

pytestmark = pytest.mark.slow
both_eras = pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
both_transports = pytest.mark.parametrize("transport", ["stdio", "http"])

DATABASE, SCHEMA, NUMBERS = "sqlite:///data", "sqlite:///data/schema", "sqlite:///data/numbers"
LISTING = "notifications/resources/list_changed"
INSERT, CREATE = "INSERT INTO numbers VALUES (NULL, 'new')", "CREATE TABLE more (x)"

Told = Callable[[], Awaitable[str]]
"""Waits for the next notification: the URI of what was updated, or the method that tells of a list."""


@asynccontextmanager
async def http(file: Path) -> AsyncIterator[Site]:
    """The server over HTTP."""
    async with (
        start_http([sys.executable, "-m", "servers.sqlite", str(file)]) as url,
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client,
    ):
        yield Site(server, 0, anyio.Event(), client)


@asynccontextmanager
async def subscribed(transport: str, era: str, file: Path, *uris: str) -> AsyncIterator[Told]:
    """A client that subscribes to these URIs and to the list of resources."""
    over = over_http if transport == "http" else over_stdio
    async with over(era, file, uris) as receive:

        async def told() -> str:
            with anyio.fail_after(30):
                message = await receive()
            uri: str = message.get("params", {}).get("uri", message["method"])
            return uri

        yield told


@asynccontextmanager
async def over_stdio(era: str, file: Path, uris: tuple[str, ...]) -> AsyncIterator[Callable[[], Awaitable[Json]]]:
    async with served(file, era=era) as peer:
        if peer.stateless:
            params = with_envelope({"notifications": wanted(uris)})
            await peer.wire.send({"jsonrpc": "2.0", "id": "L", "method": "subscriptions/listen", "params": params})
            assert (await peer.wire.receive())["params"]["notifications"] == wanted(uris)
        else:
            await peer.request("resources/list")
            for uri in uris:
                assert (await peer.request("resources/subscribe", uri=uri))["result"] == {}
        yield peer.wire.receive


@asynccontextmanager
async def over_http(era: str, file: Path, uris: tuple[str, ...]) -> AsyncIterator[Callable[[], Awaitable[Json]]]:
    async with http(file) as site:
        if era == "2026-07-28":
            message, headers = site.stateless("subscriptions/listen", {"notifications": wanted(uris)})
            async with site.stream(message, headers) as answer:
                stream = events(answer)
                assert (await anext(stream))["params"]["notifications"] == wanted(uris)
                yield lambda: anext(stream)
        else:
            session = await site.initialize(era)
            accept = {**session, "Accept": "text/event-stream"}
            async with site.client.stream("GET", "/mcp", headers=accept) as answer:
                await site.post(site.message("resources/list"), session)
                for uri in uris:
                    subscription = site.message("resources/subscribe", {"uri": uri})
                    assert (await site.post(subscription, session)).json()["result"] == {}
                stream = events(answer)
                yield lambda: anext(stream)


def wanted(uris: tuple[str, ...]) -> dict[str, Any]:
    return {"resourceSubscriptions": list(uris), "resourcesListChanged": True}


@both_eras
@both_transports
async def test_s14_what_another_process_does_is_told_once(file: Path, transport: str, era: str) -> None:
    async with subscribed(transport, era, file, NUMBERS, SCHEMA, DATABASE) as told:
        for statement in (INSERT, "UPDATE numbers SET name = 'x'"):
            await elsewhere(file, statement)
            assert {await told(), await told()} == {NUMBERS, DATABASE}
        await elsewhere(file, CREATE)
        # A second notification of what was told before would be among these.
        assert {await told() for _ in range(4)} == {NUMBERS, DATABASE, SCHEMA, LISTING}


@both_eras
@both_transports
async def test_s14_a_burst_of_another_process_is_told_few_times(file: Path, transport: str, era: str) -> None:
    async with subscribed(transport, era, file, NUMBERS, SCHEMA) as told:
        await elsewhere(file, *[INSERT] * 300, CREATE)
        found = []
        while SCHEMA not in found:
            found.append(await told())
    assert len(found) < 30


@both_eras
async def test_s14_after_the_notification_a_query_gives_the_new_rows(file: Path, era: str) -> None:
    async with served(file, era=era) as peer:
        params: dict[str, Any] = {"notifications": {"resourceSubscriptions": [NUMBERS]}}
        if peer.stateless:
            params = with_envelope(params)
            await peer.wire.send({"jsonrpc": "2.0", "id": "L", "method": "subscriptions/listen", "params": params})
            await peer.wire.receive()
        else:
            await peer.request("resources/subscribe", uri=NUMBERS)
        for count in (1_001, 1_002, 1_003):
            await elsewhere(file, INSERT)
            assert (await peer.wire.receive())["params"]["uri"] == NUMBERS
            result = await peer.data("read_query", query="SELECT count(*) FROM numbers")
            assert result["rows"] == [[count]]


@both_eras
async def test_s14_a_row_is_told_as_the_client_wrote_it_when_its_table_changes(file: Path, era: str) -> None:
    async with subscribed("stdio", era, file, f"{NUMBERS}/7") as told:
        await elsewhere(file, INSERT)
        assert await told() == f"{NUMBERS}/7"


async def test_what_the_tools_write_is_told_once_of_the_tables_that_they_change(file: Path) -> None:
    other = "sqlite:///data/other"
    async with served("--allow-write", file) as peer:
        await peer.call("create_table", query="CREATE TABLE other (x)")
        for uri in (NUMBERS, other):
            await peer.request("resources/subscribe", uri=uri)
        await peer.data("write_query", query=[INSERT, "UPDATE numbers SET name = 'x'"])
        await peer.call("write_query", query="DELETE FROM other", dry_run=True)
        await peer.text("import_csv", table="other", csv="x\n1\n")
        while len(peer.wire.notifications) < 2:
            peer.wire.notifications.append(await peer.wire.receive())
        await peer.data("write_query", query=INSERT)
        while len(peer.wire.notifications) < 3:
            peer.wire.notifications.append(await peer.wire.receive())
    assert [message["params"]["uri"] for message in peer.wire.notifications] == [NUMBERS, other, NUMBERS]


async def test_insights_are_told_to_their_subscribers(file: Path) -> None:
    async with served(file) as peer:
        await peer.request("resources/subscribe", uri="memo://insights")
        await peer.call("append_insight", insight="There are a thousand.")
        messages = peer.wire.notifications or [await peer.wire.receive()]
    assert [message["params"]["uri"] for message in messages] == ["memo://insights"]


async def test_what_is_no_part_of_a_database_is_not_subscribed_to(file: Path) -> None:
    uris = ["sqlite:///nowhere/t", "sqlite:///nowhere", "file:///etc/passwd", "sqlite-export:///a.csv"]
    async with served(file) as peer:
        codes = [(await peer.request("resources/subscribe", uri=uri))["error"]["code"] for uri in uris]
    assert codes == [-32002] * 4


async def test_of_several_uris_only_those_of_databases_are_acknowledged(file: Path) -> None:
    filter_ = {"resourceSubscriptions": ["sqlite:///nowhere/t", NUMBERS, "file:///x"]}
    async with served(file, era="2026-07-28") as peer:
        params = with_envelope({"notifications": filter_})
        await peer.wire.send({"jsonrpc": "2.0", "id": "L", "method": "subscriptions/listen", "params": params})
        acknowledged = await peer.wire.receive()
    assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": [NUMBERS]}


async def test_the_health_shows_what_is_watched(file: Path) -> None:
    async with http(file) as site:
        assert (await site.health())["watching"] == {"watched": 0, "degraded": False}
        message, headers = site.stateless(
            "subscriptions/listen", {"notifications": {"resourceSubscriptions": [NUMBERS, SCHEMA]}}
        )
        async with site.stream(message, headers) as answer:
            await anext(events(answer))
            assert (await site.health())["watching"] == {"watched": 2, "degraded": False}
        with anyio.fail_after(30):
            while (await site.health())["watching"]["watched"]:
                await anyio.lowlevel.checkpoint()
