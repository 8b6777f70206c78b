"""The streams of sessions in the memory of one process, stored so that a client can reconnect to receive missed
messages.

Messages are numbered; the id of an event is the stream's name and the number, so that `Last-Event-ID` gives the
position to resume from. Names are random: an id of another session names nothing here.

    put ──▶ │ sent, for clients that reconnect │ unsent │ ──▶ take

Putting never waits. A reader that falls too far behind is cut off, the stream continues. Storage is bounded by
stream, by session and over all sessions: the oldest messages go first, and a client that reconnects for them is
refused, since a client that missed a message must not mistake the rest for everything. (2025-11-25, Transports,
Resumability.)

All replicas in the process share the same objects, so that all see a change at once. A stream is an object, not a key
of the log: calls that put thousands of messages would have to look it up for each.
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
"""Bytes of overhead for storing a message."""


class MemoryStream:
    """The messages of one POST, or of no request."""

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
        """Add a message. With `once`, or with `everywhere`, which all replicas use for the same message, it is not
        added if an equal message is unsent. Cuts off a reader that is too far behind."""
        is_duplicate = (once or everywhere) and message in islice(self._messages, self._unsent_from, None)
        if self.is_over or self.is_lost or is_duplicate:
            return
        if self.exceeds_limit(message) and self.reader is not None:
            log.warning("a stream was closed: its client is %d bytes behind", self._untaken_bytes)
            self.reader.cut()
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
        """End the stream; `refusal` is the reason if an answer is still due. Without one the requests were
        cancelled, and no client reconnects for them."""
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
        """Return None, since replicas that share this memory see messages at once."""

    # Reading

    def read(self, reader: EventReader, after: int | None = None) -> None:
        """Begin reading with `reader`: the unsent messages, or all after message number `after`; the previous reader
        is disconnected."""
        if self.reader is not None:
            self.reader.cut()
        if self.name:
            self._events.log.unread.stop(self)
        # Without an id the client wants the messages that were not taken; those dropped in the meantime are lost.
        self._sent = max(self._sent, self._dropped) if after is None else after
        self._untaken_bytes = sum(map(len, islice(self._messages, self._sent - self._dropped, None)))
        self.reader = reader

    def leave(self, reader: EventReader) -> None:
        """End reading by `reader`. A stream whose client can't reconnect is lost."""
        if self.reader is reader:
            self.reader = None
            # Its client has seen no event, so it has no id to reconnect with.
            if self.ids and not self.name:
                self.is_lost = True
                self.forget()
                return
            self._trim()
        self._events.start_expiry(self)

    def show(self) -> str:
        """Return the name, which is sent with its events: from now on any replica finds the stream, and the client
        may reconnect."""
        self.name = self.name or secrets.token_hex(8)
        self._events.show(self)
        return self.name

    def position_event(self, retry_ms: int) -> ServerSentEvent:
        """Return an event without data that contains the client's position and the milliseconds to wait before it
        reconnects."""
        return ServerSentEvent(b"", id=f"{self.name}_{self._sent}", retry=retry_ms)

    def take(self) -> list[ServerSentEvent]:
        """Return the unsent messages, which are considered sent from now on."""
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
        """The answer, if it is the only message and no client can reconnect for it."""
        return self._messages[0] if self.answered and self._last == 1 and not self.name else None

    def has(self, number: int) -> bool:
        """Return True if there has been a message with that number; 0 is the beginning."""
        return 0 <= number <= self._last

    def has_all_after(self, number: int) -> bool:
        """Return True if every message after that number is stored."""
        return number >= self._dropped

    # Storing

    def expire(self) -> bool:
        """Delete messages that were stored long enough, except for unsent ones, which stay for the next reader.
        Return True if the whole stream has been deleted."""
        # The session's own stream has no end, so it loses the sent messages and stays.
        if self.ids or self.is_over:
            self.forget()
            self._events.drop(self)
            return True
        while self._dropped < self._sent:
            self.drop_oldest()
        return False

    def drop_oldest(self) -> bool:
        """Delete the oldest message, unless a reader still needs it; return False if there was none."""
        if not self._messages or (self.reader is not None and self._dropped >= self._sent):
            return False
        self._count(-len(self._messages.pop(0)) - _OVERHEAD_BYTES)
        self._dropped += 1
        return True

    def forget(self) -> None:
        """Delete everything."""
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
        """Create a stream for the answers to `ids`. Only this replica holds it until it is shown."""
        return MemoryStream(self, ids)

    def own(self) -> MemoryStream:
        """Return the session's own stream, to put messages on."""
        self._own = self._own or MemoryStream(self)
        return self._own

    async def find(self, name: str | None = None) -> MemoryStream | None:
        """Return the current state of a stream that has been shown, or of the session's own stream, for reading."""
        return self.own() if name is None else (self._shown or {}).get(name)

    def show(self, stream: MemoryStream) -> None:
        """Make `stream` available by its name."""
        if self._shown is None:
            self._shown = {}
        self._shown[stream.name] = stream

    def drop(self, stream: MemoryStream) -> None:
        """Make `stream` unavailable."""
        if self._shown is not None:
            self._shown.pop(stream.name, None)

    def add(self, size: int) -> None:
        """Add `size` to the number of stored bytes; it may be negative."""
        self._stored_bytes += size
        self.log.stored_bytes += size

    def make_room(self) -> None:
        """Delete the oldest messages of the oldest streams while they exceed the limits."""
        for stream in list((self._shown or {}).values()) if self._is_full else ():
            while self._is_full and stream.drop_oldest():
                pass

    @property
    def _is_full(self) -> bool:
        limits = self.log.limits
        return self._stored_bytes > limits.session_replay_bytes or self.log.stored_bytes > limits.total_replay_bytes

    def start_expiry(self, stream: MemoryStream) -> None:
        """Start the time until `stream` is deleted, if it has no reader. Only the last few of the streams that have
        ended are stored."""
        if stream.reader is not None:
            return
        shown = self._shown or {}
        if stream.name not in shown:
            # No client can reconnect for it anymore, nor after the end of the session.
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
        """End the session's streams: all streams that have been shown end, those without an answer with `refusal`,
        and all are deleted."""
        shown, self._shown = self._shown or {}, None
        own, self._own = self._own, None  # it refers to this object: else both stay until the garbage collector runs
        for stream in {*shown.values(), *([own] if own else [])}:
            stream.end(refusal)
            self.log.unread.stop(stream)

    def release(self) -> None:
        """Do nothing: the other replicas continue the session with the same objects."""


class MemoryLog:
    """The streams of all sessions."""

    def __init__(self, limits: ReplayLimits) -> None:
        self.limits = limits
        self.stored_bytes = 0
        """The number of bytes that all streams store."""
        self.unread = ExpiryQueue(limits.replay_seconds, MemoryStream.expire)
        """The streams without a reader, which are deleted after a while."""
        self._sessions: dict[str, MemoryEvents] = {}

    def session(self, id: str) -> MemoryEvents:
        """Return the streams of one session, the same for all replicas."""
        events = self._sessions.get(id)
        if events is None:
            events = self._sessions[id] = MemoryEvents(self)
        return events

    def drop(self, id: str) -> None:
        """Delete a session that has ended."""
        self._sessions.pop(id, None)
