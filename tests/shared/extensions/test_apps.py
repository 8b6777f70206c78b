"""Pages for hosts: links in lists, reads of pages, views in results, and clients without apps."""

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from shared import Context, Server
from shared.auth.policy import Policy, Rules
from shared.errors import DeclarationError
from shared.extensions.access import access
from shared.extensions.apps import MIME_TYPE, UI, App, apps, show, shows_apps
from shared.extensions.tasks import tasks
from shared.protocol.identity import Principal
from shared.protocol.session.events import Outgoing
from shared.protocol.types.resources import CONDITIONAL_READS, ETAG
from shared.protocol.versions import VERSIONS
from shared.protocol.wire.jsonrpc import Message, Response
from shared.server.dispatch.limits import CallLimits
from shared.server.results import MAX_VIEW
from tests.shared.server.peer import ERAS, NEWEST_HANDSHAKE, STATELESS, server, talking

DAYS, MAP = "ui://weather/days", "ui://weather/map"
PAGE = "<!doctype html><title>Days</title>"
HOST: dict[str, Any] = {"extensions": {UI: {"mimeTypes": [MIME_TYPE]}}}
HANDSHAKES = [version.date for version in VERSIONS if not version.stateless]
each_era = pytest.mark.parametrize("version", ERAS)


def weather(*pages: App, view: Mapping[str, Any] | None = None, **options: Any) -> Server[Any]:
    """A server with two tools of the same page, and a tool without a page."""
    app = server(extensions=[apps(App(DAYS, lambda: PAGE), *pages), tasks()], **options)

    @app.tool(read_only=True, app=DAYS, meta={"own": 1})
    async def forecast(ctx: Context[Any]) -> str:
        """Tell the weather."""
        if shows_apps(ctx):
            show(ctx, view or {"days": ["sun"]})
        return "sunny"

    @app.tool(read_only=True, app=DAYS, task="optional")
    async def later(ctx: Context[Any]) -> dict[str, int]:
        """Tell it later."""
        return {"degrees": 7}

    @app.tool(read_only=True)
    async def plain() -> str:
        """Tell nothing."""
        return "nothing"

    return app


async def tools(app: Server[Any], version: str, capabilities: Any, **options: Any) -> dict[str, Any]:
    async with talking(app, version, capabilities, **options) as peer:
        listed: dict[str, Any] = (await peer.request("tools/list"))["result"]
        return listed


# Links


@pytest.mark.parametrize("version", [*HANDSHAKES, STATELESS])
async def test_tools_link_their_page_for_hosts_of_every_version(version: str) -> None:
    page = App(MAP, lambda: PAGE, border=False, permissions=("clipboardWrite",))
    async with weather(page).open() as running, talking(running, version, HOST) as peer:
        listed = {
            tool["name"]: tool.get("_meta", {}) for tool in (await peer.request("tools/list"))["result"]["tools"]
        }
        link = {"ui": {"resourceUri": DAYS}, "ui/resourceUri": DAYS}
        assert {name: meta for name, meta in listed["forecast"].items() if name != "own"} == link
        assert (listed["later"], listed["plain"]) == (link, {})
        assert version not in ERAS or listed["forecast"]["own"] == 1
        result = (await peer.request("resources/read", {"uri": MAP}))["result"]
        settings = {"csp": {}, "permissions": {"clipboardWrite": {}}, "prefersBorder": False}
        assert result["contents"][0]["_meta"]["ui"] == settings
        row = next(one for one in VERSIONS if one.date == version)
        assert running.identity.capabilities_for(row)["extensions"][UI] == {}


@each_era
async def test_a_client_without_apps_gets_the_tools_without_links(version: str) -> None:
    without = server(extensions=[tasks()])
    for tool in weather().tools.all():
        options = {"read_only": True, "task": tool.options.task, "meta": tool.options.meta}
        without.tool(**options)(tool.function.call)
    expected = await tools(without, version, {})
    kinds = [{"mimeTypes": kinds} for kinds in (None, MIME_TYPE, ["text/html"], [{}])]
    for declared in ({}, *({"extensions": {UI: settings}} for settings in ({}, 5, [], *kinds))):
        assert await tools(weather(), version, declared) == expected


async def test_a_list_with_links_is_private_in_caches() -> None:
    assert (await tools(weather(), STATELESS, HOST))["cacheScope"] == "private"
    assert (await tools(weather(), STATELESS, {}))["cacheScope"] == "public"


@pytest.mark.parametrize("version", HANDSHAKES)
async def test_tools_see_the_declared_extensions_in_every_version(version: str) -> None:
    # The scenario `server-legacy-extensions` of the conformance suite.
    app = server(extensions=[apps(App(DAYS, lambda: PAGE))])

    @app.tool(read_only=True)
    async def echo(ctx: Context[Any]) -> dict[str, Any]:
        """Tell what the client declared."""
        found: dict[str, Any] = ctx.peer.capabilities["extensions"]
        return found

    declared = {UI: {"mimeTypes": [MIME_TYPE]}, "org.example/own": {"a": [1]}}
    async with talking(app, version, {"extensions": declared}) as peer:
        assert json.loads(await peer.text("echo")) == declared


async def test_the_list_of_tools_is_built_once_for_all_hosts() -> None:
    lists: list[dict[str, Any]] = []

    class Watching:
        def on_received(self, _message: Message) -> None:
            pass

        def on_sent(self, outgoing: Sequence[Outgoing]) -> None:
            answers = [item.message for item in outgoing if isinstance(item.message, Response)]
            lists.extend(answer.result for answer in answers if "tools" in answer.result)

    async with weather().open() as running:
        running.hooks.trace = Watching()
        async with talking(running, NEWEST_HANDSHAKE, HOST) as peer:
            await peer.request("tools/list")
            await peer.request("tools/list")
    assert lists[0] is lists[1]


# Pages


@each_era
async def test_any_client_can_read_a_page_by_its_uri(version: str) -> None:
    page = {"uri": DAYS, "mimeType": MIME_TYPE, "text": PAGE, "_meta": {"ui": {"csp": {}, "prefersBorder": True}}}
    for capabilities in (HOST, {}):
        async with talking(weather(), version, capabilities) as peer:
            assert (await peer.request("resources/read", {"uri": DAYS}))["result"]["contents"] == [page]


async def test_a_page_is_loaded_once_in_a_thread_at_its_first_read() -> None:
    read = []

    def page() -> str:
        read.append(threading.current_thread())
        return PAGE

    async with talking(weather(App(MAP, page))) as peer:
        await peer.request("tools/list")
        assert not read
        await peer.request("resources/read", {"uri": MAP})
        await peer.request("resources/read", {"uri": MAP})
    assert len(read) == 1
    assert read[0] is not threading.main_thread()


async def test_a_page_with_a_matching_etag_is_not_sent_again() -> None:
    capabilities = {"extensions": {CONDITIONAL_READS: {}}}
    async with talking(weather(), STATELESS, capabilities) as peer:
        etag = (await peer.request("resources/read", {"uri": DAYS}))["result"]["_meta"][ETAG]
        assert (await peer.request("resources/read", {"uri": DAYS}, **{ETAG: etag}))["result"]["contents"] == []
        assert (await peer.request("resources/read", {"uri": DAYS}, **{ETAG: "old"}))["result"]["contents"] != []


@each_era
async def test_pages_are_in_no_list_and_unknown_pages_are_not_found(version: str) -> None:
    async with talking(weather(), version, HOST) as peer:
        assert (await peer.request("resources/list"))["result"]["resources"] == []
        assert (await peer.request("resources/templates/list"))["result"]["resourceTemplates"] == []
        for uri in ("ui://weather/other", "ui://weather/days/", "UI://weather/days", "ui://"):
            assert "error" in await peer.request("resources/read", {"uri": uri})


async def test_other_resources_can_still_be_read() -> None:
    app = weather()

    @app.resource("note://{+name}")
    async def note(name: str) -> str:
        return name

    async with talking(app, NEWEST_HANDSHAKE, HOST) as peer:
        result = (await peer.request("resources/read", {"uri": "note://one"}))["result"]
        assert result["contents"][0]["text"] == "one"


async def test_only_principals_that_may_call_the_tool_can_read_its_page() -> None:
    rules = Rules({"forecast": frozenset({"weather:ask"}), "resource:ui": frozenset({"weather:admin"})})
    app = weather()

    @app.resource("note://one")
    async def note() -> str:
        return "secret"

    async with app.open(extensions=[access(Policy("weather", rules))]) as running:
        asker = Principal("somebody", scopes=frozenset({"weather:ask"}))
        async with talking(running, NEWEST_HANDSHAKE, HOST, principal=asker) as peer:
            assert await peer.text("forecast") == "sunny"
            assert (await peer.request("resources/read", {"uri": DAYS}))["result"]["contents"][0]["text"] == PAGE
            assert "error" in await peer.request("resources/read", {"uri": "note://one"})


# Views


@each_era
async def test_hosts_get_the_view_and_all_clients_the_text(version: str) -> None:
    results = []
    for capabilities in (HOST, {}):
        async with talking(weather(), version, capabilities) as peer:
            results.append((await peer.call("forecast"))["result"])
    with_view, without = results
    assert with_view["_meta"].pop("view") == {"days": ["sun"]}
    assert {"_meta": {}, **without} == with_view


async def test_a_too_large_view_is_omitted() -> None:
    for size, is_there in [(MAX_VIEW - 20, True), (MAX_VIEW + 1, False)]:
        async with talking(weather(view={"days": "x" * size}), NEWEST_HANDSHAKE, HOST) as peer:
            result = (await peer.call("forecast"))["result"]
        assert ("view" in result.get("_meta", {})) is is_there
        assert result["content"][0]["text"] == "sunny"


async def test_a_view_does_not_count_for_the_size_of_the_result() -> None:
    budget = CallLimits(result_bytes=100)
    app = weather(view={"days": "x" * 80})
    async with app.open(budget=budget) as running, talking(running, NEWEST_HANDSHAKE, HOST) as peer:
        assert (await peer.call("forecast"))["result"] == {"content": [{"type": "text", "text": "sunny"}]}


async def test_a_tool_without_a_view_returns_its_normal_result() -> None:
    async with talking(weather(), NEWEST_HANDSHAKE, HOST) as peer:
        result = (await peer.call("later"))["result"]
    assert result["structuredContent"] == {"degrees": 7}
    assert "_meta" not in result


# Declarations


def test_an_app_requires_a_unique_ui_uri() -> None:
    for uri in ("", "ui://", "http://weather/days", "ui:weather"):
        with pytest.raises(DeclarationError, match="start with ui://"):
            App(uri, lambda: PAGE)
    with pytest.raises(DeclarationError, match="the same URI"):
        apps(App(DAYS, lambda: PAGE), App(DAYS, lambda: ""))


async def test_a_tool_with_an_unknown_app_is_refused() -> None:
    app = weather()

    @app.tool(app=MAP)
    async def lost() -> str:
        """Get lost."""
        return ""

    with pytest.raises(DeclarationError, match="'lost': there is no app"):
        async with app.open():
            pass
