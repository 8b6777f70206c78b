"""A prompt library as a process or within that of the test, and clients that speak to it in one era."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from servers.prompts.server import app
from tests.servers import peers
from tests.servers.peers import AskedPeer, InnerPeer, InnerWire, Json, Peer, wired_inside
from tests.servers.prompts.folders import write
from tests.wire import STATELESS

COMMAND = [sys.executable, "-m", "servers.prompts"]
served = partial(peers.served, COMMAND)
inside = partial(peers.inside, app)
"""The same without a process of its own."""


def folder(path: Path, files: Mapping[str, str | bytes]) -> Path:
    """A directory with these files."""
    path.mkdir(exist_ok=True)
    write(path, files)
    return path


class FillingPeer(AskedPeer):
    """A user who fills every form in with the same values, or with None does what `actions` say."""

    def __init__(self, wire: InnerWire, era: str, filled: Json | None, actions: str) -> None:
        super().__init__(wire, era, actions)
        self.filled = filled
        self.forms: list[Json] = []

    def answer(self, asked: Json) -> Json:
        """What the user says."""
        self.forms.append(asked["params"]["requestedSchema"])
        if self.filled is None:
            return super().answer(asked)
        self.questions.append(asked["params"]["message"])
        return {"action": "accept", "content": self.filled}


@asynccontextmanager
async def asked(
    *options: str | Path, era: str, filled: Json | None = None, actions: str = ""
) -> AsyncIterator[FillingPeer]:
    """A server without a process of its own, and a client with a user who is asked."""
    async with wired_inside(app, *options, era=era) as wire:
        peer = FillingPeer(wire, era, filled, actions)
        wire.answers["elicitation/create"] = peer.answer
        yield peer


async def names(peer: Peer) -> list[str]:
    """The names of all prompts, in the order they are listed."""
    found: list[str] = []
    cursor: Json = {}
    while True:
        result = (await peer.request("prompts/list", **cursor))["result"]
        found += [one["name"] for one in result["prompts"]]
        if "nextCursor" not in result:
            return found
        cursor = {"cursor": result["nextCursor"]}


async def got(peer: Peer, name: str, **arguments: str) -> list[Json]:
    """The messages of a prompt."""
    answer = await peer.request("prompts/get", name=name, arguments=arguments)
    messages: list[Json] = answer["result"]["messages"]
    return messages


async def error(peer: Peer, name: str, **arguments: Any) -> str:
    """What a client is told that gives a prompt the wrong arguments."""
    answer = (await peer.request("prompts/get", name=name, arguments=arguments))["error"]
    assert answer["code"] == -32602
    message: str = answer["message"]
    return message


async def completed(peer: Peer, name: str, argument: str, typed: str) -> list[str]:
    """The values that are suggested."""
    ref = {"type": "ref/prompt", "name": name}
    answer = await peer.request("completion/complete", ref=ref, argument={"name": argument, "value": typed})
    values: list[str] = answer["result"]["completion"]["values"]
    return values


# Clients that want to know of changes

PROMPTS, RESOURCES = "notifications/prompts/list_changed", "notifications/resources/list_changed"


class Follower:
    """A client that wants to know of changes."""

    def __init__(self, peer: InnerPeer) -> None:
        self.peer = peer

    async def told(self) -> str:
        """What it is told next: the URI of what was updated, or the method that tells of a list."""
        waiting = self.peer.client.others
        message = waiting.pop(0) if waiting else await self.peer.client.receive()
        uri: str = message.get("params", {}).get("uri", message["method"])
        return uri

    async def changed(self) -> None:
        """Waits until it is told that there are other prompts."""
        told = await self.told()
        while told == RESOURCES:
            told = await self.told()
        assert told == PROMPTS


@asynccontextmanager
async def following(era: str, lib: Path, *uris: str, lists: bool = False) -> AsyncIterator[Follower]:
    """A client that follows these URIs, or the list of prompts, of a server without a process of its own."""
    async with inside(lib, era=era) as peer:
        if era == STATELESS:
            wanted: dict[str, Any] = {"resourceSubscriptions": list(uris)} if uris else {}
            wanted |= {"promptsListChanged": True} if lists else {}
            await peer.client.begin("subscriptions/listen", {"notifications": wanted})
            assert (await peer.client.receive())["params"]["notifications"] == wanted
        for uri in () if era == STATELESS else uris:
            assert (await peer.request("resources/subscribe", uri=uri))["result"] == {}
        yield Follower(peer)


async def updates(follower: Follower) -> AsyncIterator[str]:
    """The URIs of what is updated."""
    while True:
        told = await follower.told()
        if told not in (PROMPTS, RESOURCES):
            yield told
