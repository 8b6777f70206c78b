"""The streams of sessions in the memory of one process, kept so that a client can come back for what it has missed.

Messages are numbered; the id of an event is the stream's name and the number, so that `Last-Event-ID` tells where to
go on. Names are random: an id of another session names nothing here.

    put ──▶ │ sent, for those who come back │ unsent │ ──▶ take

Putting never waits. A reader that falls too far behind is cut off, the stream lives on. What is kept is bounded by
stream, by session and over all sessions: the oldest goes first, and whoever comes back for it is refused, for a
client that missed a message must not take the rest for everything. (2025-11-25, Transports, Resumability.)

All replicas in the process have the same objects, so that what one does the others see at once. A stream is an object
and not a key of the log, as calls that put thousands of messages would have to look it up for each.
"""

import logging
import secrets
from collections.abc import Callable
from itertools import islice

from ..concurrency import ExpiryQueue
from ..contracts import EventReader, ReplayLimits
from ..protocol.http.rules import Refusal
from ..protocol.wire.framing import ServerSentEvent
from ..protocol.wire.jsonrpc import RequestId

log = logging.getLogger("shared.stores")

_OVERHEAD = 100
"""Bytes that keeping a message takes besides its own."""


class MemoryStream:
    """The messages of one POST, or of none."""

    __slots__ = (
        "_behind",
        "_dropped",
        "_events",
        "_kept",
        "_limits",
        "_sent",
        "_size",
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
        self._kept: list[bytes] = []  # empty, a deque is ten times as large
        self._size = 0
        self._dropped = 0
        self._sent = 0
        self._behind = 0

    # Writing

    def put(self, message: bytes, *, once: bool = False, everywhere: bool = False) -> None:
        """Adds a message; with `once` not if the same one is unsent, nor with `everywhere`, as all replicas add it.
        Cuts a reader off that is too far behind."""
        is_again = (once or everywhere) and message in islice(self._kept, self._unsent_from, None)
        if self.is_over or self.is_lost or is_again:
            return
        if self.crowds(message) and self.reader is not None:
            log.warning("a stream was cut off: its client is %d bytes behind", self._behind)
            self.reader.cut()
            self.leave(self.reader)
        self._add(message)
        self._trim()

    def crowds(self, message: bytes) -> bool:
        """Whether `message` is too much on top of what its reader has not taken yet."""
        return (
            self.reader is not None and bool(self._behind) and self._behind + len(message) > self._limits.stream_bytes
        )

    def answer(self, message: bytes) -> None:
        """Adds the last message, whatever is unsent, and ends."""
        if not self.is_over and not self.is_lost:
            self.answered = True
            self._add(message)
        self._end()

    def _add(self, message: bytes) -> None:
        self._kept.append(message)
        self._count(len(message) + _OVERHEAD)
        self._behind += len(message)
        if self.reader is not None:
            self.reader.wake()

    def end(self, refusal: Refusal | None = None) -> None:
        """Nothing more will come; `refusal` says why, where an answer is still owed. Without one the requests were
        cancelled, and nobody comes back for it."""
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
            self._events.rest(self)

    def pause(self, retry_ms: int) -> None:
        """Has its reader pause, if there is one."""
        if self.reader is not None:
            self.reader.pause(retry_ms)

    def settled(self) -> None:
        """There is nothing to wait for: who shares this memory sees what was put."""

    # Reading

    def read(self, reader: EventReader, after: int | None = None) -> None:
        """Has `reader` read what is unsent, or everything after message number `after`; the reader before it is cut
        off."""
        if self.reader is not None:
            self.reader.cut()
        if self.name:
            self._events.log.unread.stop(self)
        # Without an id the client wants what nobody has taken; what was given up in the meantime is gone.
        self._sent = max(self._sent, self._dropped) if after is None else after
        self._behind = sum(map(len, islice(self._kept, self._sent - self._dropped, None)))
        self.reader = reader

    def leave(self, reader: EventReader) -> None:
        """`reader` reads no more. A stream whose client can't come back is lost."""
        if self.reader is reader:
            self.reader = None
            # Its client has seen no event, so it has no id to come back with.
            if self.ids and not self.name:
                self.is_lost = True
                self.forget()
                return
            self._trim()
        self._events.rest(self)

    def show(self) -> str:
        """Its name, which leaves with its events: from now on any replica finds it, and the client may come back."""
        self.name = self.name or secrets.token_hex(8)
        self._events.show(self)
        return self.name

    def position(self, retry_ms: int) -> ServerSentEvent:
        """An event without data that tells where the client is, and how long to wait before it comes back."""
        return ServerSentEvent(b"", id=f"{self.name}_{self._sent}", retry=retry_ms)

    def take(self) -> list[ServerSentEvent]:
        """What is unsent; from now on it is sent."""
        unsent = islice(self._kept, self._unsent_from, None)
        numbered = enumerate(unsent, self._sent + 1)
        events = [ServerSentEvent(one, id=f"{self.name}_{number}") for number, one in numbered]
        self._sent = self._last
        self._behind = 0
        self._trim()
        if self.reader is not None:
            self.reader.wake()
        return events

    @property
    def is_read(self) -> bool:
        """Whether somebody reads it."""
        return self.reader is not None

    @property
    def is_sent(self) -> bool:
        """Whether there is nothing unsent."""
        return self._sent >= self._last

    @property
    def sole_answer(self) -> bytes | None:
        """The answer, where it is all that was ever put and nobody can come back for it."""
        return self._kept[0] if self.answered and self._last == 1 and not self.name else None

    def has(self, number: int) -> bool:
        """Whether there has been a message of that number; 0 is the beginning."""
        return 0 <= number <= self._last

    def follows(self, number: int) -> bool:
        """Whether everything after that message is kept."""
        return number >= self._dropped

    # Keeping

    def expire(self) -> bool:
        """Gives up what was kept long enough; whether that is the whole stream, which nobody finds then. What was
        never sent to anybody stays, for the next one who reads."""
        # The session's own stream has no end, so it loses what was sent and stays.
        if self.ids or self.is_over:
            self.forget()
            self._events.drop(self)
            return True
        while self._dropped < self._sent:
            self.shed()
        return False

    def shed(self) -> bool:
        """Gives up the oldest message, unless a reader is still to get it; whether there was one."""
        if not self._kept or (self.reader is not None and self._dropped >= self._sent):
            return False
        self._count(-len(self._kept.pop(0)) - _OVERHEAD)
        self._dropped += 1
        return True

    def forget(self) -> None:
        """Gives up everything."""
        self._dropped += len(self._kept)
        self._kept.clear()
        self._count(-self._size)

    @property
    def _last(self) -> int:
        return self._dropped + len(self._kept)

    @property
    def _unsent_from(self) -> int:
        return max(self._sent - self._dropped, 0)

    def _count(self, size: int) -> None:
        self._size += size
        self._events.add(size)

    def _trim(self) -> None:
        limits = self._limits
        while self._size > limits.replay_bytes or len(self._kept) > limits.replay_events:
            unsent = self._dropped >= self._sent
            if (self.answered and len(self._kept) == 1) or not self.shed():
                return
            if unsent and not self.ids:
                log.warning("nobody reads the messages of a session; the oldest of %d was dropped", self._last)


class MemoryEvents:
    """The streams of one session."""

    __slots__ = ("_own", "_shown", "_taken", "_used", "log")

    def __init__(self, log: "MemoryLog") -> None:
        self.log = log
        self._used = 0
        self._shown: dict[str, MemoryStream] | None = None  # by name, once there was one
        self._own: MemoryStream | None = None
        self._taken: tuple[Callable[[], None], ...] = ()

    def stream(self, ids: tuple[RequestId, ...]) -> MemoryStream:
        """A new one, for the answers to `ids`. It is this replica's alone until it is shown."""
        return MemoryStream(self, ids)

    def own(self) -> MemoryStream:
        """The session's own, to put messages on."""
        self._own = self._own or MemoryStream(self)
        return self._own

    async def find(self, name: str | None = None) -> MemoryStream | None:
        """A stream that was shown, or the session's own, as it is now: to be read."""
        return self.own() if name is None else (self._shown or {}).get(name)

    def show(self, stream: MemoryStream) -> None:
        """Has `stream` found by its name."""
        if self._shown is None:
            self._shown = {}
        self._shown[stream.name] = stream

    def drop(self, stream: MemoryStream) -> None:
        """Has nobody find it any more."""
        if self._shown is not None:
            self._shown.pop(stream.name, None)

    def add(self, size: int) -> None:
        """So many bytes are kept from now on; fewer, where negative."""
        self._used += size
        self.log.used += size

    def taken(self) -> None:
        """A reader has taken what there was for it."""
        for wake in self._taken:
            wake()

    def hear_taken(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Has `wake` called when a reader has taken something, until the function that this gives is called."""
        self._taken += (wake,)

        def stop() -> None:
            self._taken = tuple(one for one in self._taken if one is not wake)

        return stop

    def make_room(self) -> None:
        """Gives up the oldest of what the oldest streams keep, as long as it is too much."""
        for stream in list((self._shown or {}).values()) if self._is_full else ():
            while self._is_full and stream.shed():
                pass

    @property
    def _is_full(self) -> bool:
        limits = self.log.limits
        return self._used > limits.session_replay_bytes or self.log.used > limits.total_replay_bytes

    def rest(self, stream: MemoryStream) -> None:
        """Takes note of when to give `stream` up, if nobody reads it. Of those that have ended only the last few are
        kept."""
        if stream.reader is not None:
            return
        shown = self._shown or {}
        if stream.name not in shown:
            # Nobody can come back for it any more.
            if stream.is_over:
                stream.forget()
            return
        if stream.is_over or stream is self._own:
            self.log.unread.start(stream)
        if stream.is_over and len(shown) > self.log.limits.replay_streams:
            ended = [one for one in shown.values() if one.is_over and one.reader is None]
            for one in ended[: max(len(ended) - self.log.limits.replay_streams, 0)]:
                self.log.unread.stop(one)
                shown.pop(one.name).forget()

    def close(self, refusal: Refusal) -> None:
        """The session has ended: ends all that were shown, those without an answer with `refusal`, and forgets
        them."""
        shown, self._shown = self._shown or {}, None
        own, self._own = self._own, None  # which has this: else both stay until the garbage collector comes
        for stream in {*shown.values(), *([own] if own else [])}:
            stream.end(refusal)
            self.log.unread.stop(stream)
            if stream.reader is None:
                stream.forget()

    def release(self) -> None:
        """The others go on with the session: it is all here."""


class MemoryLog:
    """The streams of all sessions."""

    def __init__(self, limits: ReplayLimits) -> None:
        self.limits = limits
        self.used = 0
        """How many bytes are kept in all of them."""
        self.unread = ExpiryQueue(limits.replay_seconds, MemoryStream.expire)
        """The streams that nobody reads, which are given up after a while."""
        self._sessions: dict[str, MemoryEvents] = {}

    def session(self, id: str) -> MemoryEvents:
        """The streams of one session, the same for all replicas."""
        events = self._sessions.get(id)
        if events is None:
            events = self._sessions[id] = MemoryEvents(self)
        return events

    def drop(self, id: str) -> None:
        """Forgets a session that has ended."""
        self._sessions.pop(id, None)
