"""Servers over HTTP and in separate processes behind a bridge: calls, and messages outside calls."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import pytest

from servers.gateway.bridge import Upstream, bridge
from tests.servers.gateway.bridge.upstreams import NEW, OLD, child, over_http
from tests.servers.gateway.changes import subscribed, updated
from tests.shared.server.peer import ERAS, STATELESS, talking

WATCHED = "test://watched-resource"


@asynccontextmanager
async def in_a_process(mode: str, *, shared: bool = False) -> AsyncIterator[Upstream]:
    yield child(mode, shares_session=shared)


WAYS = {
    "HTTP, sessions": partial(over_http, OLD),
    "HTTP, stateless": partial(over_http, NEW),
    "a process for each session": partial(in_a_process, OLD),
    "a process without sessions": partial(in_a_process, NEW),
    "a process that all share": partial(in_a_process, OLD, shared=True),
}


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_calls_are_answered_and_changes_are_forwarded(
    way: Callable[[], AbstractAsyncContextManager[Upstream]], version: str
) -> None:
    async with way() as upstream, talking(bridge(upstream), version) as peer:
        assert await peer.text("long_call", seconds=0) == "Took 0 seconds in 10 steps."
        await subscribed(peer, WATCHED, toolsListChanged=True)
        assert "at version" in await peer.text("trigger_resource_update")
        # What a client without sessions changes in the process of its call, the bridge's own process does not know.
        if (way, version) != (WAYS["a process for each session"], STATELESS):
            assert await updated(peer) == WATCHED
        assert "extra_tool" in await peer.text("test_trigger_tool_change")
        await peer.other("notifications/tools/list_changed")
