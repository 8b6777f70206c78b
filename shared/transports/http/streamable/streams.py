"""The streams of one session, their readers, and the routing of each message to exactly one of them.

* a message that belongs to a client's request goes to the stream of its POST, the answer last;
* every other message goes to the session's own stream, which a GET reads. Without a GET, the message
  waits, without duplicates.

A POST continues to be served if its client goes away, since a disconnection does not cancel a request. Once the
client has seen an event of a stream it may request the rest, by a GET with `Last-Event-ID`, at any replica. Before
that, the stream is lost: its answer is dropped, and a question to the client moves to the session's own stream. Their
log decides how long events are retained. (2025-11-25, Transports, Streamable HTTP.)
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from anyio import CancelScope

from ....concurrency import Signal
from ....contracts import EventStream, SessionEvents, SessionStore
from ....errors import InternalError, Unavailable
from ....protocol.http.rules import KINDS_WITH_STATUS, Refusal, read_event_id, refuse
from ....protocol.session.events import Outgoing
from ....protocol.session.subscriptions import LISTS
from ....protocol.wire.codec import encode
from ....protocol.wire.framing import ServerSentEvent
from ....protocol.wire.jsonrpc import Batch, Failure, Message, Notification, Request, RequestId, Response, failure
from ....server.dispatch.room import LARGE_RESULT_BYTES, Room

_TOO_OLD = refuse(400, "the events after this one are no longer stored")
_LISTS_CHANGED = frozenset(f"notifications/{name}/list_changed" for name in LISTS)


class Reader:
    """One HTTP response that reads a stream."""

    __slots__ = (
        "_begin",
        "_changed",
        "_writing",
        "is_cut",
        "large_answer_bytes",
        "may_read",
        "resumes",
        "retry_ms",
        "stream",
    )

    def __init__(self, stream: EventStream, after: int | None = None, *, begin: bool = False) -> None:
        """Read the messages that no reader has taken, or everything after message number `after`. With `begin` the
        response begins before there is a message."""
        self.stream = stream
        self.resumes = after is not None
        """True if its client has reconnected."""
        self.retry_ms: int | None = None
        """The milliseconds that the client should wait before it reconnects, if the response is to end before its
        stream."""
        self.is_cut = False
        """True if the response must end at once."""
        self.large_answer_bytes = 0
        """The bytes of large answers for it, which count towards the limits of its client until they are read."""
        self.may_read: Callable[[], bool] = _always
        """Returns True while the token of its client allows it to read the stream."""
        self._begin = begin
        self._changed = Signal()
        self._writing: CancelScope | None = None
        stream.read(self, after)

    @property
    def is_ending(self) -> bool:
        """True if the response ends with the messages that are unsent now."""
        return self.stream.is_over or self.retry_ms is not None

    async def wait(self) -> None:
        """Wait for a message, the end, or a reason to begin."""
        while not (self._begin or self.is_cut or self.is_ending or not self.stream.is_all_sent):
            await self._changed.wait()
        self._begin = False

    def cancelled_by_cut(self) -> CancelScope:
        """Return a scope that `cut` cancels, for writing, which may have to wait for the client."""
        self._writing = CancelScope()
        if self.is_cut:
            self._writing.cancel()
        return self._writing

    def wake(self) -> None:
        """Wake the reader after a change."""
        self._changed.wake()

    def begin(self) -> None:
        """Begin the response, if it has not begun: this shows the client, or a proxy, that the connection is
        alive."""
        self._begin = True
        self.wake()

    def pause(self, retry_ms: int) -> None:
        """End the response but not the stream."""
        self.retry_ms = retry_ms
        self.wake()

    def cut(self) -> None:
        """End the response at once."""
        self.is_cut = True
        if self._writing is not None:
            self._writing.cancel()
        self.wake()


def _always() -> bool:
    return True


class Streams:
    """The streams of one session, as one replica serves them."""

    __slots__ = ("_client", "_events", "_forbidden", "_gets", "_id", "_posts", "_retry_ms", "_room", "_sessions")

    def __init__(
        self,
        id: str,
        events: SessionEvents,
        sessions: SessionStore,
        retry_ms: int = 1_000,
        *,
        room: Room | None = None,
        client: str = "",
    ) -> None:
        """`id` is the id of the session, `events` are its streams on all replicas, and `sessions` records which
        requests are being served. Clients should wait `retry_ms` before they reconnect. Large answers to the
        `client` take `room`."""
        self._id = id
        self._room, self._client = room, client
        self._events = events
        self._sessions = sessions
        self._retry_ms = retry_ms
        self._posts: dict[RequestId, EventStream] | None = None
        self._gets: tuple[Reader, ...] = ()
        self._forbidden: dict[EventStream, Failure] | None = None

    # Reading

    def post(self, ids: tuple[RequestId, ...]) -> Reader:
        """Return the reader of the answers to the requests `ids`, and of the messages before them."""
        stream = self._events.stream(ids)
        if self._posts is None:
            self._posts = {}
        for id_ in ids:
            self._posts[id_] = stream
        return Reader(stream)

    async def listen(self) -> Reader | Refusal:
        """Return the reader of unrequested messages; 409 if there already is one. Raises Unavailable if the other
        replicas can't be reached."""
        stream = await self._events.find()
        # One stream for unrequested messages: each is sent once (2025-11-25, Streamable HTTP, Multiple Connections).
        if stream is None or stream.is_read:
            return refuse(409, "this session already has a GET stream")
        return await self._get(stream)

    async def resume(self, event_id: str) -> Reader | Refusal:
        """Return the reader of the events after `event_id`; 400 if the id is unknown, or if not all later events are
        stored. Raises Unavailable if the other replicas can't be reached."""
        # Not 404: to a client that means that its session has ended.
        stream_id, number = read_event_id(event_id) or ("", 0)
        stream = await self._events.find(stream_id)
        if stream is None or not stream.has(number):
            return refuse(400, "there is no such event")
        if not stream.has_all_after(number):
            return _TOO_OLD
        return await self._get(stream, number)

    def begin(self, reader: Reader, *, sends_position: bool = False) -> list[ServerSentEvent]:
        """Return the first events of the response of `reader`; from now on its client may reconnect. With
        `sends_position` it receives its position at once."""
        stream = reader.stream
        if stream.is_over and stream.is_all_sent:
            return []
        # From here on the client has an id to reconnect with, and any replica must find the stream.
        stream.show()
        return [stream.position_event(self._retry_ms)] if sends_position and not reader.resumes else []

    def missing_scope_failure(self, reader: Reader) -> Failure | None:
        """Return the answer for `reader` if it says that the token of its request lacks a scope; otherwise None."""
        return None if self._forbidden is None else self._forbidden.pop(reader.stream, None)

    def leave(self, reader: Reader) -> None:
        """Record the end of `reader`. Its remaining messages wait for the next reader, or are lost."""
        self.missing_scope_failure(reader)
        reader.stream.leave(reader)
        if self._gets:
            self._gets = tuple(other for other in self._gets if other is not reader)

    @property
    def is_listening(self) -> bool:
        """True if the session's own stream is being read here."""
        return any(not reader.stream.ids for reader in self._gets)

    def notify_taken(self) -> None:
        """Record that a reader has taken its messages."""
        self._events.notify_taken()

    def watch_taken(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` whenever a reader has taken messages, until the returned function is called."""
        return self._events.watch_taken(wake)

    # Writing

    def send(self, outgoing: Sequence[Outgoing], *, patient: bool = True) -> Sequence[Outgoing]:
        """Put each message on its stream. If `patient`, stop before the first message whose reader is too far behind,
        and return the remaining messages; otherwise disconnect that reader."""
        posts = self._posts or {}
        for number, item in enumerate(outgoing):
            stream = posts.get(item.related_request_id) if item.related_request_id is not None else None
            if item.retry_ms is not None:
                if stream is not None:
                    stream.pause(item.retry_ms)
            elif item.message is None or isinstance(item.message, (Response, Failure, Batch)):
                self._answer(stream, item.message)
            elif not self._send_message(stream, item, item.message, patient=patient):
                return outgoing[number:]
            patient = True
        self._events.make_room()
        return ()

    def close(self, refusal: Refusal) -> None:
        """End every stream with the session, those without an answer with `refusal`."""
        posts, self._posts = self._posts or {}, None
        for stream in set(posts.values()):
            stream.end(refusal)
            if not stream.is_read:
                stream.forget()
        self._events.close(refusal)

    def hand_over(self, refusal: Refusal) -> None:
        """End the local streams because this replica stops and the session continues on other replicas. Unanswered
        requests fail: with `refusal`, or if the client has already seen an event, with an error that another replica
        can deliver. Readers are asked to reconnect."""
        posts, self._posts = self._posts or {}, None
        for stream in set(posts.values()):
            # A client that has seen an event reconnects to another replica, which knows nothing of the call.
            # Otherwise it sees this very response fail.
            for id_ in stream.ids if stream.name else ():
                stream.put(encode(failure(id_, InternalError("the server is stopping", data={"mayHaveRun": True}))))
            stream.end(refusal)
            self._sessions.leave(self._id, stream.ids)
        for reader in self._gets:
            reader.pause(self._retry_ms)
        self._events.release()

    def compact(self) -> None:
        """Release the memory of empty collections while no messages are expected."""
        self._posts = self._posts or None
        self._forbidden = self._forbidden or None

    # Implementation

    async def _get(self, stream: EventStream, after: int | None = None) -> Reader | Refusal:
        # A GET is answered at once: a client that waits for the headers would not know that it is being served.
        reader = Reader(stream, after, begin=True)
        self._gets += (reader,)
        with ExitStack() as undoing:
            undoing.callback(self._abandon, reader)
            settled = stream.pending_replication()
            if settled is not None:
                await settled
            if reader.is_cut and stream.reader is reader:  # and not because another reader has begun
                if stream.is_lost:
                    raise Unavailable
                return _TOO_OLD
            undoing.pop_all()
        return reader

    def _abandon(self, reader: Reader) -> None:
        """Record the end of a reader that no response has followed."""
        self.leave(reader)
        if reader.large_answer_bytes and self._room is not None:
            self._room.remove(self._client, reader.large_answer_bytes)

    def _answer(self, stream: EventStream | None, answer: Message | None) -> None:
        if stream is None:
            return
        posts = self._posts or {}
        for id_ in stream.ids:
            posts.pop(id_, None)
        self._sessions.leave(self._id, stream.ids)
        # These errors have their own HTTP status, which can be sent only before the response starts.
        if isinstance(answer, Failure) and answer.kind in KINDS_WITH_STATUS and stream.is_read:
            self._forbidden = {**(self._forbidden or {}), stream: answer}
        if answer is not None:
            data = encode(answer)
            if len(data) >= LARGE_RESULT_BYTES and self._room is not None and isinstance(stream.reader, Reader):
                stream.reader.large_answer_bytes += len(data)
                self._room.add(self._client, len(data))
            stream.answer(data)
        else:
            stream.end()

    def _send_message(
        self, stream: EventStream | None, item: Outgoing, message: Request | Notification, *, patient: bool
    ) -> bool:
        """Send a message that is not an answer. Returns False if the caller should wait for the reader. On a lost
        stream only questions, and their cancellation, still matter."""
        is_own = stream is None or stream.is_lost
        if stream is None or stream.is_lost:
            was_requested = item.related_request_id is not None
            # The client of the call has disconnected, and can't use its progress.
            if was_requested and isinstance(message, Notification) and message.method != "notifications/cancelled":
                return True
            stream = self._events.session_stream()
        data = encode(message)
        if patient and stream.exceeds_limit(data):
            return False
        # A changed list is reported by all replicas, a changed resource by the replica at which the client has
        # subscribed to it.
        everywhere = is_own and isinstance(message, Notification) and message.method in _LISTS_CHANGED
        stream.put(data, once=is_own and not stream.is_read, everywhere=everywhere)
        return True
