"""One HTTP exchange over ASGI: the reply, as JSON or as an event stream, and a watch that notices when the client
disconnects. The module `bodies` reads the body of the request.

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
        """`gzip` is true if the client accepts compressed answers."""
        self.stage = Stage.NEW
        self.spend: Callable[[int], None] | None = None
        """Called with the number of bytes of bodies that were received and sent; None if bytes are not counted."""
        self.unreported_bytes = 0
        """The number of received bytes that have yet to be passed to `spend`, together with the next sent bytes."""
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
        all_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        if body:
            all_headers.append(_JSON_HEADER)
        if len(body) > MIN_COMPRESSED_BYTES:
            # Compression is done here because a middleware would have to buffer an answer to know that it is not a
            # stream. Level 1 keeps the event loop free: a megabyte takes milliseconds, and higher levels save little
            # on JSON.
            all_headers.append(_VARY_HEADER)
            if self._gzip:
                all_headers.append(_GZIP_HEADER)
                body = zlib.compress(body, 1, wbits=_GZIP_WBITS)
        if self.spend is not None:
            self._count(len(body))
        if not headers and send_whole(self._send, status, all_headers, body):
            return
        all_headers.append((b"content-length", b"%d" % len(body)))
        await self._send({"type": "http.response.start", "status": status, "headers": all_headers})
        await self._send({"type": "http.response.body", "body": body})

    async def events(self, events: Iterable[ServerSentEvent], *, last: bool = False) -> None:
        """Send events in one write, and begin the stream if necessary; `last` ends the stream."""
        data = b"".join(map(encode_event, events))
        async with self._writing:
            if self.stage is Stage.ENDED:
                return
            if self.stage is Stage.NEW:
                await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
            self.stage = Stage.STREAMING
            await self._body(data, more=not last)
            if last:  # set after the write: if the write is cancelled, the stream has not ended
                self.stage = Stage.ENDED

    async def comment(self) -> None:
        """Send a comment to keep the stream alive; does nothing before the stream has begun."""
        async with self._writing:
            if self.stage is Stage.STREAMING:
                await self._body(b":\n\n", more=True)

    async def end(self) -> None:
        """End the stream, which may have been empty."""
        await self.events((), last=True)

    def report_bytes(self) -> None:
        """Report the received bytes that no answer has reported, at the end of the request."""
        if self.unreported_bytes:
            self._count(0)

    def _count(self, size: int) -> None:
        size, self.unreported_bytes = size + self.unreported_bytes, 0
        if self.spend is not None and size:
            self.spend(size)

    async def _body(self, data: bytes, *, more: bool) -> None:
        if self.spend is not None:
            self._count(len(data))
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


@record
class HttpExchange:
    """One HTTP request and its reply."""

    headers: Headers
    principal: Principal | None
    client: str
    """The name of the sender, from `client_name`: its principal and its address."""
    receive: Receive
    reply: Reply
    path: str
    query: bytes
    resource: ProtectedResource | None = None
    """The OAuth resource at `path`, for which tokens must be issued; None if only the operator issues tokens."""


class Watch:
    """Watches the client while its request is served. It begins after a short delay, because most requests are
    answered sooner.

    Calls `keep_alive` every `interval` seconds, and `on_gone` when the client has disconnected.
    """

    def __init__(
        self,
        receive: Receive,
        keep_alive: Callable[[], Awaitable[None]],
        interval: float,
        *,
        on_gone: Callable[[], None],
    ) -> None:
        self._receive = receive
        self._keep_alive = keep_alive
        self._interval = interval
        self._on_gone = on_gone
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
        # The watch is ended by this scope instead of cancelling the task: the frames of a cancelled task, and
        # everything that they refer to, stay in memory until the garbage collector runs.
        with scope:
            while await self._wait_connected():
                await self._keep_alive()
            self._on_gone()

    async def _wait_connected(self) -> bool:
        """Wait for `interval` seconds. Returns False as soon as the client has disconnected."""
        with anyio.move_on_after(self._interval):
            return bool((await self._receive())["type"] != "http.disconnect")
        return True
