"""Filesystem servers as processes or inside the test, their clients, and waits for notifications."""

import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx

from servers.filesystem.server import app
from tests.servers import peers
from tests.servers.peers import AskedPeer, InnerPeer, Peer, wired_inside
from tests.shared.transports.http.http_wire import Site
from tests.wire import STATELESS, Wire, start_http, with_envelope

COMMAND = [sys.executable, "-m", "servers.filesystem"]


@asynccontextmanager
async def served(folder: Path, era: str = "2025-11-25", *options: str) -> AsyncIterator[Peer]:
    """A server process."""
    async with Wire([*COMMAND, *options, str(folder)]) as wire:
        if era != STATELESS:
            await wire.initialize(era)
        yield Peer(wire, era)


def inside(*options: str | Path, era: str = "2025-11-25") -> AbstractAsyncContextManager[InnerPeer]:
    """A server inside the test's process."""
    return peers.inside(app, *options, era=era)


@asynccontextmanager
async def confirming(
    folder: Path, *options: str, era: str = "2025-11-25", actions: str = "", **more: Any
) -> AsyncIterator[AskedPeer]:
    """A server with `--confirm`, and a user who answers with `actions` in turn."""
    async with wired_inside(app, "--allow-write", "--confirm", *options, folder, era=era) as wire:
        peer = AskedPeer(wire, era, actions, **more)
        wire.answers["elicitation/create"] = peer.answer
        yield peer


@asynccontextmanager
async def http(folder: Path, *options: str) -> AsyncIterator[Site]:
    """A server process over HTTP."""
    async with (
        start_http([*COMMAND, *options, str(folder)]) as url,
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client,
    ):
        yield Site(app, 0, anyio.Event(), client)


def uri_of(path: Path) -> str:
    return path.resolve().as_uri()


async def subscribe(peer: Peer, uri: str) -> None:
    if not peer.stateless:
        await peer.request("resources/subscribe", uri=uri)
        return
    params = {"notifications": {"resourceSubscriptions": [uri, "file:///etc/passwd"]}}
    await peer.wire.send(
        {"jsonrpc": "2.0", "id": "L", "method": "subscriptions/listen", "params": with_envelope(params)}
    )
    acknowledged = await peer.wire.receive()
    assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": [uri]}


async def wait_for_update(peer: Peer, uri: str) -> None:
    """Wait for the notification that `uri` was updated."""
    with anyio.fail_after(30):
        while True:
            for message in peer.wire.notifications:
                if message["method"] == "notifications/resources/updated" and message["params"]["uri"] == uri:
                    return
            message = await peer.wire.receive()
            if "method" in message and "id" not in message:
                peer.wire.notifications.append(message)


async def cursor_of(peer: Peer, **arguments: Any) -> str:
    """The cursor of a first call of `changes`."""
    return (await peer.text("changes", **arguments)).rsplit("[cursor: ", 1)[1].rstrip("]")
