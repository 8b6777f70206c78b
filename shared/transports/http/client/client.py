"""The client transport of Streamable HTTP: every message is a POST, answered by its body or an event stream.

In the handshake era, a GET stream carries messages that belong to no request, a broken stream is resumed if its
events have ids, and DELETE ends the session. In the stateless era, a request is cancelled by closing its stream.
An answer without a message becomes an error whose code is the HTTP status. If a connection fails, only its request is
affected, and gets `Unanswered`.

One task for each request reads its answer; all messages go into one inbox, from which the client takes them.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import anyio

from ....concurrency import TaskSet
from ....contracts import Credentials
from ....protocol.session.envelope import claims_envelope
from ....protocol.session.events import Outgoing
from ....protocol.wire.codec import MAX_MESSAGE
from ....protocol.wire.jsonrpc import Failure, Message, Notification, Request, RequestId, Response, Unanswered
from ....protocol.wire.sse import EventStream
from .answers import drain, is_stream
from .inbox import Inbox
from .pool import FAILURES, MAX_PENDING_POSTS, MAX_POSTS_AT_ONCE, Pool, failed_exchange
from .site import Site
from .streams import Post, Streams

MAX_CALLS = 100
"""The maximum number of simultaneous requests, each of which needs a connection; further requests wait their turn.
Streams of notifications, and the client's answers to the server's requests, are not counted."""
CLOSING_SECONDS = 2.0
"""Seconds for sending the remaining messages when the transport is closed, and then as many for the DELETE that ends
the session."""
ACCEPT_SECONDS = 30.0
"""Seconds that a server may take to accept a notification or an answer."""
_INITIALIZED = "notifications/initialized"
_LISTEN = "subscriptions/listen"


class HttpTransport:
    """The messages to and from one endpoint."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._inbox = Inbox()
        self._reader_tasks = TaskSet(self._inbox.end)
        self._background_posts = TaskSet(self._inbox.end)
        self._request_slots = asyncio.Semaphore(MAX_CALLS)
        self._post_slots = asyncio.Semaphore(MAX_POSTS_AT_ONCE)
        self._posts: dict[RequestId, Post] = {}
        self._streams = Streams(site, self._inbox)

    async def receive(self) -> Sequence[Message]:
        """Return the next messages, from any stream.

        Raises EndOfStream if the transport is closed, and BrokenResourceError if the session is over, or if its
        stream of notifications can't be reopened.
        """
        return await self._inbox.take()

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Begin a POST for each message, and wait for the message that completes the handshake, which no other may
        overtake.

        Raises BrokenResourceError if that message can't be delivered.
        """
        for item in outgoing:
            # The GET stream is opened afterwards: a server may refuse one in a session that is not initialized.
            if isinstance(item.message, Notification) and item.message.method == _INITIALIZED:
                await self._post_message(item.message)
                self._reader_tasks.start(self._listen())
            else:
                self._begin(item)

    def try_send(self, outgoing: Sequence[Outgoing]) -> bool:
        """Begin a POST for each message. Returns False, and begins none, if the caller must wait for one of them, or
        if the session is over and its client has yet to learn that."""
        if self._inbox.has_ended:
            return False
        if any(isinstance(item.message, Notification) and item.message.method == _INITIALIZED for item in outgoing):
            return False
        for item in outgoing:
            self._begin(item)
        return True

    async def aclose(self) -> None:
        """End all streams, and the session if there is one."""
        with anyio.CancelScope(shield=True):
            self._inbox.close()
            await self._background_posts.finish(CLOSING_SECONDS)
            await self._background_posts.stop()
            await self._reader_tasks.stop()
            headers = self._site.headers
            # There is nothing to end without a session, or if the server has forgotten it.
            if headers.session_id is None or self._site.is_forgotten:
                return
            with suppress(*FAILURES, TimeoutError):
                async with asyncio.timeout(CLOSING_SECONDS), self._site.delete() as reply:
                    await drain(reply)
            headers.session_id = None

    # Sending

    def _begin(self, item: Outgoing) -> None:
        match item.message:
            case Request() as request:
                post = self._posts[request.id] = Post(request)
                post.task = self._reader_tasks.start(self._make_request(post))
            case Notification("notifications/cancelled") as message if item.related_request_id is not None:
                cancelled_post = self._posts.pop(item.related_request_id, None)
                if cancelled_post is None:
                    return
                # In 2026-07-28 a request is cancelled by closing its response: that version has no such notification
                # over HTTP.
                if cancelled_post.is_sent and not claims_envelope(cancelled_post.request.params):
                    self._background_posts.start(self._try_post(message))
                if cancelled_post.task is not None:
                    cancelled_post.task.cancel()
            case Response() | Failure() if len(self._background_posts) >= MAX_PENDING_POSTS:
                pass  # dropped: the server sends requests, but does not accept the answers
            case Notification() | Response() | Failure() as message:
                self._background_posts.start(self._post_message(message))

    async def _post_message(self, message: Notification | Response | Failure) -> None:
        """Send a message that gets no answer. Raises BrokenResourceError if it can't be delivered, or the session is
        over."""
        try:
            async with asyncio.timeout(ACCEPT_SECONDS), self._post_slots, self._site.post(message) as reply:
                await drain(reply)
                is_forgotten = self._site.check_forgotten(reply)
        except (*FAILURES, TimeoutError):
            raise anyio.BrokenResourceError from None
        if is_forgotten:
            raise anyio.BrokenResourceError

    async def _try_post(self, message: Notification) -> None:
        with suppress(anyio.BrokenResourceError):
            await self._post_message(message)

    async def _make_request(self, post: Post) -> None:
        request = post.request
        outcome = Unanswered(request.id, "the stream ended without an answer")
        try:
            if request.method == _LISTEN:
                await self._exchange(post)
            else:
                async with self._request_slots:
                    await self._exchange(post)
        except FAILURES as error:
            outcome = failed_exchange(request.id, error)
        finally:
            self._posts.pop(request.id, None)
        if not post.is_answered:
            await self._inbox.put(outcome)

    async def _exchange(self, post: Post) -> None:
        events: EventStream | None = None
        post.is_sent = True
        try:
            async with self._site.post(post.request) as reply:
                if is_stream(reply):
                    events = EventStream(MAX_MESSAGE)
                    await self._streams.read(reply, events, post)
                else:
                    await self._streams.deliver_answer(reply, post)
        except FAILURES:
            # A stream with event ids is resumed below. Without an id the answer is lost, and the server may have
            # carried out the request.
            if events is None or not events.last_id:
                raise
        if events is not None and events.last_id and not post.is_answered:
            await self._streams.follow(events, post)

    async def _listen(self) -> None:
        """Read the stream of messages that belong to no request, as long as the server offers it. Ends the transport
        if the stream was lost."""
        if await self._streams.follow(EventStream(MAX_MESSAGE), None):
            # Pending and new requests get their own answers first: the 404 of a server that has forgotten the session
            # shows that it did not carry out the request.
            with anyio.move_on_after(CLOSING_SECONDS):
                while pending_tasks := [post.task for post in self._posts.values() if post.task is not None]:
                    await asyncio.wait(pending_tasks)
            self._inbox.end(anyio.BrokenResourceError())


@asynccontextmanager
async def open_http(
    url: str,
    headers: Mapping[str, str],
    pool: Pool,
    credentials: Credentials | None = None,
    dialect: str | None = None,
) -> AsyncIterator[HttpTransport]:
    """Open a transport to `url` for the duration of the block. `headers`, and the headers from `credentials`, are
    sent with every request; `dialect` is as in `ClientOptions`. Raises ValueError for an invalid URL, and for an
    unknown dialect."""
    transport = HttpTransport(Site(url, pool, headers, credentials, dialect))
    try:
        yield transport
    finally:
        await transport.aclose()
