"""A prompts server in its own process or in that of the test, and clients of one era."""

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
    """Writes these files to a directory; returns the directory."""
    path.mkdir(exist_ok=True)
    write(path, files)
    return path


class FillingPeer(AskedPeer):
    """A user who fills in every form with the same values, or with None follows `actions`."""

    def __init__(self, wire: InnerWire, era: str, filled: Json | None, actions: str) -> None:
        super().__init__(wire, era, actions)
        self.filled = filled
        self.forms: list[Json] = []

    def answer(self, question: Json) -> Json:
        """Returns the answer of the user."""
        self.forms.append(question["params"]["requestedSchema"])
        if self.filled is None:
            return super().answer(question)
        self.questions.append(question["params"]["message"])
        return {"action": "accept", "content": self.filled}


@asynccontextmanager
async def with_user(
    *options: str | Path, era: str, filled: Json | None = None, actions: str = ""
) -> AsyncIterator[FillingPeer]:
    """Opens a server in this process, and a client whose user answers forms; yields the client."""
    async with wired_inside(app, *options, era=era) as wire:
        peer = FillingPeer(wire, era, filled, actions)
        wire.answers["elicitation/create"] = peer.answer
        yield peer


async def names(peer: Peer) -> list[str]:
    """Returns the names of all prompts, in the order of the list."""
    found: list[str] = []
    cursor: Json = {}
    while True:
        result = (await peer.request("prompts/list", **cursor))["result"]
        found += [one["name"] for one in result["prompts"]]
        if "nextCursor" not in result:
            return found
        cursor = {"cursor": result["nextCursor"]}


async def got(peer: Peer, name: str, **arguments: str) -> list[Json]:
    """Returns the messages of a prompt."""
    answer = await peer.request("prompts/get", name=name, arguments=arguments)
    messages: list[Json] = answer["result"]["messages"]
    return messages


async def error(peer: Peer, name: str, **arguments: Any) -> str:
    """Returns the error for a prompt with invalid arguments."""
    answer = (await peer.request("prompts/get", name=name, arguments=arguments))["error"]
    assert answer["code"] == -32602
    message: str = answer["message"]
    return message


async def completed(peer: Peer, name: str, argument: str, typed: str) -> list[str]:
    """Returns the completions."""
    ref = {"type": "ref/prompt", "name": name}
    answer = await peer.request("completion/complete", ref=ref, argument={"name": argument, "value": typed})
    values: list[str] = answer["result"]["completion"]["values"]
    return values


# Clients that follow changes

PROMPTS, RESOURCES = "notifications/prompts/list_changed", "notifications/resources/list_changed"


class Follower:
    """A client that follows changes."""

    def __init__(self, peer: InnerPeer) -> None:
        self.peer = peer

    async def next_event(self) -> str:
        """Returns the next notification: the URI of an updated resource, or the method for a list."""
        waiting = self.peer.client.others
        message = waiting.pop(0) if waiting else await self.peer.client.receive()
        uri: str = message.get("params", {}).get("uri", message["method"])
        return uri

    async def changed(self) -> None:
        """Waits for a changed list of prompts."""
        event = await self.next_event()
        while event == RESOURCES:
            event = await self.next_event()
        assert event == PROMPTS


@asynccontextmanager
async def following(era: str, lib: Path, *uris: str, lists: bool = False) -> AsyncIterator[Follower]:
    """Opens a server in this process; yields a client that follows these URIs, or the list of prompts."""
    async with inside(lib, era=era) as peer:
        if era == STATELESS:
            filters: dict[str, Any] = {"resourceSubscriptions": list(uris)} if uris else {}
            filters |= {"promptsListChanged": True} if lists else {}
            await peer.client.begin("subscriptions/listen", {"notifications": filters})
            assert (await peer.client.receive())["params"]["notifications"] == filters
        for uri in () if era == STATELESS else uris:
            assert (await peer.request("resources/subscribe", uri=uri))["result"] == {}
        yield Follower(peer)


async def updates(follower: Follower) -> AsyncIterator[str]:
    """Returns the URIs of updated resources."""
    while True:
        uri = await follower.next_event()
        if uri not in (PROMPTS, RESOURCES):
            yield uri
