"""The rules of a server behind a bridge, for clients and servers of either era."""

import anyio
import pytest

from servers.gateway.rules.extension import rules
from servers.gateway.rules.names import Rules
from servers.gateway.rules.pins import Pins
from shared import Context
from tests.clock import forward
from tests.quiet import quiet
from tests.servers.gateway.apps import HOST, PAGE, linked, notes
from tests.servers.gateway.bridge.upstreams import EVERY_PAIR, NEW, OLD, Behind, bridged
from tests.shared.server.peer import NEWEST_HANDSHAKE, STATELESS, server


def declare(features, name, description):
    @features.tool(name=name, description=description)
    async def said(ctx: Context[None], times: int = 1) -> str:
        """Says its name."""
        await ctx.progress(1)
        return name * times


@pytest.fixture
def app():
    """The server behind the bridge: two tools, one per page."""
    made = server()
    made.page_size = 1
    for name in ("a", "b"):
        declare(made, name, f"Is {name}.")
    return made


async def names_of(peer):
    found, cursor = [], {}
    while True:
        result = (await peer.request("tools/list", cursor))["result"]
        found += [tool["name"] for tool in result["tools"]]
        if "nextCursor" not in result:
            return found
        cursor = {"cursor": result["nextCursor"]}


@EVERY_PAIR
async def test_tools_are_filtered_and_renamed(app, version, mode):
    given = rules(Rules(deny=("a",), rename={"b": "x"}, describe={"b": "Other words."}))
    async with bridged(Behind(app, mode), version, extensions=[given]) as peer:
        [tool] = (await peer.request("tools/list"))["result"]["tools"]
        assert (tool["name"], tool["description"]) == ("x", "Other words.")
        answer = await peer.request("tools/call", {"name": "x", "arguments": {"times": 2}}, progressToken="t")
        assert answer["result"]["content"][0]["text"] == "bb"
        assert (await peer.other("notifications/progress"))["params"]["progressToken"] == "t"
        assert [(await peer.call(name))["error"]["code"] for name in ("a", "b")] == [-32602, -32602]


@EVERY_PAIR
async def test_tools_that_changed_are_withheld(app, version, mode, tmp_path):
    behind, pins = Behind(app, mode), Pins(tmp_path / "behind.pins.json")
    async with bridged(behind, version, extensions=[rules(Rules(), pins=pins, name="behind")]) as peer:
        assert await peer.text("a") == "a"
        assert pins.names == ["a", "b"]
        behind.running.features.tools.remove("a")
        declare(behind.running.features, "a", "Is another.")
        behind.running.changes.tools()
        assert await names_of(peer) == ["b"]
        assert "the definition of a changed since it was pinned" in await peer.text("a")
        assert await peer.text("b") == "b"


@pytest.mark.parametrize("mode", [OLD, NEW])
async def test_a_call_after_an_announced_change_is_checked_first(app, mode, tmp_path):
    behind, pins = Behind(app, mode), Pins(tmp_path / "behind.pins.json")
    async with bridged(behind, NEWEST_HANDSHAKE, extensions=[rules(Rules(), pins=pins, name="behind")]) as peer:
        assert await peer.text("a") == "a"
        behind.running.features.tools.remove("a")
        declare(behind.running.features, "a", "Is another.")
        behind.running.changes.tools()
        # That a server of the newest era is heard is told as a change as well.
        while (said := await peer.text("a")) == "a":
            await peer.other("notifications/tools/list_changed")
        assert "the definition of a changed since it was pinned" in said


async def test_tools_changed_during_a_disconnect_are_withheld(app, tmp_path):
    behind, pins = Behind(app, NEW), Pins(tmp_path / "behind.pins.json")
    async with bridged(behind, STATELESS, extensions=[rules(Rules(), pins=pins, name="behind")]) as peer:
        assert await peer.text("a") == "a"
        behind.running.features.tools.remove("a")
        declare(behind.running.features, "a", "Is another.")
        await behind.lose()
        while "error" in (answer := await peer.call("a")):
            await quiet()
            forward(1)
        assert "the definition of a changed since it was pinned" in answer["result"]["content"][0]["text"]


@EVERY_PAIR
async def test_a_call_over_its_time_limit_is_cancelled_at_the_server(version, mode):
    begun, ended = anyio.Event(), anyio.Event()
    slow = server()

    @slow.tool()
    async def wait() -> str:
        """Waits for ever."""
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return ""

    async with bridged(Behind(slow, mode), version, extensions=[rules(Rules(seconds=20))]) as peer:
        id_ = await peer.start("wait")
        await begun.wait()
        forward(20)
        assert "stopped after 20 s" in (await peer.answer(id_))["result"]["content"][0]["text"]
        await ended.wait()


async def test_pages_are_not_pinned_or_counted_in_the_result_limit(tmp_path):
    behind, text = Behind(notes("x" * 150)), [{"type": "text", "text": "x" * 150}]
    for capabilities in ({}, HOST, {}):
        kept = Rules(rename={"read_notes": "notes"}, result_bytes=300)
        given = rules(kept, pins=Pins(tmp_path / "pins.json"), name="behind")
        async with bridged(behind, NEWEST_HANDSHAKE, capabilities, extensions=[given]) as peer:
            assert await linked(peer) == ({"notes": PAGE} if capabilities else {})
            result = (await peer.call("notes"))["result"]
            assert (result["content"], "view" in result.get("_meta", {})) == (text, False)


async def test_a_result_over_the_size_limit_is_refused(app):
    async with bridged(Behind(app), NEWEST_HANDSHAKE, extensions=[rules(Rules(result_bytes=1000))]) as peer:
        result = (await peer.call("a", times=2000))["result"]
    assert result["isError"]
    assert "exceeds the limit of 1,000 per call" in result["content"][0]["text"]
