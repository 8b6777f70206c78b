"""A server as a declaration, and its independent runs."""

import anyio
import pytest
from pydantic import BaseModel

from shared import Context, Features, Opening, Run
from shared.errors import DeclarationError
from shared.protocol.identity import Principal
from shared.server.dispatch.limits import CallLimits, Limits
from tests.quiet import quiet
from tests.shared.server.peer import server, talking
from tests.shared.server.test_prompts import Names, app_from
from tests.wire import STATELESS


class Greeting(BaseModel):
    word: str = "Hello"


async def formal() -> str:
    """Is not for everybody."""
    return "Good day"


def greeter():
    """A server whose state is the word in its settings."""
    app = server(settings=Greeting)

    @app.lifespan
    async def opened(opening: Opening):
        if opening.settings.word == "Hi":
            opening.features.tools.remove("formal")
        yield opening.settings.word

    @app.tool()
    async def greet(ctx: Context[str], name: str) -> str:
        """Greets."""
        return f"{ctx.state} {name}, {ctx.settings.word}"

    app.tool()(formal)
    return app


async def tools(peer):
    return [tool["name"] for tool in (await peer.request("tools/list"))["result"]["tools"]]


# Several runs of one declaration


async def test_two_runs_of_a_server_have_separate_settings():
    app = greeter()
    async with talking(app, settings=Greeting(word="Hi")) as first, talking(app) as second:
        assert await first.text("greet", name="Ada") == "Hi Ada, Hi"
        assert await second.text("greet", name="Ada") == "Hello Ada, Hello"
        assert await tools(first) == ["greet"]
        assert await tools(second) == ["greet", "formal"]  # what one lifespan takes away the next run has


async def test_changes_and_cursors_belong_to_their_run():
    app = greeter()
    app.page_size = 1
    async with app.open() as one, app.open() as other, talking(one) as first, talking(other) as second:
        one.changes.tools()
        assert (await first.receive())["method"] == "notifications/tools/list_changed"
        await second.request("ping")
        assert second.others == []
        cursor = (await first.request("tools/list"))["result"]["nextCursor"]
        assert "result" in await first.request("tools/list", {"cursor": cursor})
        assert (await second.request("tools/list", {"cursor": cursor}))["error"]["code"] == -32602


@pytest.mark.parametrize("method", ["resources/list", "prompts/list"])
async def test_a_cursor_of_a_list_that_may_differ_belongs_to_its_principal(method):
    app = app_from(Names("a b c"))
    for name in "abc":
        app.resource(f"x://{name}", name=name)(formal)
    async with (
        app.open() as running,
        talking(running, principal=Principal("key of ada", "ada")) as ada,
        talking(running, principal=Principal("key of bob", "bob")) as bob,
    ):
        cursor = (await ada.request(method))["result"]["nextCursor"]
        assert "result" in await ada.request(method, {"cursor": cursor})
        assert (await bob.request(method, {"cursor": cursor}))["error"]["code"] == -32602


async def test_each_run_has_its_own_limits():
    app = greeter()
    async with app.open(limits=Limits(subscriptions=1), budget=CallLimits(entries=2)) as one, app.open() as other:
        assert (one.calls.limits.subscriptions, one.calls.budget.entries) == (1, 2)
        assert (other.calls.limits, other.calls.budget) == (Limits(), CallLimits())


# Frozen


DECLARATIONS = {
    "a tool": lambda app: app.tool()(documented),
    "a resource": lambda app: app.resource("a:b")(documented),
    "a lister": lambda app: app.lists_resources(documented),
    "a prompt": lambda app: app.prompt()(documented),
    "prompts": lambda app: app.prompts_from(object()),
    "a completer": lambda app: app.completes("prompt", "a", "b")(documented),
    "a method": lambda app: app.method("own/method")(documented),
    "features": lambda app: app.include(Features()),
    "a lifespan": lambda app: app.lifespan(documented),
    "an error": lambda app: app.error(KeyError)(documented),
    **{
        f"on_{hook}": lambda app, hook=hook: getattr(app, f"on_{hook}")(documented)
        for hook in ("subscribe", "unsubscribe", "wanted", "health", "ready")
    },
}


async def documented() -> str:
    """Does nothing."""
    return ""


async def test_declarations_after_the_first_opening_are_refused():
    app = server()
    async with app.open():
        pass
    for declare in DECLARATIONS.values():
        with pytest.raises(DeclarationError, match="'test' has already been opened"):
            declare(app)


async def test_the_features_of_a_run_may_change():
    app = server()
    async with app.open() as running, talking(running) as peer:
        running.features.tool()(documented)
        assert running.features.tools.remove("documented")
        running.features.prompt(name="late")(documented)
        assert await tools_or_none(peer) is None
    assert len(app.tools) == 0


async def tools_or_none(peer):
    return (await peer.request("tools/list")).get("result")


# Features from elsewhere


def test_including_a_server_with_hooks_is_refused():
    other = greeter()
    other.error(KeyError)(documented)
    with pytest.raises(
        DeclarationError,
        match=r"test_server\.py:\d+: .* the server 'test' also has a lifespan, settings, @error handlers: .*Features",
    ):
        server().include(other)


async def test_a_server_with_features_only_can_be_included():
    other, app = server(), server()
    other.tool()(documented)
    app.include(other)
    async with talking(app) as peer:
        assert await tools(peer) == ["documented"]


def library():
    """Features without a server."""
    features = Features[str]()

    @features.tool()
    async def own(ctx: Context[str]) -> str:
        """Says its state."""
        return str(ctx.state)

    features.resource("a:b")(documented)
    features.prompt()(documented)
    return features


async def test_a_server_offers_what_it_includes():
    app = server(include=[library()])

    @app.tool()
    async def more() -> str:
        """Is declared by the server."""
        return "more"

    async with talking(app) as peer:
        assert await tools(peer) == ["own", "more"]
        assert await peer.text("own") == "None"
        assert len((await peer.request("resources/list"))["result"]["resources"]) == 1
        assert len((await peer.request("prompts/list"))["result"]["prompts"]) == 1


def test_including_features_twice_is_refused():
    with pytest.raises(DeclarationError, match="there is already a tool 'own'"):
        server(include=[library(), library()])


async def test_hooks_get_their_own_run():
    app, seen = server(), []
    app.resource("a:{b}")(numbered)

    @app.on_subscribe
    async def begin(ctx: Context[None], uri: str) -> str:
        return uri

    @app.on_unsubscribe
    async def end(running: Run[None], key: str) -> None:
        seen.append((running, key))

    @app.on_wanted
    async def wanted(running: Run[None]) -> None:
        seen.append(running)

    async with app.open() as one, app.open() as other, talking(other) as peer:
        await peer.request("resources/list")
        await peer.request("resources/subscribe", {"uri": "a:b"})
    assert seen == [other, (other, "a:b")]
    assert one is not other


@pytest.mark.parametrize(
    ("decorator", "requested"),
    [("on_wanted", {"resourcesListChanged": True}), ("on_subscribe", {"resourceSubscriptions": ["a:b"]})],
)
async def test_a_stream_is_acknowledged_once_its_resources_are_watched(decorator, requested):
    app, watched, called = server(), anyio.Event(), []
    app.resource("a:{b}")(numbered)

    async def watch(*arguments: object) -> None:
        called.append(arguments)
        await watched.wait()

    async def watch_list(running: Run[None]) -> None:
        await watch(running)

    async def watch_one(ctx: Context[None], uri: str) -> str:
        await watch(ctx, uri)
        return uri

    getattr(app, decorator)(watch_list if decorator == "on_wanted" else watch_one)
    async with talking(app, STATELESS) as peer:
        await peer.begin("subscriptions/listen", {"notifications": requested})
        await quiet()
        await peer.request("resources/read", {"uri": "a:b"})
        others = list(peer.others)
        watched.set()
        await peer.other("notifications/subscriptions/acknowledged")
    assert (len(called), others) == (1, [])


async def numbered(b: str) -> str:
    return b
