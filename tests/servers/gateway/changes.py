"""Has clients of either era told of what changes."""

from typing import Any

from tests.shared.server.peer import STATELESS, Peer

LISTS = ("tools", "prompts", "resources")


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
    """Takes that back; `id_` is that of the listen stream."""
    if peer.version == STATELESS:
        await peer.cancel(id_)
    for uri in uris if peer.version != STATELESS else ():
        await peer.request("resources/unsubscribe", {"uri": uri})


async def updated(peer: Peer) -> str:
    """The URI of the next resource that has changed."""
    uri: str = (await peer.other("notifications/resources/updated"))["params"]["uri"]
    return uri


async def listening(peer: Peer, *lists: str) -> None:
    """Has lists told of, all of them by default, where that must be asked for."""
    if peer.version == STATELESS:
        wanted = {f"{what}ListChanged": True for what in lists or LISTS}
        await peer.begin("subscriptions/listen", {"notifications": wanted})
        acknowledged = await peer.other("notifications/subscriptions/acknowledged")
        assert acknowledged["params"]["notifications"] == wanted


async def hear_lists(peer: Peer) -> None:
    """Waits until every list has changed."""
    for what in LISTS:
        await peer.other(f"notifications/{what}/list_changed")
