"""What passes a bridge, from clients of both eras to servers of both eras."""

from typing import Any

import anyio
import pytest

from shared.gateway.bridge import bridge
from tests.shared.gateway.bridge.upstreams import EVERY_PAIR, OLD, Behind, bridged, child, over_http
from tests.shared.server.peer import PATIENCE, talking
from tests.wire import NEWEST_HANDSHAKE, STATELESS

FORMS: dict[str, Any] = {"elicitation": {"form": {}}}


def without_tasks(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A list without what one version alone says of tasks."""
    return [{name: value for name, value in one.items() if name != "execution"} for one in listed]


@EVERY_PAIR
async def test_lists_are_those_of_the_server(version: str, mode: str) -> None:
    behind = Behind(mode=mode)
    older = min(version, NEWEST_HANDSHAKE if mode == OLD else STATELESS)
    async with bridged(behind, version) as peer, talking(behind.running, older) as direct:
        for kind in ("tools", "resources", "resourceTemplates", "prompts"):
            method = "resources/templates/list" if kind == "resourceTemplates" else f"{kind}/list"
            theirs, ours = await direct.request(method), await peer.request(method)
            assert without_tasks(ours["result"][kind]) == without_tasks(theirs["result"][kind])


@pytest.mark.slow
@EVERY_PAIR
async def test_a_server_in_a_process_is_served(version: str, mode: str) -> None:
    with anyio.fail_after(3 * PATIENCE):
        async with talking(bridge(child(mode)), version) as peer:
            assert await peer.text("long_call", seconds=0) == "Took 0 seconds in 10 steps."


@pytest.mark.slow
@EVERY_PAIR
async def test_a_server_over_http_is_served(version: str, mode: str) -> None:
    with anyio.fail_after(3 * PATIENCE):
        async with over_http(mode) as upstream, talking(bridge(upstream), version) as peer:
            assert await peer.text("long_call", seconds=0) == "Took 0 seconds in 10 steps."


async def test_it_is_ready_while_its_server_is_there() -> None:
    behind = Behind()
    behind.is_away = True
    with anyio.fail_after(PATIENCE):
        async with behind.serving() as upstream:
            app = bridge(upstream)
            assert app.ready is not None
            async with app.open() as running:
                assert await app.ready(running) == "not available: nobody answers at http://…"
            behind.is_away = False
            async with app.open() as running:
                assert await app.ready(running) is None
