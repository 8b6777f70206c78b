"""A client of the bench server that answers every question, in any version."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from servers.everything.server import app
from tests.shared.server.peer import Json, Peer, talking
from tests.wire import STATELESS

HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
VERSIONS = [*HANDSHAKES, STATELESS]
CAPABILITIES: Json = {"sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}, "roots": {}}
ROUNDS = 5


def answer_to(request: Json) -> Json:
    """Returns the answer to a request of the server: a filled-in form, a greeting, one root."""
    match request["method"]:
        case "elicitation/create":
            schema = request["params"].get("requestedSchema")
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


async def settled(
    peer: Peer, method: str, params: Json | None = None, *, heard: Callable[[Json], None] | None = None, **meta: Any
) -> Json:
    """Returns the final answer to a request, after answers to its questions in any number of rounds.

    `heard` receives all messages of the server until then, with the answers; notices stay in `peer.others`."""
    for _ in range(ROUNDS):
        id_ = await peer.begin(method, params, **meta)
        message: Json = {}
        while message.get("id") != id_ or "method" in message:
            message = await peer.receive()
            if heard is not None:
                heard(message)
            if "method" in message and "id" in message:
                await peer.reply(message["id"], answer_to(message))
            elif "method" in message:
                peer.others.append(message)
        result = message.get("result", {})
        if result.get("resultType") != "input_required":
            return message
        brought = {key: answer_to(question) for key, question in result["inputRequests"].items()}
        params = {**(params or {}), "inputResponses": brought, "requestState": result["requestState"]}
    raise AssertionError(f"{method} was never settled")


async def called(peer: Peer, tool: str, arguments: Json | None = None, **meta: Any) -> Json:
    """Returns the final answer to a call, after all its rounds."""
    return await settled(peer, "tools/call", {"name": tool, "arguments": arguments or {}}, **meta)


async def text(peer: Peer, tool: str, **arguments: Any) -> str:
    """Returns the text of a result."""
    answer = await called(peer, tool, arguments)
    return "".join(block.get("text", "") for block in answer["result"]["content"])


async def listed(peer: Peer, what: str) -> list[Json]:
    """Returns all entries of a list, which fits on one page."""
    method = {"resourceTemplates": "resources/templates/list"}.get(what, f"{what}/list")
    entries: list[Json] = (await settled(peer, method))["result"][what]
    return entries


@asynccontextmanager
async def bench(version: str = "2025-11-25", capabilities: Json = CAPABILITIES) -> AsyncIterator[Peer]:
    """Opens a server and a client of it in `version`; yields the client."""
    async with talking(app, version, capabilities) as peer:
        yield peer
