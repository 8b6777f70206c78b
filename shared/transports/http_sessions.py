"""Sessions of the handshake era over HTTP: many POSTs and at most one GET make one peer.

Each session is one `serve` with a transport of its own. What POSTs bring goes into its inbox. What it sends
goes, message by message, to exactly one stream:

* what belongs to a request of the client's, to the POST that brought it, the answer last;
* everything else to the GET stream. While none is open it waits, each notification once, and the oldest are
  dropped beyond a bound.

A POST whose client goes away goes on being served, for that is no cancellation; its answer is dropped, and a
question to the client moves to the GET stream. (2025-11-25, Transports, Streamable HTTP.)
"""

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.abc import TaskGroup

from ..protocol.events import Outgoing
from ..protocol.http_rules import Refusal, negotiated, refuse, request_ids
from ..protocol.jsonrpc import Batch, Failure, Message, Notification, Request, RequestId, Response, encode
from ..protocol.versions import Version
from ..server.app import Server
from ..server.dispatch import serve
from .http_streams import Feed

__all__ = ["HttpSession", "PostFeed", "SessionLimits", "Sessions"]

log = logging.getLogger("shared.transports.http")

MAX_WAITING = 256
"""Messages kept for a GET stream that is not open."""


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """What sessions may take."""

    sessions: int = 10_000
    idle_seconds: float = 1_800.0
    """Time without a request or an open stream until a session ends."""
    stream_bytes: int = 1_048_576
    """How far the reader of a stream may fall behind."""


class PostFeed(Feed):
    """The stream that answers one POST."""

    def __init__(self, ids: tuple[RequestId, ...], limit: int) -> None:
        super().__init__(limit)
        self.ids = ids
        self.answered = False
        """Whether the last message to take is the answer."""
        self.refusal: Refusal | None = None
        """Why there will be no answer, where the session ended before."""

    def answer(self, answer: Message | None) -> None:
        """Sends the answer and ends; no answer comes to what was cancelled."""
        if answer is None:
            self.end()
        else:
            self.answered = True
            self.finish(encode(answer))


class HttpSession:
    """One session: the transport that `serve` drives, and what HTTP requests do with it."""

    def __init__(self, principal: str | None, limits: SessionLimits) -> None:
        self.id = secrets.token_urlsafe(32)
        self.principal = principal
        self.spoken: Version | None = None
        """The version negotiated, once `initialize` is answered."""
        self._idle_seconds = limits.idle_seconds
        self._stream_bytes = limits.stream_bytes
        self._inbox: list[Message] = []
        self._moved = anyio.Event()
        self._end: type[Exception] | None = None
        self._posts: dict[RequestId, PostFeed] = {}
        self._get: Feed | None = None
        self._kept: dict[bytes, None] = {}
        self._open = 0
        self._used = anyio.current_time()

    # What HTTP requests do

    def in_use(self, message: Message) -> bool:
        """Whether `message` has the id of a request that is not answered yet."""
        return any(id_ in self._posts for id_ in request_ids(message))

    def post(self, message: Message) -> PostFeed | None:
        """Takes a message in; where its answers will come, or None where none is due."""
        self._inbox.append(message)
        self._wake()
        ids = request_ids(message)
        if not ids:
            return None
        feed = PostFeed(ids, self._stream_bytes)
        self._posts.update(dict.fromkeys(ids, feed))
        return feed

    def listen(self) -> Feed | None:
        """The stream for what no request asked for; None while another one is open."""
        if self._get is not None and self._get.is_open:
            return None
        self._get = Feed(self._stream_bytes, self._kept)
        self._kept.clear()
        return self._get

    def opened(self) -> None:
        """A stream of this session is being read: the session is not idle."""
        self._open += 1

    def closed(self, feed: Feed) -> None:
        """The stream is not read any more. What it would still get waits for the next GET, or is dropped."""
        self._open -= 1
        feed.cut()
        unsent = feed.unsent()
        if feed is self._get:
            self._keep(*unsent)
        self._wake()

    @property
    def streams(self) -> int:
        """How many streams are being read."""
        return self._open

    def end(self, *, orderly: bool) -> None:
        """Ends the session: what is under way is finished if `orderly`, else cancelled."""
        self._end = anyio.EndOfStream if orderly else anyio.BrokenResourceError
        self._moved.set()

    def close(self) -> None:
        """The session has ended: its streams end, those without an answer with a refusal."""
        stopped = self._end is anyio.EndOfStream
        refusal = refuse(503, "the server is stopping") if stopped else refuse(404, "the session has ended")
        for feed in set(self._posts.values()):
            feed.refusal = refusal
            feed.end()
        self._posts.clear()
        if self._get is not None:
            self._get.end()

    # The transport

    async def receive(self) -> Sequence[Message]:
        """The messages of the POSTs. Raises EndOfStream when the server stops, BrokenResourceError when the
        client has ended the session or has not used it for too long."""
        while True:
            if self._end is not None:
                raise self._end
            if self._inbox:
                messages, self._inbox = self._inbox, []
                return messages
            self._moved = anyio.Event()
            with anyio.move_on_after(self._used + self._idle_seconds - anyio.current_time()) as idle:
                await self._moved.wait()
            if idle.cancelled_caught:
                self._expire()

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Hands each message to the stream it belongs to; never waits."""
        for one in outgoing:
            feed = self._posts.get(one.about) if one.about is not None else None
            if isinstance(one.message, Response | Failure | Batch | None):
                self._answer(feed, one.message)
            elif feed is None or not feed.put(encode(one.message)):
                self._unasked(one.message, late=one.about is not None)

    def _answer(self, feed: PostFeed | None, answer: Response | Failure | Batch | None) -> None:
        if isinstance(answer, Response) and self.spoken is None:
            self.spoken = negotiated(answer)
        if feed is not None:
            for id_ in feed.ids:
                self._posts.pop(id_, None)
            feed.answer(answer)

    def _unasked(self, message: Request | Notification, *, late: bool) -> None:
        """Sends what has no POST stream, or lost it: then only questions, and their end, still matter."""
        if late and isinstance(message, Notification) and message.method != "notifications/cancelled":
            return
        data = encode(message)
        if self._get is None:
            self._keep(data)
        elif not self._get.put(data):
            self._keep(*self._get.unsent(), data)

    def _keep(self, *messages: bytes) -> None:
        for message in messages:
            self._kept[message] = None
            if len(self._kept) > MAX_WAITING:
                del self._kept[next(iter(self._kept))]
                log.warning("a session has %d messages and nobody reads them; the oldest was dropped", MAX_WAITING)

    def _wake(self) -> None:
        self._used = anyio.current_time()
        self._moved.set()

    def _expire(self) -> None:
        if self._open:
            self._used = anyio.current_time()
        else:
            self.end(orderly=False)


class Sessions:
    """The sessions of one endpoint."""

    def __init__(self, app: Server[Any], tasks: TaskGroup, limits: SessionLimits) -> None:
        self._app = app
        self._tasks = tasks
        self._limits = limits
        self._by_id: dict[str, HttpSession] = {}
        self._opening: set[HttpSession] = set()

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def streams(self) -> int:
        """How many streams are being read in all of them."""
        return sum(session.streams for session in (*self._opening, *self._by_id.values()))

    def open(self, principal: str | None) -> HttpSession | None:
        """A session that has no id yet as far as anybody knows; None where there are too many."""
        if len(self._by_id) + len(self._opening) >= self._limits.sessions:
            return None
        session = HttpSession(principal, self._limits)
        self._opening.add(session)
        self._tasks.start_soon(self._serve, session)
        return session

    def confirm(self, session: HttpSession) -> None:
        """The session is initialized: from now on it is found by its id."""
        if session in self._opening:
            self._opening.remove(session)
            self._by_id[session.id] = session

    def find(self, id: str, principal: str | None) -> HttpSession | None:
        """The session of that id. Somebody else's is as unknown as one that never was."""
        session = self._by_id.get(id)
        return session if session is not None and session.principal == principal else None

    def end(self, session: HttpSession) -> None:
        """Ends one session at once: its id is unknown from now on, what is under way is cancelled."""
        self._forget(session)
        session.end(orderly=False)

    def end_all(self) -> None:
        """Lets every session finish what is under way, and end."""
        for session in (*self._opening, *self._by_id.values()):
            session.end(orderly=True)

    def _forget(self, session: HttpSession) -> None:
        self._opening.discard(session)
        self._by_id.pop(session.id, None)

    async def _serve(self, session: HttpSession) -> None:
        try:
            await serve(self._app, session, principal=session.principal)
        except Exception:
            log.exception("a session failed")
        finally:
            self._forget(session)
            session.close()
