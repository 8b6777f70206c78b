"""Subscriptions over a bridge: one at the server for many clients, and who hears of what."""

from typing import Any

import pytest

from tests.gateway.bridge.behind import Behind
from tests.server.peer import ERAS, STATELESS, Peer, talking

MODES = ("handshake", "stateless")
ONE = "memo://one"


async def subscribed(peer: Peer, *uris: str, **lists: bool) -> Any:
    """Subscribes to `uris` in the words of the era; the id of a listen stream."""
    if peer.version == STATELESS:
        id_ = await peer.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": [*uris], **lists}})
        acknowledged = await peer.other("notifications/subscriptions/acknowledged")
        assert acknowledged["params"]["notifications"].get("resourceSubscriptions", []) == [*uris]
        return id_
    for uri in uris:
        assert (await peer.request("resources/subscribe", {"uri": uri}))["result"] == {}
    return None


async def unsubscribed(peer: Peer, id_: Any, *uris: str) -> None:
    if peer.version == STATELESS:
        await peer.cancel(id_)
    for uri in uris if peer.version != STATELESS else ():
        await peer.request("resources/unsubscribe", {"uri": uri})


async def updated(peer: Peer) -> str:
    """The URI of the next resource that has changed."""
    uri: str = (await peer.other("notifications/resources/updated"))["params"]["uri"]
    return uri


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_a_change_is_told_until_nobody_wants_to_know(mode: str, version: str) -> None:
    behind = Behind(mode)
    async with behind.bridged() as running, talking(running, version) as peer:
        id_ = await subscribed(peer, ONE)
        assert behind.held == [ONE]
        behind.running.changes.resource(ONE)
        assert await updated(peer) == ONE
        await unsubscribed(peer, id_, ONE)
        await behind.released.wait()
        assert behind.held == []
