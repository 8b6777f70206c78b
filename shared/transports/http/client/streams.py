"""The messages of a server over Streamable HTTP: the answer to a request, in the body or on its own stream, and the
streams that are reopened if they end too early."""

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
"""Seconds before a stream is reopened, if the server specifies no pause."""
MIN_PAUSE_SECONDS = 0.01
"""The shortest pause that a server can request."""
MAX_RETRIES = 5
"""Consecutive attempts to reopen a stream before the client gives up."""


@dataclass(slots=True, eq=False)
class Post:
    """A pending request."""

    request: Request
    task: asyncio.Task[None] | None = None
    is_sent: bool = False
    """True if the server may have received the request."""
    answered: bool = False


@dataclass(slots=True, eq=False)
class _FollowedStream:
    """A stream that is opened by GET, until it has delivered the answer to `post`, if given."""

    events: EventStream
    post: Post | None
    was_open: bool = False
    is_offered: bool = True
    failed: int = 0
    """Consecutive failed attempts."""
    wait: float = 0.0
    """The pause that the server requests, in seconds."""

    @property
    def should_continue(self) -> bool:
        is_answered = self.post is not None and self.post.answered
        return self.is_offered and self.failed < MAX_RETRIES and not is_answered

    @property
    def pause(self) -> float:
        retry_ms = self.events.retry
        return max(self.wait, RETRY_SECONDS if retry_ms is None else max(MIN_PAUSE_SECONDS, retry_ms / 1000))


class Streams:
    """The reading of messages from `site` into `inbox`."""

    def __init__(self, site: Site, inbox: Inbox) -> None:
        self._site = site
        self._inbox = inbox

    async def deliver_answer(self, response: Reply, post: Post) -> None:
        """Deliver the answer in a body, or the fact that the session is over."""
        if not claims_envelope(post.request.params) and self._site.check_forgotten(response):
            post.answered = True
            await drain(response)
            await self._inbox.put(Unanswered(post.request.id, "the server has forgotten the session", "session over"))
            return
        answer = await read_answer(self._site.codec, response, post.request)
        await self._deliver(answer, post, response.headers.get(SESSION_ID))

    async def read(self, response: Reply, events: EventStream, post: Post | None) -> None:
        """Deliver the events of a stream, to its end or to the answer to `post`."""
        session_id, content = response.headers.get(SESSION_ID), response.content
        while chunk := await content.readany():
            for event in events.feed(chunk):
                # An event without data only carries its id (2025-11-25, Streamable HTTP).
                if isinstance(event, Oversized):
                    await self._inbox.put(Gap())
                elif event.data and event.event == "message":
                    await self._deliver(self._site.codec.decode_body(event.data), post, session_id)
            if post is not None and post.answered:
                await drain(response)
                return

    async def follow(self, events: EventStream, post: Post | None) -> bool:
        """Open a stream repeatedly until it has delivered the answer to `post`, is no longer offered, or has failed
        `MAX_RETRIES` times in a row. Returns True if the stream was ever open."""
        followed = _FollowedStream(events, post)
        if post is not None:
            await asyncio.sleep(followed.pause)
        while True:
            try:
                await self._get(followed)
            except FAILURES:
                followed.failed += 1
            if not followed.should_continue:
                return followed.was_open
            await asyncio.sleep(followed.pause)

    async def _get(self, followed: _FollowedStream) -> None:
        events, followed.wait = followed.events, 0.0
        async with self._site.get(events.last_id) as response:
            if is_stream(response):
                if followed.post is None and followed.was_open and not events.last_id:
                    await self._inbox.put(Gap())
                followed.failed, followed.was_open = 0, True
                events.restart()
                await self.read(response, events, followed.post)
            elif response.status in RETRYABLE:
                followed.failed += 1
                followed.wait = (retry_after_data(response) or {}).get("retryAfter", 0.0)
            else:
                followed.is_offered = False
                if followed.was_open:  # otherwise a 404 may also mean that the server offers no such stream
                    self._site.check_forgotten(response)

    async def _deliver(self, message: Message, post: Post | None, session_id: str | None) -> None:
        if post is not None:
            message = attribute_answer(message, post.request)
            if isinstance(message, Response | Failure) and message.id == post.request.id:
                self._site.headers.learn(post.request, message, session_id)
                post.answered = True
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
