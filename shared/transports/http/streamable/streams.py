"""The streams of one session, who reads them, and which of them each message goes to: exactly one.

* what belongs to a request of the client's goes to the stream of the POST that brought it, the answer last;
* everything else goes to the session's own stream, which a GET reads. While none does it waits, each message once.

A POST whose client goes away goes on being served, for that is no cancellation. Once the client has seen an event
of a stream it may come back for the rest, by a GET with `Last-Event-ID`, at any replica. Before, the stream is lost:
its answer is dropped, and a question to the client moves to the session's own stream. What streams keep is the
matter of their log. (2025-11-25, Transports, Streamable HTTP.)
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from anyio import CancelScope

from ....concurrency import Signal
from ....contracts import EventStream, SessionEvents, SessionStore
from ....errors import InternalError, Unavailable
from ....protocol.http.rules import REFUSING, Refusal, read_event_id, refuse
from ....protocol.session.events import Outgoing
from ....protocol.session.subscriptions import LISTS
from ....protocol.wire.codec import encode
from ....protocol.wire.framing import ServerSentEvent
from ....protocol.wire.jsonrpc import (
    Batch,
    Failure,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
    failure,
)

_TOO_OLD = refuse(400, "what came after this event is not kept any more")
_LISTS_CHANGED = frozenset(f"notifications/{name}/list_changed" for name in LISTS)


class Reader:
    """One HTTP response that reads a stream."""

    __slots__ = ("_begin", "_moved", "_writing", "is_cut", "resumes", "retry_ms", "stream")

    def __init__(self, stream: EventStream, after: int | None = None, *, begin: bool = False) -> None:
        """Reads what nobody has taken, or everything after message number `after`. With `begin` the response begins
        before there is anything to send."""
        self.stream = stream
        self.resumes = after is not None
        """Whether its client comes back."""
        self.retry_ms: int | None = None
        """Where the response is to end before its stream does: how long the client should wait."""
        self.is_cut = False
        """Whether the response has to end at once."""
        self._begin = begin
        self._moved = Signal()
        self._writing: CancelScope | None = None
        stream.read(self, after)

    @property
    def is_ending(self) -> bool:
        """Whether the response ends with what is unsent now."""
        return self.stream.is_over or self.retry_ms is not None

    async def wait(self) -> None:
        """Waits until there is something to send, or the end, or a reason to begin."""
        while not (self._begin or self.is_cut or self.is_ending or not self.stream.is_sent):
            await self._moved.wait()
        self._begin = False

    def writing(self) -> CancelScope:
        """A scope around what is written, which may have to wait for the client: cancelled by `cut`."""
        self._writing = CancelScope()
        if self.is_cut:
            self._writing.cancel()
        return self._writing

    def wake(self) -> None:
        """Something has changed."""
        self._moved.wake()

    def begin(self) -> None:
        """Has the response begin, if it has not: a client, or a proxy, wants to see that somebody is there."""
        self._begin = True
        self.wake()

    def pause(self, retry_ms: int) -> None:
        """Ends the response and not the stream."""
        self.retry_ms = retry_ms
        self.wake()

    def cut(self) -> None:
        """Ends the response at once."""
        self.is_cut = True
        if self._writing is not None:
            self._writing.cancel()
        self.wake()


class Streams:
    """The streams of one session, as one replica serves them."""

    __slots__ = ("_events", "_forbidden", "_gets", "_id", "_posts", "_retry_ms", "_sessions")

    def __init__(self, id: str, events: SessionEvents, sessions: SessionStore, retry_ms: int = 1_000) -> None:
        """`id` is the session's, `events` are its streams at all replicas, `sessions` knows which requests are being
        served. Clients should wait `retry_ms` before they come back."""
        self._id = id
        self._events = events
        self._sessions = sessions
        self._retry_ms = retry_ms
        self._posts: dict[RequestId, EventStream] | None = None
        self._gets: tuple[Reader, ...] = ()
        self._forbidden: dict[EventStream, Failure] | None = None

    # Reading

    def post(self, ids: tuple[RequestId, ...]) -> Reader:
        """Who reads the answers to the requests `ids`, and what comes before."""
        stream = self._events.stream(ids)
        if self._posts is None:
            self._posts = {}
        for id_ in ids:
            self._posts[id_] = stream
        return Reader(stream)

    async def listen(self) -> Reader | Refusal:
        """Who reads what no request asked for; 409 while somebody does. Raises Unavailable where the other replicas
        are out of reach."""
        stream = await self._events.find()
        # One stream for what no request asked for: each message goes out once (2025-11-25, Streamable HTTP,
        # Multiple Connections).
        if stream is None or stream.is_read:
            return refuse(409, "this session has a GET stream already")
        return await self._get(stream)

    async def resume(self, event_id: str) -> Reader | Refusal:
        """Who reads what came after that event; 400 where it is unknown, or not everything after it is kept. Raises
        Unavailable where the other replicas are out of reach."""
        # Not 404: to a client that means that its session has ended.
        stream_id, number = read_event_id(event_id) or ("", 0)
        stream = await self._events.find(stream_id)
        if stream is None or not stream.has(number):
            return refuse(400, "there is no such event")
        if not stream.follows(number):
            return _TOO_OLD
        return await self._get(stream, number)

    def begin(self, reader: Reader, *, primes: bool = False) -> list[ServerSentEvent]:
        """What the response of `reader` begins with; from now on its client may come back. With `primes` it is told
        at once where it is."""
        stream = reader.stream
        if stream.is_over and stream.is_sent:
            return []
        # From here on the client has an id to come back with, and any replica has to find the stream.
        stream.show()
        return [stream.position(self._retry_ms)] if primes and not reader.resumes else []

    def forbidden(self, reader: Reader) -> Failure | None:
        """The answer that `reader` has, where that is that the token of its request does not allow it."""
        return None if self._forbidden is None else self._forbidden.pop(reader.stream, None)

    def leave(self, reader: Reader) -> None:
        """`reader` reads no more. What it would still get waits for the next one, or is lost."""
        self.forbidden(reader)
        reader.stream.leave(reader)
        if self._gets:
            self._gets = tuple(one for one in self._gets if one is not reader)

    @property
    def listens(self) -> bool:
        """Whether somebody reads the session's own stream here."""
        return any(not reader.stream.ids for reader in self._gets)

    def taken(self) -> None:
        """A reader has taken what there was for it."""
        self._events.taken()

    def hear_taken(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Has `wake` called when a reader has taken something, until the function that this gives is called."""
        return self._events.hear_taken(wake)

    # Writing

    def send(self, outgoing: Sequence[Outgoing], *, patient: bool = True) -> Sequence[Outgoing]:
        """Puts each message on its stream. Before the first whose reader is too far behind it stops and gives back
        what is left, if `patient`; else that reader is cut off."""
        posts = self._posts or {}
        for number, one in enumerate(outgoing):
            stream = posts.get(one.about) if one.about is not None else None
            if one.retry_ms is not None:
                if stream is not None:
                    stream.pause(one.retry_ms)
            elif one.message is None or isinstance(one.message, (Response, Failure, Batch)):
                self._answer(stream, one.message)
            elif not self._tell(stream, one, one.message, patient=patient):
                return outgoing[number:]
            patient = True
        self._events.make_room()
        return ()

    def close(self, refusal: Refusal) -> None:
        """The session has ended: so does every stream, those without an answer with `refusal`."""
        posts, self._posts = self._posts or {}, None
        for stream in set(posts.values()):
            stream.end(refusal)
            if not stream.is_read:
                stream.forget()
        self._events.close(refusal)

    def hand_over(self, refusal: Refusal) -> None:
        """This replica stops, and the session goes on at others. What was asked here and has no answer fails: with
        `refusal`, or where the client has seen an event already, so that it may be told elsewhere. Who reads here is
        sent away."""
        posts, self._posts = self._posts or {}, None
        for stream in set(posts.values()):
            # Where the client has seen an event it will come back, to another replica, which knows nothing of the
            # call. Else it sees this very response fail.
            for id_ in stream.ids if stream.name else ():
                stream.put(encode(failure(id_, InternalError("the server is stopping", data={"mayHaveRun": True}))))
            stream.end(refusal)
            self._sessions.leave(self._id, stream.ids)
        for reader in self._gets:
            reader.pause(self._retry_ms)
        self._events.release()

    def compact(self) -> None:
        """Nothing comes for a while: what is empty gives up the room that it had."""
        self._posts = self._posts or None
        self._forbidden = self._forbidden or None

    # Inside

    async def _get(self, stream: EventStream, after: int | None = None) -> Reader | Refusal:
        # A GET is answered at once: a client that waits for the headers would not know that it is listened to.
        reader = Reader(stream, after, begin=True)
        self._gets += (reader,)
        with ExitStack() as undoing:
            undoing.callback(self.leave, reader)
            settled = stream.settled()
            if settled is not None:
                await settled
            if reader.is_cut and stream.reader is reader:  # and not since somebody else has begun
                if stream.is_lost:
                    raise Unavailable
                return _TOO_OLD
            undoing.pop_all()
        return reader

    def _answer(self, stream: EventStream | None, answer: Message | None) -> None:
        if stream is None:
            return
        posts = self._posts or {}
        for id_ in stream.ids:
            posts.pop(id_, None)
        self._sessions.leave(self._id, stream.ids)
        # These have a status of their own, which can be said only while the response has not begun.
        if isinstance(answer, Failure) and answer.kind in REFUSING and stream.is_read:
            self._forbidden = {**(self._forbidden or {}), stream: answer}
        if answer is not None:
            stream.answer(encode(answer))
        else:
            stream.end()

    def _tell(
        self, stream: EventStream | None, one: Outgoing, message: Request | Notification, *, patient: bool
    ) -> bool:
        """Sends what is no answer; False where its reader should be waited for. Of what has lost its stream only
        questions, and their end, still matter."""
        is_own = stream is None or stream.is_lost
        if stream is None or stream.is_lost:
            late = one.about is not None
            # Progress of a call whose client has gone away helps nobody.
            if late and isinstance(message, Notification) and message.method != "notifications/cancelled":
                return True
            stream = self._events.own()
        data = encode(message)
        if patient and stream.crowds(data):
            return False
        # Of a list that has changed all replicas tell, of a resource the one where the client has subscribed to it.
        everywhere = is_own and isinstance(message, Notification) and message.method in _LISTS_CHANGED
        stream.put(data, once=is_own and not stream.is_read, everywhere=everywhere)
        return True
