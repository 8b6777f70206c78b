"""Pages of a server behind a bridge: a client that shows them is told of them, and nobody else is."""

from pathlib import Path
from typing import Any

from shared.gateway.bridge import bridge
from shared.gateway.rules.extension import rules
from shared.gateway.rules.names import Rules
from shared.gateway.rules.pins import Pins
from tests.shared.gateway.apps import HOST, PAGE, linked, notes, shown, title
from tests.shared.gateway.bridge.upstreams import EVERY_PAIR, OLD, Behind, bridged
from tests.shared.server.peer import NEWEST_HANDSHAKE, talking


@EVERY_PAIR
async def test_a_page_and_what_it_shows_pass_a_bridge(version: str, mode: str) -> None:
    async with bridged(Behind(notes(), mode), version, HOST) as peer:
        assert await linked(peer) == {"read_notes": PAGE}
        assert await title(peer, PAGE) == "a note"
        assert await shown(peer) == {"notes": ["a note"]}


@EVERY_PAIR
async def test_each_client_of_a_bridge_sees_what_it_declared(version: str, mode: str) -> None:
    behind = Behind(notes(), mode)
    async with behind.serving() as way, bridge(way).open() as running:
        for capabilities, links in ((HOST, {"read_notes": PAGE}), ({}, {}), (HOST, {"read_notes": PAGE})):
            async with talking(running, version, capabilities) as peer:
                assert await linked(peer) == links
                assert (await shown(peer) is not None) is bool(links)


@EVERY_PAIR
async def test_a_bridge_declares_what_the_server_does(version: str, mode: str) -> None:
    behind = Behind(notes(), mode)
    async with behind.serving() as way, bridge(way).open() as running:
        assert running.identity.capabilities["extensions"]["io.modelcontextprotocol/ui"] == {}


async def test_in_a_session_that_all_share_nobody_shows_pages() -> None:
    # What the server would say of them there it would say to all.
    behind = Behind(notes(), OLD)
    async with behind.serving(shared=True) as way, talking(bridge(way), NEWEST_HANDSHAKE, HOST) as peer:
        assert await linked(peer) == {}
        assert await shown(peer) is None
        assert await title(peer, PAGE) == "a note"


@EVERY_PAIR
async def test_a_limit_of_results_is_not_spent_on_the_page(version: str, mode: str) -> None:
    given = rules(Rules(result_bytes=300))
    async with bridged(Behind(notes("x" * 150), mode), version, HOST, extensions=[given]) as peer:
        result = (await peer.call("read_notes"))["result"]
        assert result["content"] == [{"type": "text", "text": "x" * 150}]
        assert "view" not in result.get("_meta", {})


@EVERY_PAIR
async def test_a_page_is_none_of_what_is_pinned(version: str, mode: str, tmp_path: Path) -> None:
    pins, behind = tmp_path / "pins.json", Behind(notes(), mode)
    calls: list[Any] = []
    for capabilities in ({}, HOST, {}):
        given = rules(Rules(rename={"read_notes": "notes"}), pins=Pins(pins), name="behind")
        async with bridged(behind, version, capabilities, extensions=[given]) as peer:
            calls.append((await linked(peer), await peer.text("notes")))
    assert calls == [({}, "a note"), ({"notes": PAGE}, "a note"), ({}, "a note")]
