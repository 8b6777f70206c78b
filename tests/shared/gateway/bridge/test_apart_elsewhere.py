"""What belongs to no call, with servers in processes of their own and over HTTP."""

import pytest

from shared.gateway.bridge import Upstream, bridge
from tests.shared.gateway.bridge.telling import MODES
from tests.shared.gateway.bridge.test_subscriptions import subscribed, updated
from tests.shared.gateway.bridge.upstreams import child, over_http
from tests.shared.server.peer import ERAS, STATELESS, talking

WATCHED = "test://watched-resource"

pytestmark = pytest.mark.slow


async def hears_of_all(upstream: Upstream, version: str, *, is_one: bool = True) -> None:
    """Has a client hear of a resource, and of a list, that a tool of the server's changes. Where calls and
    subscriptions go to one process, which `is_one` says, the resource is told of."""
    async with talking(bridge(upstream), version) as peer:
        await subscribed(peer, WATCHED, toolsListChanged=True)
        assert "at version" in await peer.text("trigger_resource_update")
        if is_one:
            assert await updated(peer) == WATCHED
        assert "extra_tool" in await peer.text("test_trigger_tool_change")
        await peer.other("notifications/tools/list_changed")


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_over_http(mode: str, version: str) -> None:
    async with over_http(mode) as upstream:
        await hears_of_all(upstream, version)


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_in_a_process(mode: str, version: str) -> None:
    await hears_of_all(child(mode), version, is_one=(mode, version) != ("handshake", STATELESS))


@pytest.mark.parametrize("version", ERAS)
async def test_in_a_process_that_all_share(version: str) -> None:
    await hears_of_all(child("handshake", shared=True), version)
