"""A server behind a URL: every message is a POST, and the answer is its body or an event stream (Streamable HTTP).

In the handshake era a GET stream brings what belongs to no request, a stream that breaks is resumed where the
server gave its events ids, and DELETE ends the session. In the stateless era a request is cancelled by closing
its stream. An answer that is no message becomes an error whose code is the HTTP status, and a request whose
connection fails gets `Unanswered`, so that no other request suffers.
"""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
import httpx
from anyio.abc import TaskGroup

from ...kit.tasks import background
from ...kit.text import escape
from ...protocol.http.client_headers import ClientHeaders, usable_tools
from ...protocol.http.rules import EVENT_STREAM, SESSION_ID
from ...protocol.session.envelope import claims_envelope
from ...protocol.session.events import Outgoing
from ...protocol.wire.codec import MAX_MESSAGE, Codec
from ...protocol.wire.framing import Oversized
from ...protocol.wire.jsonrpc import (
    Failure,
    Fate,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
    Unanswered,
)
from ...protocol.wire.sse import EventStream
from .client_answers import attributed, drain, is_stream, read_answer

__all__ = ["HttpTransport", "lent_http", "open_http"]

log = logging.getLogger("shared.transports.http.client")

CONNECT_SECONDS = 30.0
FAREWELL_SECONDS = 2.0
"""Time for the DELETE that ends a session."""
RETRY_SECONDS = 1.0
"""Pause before a stream is opened again, where the server named none."""
MAX_RETRIES = 5
"""Attempts in a row to open a stream again before it is given up."""


@dataclass(slots=True)
class _Post:
    """A request on its way."""

    request: Request
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    answered: bool = False


class HttpTransport:
    """Messages with one endpoint."""

    def __init__(self, url: str, http: httpx.AsyncClient, tasks: TaskGroup, headers: Mapping[str, str]) -> None:
        self._url = url
        self._fixed = dict(headers)
        self._http = http
        self._tasks = tasks
        self._headers = ClientHeaders()
        self._codec = Codec(is_client=True, line_end=b"")
        self._posts: dict[RequestId, _Post] = {}
        self._streams = anyio.CancelScope()
        self._outbox, self._inbox = anyio.create_memory_object_stream[Message](256)

    async def receive(self) -> Sequence[Message]:
        """The next message, from any stream. Raises EndOfStream when the transport is closed."""
        try:
            return [await self._inbox.receive()]
        except anyio.ClosedResourceError:
            raise anyio.EndOfStream from None

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Begins a POST for each request; waits until the server has taken each other message.

        Raises BrokenResourceError when a message that is no request can't be delivered.
        """
        for one in outgoing:
            match one.message:
                case Request() as request:
                    post = self._posts[request.id] = _Post(request)
                    self._tasks.start_soon(self._ask, post)
                case Notification("notifications/cancelled") as message if one.about is not None:
                    await self._cancel(one.about, message)
                case Notification() | Response() | Failure() as message:
                    await self._tell(message)

    async def aclose(self) -> None:
        """Ends all streams, and the session where there is one."""
        self._outbox.close()
        self._inbox.close()
        self._streams.cancel()
        for post in self._posts.values():
            post.scope.cancel()
        headers = {**self._fixed, **self._headers.of_session()}
        with anyio.CancelScope(shield=True), anyio.move_on_after(FAREWELL_SECONDS), suppress(httpx.HTTPError):
            if self._headers.session_id is not None:
                self._headers.session_id = None
                async with self._http.stream("DELETE", self._url, headers=headers) as response:
                    await drain(response)

    # What we say

    async def _cancel(self, id: RequestId, message: Notification) -> None:
        post = self._posts.get(id)
        if post is None:
            return
        if not claims_envelope(post.request.params):
            await self._tell(message)
        post.scope.cancel()

    async def _tell(self, message: Notification | Response | Failure) -> None:
        headers = {**self._fixed, **self._headers.of_post(message)}
        body = self._codec.encode(message)
        try:
            async with self._http.stream("POST", self._url, content=body, headers=headers) as response:
                await drain(response)
        except httpx.HTTPError:
            raise anyio.BrokenResourceError from None
        if isinstance(message, Notification) and message.method == "notifications/initialized":
            self._tasks.start_soon(self._listen)

    async def _ask(self, post: _Post) -> None:
        fate: Fate = "unknown"
        reason = "the stream ended without an answer"
        with post.scope:
            try:
                await self._exchange(post)
            except httpx.HTTPError as failed:
                reason = f"{type(failed).__name__}: {failed}"
                fate = "unreached" if isinstance(failed, httpx.ConnectError | httpx.ConnectTimeout) else "unknown"
            if not post.answered:
                await self._deliver(Unanswered(post.request.id, reason, fate), post)
        self._posts.pop(post.request.id, None)

    async def _exchange(self, post: _Post) -> None:
        events, request = EventStream(MAX_MESSAGE), post.request
        body = self._codec.encode(request)
        headers = {**self._fixed, **self._headers.of_post(request)}
        try:
            async with self._http.stream("POST", self._url, content=body, headers=headers) as response:
                if is_stream(response):
                    await self._read(response, events, post)
                else:
                    answer = await read_answer(self._codec, response, request)
                    await self._deliver(answer, post, response.headers.get(SESSION_ID))
        except httpx.TransportError:
            if not events.last_id:
                raise
        if events.last_id and not post.answered:
            await self._follow(events, post)

    # What the server says

    async def _listen(self) -> None:
        """Takes what belongs to no request, as long as the server offers a stream for it."""
        with self._streams:
            await self._follow(EventStream(MAX_MESSAGE), None)

    async def _follow(self, events: EventStream, post: _Post | None) -> None:
        """Opens a stream by GET, again and again, until it has brought the answer or is no longer offered."""
        failed, pause = 0, post is not None
        while failed < MAX_RETRIES and not (post is not None and post.answered):
            if pause:
                await anyio.sleep(RETRY_SECONDS if events.retry is None else events.retry / 1000)
            pause = True
            try:
                if not await self._get(events, post):
                    return
                failed = 0
            except httpx.TransportError:
                failed += 1

    async def _get(self, events: EventStream, post: _Post | None) -> bool:
        """Reads one stream to its end; False where none is offered."""
        resume = {"last-event-id": events.last_id} if events.last_id else {}
        headers = {**self._fixed, "accept": EVENT_STREAM, **self._headers.of_session(), **resume}
        events.restart()
        async with self._http.stream("GET", self._url, headers=headers) as response:
            if not is_stream(response):
                return False
            await self._read(response, events, post)
        return True

    async def _read(self, response: httpx.Response, events: EventStream, post: _Post | None) -> None:
        session_id = response.headers.get(SESSION_ID)
        async for chunk in response.aiter_bytes():
            for event in events.feed(chunk):
                # An event without data only tells its id (2025-11-25, Streamable HTTP).
                if not isinstance(event, Oversized) and event.data and event.event == "message":
                    await self._deliver(self._codec.decode_body(event.data), post, session_id)

    async def _deliver(self, message: Message, post: _Post | None, session_id: str | None = None) -> None:
        if post is not None:
            message = attributed(message, post.request)
            if isinstance(message, Response | Failure) and message.id == post.request.id:
                self._headers.learn(post.request, message, session_id)
                post.answered = True
                if isinstance(message, Response) and post.request.method == "tools/list":
                    message = _usable(message, post.request)
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await self._outbox.send(message)


def _usable(answer: Response, request: Request) -> Response:
    if not claims_envelope(request.params):
        return answer
    answer, faults = usable_tools(answer)
    for fault in faults:
        log.warning("%s", escape(fault))
    return answer


@asynccontextmanager
async def lent_http(http: httpx.AsyncClient | None) -> AsyncIterator[httpx.AsyncClient]:
    """`http`, which stays open; where there is none, one of our own as long as the block."""
    if http is not None:
        yield http
        return
    # Streams are silent as long as nothing happens, and each takes a connection.
    timeout = httpx.Timeout(CONNECT_SECONDS, read=None, pool=None)
    async with httpx.AsyncClient(timeout=timeout, limits=httpx.Limits(max_connections=None)) as made:
        yield made


@asynccontextmanager
async def open_http(url: str, headers: Mapping[str, str], http: httpx.AsyncClient) -> AsyncIterator[HttpTransport]:
    """A transport to `url` as long as the block. `headers` go with every request."""
    async with background() as tasks:
        transport = HttpTransport(url, http, tasks, headers)
        try:
            yield transport
        finally:
            await transport.aclose()
