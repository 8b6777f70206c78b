"""The bench server, spoken to in one version by a client that answers whatever it is asked."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.wire import Wire

HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
STATELESS = "2026-07-28"
VERSIONS = [*HANDSHAKES, STATELESS]
CAPABILITIES = {"sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}, "roots": {}}
ROUNDS = 5

Json = dict[str, Any]


def answer_to(asked: Json) -> Json:
    """What this client answers to a question of the server's: a filled-in form, a greeting, one root."""
    match asked["method"]:
        case "elicitation/create":
            schema = asked["params"].get("requestedSchema")
            filled = {} if schema is None else {"content": _filled(schema)}
            return {"action": "accept", **filled}
        case "sampling/createMessage":
            return {"role": "assistant", "content": {"type": "text", "text": "Hello."}, "model": "none"}
        case _:
            return {"roots": [{"uri": "file:///tmp"}]}


def _filled(schema: Json) -> Json:
    return {name: _value(field) for name, field in schema["properties"].items()}


def _value(field: Json) -> Any:
    if "default" in field:
        return field["default"]
    choices = field.get("enum") or [choice["const"] for choice in field.get("oneOf") or field.get("anyOf") or ()]
    if choices:
        return choices[0]
    match field["type"]:
        case "array":
            return [_value({"type": "string", **field["items"]})]
        case "boolean":
            return True
        case "string":
            return "text"
        case _:
            return 1


class Peer:
    """A connection in one version."""

    def __init__(self, wire: Wire, version: str) -> None:
        self.wire = wire
        self.version = version

    async def request(self, method: str, params: Json | None = None, **meta: Any) -> Json:
        """The answer to a request, in the envelope that the version wants. `meta` goes into `_meta`."""
        if self.version == STATELESS:
            return await self.wire.stateless(method, params, capabilities=CAPABILITIES, **meta)
        return await self.wire.request(method, {**(params or {}), "_meta": meta} if meta else params)

    async def settle(self, method: str, params: Json, **meta: Any) -> Json:
        """Like `request`, and answers the questions of as many rounds as it takes."""
        answer = await self.request(method, params, **meta)
        for _ in range(ROUNDS):
            result = answer.get("result", {})
            if result.get("resultType") != "input_required":
                return answer
            brought = {key: answer_to(asked) for key, asked in result["inputRequests"].items()}
            round_ = {"inputResponses": brought, "requestState": result["requestState"]}
            answer = await self.request(method, {**params, **round_}, **meta)
        raise AssertionError("the call was never settled")

    async def call(self, tool: str, arguments: Json | None = None, **meta: Any) -> Json:
        """The answer to a call, after all its rounds."""
        return await self.settle("tools/call", {"name": tool, "arguments": arguments or {}}, **meta)

    async def text(self, tool: str, arguments: Json | None = None) -> str:
        """The text of a result."""
        answer = await self.call(tool, arguments)
        return "".join(block.get("text", "") for block in answer["result"]["content"])

    async def listed(self, what: str) -> list[Json]:
        """All entries of a list, which here fits on one page."""
        method = {"resourceTemplates": "resources/templates/list"}.get(what, f"{what}/list")
        entries: list[Json] = (await self.request(method))["result"][what]
        return entries


@asynccontextmanager
async def bench(version: str = "2025-11-25", *options: str) -> AsyncIterator[Peer]:
    """A running server, opened in `version`."""
    questions = ("elicitation/create", "sampling/createMessage", "roots/list")
    command = [sys.executable, "-m", "servers.everything", *options]
    async with Wire(command, answers=dict.fromkeys(questions, answer_to)) as wire:
        if version != STATELESS:
            await wire.initialize(version, CAPABILITIES)
        yield Peer(wire, version)
