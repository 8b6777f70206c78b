"""The rules of one server among several that are offered as one."""

import anyio
import pytest

from shared.gateway.bridge import bridge
from shared.gateway.rules.extension import rules
from shared.gateway.rules.names import Rules
from shared.gateway.rules.pins import Pins
from tests.quiet import quiet
from tests.shared.gateway.bridge.upstreams import EVERY_PAIR, Behind
from tests.shared.gateway.joined.members import Door, joined, small
from tests.shared.gateway.rules.test_bridged import declare, names_of
from tests.shared.server.peer import PATIENCE, server, talking


@pytest.mark.slow
@EVERY_PAIR
async def test_what_is_withheld_there_is_withheld_here(version, mode, tmp_path):
    app = server()
    for name in "abc":
        declare(app, name, f"Is {name}.")
    behind, pins = Behind(app, mode), Pins(tmp_path / "behind.pins.json")
    given = rules(Rules(deny=("c",), rename={"b": "x"}), pins=pins, name="behind")
    with anyio.fail_after(3 * PATIENCE):
        async with (
            behind.serving() as upstream,
            joined(Door("ours", small("ours")), Door("theirs", bridge(upstream, extensions=[given]))) as running,
            talking(running, version) as peer,
        ):
            assert {"a", "x"} <= set(await names_of(peer))
            assert await peer.text("x") == "b"
            assert "error" in await peer.call("c")
            behind.running.features.tools.remove("a")
            declare(behind.running.features, "a", "Is another.")
            behind.running.changes.tools()
            while "a" in await names_of(peer):
                await quiet()
            assert await peer.text("x") == "b"
            assert (await peer.call("a"))["error"]["message"] == "unknown tool: a"
