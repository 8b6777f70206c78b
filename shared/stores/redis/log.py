"""The streams of sessions in Redis: see `scripts/streams.lua`.

    put ──▶ append ──▶ numbered and stored ──▶ the replica of its reader ──▶ take

A stream whose client has not got an event id yet can't be resumed, and is only in the memory of the replica that
serves its requests. Most streams end there. Once a stream is shown, Redis stores its messages and numbers them, and a
message is sent to the client only after that. If the reader is on the replica that added the message, it learns the
number by the reply of Redis, otherwise by its inbox. Both keep the order of messages.
"""

from hashlib import sha256

from ...contracts import ReplayLimits
from ...protocol.http.rules import Refusal
from ...protocol.wire.jsonrpc import RequestId
from ..taken_messages import TakenMessages
from .link import Link
from .stream import RedisStream, StreamContext, read_refusal

_MAX_STREAMS = 250
"""Maximum number of streams whose expiry one operation postpones."""


class RedisLog(StreamContext):
    """The streams of all sessions, as one replica sees them."""

    def __init__(self, link: Link, limits: ReplayLimits) -> None:
        super().__init__(link, limits)
        self._sessions: dict[str, RedisEvents] = {}
        self.followed: set[RedisStream] = set()
        """The streams that are read here, and whose requests other replicas serve."""

    def session(self, id: str) -> "RedisEvents":
        """Return the streams of the session with the id `id`, and count the caller as a user of that object."""
        events = self._sessions.get(id)
        if events is None:
            events = self._sessions[id] = RedisEvents(self, id)
        events.users += 1
        return events

    def drop(self, id: str) -> None:
        """Delete the streams of a session that has ended."""
        self._sessions.pop(id, None)
        self.link.enqueue("drop", id)

    def release(self, events: "RedisEvents") -> None:
        """Remove the streams of a session that continues on other replicas. A newer object for the same session,
        created after this replica had been lost, stays."""
        if self._sessions.get(events.id) is events:
            del self._sessions[events.id]

    # Called by its replica

    def on_event(self, kind: str, session: str, name: str, first: bytes, second: bytes) -> None:
        """Handle an entry of the inbox about a stream that is served or read here."""
        events = self._sessions.get(session)
        stream = None if events is None else events.find_local(name)
        if stream is None:
            return
        if kind == "took":
            stream.on_taken(int(first))
        elif stream.reader is not None and not stream.is_beginning:
            match kind:
                case "message":
                    stream.receive(int(first), second)
                case "answer":
                    stream.receive(int(first), second)
                    stream.on_ended("answered")
                case "over":
                    stream.on_ended(first.decode(), read_refusal(second))
                case "pause":
                    stream.reader.pause(int(first))
                case "cut":
                    stream.on_reader_moved()

    def on_renewed(self, alive: set[int]) -> None:
        """Handle the current set of replicas: end the streams that are read here if the replica that served their
        requests is lost."""
        for stream in self.followed:
            if stream.serving_replica not in alive and not stream.is_over:
                self.link.enqueue("answer_for_dead", stream.session, stream.name, *self.bounds, self.retention_ms)

    def extend(self) -> None:
        """Postpone the expiry of the streams that are served or read here."""
        arguments = [
            argument
            for events in self._sessions.values()
            for name in events.continuing_streams
            for argument in (events.id, name)
        ]
        # In several operations, because Redis serves no other client while one is carried out.
        for start in range(0, len(arguments), 2 * _MAX_STREAMS):
            self.link.enqueue("keep_streams", *arguments[start : start + 2 * _MAX_STREAMS])

    def on_lost(self) -> None:
        """Abandon all streams, because this replica has lost its lease. Their readers have to reconnect."""
        sessions, self._sessions = self._sessions, {}
        self.followed.clear()
        for events in sessions.values():
            events.on_lost()


class RedisEvents(TakenMessages):
    """The streams of one session, as one replica sees them."""

    __slots__ = ("_own", "_shown", "id", "log", "users")

    def __init__(self, log: RedisLog, id: str) -> None:
        super().__init__()
        self.log = log
        self.id = id
        self.users = 0
        """The number of users of this object. A session may be opened again here before its earlier user has released
        it."""
        self._own: RedisStream | None = None
        self._shown: dict[str, RedisStream] | None = None
        """The shown streams that are served or read here, by name."""

    def stream(self, ids: tuple[RequestId, ...]) -> RedisStream:
        """Create a stream for the answers to `ids`."""
        return RedisStream(self, ids)

    def session_stream(self) -> RedisStream:
        """Return the session's own stream, for messages that belong to no request."""
        if self._own is None:
            self._own = RedisStream(self, (), self._own_name, is_own=True)
        return self._own

    @property
    def _own_name(self) -> str:
        # Every replica can derive the name from the id of the session, but event ids don't reveal the id.
        return sha256(self.id.encode()).hexdigest()[:16]

    async def find(self, name: str | None = None) -> RedisStream | None:
        """Return the shown stream called `name`, with its current state; None if there is none. Without a name,
        return the session's own stream. Raises OSError while Redis can't be reached."""
        log = self.log
        name = self._own_name if name is None else name
        is_own = name == self._own_name
        reply = await log.link.ask("find", self.id, name, int(is_own), *log.bounds, log.retention_ms)
        if reply is None:
            return None
        stream = self.session_stream() if is_own else self.find_local(name)
        if stream is None:
            stream = RedisStream(self, (), name)
            self.add(stream)
        stream.restore(*reply)
        if stream.serving_replica is not None:
            log.followed.add(stream)
        return stream

    def find_local(self, name: str) -> RedisStream | None:
        """Return the stream called `name` if it is served or read here, else None."""
        if self._own is not None and name == self._own.name:
            return self._own
        return (self._shown or {}).get(name)

    def add(self, stream: RedisStream) -> None:
        """Add a stream that was shown here, or found in Redis."""
        self._shown = {**(self._shown or {}), stream.name: stream}

    def remove(self, stream: RedisStream) -> None:
        """Remove a stream that is no longer served or read here."""
        self.log.followed.discard(stream)
        if self._shown is not None:
            self._shown.pop(stream.name, None)
            self._shown = self._shown or None

    @property
    def continuing_streams(self) -> list[str]:
        """The names of the streams here that have not ended."""
        shown = [name for name, stream in (self._shown or {}).items() if not stream.is_over]
        return shown if self._own is None else [*shown, self._own.name]

    def make_room(self) -> None:
        """Do nothing: Redis does this when a message is added."""

    def close(self, refusal: Refusal) -> None:
        """End the streams of an ended session that are read here."""
        shown, self._shown, own, self._own = self._shown or {}, None, self._own, None
        for stream in (*shown.values(), *([own] if own else ())):
            self.log.unread.stop(stream)
            stream.close(refusal)

    def release(self) -> None:
        """End the use of this object by one of its users; the session continues."""
        self.users -= 1
        if not self.users:
            self.log.release(self)

    def on_lost(self) -> None:
        """Abandon the streams: this replica no longer shares the session."""
        for stream in (*(self._shown or {}).values(), *([self._own] if self._own else ())):
            self.log.unread.stop(stream)
            stream.on_lost()
