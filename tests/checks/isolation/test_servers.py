"""State of a server for one principal, requested by another: with a session, and without."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from servers.everything.server import app as everything
from servers.fetch.server import app as fetch
from servers.fetch.settings import Settings as FetchSettings
from servers.sqlite.server import app as sqlite
from servers.sqlite.settings import Settings as SqliteSettings
from shared import Context, Implementation, Resource, Server
from tests.checks.isolation.parties import TOKENS, Party, parties, parties_at
from tests.servers.fetch.sites import answer, opened_site
from tests.shared.transports.http.http_wire import Json, events

with_and_without_sessions = pytest.mark.parametrize("lasts", [True, False], ids=["session", "stateless"])
every_way = pytest.mark.parametrize(
    ("lasts", "tokens"),
    [
        pytest.param(True, TOKENS, id="sessions of principals"),
        pytest.param(False, TOKENS, id="principals without sessions"),
        pytest.param(True, (), id="sessions of nobody"),
        pytest.param(False, (), id="addresses"),
    ],
)
REACHING = FetchSettings(allow_private=["127.0.0.1:*"])
QUERY = "SELECT n FROM t ORDER BY n"


@pytest.fixture
def settings(tmp_path: Path) -> SqliteSettings:
    with closing(sqlite3.connect(tmp_path / "data.db")) as connection:
        connection.executescript("CREATE TABLE t (n); INSERT INTO t VALUES (1), (2), (3);")
    return SqliteSettings(databases=[tmp_path / "data.db"])


async def both(given: tuple[Party, Party], lasts: bool) -> Sequence[Party]:
    return [await one.opened() if lasts else one for one in given]


async def read(one: Party, uri: str) -> Json:
    return await one.ask("resources/read", {"uri": uri})


async def assert_own(given: tuple[Party, Party], lasts: bool) -> None:
    """What a server of databases keeps for Alice is none of Bob's: cursors, exports and insights."""
    alice, bob = await both(given, lasts)
    first = (await alice.call("read_query", query=QUERY, max_rows=1))["structuredContent"]
    going_on = {"query": QUERY, "max_rows": 1, "cursor": first["next_cursor"]}
    assert (await bob.text("read_query", **going_on)).startswith("bad_cursor: ")
    assert (await alice.call("read_query", **going_on))["structuredContent"]["rows"] == [[2]]
    content = (await alice.call("export", query=QUERY, format="csv"))["content"]
    uri = next(block["uri"] for block in content if "uri" in block)
    assert "error" in await read(bob, uri)
    assert (await read(alice, uri))["result"]["contents"][0]["text"] == "n\r\n1\r\n2\r\n3\r\n"
    await alice.call("append_insight", insight="Ada pays late")
    memos = [(await read(one, "memo://insights"))["result"]["contents"][0]["text"] for one in (alice, bob)]
    # Whoever is nobody shares the insights with all others that are.
    assert ["Ada" in memo for memo in memos] == [True, not alice.identity]


@every_way
async def test_state_of_a_database_belongs_to_the_principal(
    settings: SqliteSettings, lasts: bool, tokens: tuple[str, ...]
) -> None:
    async with parties(sqlite, settings, tokens) as given:
        await assert_own(given, lasts)


async def test_insight_updates_reach_only_their_principal(settings: SqliteSettings) -> None:
    async with parties(sqlite, settings) as given:
        alice, bob = await both(given, True)
        for one in (alice, bob):
            await one.ask("resources/subscribe", {"uri": "memo://insights"})
        stream = alice.site.client.stream("GET", "/mcp", headers={**bob.headers, "Accept": "text/event-stream"})
        async with stream as response:
            told = events(response)
            await alice.call("append_insight", insight="Ada pays late")
            alice.site.running.changes.tools()
            assert (await anext(told))["method"] == "notifications/tools/list_changed"
            await bob.call("append_insight", insight="rows are few")
            assert (await anext(told))["params"]["uri"] == "memo://insights"


@every_way
async def test_fetched_pages_belong_to_the_principal(lasts: bool, tokens: tuple[str, ...]) -> None:
    pages = [answer("first text, and more", content_type="text/plain"), answer("other", content_type="text/plain")]
    async with opened_site({"/": pages[0]}) as site, parties(fetch, REACHING, tokens) as given:
        alice, bob = await both(given, lasts)
        assert "first" in await alice.text("fetch", url=site.url(), max_length=5)
        site.routes["/"] = pages[1]
        listed = [(await one.ask("resources/list"))["result"]["resources"] for one in (alice, bob)]
        assert [bool(resources) for resources in listed] == [True, False]
        assert "text, and more" in await alice.text("fetch", url=site.url(), start_index=6)
        assert "and more" not in await bob.text("fetch", url=site.url(), start_index=6)


async def test_the_page_cache_is_shared_since_requests_carry_no_identity() -> None:
    page = answer("text", content_type="text/plain", cache_control="max-age=60")
    async with opened_site({"/": page}) as site, parties(fetch, REACHING) as given:
        for one in given:
            assert "text" in await one.text("fetch", url=site.url())
        (request,) = site.requests
        assert not {"authorization", "cookie", "referer"} & request.headers.keys()


# Lists that are others for each principal


def listing() -> Server[None]:
    """A server that lists resources of whoever asks, one on each page."""
    app = Server[None](Implementation(name="listing", version="1"))
    app.page_size = 1

    @app.lists_resources
    async def resources(ctx: Context[None]) -> list[Resource]:
        return [Resource(uri=f"own://{ctx.owner}/{n}", name=str(n)) for n in range(3)]

    return app


@with_and_without_sessions
async def test_a_list_cursor_belongs_to_the_principal(lasts: bool) -> None:
    async with parties(listing()) as given:
        alice, bob = await both(given, lasts)
        cursor = (await alice.ask("resources/list"))["result"]["nextCursor"]
        assert (await bob.ask("resources/list", {"cursor": cursor}))["error"]["code"] == -32602
        assert (await alice.ask("resources/list", {"cursor": cursor}))["result"]["resources"][0]["name"] == "1"


async def test_a_task_list_cursor_belongs_to_the_principal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(everything, "page_size", 1)
    async with everything.open() as running, parties_at(running) as given:
        alice, bob = await both(given, True)
        for one in (alice, alice, bob, bob):
            await asking_task(one)
        cursor = (await alice.ask("tasks/list"))["result"]["nextCursor"]
        assert (await bob.ask("tasks/list", {"cursor": cursor}))["error"]["code"] == -32602
        assert len((await alice.ask("tasks/list", {"cursor": cursor}))["result"]["tasks"]) == 1


# Tasks

OF_A_TASK: dict[str, Json] = {
    "tasks/get": {},
    "tasks/cancel": {},
    "tasks/update": {"inputResponses": {"confirm": {"action": "accept", "content": {"confirm": True}}}},
}


async def asking_task(one: Party) -> str:
    """A task that waits for an answer of that party."""
    params: Json = {"name": "confirm_delete", "arguments": {"filename": "a"}}
    result = (await one.ask("tools/call", {**params, **({"task": {}} if one.session else {})}))["result"]
    id_: str = result["task"]["taskId"] if one.session else result["taskId"]
    while (await status(one, id_)) != "input_required":
        pass
    return id_


async def status(one: Party, id: str) -> Any:
    return (await one.ask("tasks/get", {"taskId": id}))["result"]["status"]


async def test_a_task_belongs_to_the_principal() -> None:
    async with parties(everything) as (alice, bob):
        id_ = await asking_task(alice)
        for method, more in OF_A_TASK.items():
            refused = (await bob.ask(method, {"taskId": id_, **more}))["error"]
            unknown = (await bob.ask(method, {"taskId": "none", **more}))["error"]
            assert (refused["code"], refused["message"]) == (-32602, unknown["message"].replace("none", id_))
        assert await status(alice, id_) == "input_required"
        message, headers = bob.message("subscriptions/listen", {"notifications": {"taskIds": [id_]}})
        async with bob.site.stream(message, headers) as response:
            assert id_ not in str(await anext(events(response)))


async def test_a_task_of_an_older_version_belongs_to_the_principal() -> None:
    async with parties(everything) as given:
        alice, bob = await both(given, True)
        id_ = await asking_task(alice)
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            assert (await bob.ask(method, {"taskId": id_}))["error"]["code"] == -32602
        assert (await bob.ask("tasks/list"))["result"]["tasks"] == []
        assert [task["taskId"] for task in (await alice.ask("tasks/list"))["result"]["tasks"]] == [id_]
        assert await status(alice, id_) == "input_required"


async def test_tasks_of_one_version_are_unknown_in_another() -> None:
    async with parties(everything) as (alice, _):
        older = await alice.opened()
        assert (await older.ask("tasks/get", {"taskId": await asking_task(alice)}))["error"]["code"] == -32602
        assert (await alice.ask("tasks/get", {"taskId": await asking_task(older)}))["error"]["code"] == -32602


async def test_a_question_of_a_task_reaches_only_its_principal() -> None:
    async with parties(everything) as given:
        alice, bob = await both(given, True)
        id_ = await asking_task(alice)
        get = {"Accept": "text/event-stream"}
        async with bob.site.client.stream("GET", "/mcp", headers={**bob.headers, **get}) as response:
            assert "error" in await bob.ask("tasks/result", {"taskId": id_})
            bob.site.running.changes.tools()
            assert (await anext(events(response)))["method"] == "notifications/tools/list_changed"
