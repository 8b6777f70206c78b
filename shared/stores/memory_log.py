"""The streams of sessions in the memory of one process, so that a client can reconnect to receive missed messages.

Messages are numbered. The id of an event consists of the stream's name and the number of the message, so that
`Last-Event-ID` shows where to resume. Names are random, so that an event id of another session is useless.

    put ──▶ │ sent, for clients that reconnect │ unsent │ ──▶ take

Adding a message never waits. A reader that falls too far behind is disconnected, while the stream continues. The
stored bytes are limited per stream, per session and in total; the oldest messages are deleted first. A client that
reconnects for a deleted message is refused, since it would not notice the gap. (2025-11-25, Transports,
Resumability.)

All replicas in the process share the same objects, so that each sees a change at once. Callers keep the object of a
stream, so that it need not be looked up for each of thousands of messages.
"""

import logging
import secrets
from itertools import islice

from ..concurrency import ExpiryQueue
from ..contracts import EventReader, ReplayLimits
from ..protocol.http.rules import Refusal
from ..protocol.wire.framing import ServerSentEvent
from ..protocol.wire.jsonrpc import RequestId
from .taken_messages import TakenMessages

log = logging.getLogger("shared.stores")

_OVERHEAD_BYTES = 100
"""Bytes that a stored message takes in addition to its text."""


class MemoryStream:
    """An `EventStream` in memory: the messages for one POST, or those of a session that belong to no request."""

    __slots__ = (
        "_dropped",
        "_events",
        "_limits",
        "_messages",
        "_sent",
        "_size",
        "_untaken_bytes",
        "answered",
        "ids",
        "is_lost",
        "is_over",
        "name",
        "reader",
        "refusal",
    )

    def __init__(self, events: "MemoryEvents", ids: tuple[RequestId, ...] = ()) -> None:
        self.ids = ids
        self.name = ""
        self.reader: EventReader | None = None
        self.answered = self.is_over = self.is_lost = False
        self.refusal: Refusal | None = None
        self._events = events
        self._limits = events.log.limits
        self._messages: list[bytes] = []  # an empty deque is ten times as large
        self._size = 0
        self._dropped = 0
        self._sent = 0
        self._untaken_bytes = 0

    # Writing

    def put(self, message: bytes, *, once: bool = False, everywhere: bool = False) -> None:
        """Add a message. With `once` or `everywhere`, it is not added if an equal message is still unsent;
        `everywhere` means that every replica adds the same message. Disconnects a reader that is too far behind."""
        is_duplicate = (once or everywhere) and message in islice(self._messages, self._unsent_from, None)
        if self.is_over or self.is_lost or is_duplicate:
            return
        if self.exceeds_limit(message) and self.reader is not None:
            log.warning("a stream was closed: its client is %d bytes behind", self._untaken_bytes)
            self.reader.cancel()
            self.leave(self.reader)
        self._add(message)
        self._trim()

    def exceeds_limit(self, message: bytes) -> bool:
        """Return True if `message` would exceed the limit on messages that its reader has not taken yet."""
        return (
            self.reader is not None
            and bool(self._untaken_bytes)
            and self._untaken_bytes + len(message) > self._limits.stream_bytes
        )

    def answer(self, message: bytes) -> None:
        """Add the last message, even if too many are unsent, and end the stream."""
        if not self.is_over and not self.is_lost:
            self.answered = True
            self._add(message)
        self._end()

    def _add(self, message: bytes) -> None:
        self._messages.append(message)
        self._count(len(message) + _OVERHEAD_BYTES)
        self._untaken_bytes += len(message)
        if self.reader is not None:
            self.reader.wake()

    def end(self, refusal: Refusal | None = None) -> None:
        """End the stream. `refusal` is sent to a client that reconnects for an answer that is missing; None if the
        requests were cancelled, so that no client reconnects for them."""
        self.refusal = None if self.answered else refusal
        if refusal is None:
            self._events.drop(self)
        self._end()

    def _end(self) -> None:
        self.is_over = True
        self._trim()
        if self.reader is not None:
            self.reader.wake()
        else:
            self._events.start_expiry(self)

    def pause(self, retry_ms: int) -> None:
        """Pause the reader, if there is one."""
        if self.reader is not None:
            self.reader.pause(retry_ms)

    def pending_replication(self) -> None:
        """Return None: there is nothing to wait for, since all replicas see a message at once."""

    # Reading

    def read(self, reader: EventReader, after: int | None = None) -> None:
        """Let `reader` read the stream: the unsent messages, or all after message number `after`. A previous reader
        is disconnected."""
        if self.reader is not None:
            self.reader.cancel()
        if self.name:
            self._events.log.unread.stop(self)
        # A client without a position gets the messages that were not sent yet, except those that were deleted since.
        self._sent = max(self._sent, self._dropped) if after is None else after
        self._untaken_bytes = sum(map(len, islice(self._messages, self._sent - self._dropped, None)))
        self.reader = reader

    def leave(self, reader: EventReader) -> None:
        """End reading by `reader`. If its client can't reconnect, the stream is lost."""
        if self.reader is reader:
            self.reader = None
            # The client has received no event id with which it could reconnect.
            if self.ids and not self.name:
                self.is_lost = True
                self.forget()
                return
            self._trim()
        self._events.start_expiry(self)

    def show(self) -> str:
        """Return the name of the stream, which is sent in event ids. From now on, the client may reconnect, and any
        replica finds the stream."""
        self.name = self.name or secrets.token_hex(8)
        self._events.show(self)
        return self.name

    def position_event(self, retry_ms: int) -> ServerSentEvent:
        """Return an event without data, whose id is the client's position, and which asks the client to wait
        `retry_ms` milliseconds before it reconnects."""
        return ServerSentEvent(b"", id=f"{self.name}_{self._sent}", retry=retry_ms)

    def take(self) -> list[ServerSentEvent]:
        """Return the unsent messages, which count as sent from now on."""
        unsent = islice(self._messages, self._unsent_from, None)
        numbered = enumerate(unsent, self._sent + 1)
        events = [ServerSentEvent(message, id=f"{self.name}_{number}") for number, message in numbered]
        self._sent = self._last
        self._untaken_bytes = 0
        self._trim()
        if self.reader is not None:
            self.reader.wake()
        return events

    @property
    def is_read(self) -> bool:
        """True if the stream has a reader."""
        return self.reader is not None

    @property
    def is_all_sent(self) -> bool:
        """True if no message is unsent."""
        return self._sent >= self._last

    @property
    def sole_answer(self) -> bytes | None:
        """The answer, if it is the only message and has not been given an event id."""
        return self._messages[0] if self.answered and self._last == 1 and not self.name else None

    def has(self, number: int) -> bool:
        """Return True if there has been a message with this number, or it is 0, the position before the first."""
        return 0 <= number <= self._last

    def has_all_after(self, number: int) -> bool:
        """Return True if every message after this number is still stored."""
        return number >= self._dropped

    # Storing

    def expire(self) -> bool:
        """Called when nobody has read the stream for a while: delete the stream if it belongs to a request or has
        ended; else delete the sent messages. Return True if the stream was deleted."""
        # The session's own stream stays, with the messages that were not sent yet.
        if self.ids or self.is_over:
            self.forget()
            self._events.drop(self)
            return True
        while self._dropped < self._sent:
            self.drop_oldest()
        return False

    def drop_oldest(self) -> bool:
        """Delete the oldest message and return True; False if there is none, or a reader still has to take it."""
        if not self._messages or (self.reader is not None and self._dropped >= self._sent):
            return False
        self._count(-len(self._messages.pop(0)) - _OVERHEAD_BYTES)
        self._dropped += 1
        return True

    def forget(self) -> None:
        """Delete all messages."""
        self._dropped += len(self._messages)
        self._messages.clear()
        self._count(-self._size)

    @property
    def _last(self) -> int:
        return self._dropped + len(self._messages)

    @property
    def _unsent_from(self) -> int:
        return max(self._sent - self._dropped, 0)

    def _count(self, size: int) -> None:
        self._size += size
        self._events.add(size)

    def _trim(self) -> None:
        limits = self._limits
        while self._size > limits.replay_bytes or len(self._messages) > limits.replay_events:
            unsent = self._dropped >= self._sent
            if (self.answered and len(self._messages) == 1) or not self.drop_oldest():
                return
            if unsent and not self.ids:
                log.warning("no one reads the messages of a session; the oldest of %d was dropped", self._last)


class MemoryEvents(TakenMessages):
    """The streams of one session."""

    __slots__ = ("_own", "_shown", "_stored_bytes", "log")

    def __init__(self, log: "MemoryLog") -> None:
        super().__init__()
        self.log = log
        self._stored_bytes = 0
        self._shown: dict[str, MemoryStream] | None = None  # by name, once there is one
        self._own: MemoryStream | None = None

    def stream(self, ids: tuple[RequestId, ...]) -> MemoryStream:
        """Create a stream for the answers to the requests `ids`. Nobody else can find it until it is shown."""
        return MemoryStream(self, ids)

    def session_stream(self) -> MemoryStream:
        """Return the session's own stream, for messages that belong to no request."""
        self._own = self._own or MemoryStream(self)
        return self._own

    async def find(self, name: str | None = None) -> MemoryStream | None:
        """Return the shown stream called `name`; None if there is none, or no longer. Without a name, return the
        session's own stream."""
        return self.session_stream() if name is None else (self._shown or {}).get(name)

    def show(self, stream: MemoryStream) -> None:
        """Let `find` find `stream`."""
        if self._shown is None:
            self._shown = {}
        self._shown[stream.name] = stream

    def drop(self, stream: MemoryStream) -> None:
        """Let `find` no longer find `stream`."""
        if self._shown is not None:
            self._shown.pop(stream.name, None)

    def add(self, size: int) -> None:
        """Add `size` to the number of stored bytes; it may be negative."""
        self._stored_bytes += size
        self.log.stored_bytes += size

    def make_room(self) -> None:
        """Delete the oldest messages of the oldest streams until the limits of this and of all sessions hold."""
        for stream in list((self._shown or {}).values()) if self._is_full else ():
            while self._is_full and stream.drop_oldest():
                pass

    @property
    def _is_full(self) -> bool:
        limits = self.log.limits
        return self._stored_bytes > limits.session_replay_bytes or self.log.stored_bytes > limits.total_replay_bytes

    def start_expiry(self, stream: MemoryStream) -> None:
        """If `stream` has no reader, let it expire after a while. Of the streams that have ended, only the last few
        are stored."""
        if stream.reader is not None:
            return
        shown = self._shown or {}
        if stream.name not in shown:
            # The stream can't be found, so no client can reconnect for it.
            if stream.is_over:
                stream.forget()
            return
        if stream.is_over or stream is self._own:
            self.log.unread.start(stream)
        if stream.is_over and len(shown) > self.log.limits.replay_streams:
            ended = [other for other in shown.values() if other.is_over and other.reader is None]
            for other in ended[: max(len(ended) - self.log.limits.replay_streams, 0)]:
                self.log.unread.stop(other)
                shown.pop(other.name).forget()

    def close(self, refusal: Refusal) -> None:
        """End and delete the streams of an ended session. Readers that wait for an answer get `refusal`."""
        shown, self._shown = self._shown or {}, None
        own, self._own = self._own, None  # breaks the reference cycle with this object
        for stream in {*shown.values(), *([own] if own else [])}:
            stream.end(refusal)
            self.log.unread.stop(stream)

    def release(self) -> None:
        """Do nothing: the other replicas use the same objects."""


class MemoryLog:
    """The streams of all sessions."""

    def __init__(self, limits: ReplayLimits) -> None:
        self.limits = limits
        self.stored_bytes = 0
        """The number of bytes that all streams store."""
        self.unread = ExpiryQueue(limits.replay_seconds, MemoryStream.expire)
        """The streams without a reader, which expire after a while."""
        self._sessions: dict[str, MemoryEvents] = {}

    def session(self, id: str) -> MemoryEvents:
        """Return the streams of the session with the id `id`: the same object for all replicas."""
        events = self._sessions.get(id)
        if events is None:
            events = self._sessions[id] = MemoryEvents(self)
        return events

    def drop(self, id: str) -> None:
        """Delete the streams of a session that has ended."""
        self._sessions.pop(id, None)
