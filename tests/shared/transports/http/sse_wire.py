"""An HTTP+SSE client made of httpx."""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any
from urllib.parse import urljoin

import httpx

from shared.protocol.wire.framing import ServerSentEvent
from tests.shared.transports.http.http_wire import NEWEST_HANDSHAKE, Json, Site, read_events

CLIENT = {"name": "test", "version": "1"}


class SseClient:
    """One open stream. `told` has the messages received before an answer."""

    def __init__(self, site: Site, events: AsyncIterator[ServerSentEvent], headers: Json) -> None:
        self.address = ""
        self.told: list[Json] = []
        self._site = site
        self._events = events
        self._headers = headers

    def posts_at(self, site: Site) -> None:
        """Sends later POSTs to that site."""
        self._site = site

    async def event(self) -> ServerSentEvent:
        """Returns the next event. Raises StopAsyncIteration at the end of the stream."""
        return await anext(self._events)

    async def next(self) -> Json:
        """Returns the next message."""
        event = await self.event()
        assert (event.event, event.id, event.retry) == ("message", None, None)
        message: Json = json.loads(event.data)
        return message

    async def rest(self) -> list[Json]:
        """Returns all messages until the stream ends."""
        return [json.loads(event.data) async for event in self._events]

    async def post(self, message: Any, headers: Json | None = None) -> httpx.Response:
        """POSTs a message or bytes, unchanged."""
        content = message if isinstance(message, bytes) else json.dumps(message).encode()
        sent = {"Content-Type": "application/json", **self._headers, **(headers or {})}
        return await self._site.client.post(self.address, content=content, headers=sent)

    async def send(self, message: Any, headers: Json | None = None) -> None:
        """POSTs a message that must be accepted."""
        accepted = await self.post(message, headers)
        assert (accepted.status_code, accepted.content) == (202, b""), accepted.text

    async def ask(self, method: str, params: Json | None = None) -> Json:
        """Sends a request; returns its answer."""
        message = self._site.message(method, params)
        await self.send(message)
        while "method" in (answer := await self.next()):
            self.told.append(answer)
        assert answer["id"] == message["id"]
        return answer

    async def call(self, name: str, arguments: Json | None = None, **meta: Any) -> str:
        """Calls a tool; returns the text of its result."""
        answer = await self.ask("tools/call", {"name": name, "arguments": arguments or {}, "_meta": meta})
        text: str = answer["result"]["content"][0]["text"]
        return text

    async def initialize(self, version: str = NEWEST_HANDSHAKE, capabilities: Json | None = None) -> Json:
        """Runs the handshake; returns the result of `initialize`."""
        params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": CLIENT}
        result: Json = (await self.ask("initialize", params))["result"]
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result


@asynccontextmanager
async def streaming(site: Site, headers: Json | None = None, path: str = "/sse") -> AsyncIterator[SseClient]:
    """Opens a stream without a handshake."""
    sent = {"Accept": "text/event-stream", **(headers or {})}
    async with (
        site.client.stream("GET", path, headers=sent) as response,
        aclosing(read_events(response)) as events,  # type: ignore[type-var]
    ):
        client = SseClient(site, events, headers or {})
        first = await client.event()
        assert (first.event, first.id) == ("endpoint", None)
        client.address = urljoin(path, first.data.decode())
        yield client


@asynccontextmanager
async def initialized(site: Site, headers: Json | None = None, **options: Any) -> AsyncIterator[SseClient]:
    """Opens a stream and runs the handshake."""
    async with streaming(site, headers) as client:
        await client.initialize(**options)
        yield client
