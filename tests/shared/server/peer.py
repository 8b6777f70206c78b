"""A client for tests of the server side: messages in memory, all checked against the official schemas."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from shared import Implementation, Run, Server
from shared.testing import connected
from shared.transports.memory import MemoryTransport
from tests import schemas
from tests.wire import CLIENT_INFO, NEWEST_HANDSHAKE, STATELESS, with_envelope

PATIENCE = 20.0
ERAS = (NEWEST_HANDSHAKE, STATELESS)

Json = dict[str, Any]


def server(**options: Any) -> Server[Any]:
    """A server without features."""
    return Server(Implementation(name="test", version="1"), **options)


class Peer:
    """The client's end. What is no answer to a request is kept in `others`, in its order."""

    def __init__(self, end: MemoryTransport, version: str, capabilities: Json) -> None:
        self.end = end
        self.version = version
        self.capabilities = capabilities
        self.others: list[Json] = []
        self._answers: dict[Any, Json] = {}
        self._methods: dict[Any, str] = {}
        self._last_id = 0

    @property
    def unclaimed(self) -> list[Json]:
        """The answers that came and that nobody has asked for."""
        return list(self._answers.values())

    async def send(self, message: Json | list[Json]) -> None:
        with anyio.fail_after(PATIENCE):
            await self.end.send_bytes(json.dumps(message).encode())

    async def begin(self, method: str, params: Json | None = None, *, id: Any = None, **meta: Any) -> Any:
        """Sends a request; its id."""
        self._last_id += 1
        id_ = f"c{self._last_id}" if id is None else id
        params = params or {}
        if self.version == STATELESS:
            params = with_envelope(params, capabilities=self.capabilities, **meta)
        elif meta:
            params = {**params, "_meta": meta}
        self._methods[id_] = method
        await self.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        return id_

    async def notify(self, method: str, **params: Any) -> None:
        await self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def cancel(self, id: Any) -> None:
        await self.notify("notifications/cancelled", requestId=id)

    async def reply(self, id: Any, result: Json) -> None:
        await self.send({"jsonrpc": "2.0", "id": id, "result": result})

    async def receive(self) -> Json:
        """The next message."""
        with anyio.fail_after(PATIENCE):
            message: Json = json.loads(await self.end.receive_bytes())
        if schemas.wanted():
            method = None if "method" in message else self._methods.get(message.get("id"))
            schemas.check(message, self.version, method=method)
        return message

    async def answer(self, id: Any) -> Json:
        """The answer to a request."""
        while id not in self._answers:
            message = await self.receive()
            if "method" in message:
                self.others.append(message)
            else:
                self._answers[message.get("id")] = message
        return self._answers.pop(id)

    async def other(self, method: str) -> Json:
        """The next message of that method that is no answer."""
        while not any(message["method"] == method for message in self.others):
            message = await self.receive()
            if "method" in message:
                self.others.append(message)
            else:
                self._answers[message.get("id")] = message
        found = next(message for message in self.others if message["method"] == method)
        self.others.remove(found)
        return found

    async def request(self, method: str, params: Json | None = None, **meta: Any) -> Json:
        """The whole answer to a new request."""
        return await self.answer(await self.begin(method, params, **meta))

    async def call(self, name: str, /, **arguments: Any) -> Json:
        """The answer to `tools/call`."""
        return await self.request("tools/call", {"name": name, "arguments": arguments})

    async def start(self, name: str, /, **arguments: Any) -> Any:
        """Sends `tools/call`; its id."""
        return await self.begin("tools/call", {"name": name, "arguments": arguments})

    async def text(self, name: str, /, **arguments: Any) -> str:
        """The first text of a tool's result."""
        found: str = (await self.call(name, **arguments))["result"]["content"][0]["text"]
        return found


@asynccontextmanager
async def talking(
    app: Server[Any] | Run[Any], version: str = NEWEST_HANDSHAKE, capabilities: Json | None = None, **options: Any
) -> AsyncIterator[Peer]:
    """A peer of `app`, shaken hands with where the version has a handshake."""
    async with connected(app, **options) as end:
        peer = Peer(end, version, capabilities or {})
        if version != STATELESS:
            params = {"protocolVersion": version, "capabilities": peer.capabilities, "clientInfo": CLIENT_INFO}
            await peer.request("initialize", params)
            await peer.notify("notifications/initialized")
        yield peer
