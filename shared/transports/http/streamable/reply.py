"""One HTTP exchange over ASGI: a reply that becomes JSON or an event stream depending on its first message, and the
watch over a client that may go away. The module `bodies` reads the body.

A reply begins once and ends once. Writing waits while the client is slow.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from enum import Enum
from typing import Any

import anyio
from anyio import CancelScope

from ....protocol.http.protected import ProtectedResource
from ....protocol.http.rules import EVENT_STREAM, JSON, Headers, Refusal
from ....protocol.identity import Principal
from ....protocol.records import record
from ....protocol.wire.codec import encode
from ....protocol.wire.framing import ServerSentEvent, encode_event
from ....telemetry.footprint import count_bytes
from ..engine.connections import send_whole

Asgi = MutableMapping[str, Any]
"""An ASGI scope or event."""
Receive = Callable[[], Awaitable[Asgi]]
Send = Callable[[Asgi], Awaitable[None]]

_GZIP_WBITS = 31
"""The window size with which zlib writes the gzip format."""
_JSON_HEADER = (b"content-type", JSON.encode())
_GZIP_HEADER = (b"content-encoding", b"gzip")
_VARY_HEADER = (b"vary", b"accept-encoding")
_STREAM_HEADERS = [
    (b"content-type", EVENT_STREAM.encode()),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]

WATCH_DELAY_SECONDS = 0.02
"""Seconds for which a request is served before its client is watched."""
MIN_COMPRESSED_BYTES = 1_024
"""The minimum length in bytes of JSON that is compressed; shorter JSON fits into one packet anyway."""


class ClientGone(Exception):
    """Raised if the client has disconnected before its request was complete."""


class Stage(Enum):
    """The stage of a reply."""

    NEW = "new"
    STREAMING = "streaming"
    ENDED = "ended"


class Reply:
    """The answer to one HTTP request."""

    def __init__(self, send: Send, *, gzip: bool = False) -> None:
        """`gzip` is true if the client accepts it."""
        self.stage = Stage.NEW
        self.spend: Callable[[int], None] | None = None
        """Called with the number of received and sent bytes of bodies, if bytes are counted."""
        self.unspent = 0
        """Received bytes that are reported with the next sent ones."""
        self._send = send
        self._gzip = gzip
        self._writing = asyncio.Lock()

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with an error, or end a stream that has begun."""
        if self.stage is Stage.NEW:
            await self.json(refusal.status, encode(refusal.failure), refusal.headers)
        else:
            await self.end()

    async def json(self, status: int, body: bytes, headers: Sequence[tuple[str, str]] = ()) -> None:
        """Answer with one JSON text, or with only a status if `body` is empty."""
        self.stage = Stage.ENDED
        count_bytes(len(body))
        sent = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        if body:
            sent.append(_JSON_HEADER)
        if len(body) > MIN_COMPRESSED_BYTES:
            # Here and not in a middleware, which would have to buffer streams to recognize them. Level 1 keeps the
            # event loop free: a megabyte takes milliseconds, and higher levels save little on JSON.
            sent.append(_VARY_HEADER)
            if self._gzip:
                sent.append(_GZIP_HEADER)
                body = zlib.compress(body, 1, wbits=_GZIP_WBITS)
        if self.spend is not None:
            self._count(len(body))
        if not headers and send_whole(self._send, status, sent, body):
            return
        sent.append((b"content-length", b"%d" % len(body)))
        await self._send({"type": "http.response.start", "status": status, "headers": sent})
        await self._send({"type": "http.response.body", "body": body})

    async def events(self, events: Iterable[ServerSentEvent], *, last: bool = False) -> None:
        """Send events, all at once, and begin the stream if necessary; `last` ends it."""
        data = b"".join(map(encode_event, events))
        async with self._writing:
            if self.stage is Stage.ENDED:
                return
            if self.stage is Stage.NEW:
                await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
            self.stage = Stage.STREAMING
            await self._body(data, more=not last)
            if last:  # only now: if the write is cancelled, the stream has not ended
                self.stage = Stage.ENDED

    async def comment(self) -> None:
        """Send a comment to keep the stream alive; does nothing before it has begun."""
        async with self._writing:
            if self.stage is Stage.STREAMING:
                await self._body(b":\n\n", more=True)

    async def end(self) -> None:
        """End the stream, which may have been empty."""
        await self.events((), last=True)

    def settle(self) -> None:
        """Report received bytes that had no answer, at the end of the request."""
        if self.unspent:
            self._count(0)

    def _count(self, size: int) -> None:
        size, self.unspent = size + self.unspent, 0
        if self.spend is not None and size:
            self.spend(size)

    async def _body(self, data: bytes, *, more: bool) -> None:
        if self.spend is not None:
            self._count(len(data))
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


@record
class HttpExchange:
    """One HTTP request and the way to answer it."""

    headers: Headers
    principal: Principal | None
    client: str
    """The name of the sender: an address and a principal."""
    receive: Receive
    reply: Reply
    path: str
    query: bytes
    resource: ProtectedResource | None = None
    """The resource at `path`, for issuers of tokens; None if only the operator issues them."""


class Watch:
    """Watches a client while its request is served, after a moment: most requests are answered before watching is
    worthwhile.

    Calls `keep_alive` every `seconds`, and `gone` when the client has disconnected.
    """

    def __init__(
        self, receive: Receive, keep_alive: Callable[[], Awaitable[None]], seconds: float, *, gone: Callable[[], None]
    ) -> None:
        self._receive = receive
        self._keep_alive = keep_alive
        self._seconds = seconds
        self._on_gone = gone
        self._scope: CancelScope | None = None
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(WATCH_DELAY_SECONDS, self._begin)

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        if self._scope is not None:
            self._scope.cancel()

    def _begin(self) -> None:
        self._scope = CancelScope()
        self._task = asyncio.get_running_loop().create_task(self._watch(self._scope))

    async def _watch(self, scope: CancelScope) -> None:
        # The scope is inside the task: a cancelled task leaves its frames, and everything they refer to, to the
        # garbage collector.
        with scope:
            while await self._wait_connected():
                await self._keep_alive()
            self._on_gone()

    async def _wait_connected(self) -> bool:
        """Wait for a pause. Returns False as soon as the client has disconnected."""
        with anyio.move_on_after(self._seconds):
            return bool((await self._receive())["type"] != "http.disconnect")
        return True
