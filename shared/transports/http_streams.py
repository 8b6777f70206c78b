"""The two halves of one HTTP exchange over ASGI: a body that is read within limits, a reply that becomes JSON or
an event stream by what comes first, and the watch over a client that may go away.

A reply is begun once and ended once. Writing waits while the client is slow, so whoever writes for several
streams puts a `Feed` between, which never waits and ends when its client falls too far behind.
"""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from enum import Enum
from typing import Any

import anyio
from anyio import CancelScope

from ..protocol.framing import ServerSentEvent, encode_event
from ..protocol.http_rules import EVENT_STREAM, JSON, Headers, Refusal, refuse
from ..protocol.jsonrpc import encode

__all__ = ["Asgi", "Feed", "Gone", "Receive", "Reply", "Send", "Stage", "read_body", "watch"]

log = logging.getLogger("shared.transports.http")

Asgi = MutableMapping[str, Any]
"""An ASGI scope or event."""
Receive = Callable[[], Awaitable[Asgi]]
Send = Callable[[Asgi], Awaitable[None]]

_STREAM_HEADERS = {
    "content-type": EVENT_STREAM,
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}


class Gone(Exception):
    """The client has gone away before its request was complete."""


class Stage(Enum):
    """How far a reply has come."""

    NEW = "new"
    STREAMING = "streaming"
    ENDED = "ended"


class Reply:
    """The answer to one HTTP request."""

    def __init__(self, send: Send) -> None:
        self.stage = Stage.NEW
        self._send = send
        self._writing = anyio.Lock()

    async def refuse(self, refusal: Refusal) -> None:
        """Answers with an error; a stream that has begun just ends."""
        if self.stage is Stage.NEW:
            await self.json(refusal.status, encode(refusal.failure), refusal.headers)
        else:
            await self.end()

    async def json(self, status: int, body: bytes, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Answers with one JSON text, or with nothing but a status where `body` is empty."""
        self.stage = Stage.ENDED
        sent = {"content-length": str(len(body)), **dict(headers)}
        if body:
            sent["content-type"] = JSON
        await self._start(status, sent)
        await self._body(body, more=False)

    async def events(self, messages: Iterable[bytes], *, last: bool = False) -> None:
        """Sends messages as events, all at once, and begins the stream if need be; `last` ends it."""
        data = b"".join(encode_event(ServerSentEvent(message)) for message in messages)
        async with self._writing:
            if self.stage is Stage.ENDED:
                return
            if self.stage is Stage.NEW:
                await self._start(200, _STREAM_HEADERS)
            self.stage = Stage.ENDED if last else Stage.STREAMING
            await self._body(data, more=not last)

    async def comment(self) -> None:
        """Shows proxies that the stream lives; nothing where none has begun."""
        async with self._writing:
            if self.stage is Stage.STREAMING:
                await self._body(b":\n\n", more=True)

    async def end(self) -> None:
        """Ends the stream, which may have been empty."""
        await self.events((), last=True)

    async def _start(self, status: int, headers: dict[str, str]) -> None:
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def _body(self, data: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


async def read_body(receive: Receive, headers: Headers, limit: int, seconds: float) -> bytes | Refusal:
    """The body of a request: 413 beyond `limit` bytes, 408 when it takes longer than `seconds`. Never holds more
    than the limit and one chunk. Raises Gone when the client goes away meanwhile."""
    # The connection stays open: closing it on a client that still sends would reset it, and lose this answer.
    too_large = refuse(413, f"the body may have {limit:,} bytes at most")
    length = headers.get("content-length")
    if length is not None and (not length.isdecimal() or int(length[:20]) > limit):
        return too_large
    body = bytearray()
    with anyio.move_on_after(seconds):
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                raise Gone
            body += event.get("body", b"")
            if len(body) > limit:
                return too_large
            if not event.get("more_body", False):
                return bytes(body)
    return refuse(408, "the body did not come in time", Connection="close")


async def watch(receive: Receive, reply: Reply, keep_alive: float) -> None:
    """Returns when the client has gone away. Meanwhile a comment every `keep_alive` seconds keeps a stream open."""
    while True:
        with anyio.move_on_after(keep_alive) as pause:
            event = await receive()
            if event["type"] == "http.disconnect":
                return
        if pause.cancelled_caught:
            await reply.comment()


class Feed:
    """Messages on their way into one stream. Putting never waits; past `limit` bytes the stream is cut off."""

    def __init__(self, limit: int, messages: Iterable[bytes] = ()) -> None:
        """`messages` are there already and don't count."""
        self.scope = CancelScope()
        """Around the work of the stream; cancelled when it is cut off."""
        self.is_open = True
        self._limit = limit
        self._waiting = deque(messages)
        self._size = 0
        self._ready = anyio.Event()

    def put(self, message: bytes) -> bool:
        """Has `message` sent; False where the stream has ended, or is cut off by this."""
        if not self.is_open:
            return False
        if self._waiting and self._size + len(message) > self._limit:
            log.warning("a stream was cut off: its client is %d bytes behind", self._size)
            self.cut()
            return False
        self._add(message)
        return True

    def finish(self, message: bytes) -> None:
        """Has the last `message` sent, whatever waits already, and ends."""
        if self.is_open:
            self._add(message)
            self.end()

    def _add(self, message: bytes) -> None:
        self._waiting.append(message)
        self._size += len(message)
        self._ready.set()

    def end(self) -> None:
        """Nothing more will come."""
        self.is_open = False
        self._ready.set()

    def cut(self) -> None:
        """Ends the stream at once: nobody reads it, or not fast enough."""
        self.end()
        self.scope.cancel()

    async def take(self) -> list[bytes]:
        """What is there to send, at least one message; nothing at the end."""
        while self.is_open and not self._waiting:
            self._ready = anyio.Event()
            await self._ready.wait()
        return self.unsent()

    def unsent(self) -> list[bytes]:
        """Takes out what nobody has taken yet."""
        taken = list(self._waiting)
        self._waiting.clear()
        self._size = 0
        return taken
