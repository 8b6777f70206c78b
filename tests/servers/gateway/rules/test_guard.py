"""Tools whose definitions are not the pinned ones: listing and calling them."""

from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from servers.gateway.rules.extension import rules
from servers.gateway.rules.names import Rules
from servers.gateway.rules.pins import Pins
from shared import Context
from shared.protocol.methods import REQUESTS
from shared.protocol.types.base import CLIENT_INFO
from shared.server.extension import Extension
from tests.shared.server.peer import NEWEST_HANDSHAKE, STATELESS, server, talking

CHANGED = (
    "the definition of a changed since it was pinned; its operator can accept it with: "
    "mcp-server-bundle pin other --accept"
)


def declare(features, name, description):
    @features.tool(name=name, description=description)
    async def said() -> str:
        """Says its name."""
        return name


def pinned(path, *names, page_size=100, **given):
    app = server(extensions=[rules(Rules(**given), pins=Pins(path), name="other")], capabilities={"logging": {}})
    app.page_size = page_size
    for name in names:
        declare(app, name, f"Is {name}.")
    return app


@pytest.fixture
def path(tmp_path):
    return tmp_path / "other.pins.json"


class Other:
    """A server behind its rules, whose tools may change."""

    def __init__(self, running, peer):
        self.running = running
        self.peer = peer

    def change(self, name="a", description="Is another.", *, say=True):
        self.running.features.tools.remove(name)
        declare(self.running.features, name, description)
        if say:
            self.running.changes.tools()

    async def names(self, **params):
        result = (await self.peer.request("tools/list", params))["result"]
        return [tool["name"] for tool in result["tools"]]

    async def text(self, name):
        return await self.peer.text(name)

    def list_by(self, replaced):
        """Replace the listing of tools by a function that gets the original one."""
        before = self.running.features.tools.entries
        self.running.features.tools.entries = lambda settings: replaced(lambda: before(settings))

    def count_lists(self):
        """Return a list that grows by one entry with each listing."""
        listed = []
        self.list_by(lambda before: listed.append(1) or before())
        return listed


@asynccontextmanager
async def serving(app, version=NEWEST_HANDSHAKE):
    async with app.open() as running, talking(running, version) as peer:
        yield Other(running, peer)


def lines(caplog):
    return [one.getMessage() for one in caplog.records if one.name == "shared.gateway" and one.levelname == "WARNING"]


async def test_changed_and_new_tools_are_withheld(path):
    async with serving(pinned(path, "a", "b")) as other:
        assert await other.names() == ["a", "b"]
        other.change()
        assert await other.names() == ["b"]
        result = (await other.peer.call("a"))["result"]
        assert (result["isError"], result["content"][0]["text"]) == (True, CHANGED)
        assert await other.text("b") == "b"
        declare(other.running.features, "z", "Is new.")
        other.running.changes.tools()
        assert await other.names() == ["b"]
        assert "the definition of z is not pinned; its operator can accept" in await other.text("z")


async def test_pins_persist_and_apply_to_each_run(path):
    async with serving(pinned(path, "a")) as other:
        await other.names()
    app = pinned(path, "a")
    async with serving(app) as one, serving(app) as other:
        assert await one.text("a") == "a"
        other.change(say=False)
        assert await other.text("a") == CHANGED
        assert await one.text("a") == "a"


async def test_a_call_is_checked_without_a_previous_list(path):
    async with serving(pinned(path, "a")) as other:
        assert await other.text("a") == "a"
        other.change()
        assert await other.text("a") == CHANGED
        other.change(description="Is a.")
        assert await other.text("a") == "a"


async def test_the_first_list_pins_all_pages_and_denied_tools(path, caplog):
    async with serving(pinned(path, "a", "b", "c", page_size=1, deny=("c",))) as other:
        await other.names()
        assert Pins(path).names == ["a", "b", "c"]
        # Of changes of tools that are not allowed nobody is told.
        other.change("c")
        assert await other.text("a") == "a"
    assert lines(caplog) == []


async def test_an_empty_list_pins_nothing(path):
    app = pinned(path, "a")
    async with serving(app) as other:
        tool = other.running.features.tools
        tool.remove("a")
        assert await other.names() == []
        declare(other.running.features, "a", "Is a.")
        assert await other.names() == ["a"]


async def test_an_unannounced_change_is_detected_in_the_next_list(path):
    async with serving(pinned(path, "a")) as other:
        assert await other.text("a") == "a"
        other.change(say=False)
        assert await other.names() == []
        assert await other.text("a") == CHANGED
        other.change(description="Is a.", say=False)
        assert await other.names() == ["a"]
        assert await other.text("a") == "a"


async def test_a_change_during_a_call_does_not_withhold_its_result(path):
    app = pinned(path)
    begun, going = anyio.Event(), anyio.Event()

    @app.tool(description="Waits.")
    async def a() -> str:
        """Waits."""
        begun.set()
        await going.wait()
        return "done"

    async with serving(app) as other:
        id_ = await other.peer.start("a")
        await begun.wait()
        other.change()
        going.set()
        assert (await other.peer.answer(id_))["result"]["content"][0]["text"] == "done"


async def test_tools_that_change_during_the_listing_are_listed_again(path):
    app = pinned(path, "a")
    async with serving(app) as other:
        await other.names()
        other.change(description="Is another.")
        before, listed = other.running.features.tools.entries, []

        def list_tools(settings):
            found = before(settings)
            if not listed:
                other.change(description="Is a.")
            listed.append(found)
            return found

        other.running.features.tools.entries = list_tools
        assert await other.text("a") == "a"
    assert len(listed) == 2


async def test_constantly_changing_tools_are_judged_by_the_last_list(path):
    async with serving(pinned(path, "a")) as other:
        await other.names()
        other.change()
        other.list_by(lambda before: other.running.changes.tools() or before())
        assert await other.text("a") == CHANGED


async def test_accepting_a_change_shows_and_announces_the_tool(path):
    async with serving(pinned(path, "a")) as other:
        await other.names()
        other.change()
        assert await other.text("a") == CHANGED
        await other.peer.other("notifications/tools/list_changed")
        Pins(path).record(other.running.features.tools.entries(None), shows_apps=True)
        assert await other.text("a") == "a"
        await other.peer.other("notifications/tools/list_changed")
        assert not other.running.conditions.active


async def test_withholding_a_tool_is_logged_once(path, caplog):
    async with serving(pinned(path, "a", "b", rename={"a": "x"})) as other:
        await other.names()
        other.change()
        for _ in range(2):
            await other.names()
            assert "the definition of x changed" in await other.text("x")  # as its client knows it
            other.running.changes.tools()
        message = await other.peer.other("notifications/message")
    said = "other: withheld, because their definitions do not match the pins: a"
    assert lines(caplog) == [f"{said}; accept with: mcp-server-bundle pin other --accept"]
    assert (message["params"]["level"], message["params"]["data"]) == ("warning", said)


async def test_tool_names_can_not_forge_log_lines(path, caplog):
    async with serving(pinned(path, "a")) as other:
        await other.names()
        before = other.running.features.tools.entries
        other.running.features.tools.entries = lambda settings: [
            *({**tool, "name": "x\nERROR forged\x1b[2J"} for tool in before(settings)),
            *({"name": f"t{number}", "inputSchema": {}} for number in range(9)),
        ]
        other.running.changes.tools()
        await other.names()
    assert lines(caplog)[0].startswith(
        "other: withheld, because their definitions do not match the pins: x ERROR forged\\x1b[2J, t0, t1, t2, t3 "
        "and 5 more; accept with"
    )


async def test_pins_that_can_not_be_written_apply_in_this_process(path, caplog):
    app = pinned(path.parent / "file" / "other.pins.json", "a")
    path.parent.joinpath("file").write_text("stands where a directory is wanted")
    async with serving(app) as other:
        assert await other.names() == ["a"]
        other.change()
        assert await other.text("a") == CHANGED
    assert "its tools are pinned only until this program ends" in lines(caplog)[0]


async def test_concurrent_calls_list_the_tools_once(path):
    async with serving(pinned(path, "a"), STATELESS) as other:
        await other.names()
        other.running.changes.tools()
        listed = other.count_lists()
        ids = [await other.peer.start("a") for _ in range(5)]
        for id_ in ids:
            assert not (await other.peer.answer(id_))["result"].get("isError")
    assert len(listed) == 1


async def test_a_page_listed_before_a_change_does_not_permit_later_calls(path):
    async with serving(pinned(path, "a")) as other:
        await other.names()
        before = other.running.features.tools.entries

        def list_tools(settings):
            found = before(settings)
            other.running.features.tools.entries = before
            other.change()
            return found

        other.running.features.tools.entries = list_tools
        assert await other.names() == ["a"]
        assert await other.text("a") == CHANGED


async def test_an_unknown_tool_is_looked_up_once(path):
    async with serving(pinned(path, "a")) as other:
        await other.names()
        other.running.changes.tools()
        listed = other.count_lists()
        for name in ("none", "none", "neither"):
            assert (await other.peer.call(name))["error"]["message"] == f"unknown tool: {name}"
    # Once for the guard, and once for the names that each error may propose.
    assert len(listed) == 1 + 3


async def test_a_formerly_unknown_tool_is_looked_up_after_a_change(path):
    async with serving(pinned(path, "a")) as other:
        assert (await other.peer.call("z"))["error"]["message"] == "unknown tool: z"
        declare(other.running.features, "z", "Is new.")
        other.running.changes.tools()
        assert "the definition of z is not pinned" in await other.text("z")


async def test_later_rounds_of_a_permitted_call_continue(path):
    app = pinned(path)

    @app.tool(description="Asks.")
    async def a(ctx: Context[Any]) -> str:
        """Asks."""
        return str(len(await ctx.roots()))

    async with app.open() as running, talking(running, STATELESS, {"roots": {}}) as peer:
        asked = (await peer.call("a"))["result"]
        # Its tool stays, so that the round goes on there; only its definition is another one.
        running.features.tools._tools["a"].__dict__["entry"] = {"name": "a", "inputSchema": {"type": "object"}}
        running.changes.tools()
        params = {"name": "a", "arguments": {}, "requestState": asked["requestState"]}
        params["inputResponses"] = {"roots": {"roots": []}}
        assert (await peer.request("tools/call", params))["result"]["content"][0]["text"] == "0"
        assert await Other(running, peer).text("a") == CHANGED


async def test_the_guard_lists_as_the_caller_without_notifying_it(path):
    seen = []

    def around(method, handler):
        async def noting(running, context, params):
            seen.append((context.call.method.name, context.call.raw, context.call.token))
            return await handler(running, context, params)

        return noting if method.name == "tools/list" else handler

    app = server(extensions=[Extension("noting", around=around), rules(Rules(), pins=Pins(path), name="other")])
    declare(app, "a", "Is a.")
    async with talking(app) as peer:
        params = {"name": "a", "arguments": {}, "_meta": {"progressToken": 1, "org.example/who": "me"}}
        assert (await peer.request("tools/call", params))["result"]["content"][0]["text"] == "a"
    assert seen[0] == ("tools/list", {"_meta": {"org.example/who": "me"}}, None)


async def test_wrapping_further_methods_later_starts_no_run(path):
    app = pinned(path, "a")
    async with app.open() as running, talking(running) as peer:
        other = Other(running, peer)
        assert await other.text("a") == "a"
        for _ in range(2):
            running.wrap(next(row for row in REQUESTS if row.name == "resources/subscribe"), None)
        other.change()
        assert await other.text("a") == CHANGED
    async with serving(app) as other:
        assert await other.text("a") == "a"


async def test_no_client_waits_for_the_listing_of_another(path):
    hanging = anyio.Event()

    def around(method, handler):
        async def handle(running, context, params):
            if context.peer.info["name"] == "hangs":
                hanging.set()
                await anyio.sleep_forever()
            return await handler(running, context, params)

        return handle if method.name == "tools/list" else handler

    app = server(extensions=[Extension("hanging", around=around), rules(Rules(), pins=Pins(path), name="other")])
    declare(app, "a", "Is a.")
    async with app.open() as running, talking(running, STATELESS) as one, talking(running, STATELESS) as other:
        for pinned_already in (False, True):
            running.changes.tools()
            id_ = await one.begin("tools/call", {"name": "a", "arguments": {}}, **{CLIENT_INFO: {"name": "hangs"}})
            await hanging.wait()
            hanging = anyio.Event()
            assert Pins(path).is_new is not pinned_already
            assert await other.text("a") == "a"
            await one.cancel(id_)
