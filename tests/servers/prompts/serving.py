"""A prompt library as a process or within that of the test, and a client that speaks to it in one era."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from servers.prompts.server import app
from tests.servers import peers
from tests.servers.peers import ERAS, FORMS, AskedPeer, Json, Peer
from tests.servers.prompts.folders import write
from tests.wire import STATELESS, Wire

__all__ = ["ERAS", "asked", "completed", "error", "folder", "got", "inside", "names", "served"]

COMMAND = [sys.executable, "-m", "servers.prompts"]


def folder(path: Path, files: Mapping[str, str | bytes]) -> Path:
    """A directory with these files."""
    path.mkdir(exist_ok=True)
    write(path, files)
    return path


@asynccontextmanager
async def served(*options: str | Path, era: str = "2025-11-25") -> AsyncIterator[Peer]:
    """A server process started with these options."""
    async with Wire([*COMMAND, *map(str, options)]) as wire:
        if era != STATELESS:
            await wire.initialize(era)
        yield Peer(wire, era)


@asynccontextmanager
async def inside(*options: str | Path, era: str = "2025-11-25") -> AsyncIterator[Peer]:
    """A server with these options, without a process of its own."""
    async with peers.inside(app, *options, era=era) as peer:
        yield peer


class FillingPeer(AskedPeer):
    """A user who fills every form in with the same values, or with None does what `actions` say."""

    def __init__(self, wire: Wire, era: str, filled: Json | None, actions: str) -> None:
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
    """A server process, and a client with a user who is asked."""
    async with Wire([*COMMAND, *map(str, options)]) as wire:
        peer = FillingPeer(wire, era, filled, actions)
        wire.answers["elicitation/create"] = peer.answer
        if era != STATELESS:
            await wire.initialize(era, FORMS)
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
