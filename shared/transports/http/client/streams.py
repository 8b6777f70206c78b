"""The messages of a server over Streamable HTTP: in the body or the event stream that answers a POST, and on streams
opened by GET. A stream that ends too early is opened again."""

import asyncio
import logging
from dataclasses import dataclass

from ....protocol.http.client_headers import usable_tools
from ....protocol.http.retry_after import RETRYABLE
from ....protocol.http.rules import SESSION_ID
from ....protocol.session.envelope import claims_envelope
from ....protocol.wire.framing import Oversized
from ....protocol.wire.jsonrpc import Failure, Gap, Message, Notification, OnStream, Request, Response, Unanswered
from ....protocol.wire.sse import EventStream
from ....text import escape
from .answers import attribute_answer, drain, is_stream, read_answer, retry_after_data
from .exchange import Reply
from .inbox import Inbox
from .pool import FAILURES
from .site import Site

log = logging.getLogger("shared.transports.http.client")

RETRY_SECONDS = 1.0
"""Seconds before a stream is opened again, if the server specifies no pause."""
MIN_PAUSE_SECONDS = 0.01
"""The shortest pause that a server can request."""
MAX_RETRIES = 5
"""Maximum number of consecutive failed attempts to open a stream again."""


@dataclass(slots=True, eq=False)
class Post:
    """A pending request."""

    request: Request
    task: asyncio.Task[None] | None = None
    is_sent: bool = False
    """True if the server may have received the request."""
    is_answered: bool = False


@dataclass(slots=True, eq=False)
class _GetStream:
    """A stream that is opened by GET as often as needed: to resume the answer to `post`, or, without `post`, for
    messages that belong to no request."""

    events: EventStream
    post: Post | None
    was_open: bool = False
    """True if the stream was open at least once."""
    is_offered: bool = True
    """False if the server has refused to open the stream."""
    failures: int = 0
    """The number of consecutive failed attempts."""
    requested_pause: float = 0.0
    """The pause that the server requests, in seconds."""

    @property
    def should_continue(self) -> bool:
        is_answered = self.post is not None and self.post.is_answered
        return self.is_offered and self.failures < MAX_RETRIES and not is_answered

    @property
    def pause(self) -> float:
        retry_ms = self.events.retry
        return max(
            self.requested_pause, RETRY_SECONDS if retry_ms is None else max(MIN_PAUSE_SECONDS, retry_ms / 1000)
        )


class Streams:
    """Reads messages from `site` into `inbox`."""

    def __init__(self, site: Site, inbox: Inbox) -> None:
        self._site = site
        self._inbox = inbox

    async def deliver_answer(self, reply: Reply, post: Post) -> None:
        """Deliver the answer in a body, or `Unanswered` if the server has forgotten the session."""
        site, has_session = self._site, not claims_envelope(post.request.params)
        answer: Message | None = None
        if not (has_session and site.check_forgotten(reply)):
            answer = await read_answer(site.codec, reply, post.request)
        if answer is None or (has_session and site.check_forgotten(reply, answer)):
            post.is_answered = True
            await drain(reply)
            await self._inbox.put(Unanswered(post.request.id, "the server has forgotten the session", "session over"))
            return
        await self._deliver(answer, post, reply.headers.get(SESSION_ID))

    async def read(self, reply: Reply, events: EventStream, post: Post | None) -> None:
        """Deliver the messages of a stream until it ends or has delivered the answer to `post`."""
        session_id, content = reply.headers.get(SESSION_ID), reply.content
        while chunk := await content.readany():
            for event in events.feed(chunk):
                # An event without data is no message: it only gives the client an id to resume from (2025-11-25,
                # Streamable HTTP).
                if isinstance(event, Oversized):
                    await self._inbox.put(Gap())
                elif event.data and event.event == "message":
                    await self._deliver(self._site.codec.decode_body(event.data), post, session_id)
            if post is not None and post.is_answered:
                await drain(reply)
                return

    async def follow(self, events: EventStream, post: Post | None) -> bool:
        """Open a stream repeatedly until it has delivered the answer to `post`, is no longer offered, or has failed
        `MAX_RETRIES` times in a row. Returns True if the stream was ever open."""
        stream = _GetStream(events, post)
        if post is not None:
            await asyncio.sleep(stream.pause)
        while True:
            try:
                await self._get(stream)
            except FAILURES:
                stream.failures += 1
            if not stream.should_continue:
                return stream.was_open
            await asyncio.sleep(stream.pause)

    async def _get(self, stream: _GetStream) -> None:
        events, stream.requested_pause = stream.events, 0.0
        async with self._site.get(events.last_id) as reply:
            if is_stream(reply):
                if stream.post is None and stream.was_open and not events.last_id:
                    await self._inbox.put(Gap())
                stream.failures, stream.was_open = 0, True
                events.restart()
                await self.read(reply, events, stream.post)
            elif reply.status in RETRYABLE:
                stream.failures += 1
                stream.requested_pause = (retry_after_data(reply) or {}).get("retryAfter", 0.0)
            else:
                stream.is_offered = False
                if stream.was_open:  # otherwise a 404 may mean that the server offers no such stream
                    self._site.check_forgotten(reply)

    async def _deliver(self, message: Message, post: Post | None, session_id: str | None) -> None:
        if post is not None:
            message = attribute_answer(message, post.request)
            if isinstance(message, Response | Failure) and message.id == post.request.id:
                self._site.headers.learn(post.request, message, session_id)
                post.is_answered = True
                if isinstance(message, Response) and post.request.method == "tools/list":
                    message = _drop_unusable_tools(message, post.request)
            elif isinstance(message, Notification | Request):
                message = OnStream(message, post.request.id)
        await self._inbox.put(message)


def _drop_unusable_tools(answer: Response, request: Request) -> Response:
    if not claims_envelope(request.params):
        return answer
    answer, faults = usable_tools(answer)
    for fault in faults:
        log.warning("%s", escape(fault))
    return answer
