"""The streams of a session, kept so that a client can come back for what it has missed.

A stream is what belongs to one POST, or what belongs to no request at all. Its messages are numbered; the id of
an event is the stream's name and the number, so that `Last-Event-ID` tells where to go on. Names are random: an
id of another session names nothing here. At most one HTTP response reads a stream, the one that came last.

    put ──▶ │ sent, for those who come back │ unsent │ ──▶ Reader ──▶ Reply

Putting never waits. A reader that falls too far behind is cut off, the stream lives on. What is kept is bounded by
stream, by session and over all sessions: the oldest goes first, and whoever comes back for it is refused, for a
client that missed a message must not take the rest for everything. (2025-11-25, Transports, Resumability.)
"""

import logging
import secrets
from itertools import islice

from anyio import CancelScope

from ...kit.signal import Signal
from ...protocol.http.rules import Refusal
from ...protocol.wire.framing import ServerSentEvent
from ...protocol.wire.jsonrpc import RequestId
from .limits import Room, SessionLimits

__all__ = ["Reader", "Stream"]

log = logging.getLogger("shared.transports.http")

_OVERHEAD = 100
"""Bytes that keeping a message takes besides its own."""


class Stream:
    """The messages of one POST, or of none."""

    __slots__ = (
        "_behind",
        "_dropped",
        "_kept",
        "_limits",
        "_room",
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

    def __init__(self, limits: SessionLimits, room: Room, ids: tuple[RequestId, ...] = ()) -> None:
        """`ids` are the requests that it answers; none for the stream of what no request asked for."""
        self.ids = ids
        self.name = ""
        """Empty until the client has seen one of its events: before, it can't come back."""
        self.reader: Reader | None = None
        self.answered = False
        """Whether the last message is the answer."""
        self.is_over = False
        """Whether nothing more will be put."""
        self.is_lost = False
        """Whether nobody will ever read it."""
        self.refusal: Refusal | None = None
        """Why there will be no answer, where the session ended before."""
        self._limits = limits
        self._room = room
        self._kept: list[bytes] = []  # empty, a deque is ten times as large
        self._size = 0
        self._dropped = 0
        self._sent = 0
        self._behind = 0

    # Writing

    def put(self, message: bytes, *, once: bool = False) -> None:
        """Adds a message; with `once` not if the same one is unsent. Cuts a reader off that is too far behind."""
        if self.is_over or self.is_lost or (once and message in islice(self._kept, self._unsent_from, None)):
            return
        if self.reader is not None and self.crowds(message):
            log.warning("a stream was cut off: its client is %d bytes behind", self._behind)
            self.reader.cut()
            self.leave(self.reader)
        self._add(message)
        self._trim()

    def crowds(self, message: bytes) -> bool:
        """Whether `message` is too much on top of what its reader has not taken yet."""
        return bool(self._behind) and self._behind + len(message) > self._limits.stream_bytes

    def answer(self, message: bytes) -> None:
        """Adds the last message, whatever is unsent, and ends."""
        if not self.is_over and not self.is_lost:
            self.answered = True
            self._add(message)
        self.end()

    def _add(self, message: bytes) -> None:
        self._kept.append(message)
        self._count(len(message) + _OVERHEAD)
        self._behind += len(message)
        if self.reader is not None:
            self.reader.wake()

    def end(self, refusal: Refusal | None = None) -> None:
        """Nothing more will come; `refusal` says why, where an answer is still owed."""
        self.refusal = None if self.answered else refusal
        self.is_over = True
        self._trim()
        if self.reader is not None:
            self.reader.wake()

    # Reading

    def read(self, after: int | None = None, *, begin: bool = False) -> "Reader":
        """Has a new response read what is unsent, or everything after message number `after`; the reader before it
        is cut off. With `begin` its response begins before there is anything to send."""
        if self.reader is not None:
            self.reader.cut()
        self._sent = max(self._sent, self._dropped) if after is None else after
        self._behind = sum(map(len, islice(self._kept, self._sent - self._dropped, None)))
        self.reader = Reader(self, resumes=after is not None, begin=begin)
        return self.reader

    def leave(self, reader: "Reader") -> None:
        """`reader` reads no more. A stream whose client can't come back is lost."""
        if self.reader is not reader:
            return
        self.reader = None
        if self.ids and not self.name:
            self.is_lost = True
            self.forget()
        else:
            self._trim()

    def show(self) -> str:
        """Its name, which leaves with its events: from now on a client may come back."""
        self.name = self.name or secrets.token_hex(8)
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
    def is_sent(self) -> bool:
        """Whether there is nothing unsent."""
        return self._sent >= self._last

    @property
    def sole_answer(self) -> bytes | None:
        """The answer, where it is all that was ever put and nobody came back for it."""
        return self._kept[0] if self.answered and self._last == 1 and not self.name else None

    def has(self, number: int) -> bool:
        """Whether there has been a message of that number; 0 is the beginning."""
        return 0 <= number <= self._last

    def follows(self, number: int) -> bool:
        """Whether everything after that message is kept."""
        return number >= self._dropped

    # Keeping

    def expire(self) -> bool:
        """Gives up what was kept long enough; whether that is the whole stream. What was never sent to anybody
        stays, for the next one who reads."""
        if self.ids or self.is_over:
            self.forget()
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
        self._room.add(size)

    def _trim(self) -> None:
        limits = self._limits
        while self._size > limits.replay_bytes or len(self._kept) > limits.replay_events:
            unsent = self._dropped >= self._sent
            if (self.answered and len(self._kept) == 1) or not self.shed():
                return
            if unsent and not self.ids:
                log.warning("nobody reads the messages of a session; the oldest of %d was dropped", self._last)


class Reader:
    """One HTTP response that reads a stream."""

    __slots__ = ("_begin", "_moved", "_writing", "is_cut", "resumes", "retry_ms", "stream")

    def __init__(self, stream: Stream, *, resumes: bool, begin: bool) -> None:
        self.stream = stream
        self.resumes = resumes
        """Whether its client comes back."""
        self.retry_ms: int | None = None
        """Where the response is to end before its stream does: how long the client should wait."""
        self.is_cut = False
        """Whether the response has to end at once."""
        self._begin = begin
        self._moved = Signal()
        self._writing: CancelScope | None = None

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
