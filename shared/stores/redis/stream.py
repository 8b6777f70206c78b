"""One event stream of a session, as one replica serves or reads it.

* Not shown yet: all messages are only here. The reader is here too; without one, the stream is lost.
* Shown, or the session's own stream: Redis stores the messages. Those for a reader on this replica are also here,
  once Redis has numbered them.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable
from functools import partial
from typing import Protocol

from pydantic_core import from_json, to_json

from ...concurrency import ExpiryQueue
from ...contracts import EventReader, ReplayLimits
from ...errors import Unavailable
from ...protocol.http.rules import Refusal
from ...protocol.wire.framing import ServerSentEvent
from ...protocol.wire.jsonrpc import Failure, RequestId, json_of
from .link import Arguments, Link

log = logging.getLogger("shared.stores")

_UNKNOWN = -1
"""The number of the last received message while it is unknown; no message has the next number."""


class StreamContext:
    """What the streams of all sessions at one replica share: the connection to Redis, and the limits."""

    def __init__(self, link: Link, limits: ReplayLimits) -> None:
        self.link = link
        self.limits = limits
        self.retention_ms = round(1_000 * limits.replay_seconds)
        self.bounds: Arguments = (limits.replay_bytes, limits.replay_events, limits.session_replay_bytes)
        self.unread = ExpiryQueue(limits.replay_seconds, RedisStream.forget_sent)
        """The sessions' own streams that were read on this replica, but have no reader now."""


class _Session(Protocol):
    """The session of a stream. `add` and `remove` control whether the session finds the stream by its name."""

    id: str

    @property
    def log(self) -> StreamContext: ...

    def add(self, stream: "RedisStream") -> None: ...

    def remove(self, stream: "RedisStream") -> None: ...

    def notify_taken(self) -> None: ...


class RedisStream:
    """An `EventStream` in Redis."""

    __slots__ = (
        "_departure",
        "_events",
        "_has_ended",
        "_is_own",
        "_is_read_elsewhere",
        "_last_dropped",
        "_last_received",
        "_last_stored",
        "_last_taken",
        "_remote_bytes",
        "_replication",
        "_untaken",
        "_untaken_bytes",
        "answered",
        "ids",
        "is_lost",
        "is_over",
        "name",
        "reader",
        "refusal",
        "serving_replica",
    )

    def __init__(self, events: _Session, ids: tuple[RequestId, ...], name: str = "", *, is_own: bool = False) -> None:
        self.ids = ids
        self.name = name
        self.serving_replica: int | None = None
        """The number of the other replica that serves the requests of the stream; None if this one does."""
        self.reader: EventReader | None = None
        self.answered = self.is_over = self.is_lost = False
        self.refusal: Refusal | None = None
        self._events = events
        self._is_own = is_own
        self._has_ended = False
        """True if this replica adds nothing more."""
        self._untaken: list[bytes] = []
        """The messages that the local reader has not taken yet; until the stream is shown, all messages."""
        self._untaken_bytes = self._remote_bytes = 0
        """The number of bytes that the local reader has not taken or Redis has not stored yet; and the number of
        bytes that a reader on another replica has not taken yet."""
        self._last_received = self._last_taken = 0
        """The numbers of the last message that was received here, and of the last one that the reader took."""
        self._last_stored = self._last_dropped = 0
        """The numbers of the last message in Redis, and of the last one deleted there, when the stream was found."""
        self._departure = 0
        """The number that Redis has given to the departure of the last reader here; 0 if no reader has left."""
        self._is_read_elsewhere = False
        self._replication: asyncio.Future[None] | None = None

    # Writing

    def put(self, message: bytes, *, once: bool = False, everywhere: bool = False) -> None:
        """Add a message. With `once`, it is only added if no equal message waits for a reader. `everywhere` means
        that every replica of the session adds the same message: only the copy of the replica that has the reader is
        sent. Disconnects a reader that is too far behind."""
        if self._has_ended or self.is_lost:
            return
        if self.exceeds_limit(message):
            self._disconnect_reader()
        if self._is_local:
            self._store(message)
        else:
            self._append(message, "shared" if everywhere else "once" if once else "")

    def exceeds_limit(self, message: bytes) -> bool:
        """Return True if `message` would exceed the limit on bytes that the reader or Redis has not taken yet."""
        # The stream of a new request has no reader yet, since its POST is only about to read. That does not mean that
        # the client is slow.
        behind = 0 if self._is_local and self.reader is None else self._untaken_bytes + self._remote_bytes
        return bool(behind) and behind + len(message) > self._events.log.limits.stream_bytes

    def answer(self, message: bytes) -> None:
        """Add the last message, even if too many are waiting, and end the stream."""
        if self._has_ended or self.is_lost:
            self._has_ended = True
            return
        self._has_ended = True
        if self._is_local:
            self._store(message)
            self.on_ended("answered")
        else:
            self._append(message, "answer")

    def end(self, refusal: Refusal | None = None) -> None:
        """End the stream. `refusal` is sent to a client that reconnects for an answer that is missing; None if the
        requests were cancelled, so that no client reconnects for them."""
        if self._has_ended:
            return
        self._has_ended = True
        if self._is_local:
            self.on_ended("ended", refusal)
        else:
            events = self._events
            arguments = (events.id, self.name, write_refusal(refusal), events.log.retention_ms)
            events.log.link.enqueue("finish", *arguments, on_reply=lambda _: self.on_ended("ended", refusal))

    def pause(self, retry_ms: int) -> None:
        """Pause the reader, if there is one."""
        if self.reader is not None:
            self.reader.pause(retry_ms)
        elif not self._is_local:
            self._events.log.link.enqueue("pause", self._events.id, self.name, retry_ms)

    @property
    def _is_local(self) -> bool:
        """True if the whole stream is only on this replica."""
        return not self.name

    def _store(self, message: bytes) -> None:
        self._untaken.append(message)
        self._last_received += 1
        self._untaken_bytes += len(message)
        if self.reader is not None:
            self.reader.wake()

    def _append(self, message: bytes, mode: str) -> None:
        events, limits = self._events, self._events.log.limits
        self._untaken_bytes += len(message)

        def on_reply(reply: list[int]) -> None:
            number, is_reader_here, self._remote_bytes = reply
            self._untaken_bytes = max(0, self._untaken_bytes - len(message))
            self._wake_senders()
            if is_reader_here:
                self.receive(number, message)
            if mode == "answer":
                self.on_ended("answered")

        events.log.link.enqueue(
            "append",
            *(events.id, self.name, int(self._is_own), message, mode),
            *(*events.log.bounds, limits.replay_streams, events.log.retention_ms),
            on_reply=on_reply,
        )

    def _disconnect_reader(self) -> None:
        if self.reader is not None:
            log.warning("a stream was closed: its client is %d bytes behind", self._untaken_bytes)
            self.reader.cancel()
            self.leave(self.reader)

    # Reading

    def pending_replication(self) -> Awaitable[None] | None:
        """Return an awaitable that completes when Redis has stored the messages; await it before they are sent to the
        client. Return None if Redis has already stored them. The awaitable raises OSError if Redis can't be
        reached."""
        replication = self._replication
        if replication is None or (replication.done() and replication.exception() is None):
            return None
        return self._wait_for_replication()

    async def _wait_for_replication(self) -> None:
        if self._replication is not None:
            # Several tasks may wait for the same future, and cancelling one must not cancel it for the others.
            await asyncio.shield(self._replication)

    def read(self, reader: EventReader, after: int | None = None) -> None:
        """Let `reader` read the stream: the messages that were not taken yet, or all after message number `after`. A
        previous reader is disconnected."""
        if self.reader is not None:
            self.reader.cancel()
        self.reader = reader
        if self._is_local:
            return
        self._events.log.unread.stop(self)
        # Messages that arrive before the reply of Redis are for the previous reader; the reply contains them again.
        self._untaken, self._untaken_bytes, self._last_received = [], 0, _UNKNOWN
        self._begin_replication()
        self._events.log.link.enqueue(
            "read",
            *(self._events.id, self.name, int(self._is_own), "" if after is None else after),
            on_reply=lambda reply: self._on_read_reply(reader, reply),
        )

    def _on_read_reply(self, reader: EventReader, reply: list[bytes] | None) -> None:
        """Handle the reply of Redis to `read`: the messages for the new reader."""
        if self.reader is not reader:
            return
        if reply is None:
            reader.cancel()
        else:
            start, state, refusal, *messages = reply
            self._last_taken = self._last_received = int(start)
            for message in messages:
                self.receive(self._last_received + 1, message)
            if state:
                self.on_ended(state.decode(), read_refusal(refusal))
        self._complete_replication()

    def receive(self, number: int, message: bytes) -> None:
        """Handle a message that Redis has numbered. One that was received before is ignored."""
        if self.reader is None or number != self._last_received + 1:
            return
        # Both the reply to `read` and the inbox may contain a message, so only the next number is accepted.
        self._last_received = number
        self._untaken.append(message)
        self._untaken_bytes += len(message)
        limit = self._events.log.limits.stream_bytes
        if self.serving_replica is not None:
            limit *= 2  # the replica that serves the stream already waits at half of this limit
        if self._untaken_bytes > limit and self._untaken_bytes > len(message) and not self._has_ended:
            self._disconnect_reader()
        else:
            self.reader.wake()

    def on_ended(self, ending: str, refusal: Refusal | None = None) -> None:
        """Handle the end of the stream: `ending` is "answered" or "ended", `refusal` the reason for no answer."""
        self._has_ended = self.is_over = True
        self.answered = ending == "answered"
        self.refusal = None if self.answered else refusal
        if self.reader is not None:
            self.reader.wake()
        else:
            self._forget()

    def take(self) -> list[ServerSentEvent]:
        """Return the messages that the reader has not taken yet, which count as sent from now on."""
        messages, self._untaken = self._untaken, []
        numbered = enumerate(messages, self._last_received - len(messages) + 1)
        events = [ServerSentEvent(message, id=f"{self.name}_{number}") for number, message in numbered]
        self._last_taken = self._last_received
        size = sum(map(len, messages))
        self._untaken_bytes -= size
        if messages and self._is_own:
            self._events.log.link.enqueue("sent", self._events.id, self.name, self._last_taken)
        # The replica that serves the stream waits if this reader is too far behind, so notify it.
        elif messages and self.serving_replica is not None:
            self._events.log.link.enqueue("took", self._events.id, self.name, size)
        if self.reader is not None:
            self.reader.wake()
        return events

    def leave(self, reader: EventReader) -> None:
        """End reading by `reader`. If its client can't reconnect, the stream is lost."""
        if self.reader is not reader:
            return
        self.reader = None
        if self._is_local:
            self.is_lost = bool(self.ids)
            self.forget()
            return
        self._untaken, self._untaken_bytes, self._departure = [], 0, 0
        log = self._events.log
        log.link.enqueue("unread", self._events.id, self.name, log.retention_ms, on_reply=self._set_departure)
        self._complete_replication()
        if self._is_own:
            log.unread.start(self)
        if self.is_over or self.serving_replica is not None:
            self._forget()

    def _set_departure(self, departure: int) -> None:
        self._departure = departure

    def on_reader_moved(self) -> None:
        """Disconnect the reader here, because the client now reads the stream on another replica."""
        reader, self.reader = self.reader, None
        self._untaken, self._untaken_bytes = [], 0
        if reader is not None:
            reader.cancel()
        if self.serving_replica is not None:
            self._forget()

    def show(self) -> str:
        """Return the name of the stream, which is sent in event ids. From now on, the client may reconnect, and any
        replica finds the stream."""
        if self.name:
            return self.name
        events = self._events
        self.name = secrets.token_hex(8)
        events.add(self)
        messages, self._untaken, self._untaken_bytes = self._untaken, [], 0
        self._last_received = self._last_taken = 0
        replication = self._begin_replication()
        ids = b"\n".join(json_of(request_id) for request_id in self.ids)
        events.log.link.enqueue("show", events.id, self.name, ids)
        was_over, self.is_over = self.is_over, False
        # Store the messages that were only in memory until now. Most streams end before this.
        for number, message in enumerate(messages, 1):
            self._append(message, "answer" if was_over and number == len(messages) else "")
        self._has_ended = was_over
        events.log.link.enqueue("look", on_reply=lambda _: self._complete_replication(replication))
        return self.name

    def position_event(self, retry_ms: int) -> ServerSentEvent:
        """Return an event without data, whose id is the client's position, and which asks the client to wait
        `retry_ms` milliseconds before it reconnects."""
        return ServerSentEvent(b"", id=f"{self.name}_{self._last_taken}", retry=retry_ms)

    def has(self, number: int) -> bool:
        """Return True if there had been a message with this number when the stream was found. 0, the position before
        the first message, counts too."""
        return 0 <= number <= self._last_stored

    def has_all_after(self, number: int) -> bool:
        """Return True if every message after this number was still stored when the stream was found."""
        return number >= self._last_dropped

    @property
    def is_read(self) -> bool:
        """True if the stream has a reader here, or had one elsewhere when it was found."""
        return self.reader is not None or self._is_read_elsewhere

    @property
    def is_all_sent(self) -> bool:
        """True if the reader has taken all messages that are here."""
        return not self._untaken

    @property
    def sole_answer(self) -> bytes | None:
        """The answer, if it is the only message and has not been given an event id."""
        return (
            self._untaken[0]
            if self._is_local and self.answered and self._last_received == 1 and self._untaken
            else None
        )

    def forget(self) -> None:
        """Delete all messages that are here."""
        self._untaken, self._untaken_bytes = [], 0

    # Called by its log

    def restore(self, last: int, dropped: int, over: bytes, is_read: int, serving_replica: bytes) -> None:
        """Set the state of the stream to that in Redis, which `find` returns."""
        self._last_stored, self._last_dropped = last, dropped
        self._is_read_elsewhere = bool(is_read) and self.reader is None
        link = self._events.log.link
        self.serving_replica = (
            int(serving_replica) if serving_replica and int(serving_replica) != link.number else None
        )

    def on_taken(self, behind: int) -> None:
        """Record that a reader on another replica has taken messages: `behind` bytes are left for it."""
        self._remote_bytes = behind
        self._wake_senders()

    def _wake_senders(self) -> None:
        """Wake the senders that wait for a slow reader, if the bytes on their way are at most half of the limit."""
        if self._untaken_bytes + self._remote_bytes <= self._events.log.limits.stream_bytes // 2:
            self._events.notify_taken()

    def forget_sent(self) -> None:
        """Delete the taken messages in Redis, because no client has reconnected for a long time."""
        if self._departure:
            self._events.log.link.enqueue("forget_sent", self._events.id, self.name, self._departure)

    def close(self, refusal: Refusal) -> None:
        """End the stream with its session."""
        self._has_ended = True
        self.on_ended("ended", refusal)
        self._complete_replication()

    def on_lost(self) -> None:
        """Abandon the stream, because this replica has lost its lease."""
        self._has_ended = self.is_lost = True
        if self.reader is not None:
            self.reader.cancel()
        self._fail_replication()

    @property
    def is_beginning(self) -> bool:
        """True until Redis has replied to `read`: messages that arrive before are for the previous reader."""
        return self._last_received == _UNKNOWN

    @property
    def session(self) -> str:
        """The id of the stream's session."""
        return self._events.id

    def _begin_replication(self) -> "asyncio.Future[None]":
        previous, replication = self._replication, asyncio.get_running_loop().create_future()
        if previous is not None and not previous.done():
            # Redis answers in order, so the previous one completes no later than this one. Complete both together.
            replication.add_done_callback(partial(_copy_outcome, previous))
        self._replication = replication
        if not self._events.log.link.is_joined:
            self._fail_replication()
        return replication

    def _fail_replication(self) -> None:
        if self._replication is not None and not self._replication.done():
            self._replication.set_exception(Unavailable(may_have_run=True))
            self._replication.exception()  # marks it as retrieved

    def _complete_replication(self, replication: "asyncio.Future[None] | None" = None) -> None:
        replication = replication or self._replication
        if replication is not None and not replication.done():
            replication.set_result(None)

    def _forget(self) -> None:
        if not self._is_local and not self._is_own:
            self._events.remove(self)


def _copy_outcome(previous: "asyncio.Future[None]", ended_replication: "asyncio.Future[None]") -> None:
    error = ended_replication.exception()
    if previous.done():
        return
    if error is None:
        previous.set_result(None)
    else:
        previous.set_exception(error)
        previous.exception()  # marks it as retrieved


def write_refusal(refusal: Refusal | None) -> bytes:
    """Return the JSON of a refusal; empty for None."""
    if refusal is None:
        return b""
    failure = refusal.failure
    headers = [list(header) for header in refusal.headers]
    return to_json([refusal.status, failure.code, failure.message, failure.data, headers])


def read_refusal(data: bytes) -> Refusal | None:
    """Parse the result of `write_refusal`."""
    if not data:
        return None
    status, code, message, error_data, headers = from_json(data)
    return Refusal(status, Failure(None, code, message, error_data), tuple((name, value) for name, value in headers))
