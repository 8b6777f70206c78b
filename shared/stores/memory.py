"""Stores in the memory of one process: for a single server, or for several runs of it that share them.

The replicas of one `Stores` live in one event loop. A replica that is gone leaves its sessions to the others: each is
stored for its idle time, until a request for it arrives. No method ever suspends.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count

from ..concurrency import ExpiryQueue
from ..contracts import News, ReplayLimits, ReplicaWatcher, SessionRecord, TaskLimits
from ..protocol.http.rules import refuse
from ..protocol.identity import Principal
from ..protocol.session.events import Change
from ..protocol.session.handshake import Snapshot, merge
from ..protocol.wire.jsonrpc import RequestId
from .memory_blobs import MemoryBlobs
from .memory_limiter import MemoryLimiter
from .memory_log import MemoryLog
from .memory_tasks import MemoryTasks

_ENDED = refuse(404, "the session has ended")
_NOBODY = -1


class _Session:
    """A session, the replicas that have it, those that let it lapse since the last request, the replica that serves
    each of its requests, and the one that reports each resource."""

    __slots__ = ("claims", "holders", "lapsed", "record", "watched")

    def __init__(self, record: SessionRecord, holders: tuple[int, ...]) -> None:
        self.record = record
        self.holders = holders
        self.lapsed: tuple[int, ...] = ()
        self.claims: dict[RequestId, int] | None = None
        self.watched: dict[str, int] | None = None


class Stores:
    """The stores of replicas that live in one event loop."""

    def __init__(self) -> None:
        self.sessions: dict[str, _Session] = {}
        self.buses: dict[int, MemoryBus] = {}
        self.watchers: dict[int, list[ReplicaWatcher]] = {}
        self.orphans = ExpiryQueue(0, self._end_orphan)
        """The sessions that no replica has."""
        self.secret = os.urandom(32)
        self.limiter = MemoryLimiter()
        self.blobs = MemoryBlobs()
        self._log: MemoryLog | None = None
        self._tasks: MemoryTasks | None = None
        self._numbers = count()

    @asynccontextmanager
    async def join(self) -> AsyncIterator["MemoryReplica"]:
        """Make the caller a replica for the duration of the block. The other replicas take over the work that it
        leaves behind."""
        replica = self.replica()
        try:
            yield replica
        finally:
            self._leave(replica.number)

    def replica(self) -> "MemoryReplica":
        """Return a permanent replica: the only one."""
        number = next(self._numbers)
        self.buses[number] = MemoryBus(self, number)
        return MemoryReplica(self, number)

    def log(self, limits: ReplayLimits) -> MemoryLog:
        """Return the log of the streams, within the limits of the first caller."""
        self._log = self._log or MemoryLog(limits)
        return self._log

    def tasks(self, limits: TaskLimits) -> MemoryTasks:
        """Return the tasks of all replicas, within the limits of the first caller."""
        if self._tasks is None:
            self._tasks = MemoryTasks(limits)
        return self._tasks

    def tell(self, session: _Session, news: News, teller: int | None) -> None:
        """Notify the replicas that have a session, except the teller."""
        for holder in session.holders:
            if holder != teller:
                self.buses[holder].put(news)

    def release(self, id: str, number: int) -> None:
        """Note that a replica no longer has a session."""
        session = self.sessions[id]
        session.holders = tuple(holder for holder in session.holders if holder != number)
        if session.watched is not None:
            # Not deleted: the client has subscribed, and another replica must notify it.
            session.watched = {uri: _NOBODY if at == number else at for uri, at in session.watched.items()}
        if not session.holders:
            # One queue for all: the sessions of one server have the same idle time.
            self.orphans.seconds = session.record.idle_seconds
            self.orphans.start(id)

    def _leave(self, number: int) -> None:
        del self.buses[number]
        for id_, session in self.sessions.items():
            if number in session.holders:
                self.release(id_, number)
            claims = session.claims or {}
            session.claims = {request_id: owner for request_id, owner in claims.items() if owner != number} or None
        self.watchers.pop(number, None)
        for watcher in [watcher_ for watchers in self.watchers.values() for watcher_ in watchers]:
            watcher.left()

    def _end_orphan(self, id: str) -> None:
        del self.sessions[id]
        if self._log is not None:
            self._log.session(id).close(_ENDED)
            self._log.drop(id)


def _key(principal: Principal | None) -> object:
    return None if principal is None else principal.key


class MemoryReplica:
    """One of the replicas that share stores."""

    def __init__(self, stores: Stores, number: int) -> None:
        self.number = number
        self.secret = stores.secret
        self.limiter = stores.limiter
        self.sessions = MemorySessions(stores, number)
        self.bus = stores.buses[number]
        self.blobs = stores.blobs
        self.reason = None
        self._stores = stores

    def watch(self, watcher: ReplicaWatcher) -> None:
        """Notify `watcher` when another replica is gone; this one is never lost."""
        self._stores.watchers.setdefault(self.number, []).append(watcher)

    def log(self, limits: ReplayLimits) -> MemoryLog:
        """Return the log of the streams, within the limits of the first replica."""
        return self._stores.log(limits)

    def tasks(self, limits: TaskLimits) -> MemoryTasks:
        """Return the tasks of all replicas, within the limits of the first replica."""
        return self._stores.tasks(limits)


class MemorySessions:
    """The sessions, the replicas that have them, and the replica that serves each of their requests."""

    def __init__(self, stores: Stores, number: int) -> None:
        self._stores = stores
        self._sessions = stores.sessions
        self._number = number
        self._alone = (number,)

    async def create(self, record: SessionRecord) -> None:
        """Add a session, which this replica has."""
        self._sessions[record.id] = _Session(record, self._alone)

    async def enter(
        self, id: str, principal: Principal | None, ids: Sequence[RequestId] = ()
    ) -> tuple[SessionRecord, bool] | None:
        """Return the session of that id for a request of `principal`, or None if the principal has none of that id.
        The second value is True if the requests `ids` are served here from now on."""
        session = self._sessions.get(id)
        # The session of another principal is treated like one that never existed: an id that was guessed or seen is
        # useless.
        if session is None or _key(session.record.principal) != _key(principal):
            return None
        # It is in use: replicas that reported a lapse before must report it again.
        session.lapsed = ()
        if self._number not in session.holders:
            session.holders = (*session.holders, self._number) if session.holders else self._alone
            self._stores.orphans.stop(id)
        claims, is_free = session.claims, True
        if claims is None:
            session.claims = dict.fromkeys(ids, self._number) if ids else None
        # All of them or none: a batch is served as a whole.
        elif is_free := claims.keys().isdisjoint(ids):
            claims.update(dict.fromkeys(ids, self._number))
        return session.record, is_free

    def leave(self, id: str, ids: Sequence[RequestId]) -> None:
        """Free the ids of the requests `ids`, which are answered or given up."""
        session = self._sessions.get(id)
        if session is None or session.claims is None:
            return
        for id_ in ids:
            session.claims.pop(id_, None)
        session.claims = session.claims or None  # a used dict keeps room

    async def owner(self, id: str, request_id: RequestId) -> int | None:
        """Return the replica that serves that request; None if none does."""
        session = self._sessions.get(id)
        return None if session is None or session.claims is None else session.claims.get(request_id)

    async def update(self, id: str, before: Snapshot, after: Snapshot) -> None:
        """Merge a change of the lasting state of a session with the changes made elsewhere."""
        session = self._sessions.get(id)
        if session is not None:
            merged = merge(session.record.snapshot, before, after)
            session.record = replace(session.record, snapshot=merged)
            # Also to this replica, if the merged state differs from its own.
            self._stores.tell(session, News(id, snapshot=merged), self._number if merged is after else None)

    def watch(self, id: str, uri: str, *, is_watched: bool) -> None:
        """Set whether this replica reports changes of that resource to the client, or none does."""
        session = self._sessions.get(id)
        if session is None:
            return
        watched = session.watched or {}
        before = watched.pop(uri, self._number)
        bus = self._stores.buses.get(before)
        if bus is not None and before != self._number:
            bus.put(News(id, uri=uri))
        if is_watched:
            watched[uri] = self._number
        session.watched = watched or None

    async def adopt(self, id: str) -> Sequence[str]:
        """Return the resources that no replica reports to the client anymore: this one does from now on."""
        session = self._sessions.get(id)
        if session is None or session.watched is None:
            return ()
        uris = [uri for uri, at in session.watched.items() if at == _NOBODY]
        session.watched.update(dict.fromkeys(uris, self._number))
        return uris

    async def lapse(self, id: str, *, busy: bool) -> bool:
        """Note that this replica had no request for the session during the idle time. Return True if that ended the
        session."""
        session = self._sessions.get(id)
        if session is not None:
            session.lapsed = (*session.lapsed, self._number)
        # Each replica sees only its own requests: the session is idle if none of them had any.
        if session is None or set(session.holders) <= set(session.lapsed):
            self.delete(id)
            return True
        if not busy:
            self._stores.release(id, self._number)
        return False

    def release(self, id: str) -> None:
        """Give up the session on this replica; the session continues."""
        session = self._sessions.get(id)
        if session is not None and self._number in session.holders:
            self._stores.release(id, self._number)

    def delete(self, id: str) -> None:
        """End a session."""
        session = self._sessions.pop(id, None)
        if session is not None:
            self._stores.tell(session, News(id), self._number)

    async def settle(self) -> None:
        """Do nothing: calls take effect at once here."""


class MemoryBus:
    """The notices that one replica receives from the others."""

    def __init__(self, stores: Stores, number: int) -> None:
        self._stores = stores
        self._number = number
        self._inbox: deque[News] = deque()
        self._hand: Callable[[News], None] | None = None
        self._listener: Callable[[str, Change], None] = lambda _run, _change: None

    def receive(self, hand: Callable[[News], None]) -> None:
        """Call `hand` once with each notice for this replica, including those that arrived before."""
        self._hand = hand
        self._hand_on()

    def put(self, news: News) -> None:
        """Store `news` until this replica takes them, in a turn of the loop of its own."""
        self._inbox.append(news)
        # In a separate turn, as over Redis: the sender must not run inside the receiver.
        asyncio.get_running_loop().call_soon(self._hand_on)

    async def deliver(self, replica: int, news: News) -> bool:
        """Send a notice to another replica; return False if that replica is gone."""
        bus = self._stores.buses.get(replica)
        if bus is not None:
            bus.put(news)
        return bus is not None

    def publish(self, run: str, change: Change) -> None:
        """Notify all other replicas of a change."""
        for number, bus in self._stores.buses.items():
            if number != self._number:
                asyncio.get_running_loop().call_soon(bus.on_change, run, change)

    def listen(self, hand: Callable[[str, Change], None]) -> None:
        """Call `hand` with each change that another replica publishes."""
        self._listener = hand

    def on_change(self, run: str, change: Change) -> None:
        """Handle a change from another replica."""
        self._listener(run, change)

    def _hand_on(self) -> None:
        while self._inbox and self._hand is not None:
            self._hand(self._inbox.popleft())
