"""The streams of one session, their readers, and the routing of each message to exactly one of them.

* a message that belongs to a client's request goes to the stream of its POST; the answer is the last message;
* every other message goes to the session's own stream, which a GET reads. Without a GET, messages wait, but equal
  messages wait only once.

A request continues to be served if its client disconnects, since a disconnection does not cancel a request. Once the
client has received an event of a stream, it may request the later events, by a GET with `Last-Event-ID` to any
replica. If it has received none, the stream is lost: its answer is dropped, and requests to the client move to the
session's own stream. The event log determines how long events are stored. (2025-11-25, Transports, Streamable
HTTP.)
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
    """The reading side of a stream: the messages for one HTTP response."""

    __slots__ = (
        "_begin",
        "_changed",
        "_writing_scope",
        "is_cancelled",
        "is_resumed",
        "large_answer_bytes",
        "may_read",
        "retry_ms",
        "stream",
    )

    def __init__(self, stream: EventStream, after: int | None = None, *, begin: bool = False) -> None:
        """Read the messages that no reader has taken, or all messages after number `after`. With `begin` the response
        begins before there is a message."""
        self.stream = stream
        self.is_resumed = after is not None
        """True if the client has reconnected to continue the stream."""
        self.retry_ms: int | None = None
        """The milliseconds that the client should wait before it reconnects; None unless the response ends before its
        stream."""
        self.is_cancelled = False
        """True if the response must end at once."""
        self.large_answer_bytes = 0
        """The bytes of large answers on this stream, which count towards the limits of the client until it has read
        them."""
        self.may_read: Callable[[], bool] = _always
        """Returns whether the client's token still allows it to read the stream."""
        self._begin = begin
        self._changed = Signal()
        self._writing_scope: CancelScope | None = None
        stream.read(self, after)

    @property
    def is_ending(self) -> bool:
        """True if the response ends after the messages that are not yet sent."""
        return self.stream.is_over or self.retry_ms is not None

    async def wait(self) -> None:
        """Wait until there is a message, or the response is to begin or to end."""
        while not (self._begin or self.is_cancelled or self.is_ending or not self.stream.is_all_sent):
            await self._changed.wait()
        self._begin = False

    def writing_scope(self) -> CancelScope:
        """Return a cancel scope for writing, which may have to wait for the client; `cancel` cancels the scope."""
        self._writing_scope = CancelScope()
        if self.is_cancelled:
            self._writing_scope.cancel()
        return self._writing_scope

    def wake(self) -> None:
        """Wake the reader after a change."""
        self._changed.wake()

    def begin(self) -> None:
        """Begin the response, if it has not begun, to show the client, or a proxy, that the connection is alive."""
        self._begin = True
        self.wake()

    def pause(self, retry_ms: int) -> None:
        """End the response but not the stream; the client should reconnect after `retry_ms` milliseconds."""
        self.retry_ms = retry_ms
        self.wake()

    def cancel(self) -> None:
        """End the response at once."""
        self.is_cancelled = True
        if self._writing_scope is not None:
            self._writing_scope.cancel()
        self.wake()


def _always() -> bool:
    return True


class Streams:
    """The streams of one session on one replica."""

    __slots__ = (
        "_client",
        "_events",
        "_failures_with_status",
        "_get_readers",
        "_id",
        "_post_streams",
        "_retry_ms",
        "_room",
        "_sessions",
    )

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
        requests are being served. Clients should wait `retry_ms` milliseconds before they reconnect. Large answers to
        `client` are counted in `room`."""
        self._id = id
        self._room, self._client = room, client
        self._events = events
        self._sessions = sessions
        self._retry_ms = retry_ms
        self._post_streams: dict[RequestId, EventStream] | None = None
        self._get_readers: tuple[Reader, ...] = ()
        self._failures_with_status: dict[EventStream, Failure] | None = None

    # Reading

    def post(self, ids: tuple[RequestId, ...]) -> Reader:
        """Return the reader of the answers to the requests `ids`, and of the messages before them."""
        stream = self._events.stream(ids)
        if self._post_streams is None:
            self._post_streams = {}
        for id_ in ids:
            self._post_streams[id_] = stream
        return Reader(stream)

    async def listen(self) -> Reader | Refusal:
        """Return the reader of unrequested messages; 409 if there already is one. Raises Unavailable if the other
        replicas can't be reached."""
        stream = await self._events.find()
        # Only one reader: each message may be sent on one stream only (2025-11-25, Streamable HTTP, Multiple
        # Connections).
        if stream is None or stream.is_read:
            return refuse(409, "this session already has a GET stream")
        return await self._get(stream)

    async def resume(self, event_id: str) -> Reader | Refusal:
        """Return the reader of the events after `event_id`; 400 if the id is unknown, or if not all later events are
        stored. Raises Unavailable if the other replicas can't be reached."""
        # The status is not 404, which means to a client that its session has ended.
        stream_id, number = read_event_id(event_id) or ("", 0)
        stream = await self._events.find(stream_id)
        if stream is None or not stream.has(number):
            return refuse(400, "there is no such event")
        if not stream.has_all_after(number):
            return _TOO_OLD
        return await self._get(stream, number)

    def begin(self, reader: Reader, *, sends_position: bool = False) -> list[ServerSentEvent]:
        """Return the first events of the response that sends the messages of `reader`. From now on its client may
        reconnect. With `sends_position` the first event only gives the client an id to reconnect with."""
        stream = reader.stream
        if stream.is_over and stream.is_all_sent:
            return []
        # From now on the client has an id to reconnect with, so every replica must know the stream.
        stream.show()
        return [stream.position_event(self._retry_ms)] if sends_position and not reader.is_resumed else []

    def take_failure_with_status(self, reader: Reader) -> Failure | None:
        """Return the answer that waits for `reader`, and remove it, if it is an error that has an HTTP status of its
        own (`KINDS_WITH_STATUS`); otherwise return None."""
        return None if self._failures_with_status is None else self._failures_with_status.pop(reader.stream, None)

    def leave(self, reader: Reader) -> None:
        """Record that a response no longer sends the messages of `reader`. Remaining messages wait for the next
        reader, or are lost."""
        self.take_failure_with_status(reader)
        reader.stream.leave(reader)
        if self._get_readers:
            self._get_readers = tuple(other for other in self._get_readers if other is not reader)

    @property
    def is_listening(self) -> bool:
        """True if the session's own stream is being read on this replica."""
        return any(not reader.stream.ids for reader in self._get_readers)

    def notify_taken(self) -> None:
        """Record that a reader has taken its messages."""
        self._events.notify_taken()

    def watch_taken(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` whenever a reader has taken messages, until the returned function is called."""
        return self._events.watch_taken(wake)

    # Writing

    def send(self, outgoing: Sequence[Outgoing], *, may_wait: bool = True) -> Sequence[Outgoing]:
        """Put each message on its stream. If the reader of the next message is too far behind, stop and return the
        remaining messages if the caller `may_wait`; otherwise disconnect that reader, and continue."""
        posts = self._post_streams or {}
        for number, item in enumerate(outgoing):
            stream = posts.get(item.related_request_id) if item.related_request_id is not None else None
            if item.retry_ms is not None:
                if stream is not None:
                    stream.pause(item.retry_ms)
            elif item.message is None or isinstance(item.message, (Response, Failure, Batch)):
                self._answer(stream, item.message)
            elif not self._send_message(stream, item, item.message, may_wait=may_wait):
                return outgoing[number:]
            may_wait = True
        self._events.make_room()
        return ()

    def close(self, refusal: Refusal) -> None:
        """End every stream because the session ends. Requests without an answer get `refusal`."""
        posts, self._post_streams = self._post_streams or {}, None
        for stream in set(posts.values()):
            stream.end(refusal)
            if not stream.is_read:
                stream.forget()
        self._events.close(refusal)

    def hand_over(self, refusal: Refusal) -> None:
        """End the streams on this replica because it stops and the session continues on other replicas. Unanswered
        requests get `refusal`, or if the client has already received an event, an error that another replica can
        deliver. Readers are asked to reconnect."""
        posts, self._post_streams = self._post_streams or {}, None
        for stream in set(posts.values()):
            # A client that has received an event reconnects to another replica, which does not know the call, so an
            # error is put on the stream. Any other client sees that this response fails.
            for id_ in stream.ids if stream.name else ():
                stream.put(encode(failure(id_, InternalError("the server is stopping", data={"mayHaveRun": True}))))
            stream.end(refusal)
            self._sessions.leave(self._id, stream.ids)
        for reader in self._get_readers:
            reader.pause(self._retry_ms)
        self._events.release()

    def compact(self) -> None:
        """Release the memory of empty collections while no messages are expected."""
        self._post_streams = self._post_streams or None
        self._failures_with_status = self._failures_with_status or None

    # Implementation

    async def _get(self, stream: EventStream, after: int | None = None) -> Reader | Refusal:
        # The response to a GET begins at once (`begin`), because a client that waits for its headers would not know
        # that it is being served.
        reader = Reader(stream, after, begin=True)
        self._get_readers += (reader,)
        with ExitStack() as rollback:
            rollback.callback(self._abandon, reader)
            replicated = stream.pending_replication()
            if replicated is not None:
                await replicated
            # A reader that another one has replaced is also cancelled, which is no error.
            if reader.is_cancelled and stream.reader is reader:
                if stream.is_lost:
                    raise Unavailable
                return _TOO_OLD
            rollback.pop_all()
        return reader

    def _abandon(self, reader: Reader) -> None:
        """Drop a reader for which no response has begun."""
        self.leave(reader)
        if reader.large_answer_bytes and self._room is not None:
            self._room.remove(self._client, reader.large_answer_bytes)

    def _answer(self, stream: EventStream | None, answer: Message | None) -> None:
        if stream is None:
            return
        posts = self._post_streams or {}
        for id_ in stream.ids:
            posts.pop(id_, None)
        self._sessions.leave(self._id, stream.ids)
        # These errors have an HTTP status of their own, which can be sent only at the start of a response.
        if isinstance(answer, Failure) and answer.kind in KINDS_WITH_STATUS and stream.is_read:
            self._failures_with_status = {**(self._failures_with_status or {}), stream: answer}
        if answer is not None:
            data = encode(answer)
            if len(data) >= LARGE_RESULT_BYTES and self._room is not None and isinstance(stream.reader, Reader):
                stream.reader.large_answer_bytes += len(data)
                self._room.add(self._client, len(data))
            stream.answer(data)
        else:
            stream.end()

    def _send_message(
        self, stream: EventStream | None, item: Outgoing, message: Request | Notification, *, may_wait: bool
    ) -> bool:
        """Put a message that is not an answer on `stream`, or on the session's own stream if `stream` is None or
        lost. Returns False if the caller should wait for the reader."""
        is_own = stream is None or stream.is_lost
        if stream is None or stream.is_lost:
            was_requested = item.related_request_id is not None
            # The client has disconnected from its call, so only requests to the client, and their cancellations,
            # still matter.
            if was_requested and isinstance(message, Notification) and message.method != "notifications/cancelled":
                return True
            stream = self._events.session_stream()
        data = encode(message)
        if may_wait and stream.exceeds_limit(data):
            return False
        # Every replica reports a changed list, so the message must wait only once for all of them; a changed resource
        # is reported only by the replica where the client has subscribed to it.
        everywhere = is_own and isinstance(message, Notification) and message.method in _LISTS_CHANGED
        stream.put(data, once=is_own and not stream.is_read, everywhere=everywhere)
        return True
