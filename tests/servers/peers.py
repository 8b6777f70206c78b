"""Clients of one server in one era: a plain one, and one whose user answers questions."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from shared import Run, Server
from shared.extensions.narrowing import narrowing
from shared.program.settings.option_parser import OptionParser
from shared.program.settings.options import Group, read_options
from shared.protocol.identity import Principal
from tests.shared.server import peer as inner
from tests.wire import STATELESS, Wire

OLDER = ["2024-11-05", "2025-03-26", "2025-06-18"]
ERAS = [*(pytest.param(era, marks=pytest.mark.slow) for era in OLDER), "2025-11-25", STATELESS]
FORMS = {"elicitation": {"form": {}}}

Json = dict[str, Any]


class Peer:
    """A client of one server in one era."""

    def __init__(self, wire: Wire, era: str) -> None:
        self.wire = wire
        self.stateless = era == STATELESS

    async def request(self, method: str, **params: Any) -> Json:
        """Returns the whole response."""
        if self.stateless:
            return await self.wire.stateless(method, params)
        return await self.wire.request(method, params)

    async def call(self, tool: str, **arguments: Any) -> Json:
        """Returns the result of a tool, which may be an error."""
        answer = await self.request("tools/call", name=tool, arguments=arguments)
        result: Json = answer["result"]
        return result

    async def text(self, tool: str, **arguments: Any) -> str:
        """Returns the text of a result."""
        return text_of(await self.call(tool, **arguments))

    async def data(self, tool: str, **arguments: Any) -> Any:
        """Returns the structured content of a successful result."""
        result = await self.call(tool, **arguments)
        assert "isError" not in result, result
        return result["structuredContent"]

    async def error(self, tool: str, **arguments: Any) -> str:
        """Returns the text of a result that is an error."""
        result = await self.call(tool, **arguments)
        assert result.get("isError"), result
        return text_of(result)


class InnerPeer(Peer):
    """A client of a server in the process of the test."""

    def __init__(self, client: inner.Peer, running: Run[Any]) -> None:
        self.client = client
        self.running = running

    async def request(self, method: str, **params: Any) -> Json:
        """Returns the whole response."""
        return await self.client.request(method, params)


@asynccontextmanager
async def served(command: Sequence[str], *options: str | Path, era: str = "2025-11-25") -> AsyncIterator[Peer]:
    """Starts a server process by a command with these options; yields a client."""
    async with Wire([*command, *map(str, options)]) as wire:
        if era != STATELESS:
            await wire.initialize(era)
        yield Peer(wire, era)


@asynccontextmanager
async def inside(app: Server[Any], *options: str | Path, era: str = "2025-11-25") -> AsyncIterator[InnerPeer]:
    """Opens a server in the process of the test, with options as on a command line; yields a client.

    This saves the start of a process in a test of one tool, which other tests call through a process.
    """
    async with app.open(settings_of(app, *options)) as running, inner.talking(running, era) as client:
        yield InnerPeer(client, running)


def settings_of(app: Server[Any], *options: str | Path) -> Any:
    """Returns the settings of a server for the options of a command line."""
    parser = OptionParser("test", [Group(app.settings_model.model_fields)])
    return read_options(app.settings_model, parser.read([str(option) for option in options]))


def record(monkeypatch: pytest.MonkeyPatch, module: Any, *names: str) -> Json:
    """Returns the last arguments, by name, with which these functions of the module are called from now on."""
    given: Json = {}

    def recorded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            given[name] = (*arguments, *more.values())
            return function(*arguments, **more)

        return call

    for name in names:
        monkeypatch.setattr(module, name, recorded(name, getattr(module, name)))
    return given


class InnerWire:
    """The part of `Wire` that `AskedPeer` needs, for a server in the process of the test."""

    def __init__(self, client: inner.Peer) -> None:
        self.client = client
        self.answers: dict[str, Callable[[Json], Json]] = {}

    async def request(self, method: str, params: Json) -> Json:
        """Returns the whole response, after answers to the questions of the server."""
        key = await self.client.begin(method, params)
        while True:
            message = await self.client.receive()
            if "method" not in message and message["id"] == key:
                return message
            if message.get("method") in self.answers:
                await self.client.reply(message["id"], self.answers[message["method"]](message))
            else:
                self.client.others.append(message)

    async def stateless(self, method: str, params: Json, **_: Any) -> Json:
        """Returns the same for a stateless request with the capabilities of the client."""
        return await self.request(method, params)


@asynccontextmanager
async def wired_inside(
    app: Server[Any], *options: str | Path, era: str, capabilities: Json = FORMS
) -> AsyncIterator[InnerWire]:
    """Opens a server in the process of the test; yields a client that can answer questions."""
    async with app.open(settings_of(app, *options)) as running, inner.talking(running, era, capabilities) as client:
        yield InnerWire(client)


class AskedPeer:
    """A client whose user gives the answers of `actions` in turn, after a call of `meanwhile`."""

    def __init__(
        self, wire: Wire | InnerWire, era: str, actions: str, meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        self.wire = wire
        self.era = era
        self.actions = actions.split()
        self.meanwhile = meanwhile
        self.questions: list[str] = []

    def answer(self, question: Json) -> Json:
        """Returns the answer of the user."""
        self.questions.append(question["params"]["message"])
        self.meanwhile()
        action = self.actions.pop(0)
        return {"action": action, "content": {}} if action == "accept" else {"action": action}

    async def call(self, tool: str, **arguments: Any) -> Json:
        """Returns the result of a tool, after answers to all its questions."""
        result: Json = (await self.request("tools/call", {"name": tool, "arguments": arguments}))["result"]
        return result

    async def request(self, method: str, params: Json) -> Json:
        """Returns the whole response, after answers to all its questions."""
        while True:
            if self.era == STATELESS:
                answer = await self.wire.stateless(method, params, capabilities=FORMS)
            else:
                answer = await self.wire.request(method, params)
            result: Json = answer.get("result", {})
            if result.get("resultType") != "input_required":
                return answer
            brought = {key: self.answer(question) for key, question in result["inputRequests"].items()}
            params = {**params, "inputResponses": brought, "requestState": result["requestState"]}

    async def text(self, tool: str, **arguments: Any) -> str:
        """Returns the text of its result."""
        return text_of(await self.call(tool, **arguments))


async def consented(wire: InnerWire, tool: str, agreed: Json, other: Json) -> Json:
    """Returns the result of a call with `other` arguments and the consent to the `agreed` ones."""
    first = (await wire.stateless("tools/call", {"name": tool, "arguments": agreed}))["result"]
    brought = {key: {"action": "accept", "content": {}} for key in first["inputRequests"]}
    answer = await wire.stateless("tools/call", {"name": tool, "arguments": other, "inputResponses": brought})
    result: Json = answer["result"]
    return result


def text_of(result: Json) -> str:
    """Returns the text of a result."""
    return "".join(block["text"] for block in result["content"])


@asynccontextmanager
async def ada_and_bob(
    app: Server[Any], settings: BaseModel, ada: BaseModel
) -> AsyncIterator[tuple[inner.Peer, inner.Peer]]:
    """Opens clients of ada, with narrowed settings, and of bob, with all."""
    async with (
        app.open(settings, extensions=[narrowing({"ada": ada})]) as running,
        inner.talking(running, principal=Principal("key of ada", "ada")) as of_ada,
        inner.talking(running, principal=Principal("key of bob", "bob")) as of_bob,
    ):
        yield of_ada, of_bob


def strings(value: Any) -> list[str]:
    """Yields all texts in a JSON value."""
    if isinstance(value, Mapping):
        return [one for item in value.values() for one in strings(item)]
    if isinstance(value, list):
        return [one for item in value for one in strings(item)]
    return [value] if isinstance(value, str) else []
