"""Two replicas of one server with the same files, and notifications of one about writes of the other."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from shared import Run, Server
from shared.contracts import Stores
from tests.quiet import quiet
from tests.servers.peers import settings_of
from tests.shared.server.peer import Peer, talking

UPDATED, LISTED = "notifications/resources/updated", "notifications/resources/list_changed"


@asynccontextmanager
async def two(app: Server[Any], stores: Stores, *options: object) -> AsyncIterator[tuple[Peer, Peer]]:
    """Opens two replicas with these options; yields a client of each."""
    async with opened(app, stores, *options) as running, talking(running[0]) as here, talking(running[1]) as there:
        yield here, there


@asynccontextmanager
async def opened(app: Server[Any], stores: Stores, *options: object) -> AsyncIterator[list[Run[Any]]]:
    """Opens two replicas with these options; yields them."""
    settings = settings_of(app, *map(str, options))
    async with app.open(settings, stores=stores) as one, app.open(settings, stores=stores) as other:
        yield [one, other]


async def subscribe_to(peer: Peer, *uris: str) -> None:
    """Subscribes to these URIs."""
    for uri in uris:
        assert "result" in await peer.request("resources/subscribe", {"uri": uri})


async def expect_updates(peer: Peer, *uris: str) -> None:
    """Waits for updates of these URIs, each once, and checks that no other update came."""
    heard = [(await peer.other(UPDATED))["params"]["uri"] for _ in uris]
    await quiet()
    await peer.request("ping")
    heard += [one["params"]["uri"] for one in peer.others if one["method"] == UPDATED]
    assert sorted(heard) == sorted(uris)
    peer.others.clear()
