"""The streams of one session, and which of them each message goes to: exactly one.

* what belongs to a request of the client's goes to the stream of the POST that brought it, the answer last;
* everything else goes to the session's own stream, which a GET reads. While none does it waits, each message once.

A POST whose client goes away goes on being served, for that is no cancellation. Once the client has seen an event
of a stream it may come back for the rest, by a GET with `Last-Event-ID`. Before, the stream is lost: its answer is
dropped, and a question to the client moves to the session's own stream. (2025-11-25, Transports, Streamable HTTP.)
"""

from collections.abc import Sequence

from ...kit.expiry import ExpiryQueue
from ...protocol.http.rules import Refusal, negotiated, read_event_id, refuse
from ...protocol.session.events import Outgoing
from ...protocol.versions import Version
from ...protocol.wire.codec import encode
from ...protocol.wire.framing import ServerSentEvent
from ...protocol.wire.jsonrpc import Batch, Failure, Message, Notification, Request, RequestId, Response
from .limits import Room, SessionLimits
from .replay import Reader, Stream

__all__ = ["Streams"]


class Streams:
    """The streams of one session."""

    __slots__ = ("_limits", "_own", "_posts", "_room", "_shown", "_unread", "spoken")

    def __init__(self, limits: SessionLimits, room: Room, unread: ExpiryQueue) -> None:
        """`unread` has the streams that nobody reads, which are given up after a while."""
        self.spoken: Version | None = None
        """The version negotiated, once `initialize` is answered."""
        self._limits = limits
        self._room = room
        self._unread = unread
        self._posts: dict[RequestId, Stream] = {}
        self._own: Stream | None = None
        self._shown: dict[str, Stream] = {}

    # Reading

    def in_use(self, ids: Sequence[RequestId]) -> bool:
        """Whether one of `ids` is that of a request that is not answered yet."""
        return not self._posts.keys().isdisjoint(ids)

    def post(self, ids: tuple[RequestId, ...]) -> Reader:
        """Who reads the answers to the requests `ids`, and what comes before."""
        stream = Stream(self._limits, self._room, ids)
        for id_ in ids:
            self._posts[id_] = stream
        return stream.read()

    def listen(self) -> Reader | Refusal:
        """Who reads what no request asked for; 409 while somebody does."""
        stream = self._standing()
        if stream.reader is not None:
            return refuse(409, "this session has a GET stream already")
        self._unread.stop(stream)
        return stream.read(begin=True)

    def resume(self, event_id: str) -> Reader | Refusal:
        """Who reads what came after that event; 400 where it is unknown, or not everything after it is kept."""
        # Not 404: to a client that means that its session has ended.
        stream_id, number = read_event_id(event_id) or ("", 0)
        stream = self._shown.get(stream_id)
        if stream is None or not stream.has(number):
            return refuse(400, "there is no such event")
        if not stream.follows(number):
            return refuse(400, "what came after this event is not kept any more")
        self._unread.stop(stream)
        return stream.read(number, begin=True)

    def begin(self, reader: Reader) -> list[ServerSentEvent]:
        """What the response of `reader` begins with; from now on its client may come back."""
        stream = reader.stream
        if stream.is_over and stream.is_sent:
            return []
        self._shown[stream.show()] = stream
        return [stream.position(self._limits.retry_ms)] if self._primes and not reader.resumes else []

    def leave(self, reader: Reader) -> None:
        """`reader` reads no more. What it would still get waits for the next one, or is lost."""
        reader.stream.leave(reader)
        self._left(reader.stream)

    # Writing

    def send(self, outgoing: Sequence[Outgoing], *, patient: bool = True) -> Sequence[Outgoing]:
        """Puts each message on its stream. Before the first whose reader is too far behind it stops and gives back
        what is left, if `patient`; else that reader is cut off."""
        for number, one in enumerate(outgoing):
            stream = self._posts.get(one.about) if one.about is not None else None
            if one.retry_ms is not None:
                self._pause(stream, one.retry_ms)
            elif one.message is None or isinstance(one.message, (Response, Failure, Batch)):
                self._answer(stream, one.message)
            elif not self._tell(stream, one, one.message, patient=patient):
                return outgoing[number:]
            patient = True
        self._make_room()
        return ()

    def close(self, refusal: Refusal) -> None:
        """Ends every stream, those without an answer with `refusal`."""
        for stream in {*self._posts.values(), *self._shown.values(), *([self._own] if self._own else [])}:
            stream.end(refusal)
            self._unread.stop(stream)
            if stream.reader is None:
                stream.forget()
        self._posts.clear()
        self._shown.clear()

    def compact(self) -> None:
        """Nothing comes for a while: what is empty gives up the room that it had."""
        self._posts = self._posts or {}

    # Inside

    def _answer(self, stream: Stream | None, answer: Message | None) -> None:
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

    def _tell(self, stream: Stream | None, one: Outgoing, message: Request | Notification, *, patient: bool) -> bool:
        """Sends what is no answer; False where its reader should be waited for. Of what has lost its stream only
        questions, and their end, still matter."""
        if stream is None or stream.is_lost:
            late = one.about is not None
            if late and isinstance(message, Notification) and message.method != "notifications/cancelled":
                return True
            stream = self._standing()
        data = encode(message)
        if patient and stream.reader is not None and stream.crowds(data):
            return False
        stream.put(data, once=stream is self._own and stream.reader is None)
        return True

    def _pause(self, stream: Stream | None, retry_ms: int) -> None:
        if stream is not None and stream.reader is not None and self._primes:
            stream.reader.pause(retry_ms)

    @property
    def _primes(self) -> bool:
        return self.spoken is not None and self.spoken.priming_events

    def _left(self, stream: Stream) -> None:
        """Takes note of when to give `stream` up. Of those that have ended only the last few are kept."""
        if stream.reader is not None:
            return
        if stream.name not in self._shown:
            # Nobody can come back for it any more.
            if stream.is_over:
                stream.forget()
            return
        if stream.is_over or stream is self._own:
            self._unread.start(stream, self._give_up)
        if stream.is_over and len(self._shown) > self._limits.replay_streams:
            ended = [one for one in self._shown.values() if one.is_over and one.reader is None]
            for one in ended[: max(len(ended) - self._limits.replay_streams, 0)]:
                self._unread.stop(one)
                self._shown.pop(one.name).forget()

    def _give_up(self, stream: Stream) -> None:
        """It was kept for long enough."""
        if stream.expire():
            self._shown.pop(stream.name, None)

    def _standing(self) -> Stream:
        self._own = self._own or Stream(self._limits, self._room)
        return self._own

    def _make_room(self) -> None:
        """Gives up the oldest of what the oldest streams keep, as long as it is too much."""
        for stream in list(self._shown.values()) if self._room.is_full else ():
            while self._room.is_full and stream.shed():
                pass
