"""One session of the handshake era over HTTP: many POSTs and at most one GET make one peer.

It is the transport that one `serve` drives. What POSTs bring goes into its inbox. What it sends
goes, message by message, to exactly one stream:

* what belongs to a request of the client's, to the stream of the POST that brought it, the answer last;
* everything else to the session's own stream, which a GET reads. While none does it waits, each message once.

A POST whose client goes away goes on being served, for that is no cancellation. Once the client has seen an event
of a stream it may come back for the rest, by a GET with `Last-Event-ID`. Before, the stream is lost: its answer is
dropped, and a question to the client moves to the session's own stream. (2025-11-25, Transports, Streamable HTTP.)
"""

import asyncio
import math
import secrets
from collections.abc import Sequence

import anyio

from ..protocol.events import Outgoing
from ..protocol.framing import ServerSentEvent
from ..protocol.http_rules import Refusal, negotiated, read_event_id, refuse, request_ids
from ..protocol.jsonrpc import Batch, Failure, Message, Notification, Request, RequestId, Response, encode
from ..protocol.versions import Version
from .http_limits import Room, SessionLimits
from .http_replay import Reader, Stream

__all__ = ["HttpSession"]

CATCH_UP_SECONDS = 0.1
"""How long a session waits for a reader that is too far behind, before it is cut off. A burst is no slow client."""


class HttpSession:
    """One session: the transport, and what HTTP requests do with it."""

    def __init__(self, principal: str | None, limits: SessionLimits, room: Room | None = None) -> None:
        """`room` counts what all sessions keep."""
        self.id = secrets.token_urlsafe(32)
        self.principal = principal
        self.spoken: Version | None = None
        """The version negotiated, once `initialize` is answered."""
        self._limits = limits
        self._room = Room(limits.session_replay_bytes, room)
        self._inbox: list[Message] = []
        self._moved: asyncio.Future[None] | None = None
        self._end: type[Exception] | None = None
        self._posts: dict[RequestId, Stream] = {}
        self._own: Stream | None = None
        self._shown: dict[str, Stream] = {}
        self._look_at = math.inf
        self._open = 0
        self._used = anyio.current_time()

    # What HTTP requests do

    def in_use(self, message: Message) -> bool:
        """Whether `message` has the id of a request that is not answered yet."""
        return any(id_ in self._posts for id_ in request_ids(message))

    def post(self, message: Message) -> Reader | None:
        """Takes a message in; who reads its answers, or None where none is due."""
        self._inbox.append(message)
        self._wake()
        ids = request_ids(message)
        if not ids:
            return None
        stream = Stream(self._limits, self._room, ids)
        self._posts.update(dict.fromkeys(ids, stream))
        return stream.read()

    def listen(self) -> Reader | Refusal:
        """Who reads what no request asked for; 409 while somebody does."""
        stream = self._standing()
        return refuse(409, "this session has a GET stream already") if stream.reader else stream.read(begin=True)

    def resume(self, event_id: str) -> Reader | Refusal:
        """Who reads what came after that event; 400 where it is unknown, or not everything after it is kept."""
        # Not 404: to a client that means that its session has ended.
        stream_id, number = read_event_id(event_id) or ("", 0)
        stream = self._shown.get(stream_id)
        if stream is None or not stream.has(number):
            return refuse(400, "there is no such event")
        if not stream.follows(number):
            return refuse(400, "what came after this event is not kept any more")
        return stream.read(number, begin=True)

    def begin(self, reader: Reader) -> list[ServerSentEvent]:
        """What the response of `reader` begins with; from now on its client may come back."""
        stream = reader.stream
        if stream.is_over and stream.is_sent:
            return []
        self._shown[stream.show()] = stream
        return [stream.position(self._limits.retry_ms)] if self._primes and not reader.resumes else []

    def opened(self) -> None:
        """A stream of this session is being read: the session is not idle."""
        self._open += 1

    def closed(self, reader: Reader) -> None:
        """`reader` reads no more. What it would still get waits for the next one, or is lost."""
        self._open -= 1
        reader.stream.leave(reader)
        if self._end is not None:
            reader.stream.forget()
        self._left(reader.stream)
        self._wake()

    @property
    def streams(self) -> int:
        """How many streams are being read."""
        return self._open

    def end(self, *, orderly: bool) -> None:
        """Ends the session: what is under way is finished if `orderly`, else cancelled."""
        self._end = anyio.EndOfStream if orderly else anyio.BrokenResourceError
        self._look_again()

    def close(self) -> None:
        """The session has ended: its streams end, those without an answer with a refusal."""
        stopped = self._end is anyio.EndOfStream
        refusal = refuse(503, "the server is stopping") if stopped else refuse(404, "the session has ended")
        for stream in {*self._posts.values(), *self._shown.values(), *([self._own] if self._own else [])}:
            stream.end(refusal)
            if stream.reader is None:
                stream.forget()
        self._posts.clear()
        self._shown.clear()

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
            await self._wait_until(self._expire())

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Hands each message to the stream it belongs to. Waits for slow readers a moment, then cuts them off."""
        for one in outgoing:
            stream = self._posts.get(one.about) if one.about is not None else None
            if one.retry_ms is not None:
                self._pause(stream, one.retry_ms)
            elif isinstance(one.message, Response | Failure | Batch | None):
                self._answer(stream, one.message)
            else:
                await self._tell(stream, one.message, late=one.about is not None)
        self._make_room()

    def _answer(self, stream: Stream | None, answer: Response | Failure | Batch | None) -> None:
        if isinstance(answer, Response) and self.spoken is None:
            self.spoken = negotiated(answer)
        if stream is None:
            return
        for id_ in stream.ids:
            self._posts.pop(id_, None)
        if answer is not None:
            stream.answer(encode(answer))
        else:
            self._shown.pop(stream.name, None)
            stream.end()
        self._left(stream)

    async def _tell(self, stream: Stream | None, message: Request | Notification, *, late: bool) -> None:
        """Sends what is no answer. Of what has lost its stream only questions, and their end, still matter."""
        if stream is None or stream.is_lost:
            if late and isinstance(message, Notification) and message.method != "notifications/cancelled":
                return
            stream = self._standing()
        data = encode(message)
        if stream.reader is not None and stream.crowds(data):
            with anyio.move_on_after(CATCH_UP_SECONDS):
                await stream.reader.moved()
        stream.put(data, once=stream is self._own and stream.reader is None)

    def _pause(self, stream: Stream | None, retry_ms: int) -> None:
        if stream is not None and stream.reader is not None and self._primes:
            stream.reader.pause(retry_ms)

    # Inside

    @property
    def _primes(self) -> bool:
        return self.spoken is not None and self.spoken.priming_events

    def _left(self, stream: Stream) -> None:
        """Takes note of when to give `stream` up. Of those that have ended only the last few are kept."""
        if stream.expires_at < self._look_at:
            self._look_at = stream.expires_at
            self._look_again()
        if stream.is_over and len(self._shown) > self._limits.replay_streams:
            ended = [name for name, one in self._shown.items() if one.expires_at < math.inf and one.is_over]
            for name in ended[: max(len(ended) - self._limits.replay_streams, 0)]:
                self._shown.pop(name).forget()

    def _standing(self) -> Stream:
        self._own = self._own or Stream(self._limits, self._room)
        return self._own

    def _make_room(self) -> None:
        """Gives up the oldest of what the oldest streams keep, as long as it is too much."""
        for stream in list(self._shown.values()) if self._room.is_full else ():
            while self._room.is_full and stream.shed():
                pass

    def _wake(self) -> None:
        self._used = anyio.current_time()
        self._look_again()

    def _look_again(self) -> None:
        if self._moved is not None and not self._moved.done():
            self._moved.set_result(None)

    async def _wait_until(self, time: float) -> None:
        # A bare future, for an idle session is little else: an event and a cancel scope would take 2 KiB more.
        loop = asyncio.get_running_loop()
        self._moved = loop.create_future()
        timer = loop.call_at(time, self._look_again)
        try:
            await self._moved
        finally:
            timer.cancel()
            self._moved = None

    def _expire(self) -> float:
        """Gives up what was unused for too long, this session itself too; the time to look again."""
        now = anyio.current_time()
        if self._look_at <= now:
            for name, stream in list(self._shown.items()):
                if stream.expires_at <= now and stream.expire():
                    del self._shown[name]
            self._look_at = min((stream.expires_at for stream in self._shown.values()), default=math.inf)
        if self._open:
            self._used = now
        idle_at = self._used + self._limits.idle_seconds
        if idle_at <= now:
            self.end(orderly=False)
        return min(idle_at, self._look_at)
