"""The streams of sessions in Redis: see `scripts/streams.lua`.

    put ──▶ append ──▶ numbered and kept ──▶ the replica of its reader ──▶ take

A stream whose client can't come back yet is in the memory of the replica that serves its requests, and most end so.
From when it is shown on, a message leaves only after Redis has it, with the number that it got there: by the reply to
whoever added it, or by the inbox of the replica that has the reader. Both come in the order in which they happened.
"""

from collections.abc import Callable
from hashlib import sha256

from ...contracts import EventReader, ReplayLimits
from ...protocol.http.rules import Refusal
from ...protocol.wire.jsonrpc import RequestId
from .link import Link
from .stream import RedisStream, StreamContext, read_refusal

_MANY = 250
"""Streams that are kept by one operation."""


class RedisLog(StreamContext):
    """The streams of all sessions, as one replica sees them."""

    def __init__(self, link: Link, limits: ReplayLimits) -> None:
        super().__init__(link, limits)
        self._sessions: dict[str, RedisEvents] = {}
        self.followed: set[RedisStream] = set()
        """The streams of requests that other replicas serve, which are read here."""

    def session(self, id: str) -> "RedisEvents":
        """The streams of one session."""
        events = self._sessions.get(id)
        if events is None:
            events = self._sessions[id] = RedisEvents(self, id)
        events.users += 1
        return events

    def drop(self, id: str) -> None:
        """Forgets a session that has ended."""
        self._sessions.pop(id, None)
        self.link.tell("drop", id)

    def release(self, events: "RedisEvents") -> None:
        """A session is not here any more, and goes on; what is here of it since this replica was lost stays."""
        if self._sessions.get(events.id) is events:
            del self._sessions[events.id]

    # What its replica does

    def heard(self, kind: str, session: str, name: str, first: bytes, second: bytes) -> None:
        """Something has become of a stream that is read here."""
        events = self._sessions.get(session)
        stream = None if events is None else events.known(name)
        if stream is None:
            return
        if kind == "took":
            stream.took(int(first))
        elif stream.reader is not None and not stream.is_beginning:
            self._heard(stream, stream.reader, kind, first, second)

    def _heard(self, stream: RedisStream, reader: EventReader, kind: str, first: bytes, second: bytes) -> None:
        match kind:
            case "message":
                stream.got(int(first), second)
            case "answer":
                stream.got(int(first), second)
                stream.ended("answered")
            case "over":
                stream.ended(first.decode(), read_refusal(second))
            case "pause":
                reader.pause(int(first))
            case "cut":
                stream.taken_over()

    def renewed(self, alive: set[int]) -> None:
        """These replicas there are: what the others owe is answered."""
        for stream in self.followed:
            if stream.owner not in alive and not stream.is_over:
                self.link.tell("owe", stream.session, stream.name, *self.bounds, self.kept_ms)

    def keep(self) -> None:
        """What is served or read here lasts."""
        names = [word for events in self._sessions.values() for name in events.lasting for word in (events.id, name)]
        # In pieces: a script holds up all other clients of Redis while it runs.
        for start in range(0, len(names), 2 * _MANY):
            self.link.tell("keep_streams", *names[start : start + 2 * _MANY])

    def lose(self) -> None:
        """Nothing of what was served here is this replica's any more: who reads has to come back, to any."""
        sessions, self._sessions = self._sessions, {}
        self.followed.clear()
        for events in sessions.values():
            events.lose()


class RedisEvents:
    """The streams of one session, as one replica sees them."""

    __slots__ = ("_own", "_shown", "_taken", "id", "log", "users")

    def __init__(self, log: RedisLog, id: str) -> None:
        self.log = log
        self.id = id
        self.users = 0
        """Who got this: a session that ends here may be here again before that is over."""
        self._own: RedisStream | None = None
        self._shown: dict[str, RedisStream] | None = None
        """Those that are served or read here, and were shown, by name."""
        self._taken: tuple[Callable[[], None], ...] = ()

    def stream(self, ids: tuple[RequestId, ...]) -> RedisStream:
        """A new one, for the answers to `ids`."""
        return RedisStream(self, ids)

    def own(self) -> RedisStream:
        """The session's own, to put messages on."""
        if self._own is None:
            self._own = RedisStream(self, (), self._own_name, is_own=True)
        return self._own

    @property
    def _own_name(self) -> str:
        # A name that every replica can make, and that does not give the id of the session away in event ids.
        return sha256(self.id.encode()).hexdigest()[:16]

    async def find(self, name: str | None = None) -> RedisStream | None:
        """A stream that was shown, or the session's own, as it is now: to be read. Raises OSError where the others
        are out of reach."""
        log = self.log
        name = self._own_name if name is None else name
        is_own = name == self._own_name
        reply = await log.link.ask("find", self.id, name, int(is_own), *log.bounds, log.kept_ms)
        if reply is None:
            return None
        stream = self.own() if is_own else self.known(name)
        if stream is None:
            stream = RedisStream(self, (), name)
            self.add(stream)
        stream.found(*reply)
        if stream.owner is not None:
            log.followed.add(stream)
        return stream

    def known(self, name: str) -> RedisStream | None:
        """The stream of that name, where it is served or read here."""
        if self._own is not None and name == self._own.name:
            return self._own
        return (self._shown or {}).get(name)

    def add(self, stream: RedisStream) -> None:
        """A stream was shown, or found."""
        self._shown = {**(self._shown or {}), stream.name: stream}

    def remove(self, stream: RedisStream) -> None:
        """A stream is neither served nor read here any more."""
        self.log.followed.discard(stream)
        if self._shown is not None:
            self._shown.pop(stream.name, None)
            self._shown = self._shown or None

    @property
    def lasting(self) -> list[str]:
        """The names of the streams here that go on."""
        shown = [name for name, stream in (self._shown or {}).items() if not stream.is_over]
        return shown if self._own is None else [*shown, self._own.name]

    def make_room(self) -> None:
        """Redis does, whenever something is added."""

    def hear_taken(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Has `wake` called when a reader here has taken something."""
        self._taken += (wake,)

        def stop() -> None:
            self._taken = tuple(one for one in self._taken if one is not wake)

        return stop

    def taken(self) -> None:
        """A reader has taken what there was."""
        for wake in self._taken:
            wake()

    def close(self, refusal: Refusal) -> None:
        """The session has ended: ends what is read of it here."""
        shown, self._shown, own, self._own = self._shown or {}, None, self._own, None
        for stream in (*shown.values(), *([own] if own else ())):
            self.log.unread.stop(stream)
            stream.close(refusal)

    def release(self) -> None:
        """One of its users has no more to do with the session, which goes on."""
        self.users -= 1
        if not self.users:
            self.log.release(self)

    def lose(self) -> None:
        """This replica no longer is one of those that share the session."""
        for stream in (*(self._shown or {}).values(), *([self._own] if self._own else ())):
            self.log.unread.stop(stream)
            stream.lose()
