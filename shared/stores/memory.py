"""Stores in the memory of one process: for a single server, or for several runs of a server that share them.

All replicas of one `Stores` live in one event loop. The sessions of a lost replica are stored for their idle time;
the replica that receives the next request of a session takes it over. No method ever suspends.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count

from ..concurrency import ExpiryQueue
from ..contracts import Notice, ReplayLimits, ReplicaWatcher, SessionRecord, TaskLimits
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
_NO_REPLICA = -1


class _Session:
    """A session. `holders` are the replicas that hold it, and `lapsed` those that have seen no request for the idle
    time. `claims` is the replica that serves each request, and `watched` the one that reports each resource."""

    __slots__ = ("claims", "holders", "lapsed", "record", "watched")

    def __init__(self, record: SessionRecord, holders: tuple[int, ...]) -> None:
        self.record = record
        self.holders = holders
        self.lapsed: tuple[int, ...] = ()
        self.claims: dict[RequestId, int] | None = None
        self.watched: dict[str, int] | None = None


class Stores:
    """All state that the replicas in one event loop share."""

    def __init__(self) -> None:
        self.sessions: dict[str, _Session] = {}
        self.buses: dict[int, MemoryBus] = {}
        self.watchers: dict[int, list[ReplicaWatcher]] = {}
        self.orphans = ExpiryQueue(0, self._end_orphan)
        """The sessions that no replica has open."""
        self.secret = os.urandom(32)
        self.limiter = MemoryLimiter()
        self.blobs = MemoryBlobs()
        self._log: MemoryLog | None = None
        self._tasks: MemoryTasks | None = None
        self._numbers = count()

    @asynccontextmanager
    async def join(self) -> AsyncIterator["MemoryReplica"]:
        """Make the caller a replica for the duration of the block. At its end, other replicas take over its work."""
        replica = self.replica()
        try:
            yield replica
        finally:
            number = replica.number
            del self.buses[number]
            for id_, session in self.sessions.items():
                if number in session.holders:
                    self.release(id_, number)
                claims = (session.claims or {}).items()
                session.claims = {request_id: holder for request_id, holder in claims if holder != number} or None
            self.watchers.pop(number, None)
            for watcher in [watcher_ for watchers in self.watchers.values() for watcher_ in watchers]:
                watcher.on_departure()

    def replica(self) -> "MemoryReplica":
        """Return a new replica. If it is not created by `join`, it never leaves."""
        number = next(self._numbers)
        self.buses[number] = MemoryBus(self, number)
        return MemoryReplica(self, number)

    def log(self, limits: ReplayLimits) -> MemoryLog:
        """Return the log of event streams. The limits of the first call apply."""
        self._log = self._log or MemoryLog(limits)
        return self._log

    def tasks(self, limits: TaskLimits) -> MemoryTasks:
        """Return the tasks of all replicas. The limits of the first call apply."""
        if self._tasks is None:
            self._tasks = MemoryTasks(limits)
        return self._tasks

    def notify(self, session: _Session, notice: Notice, sender: int | None) -> None:
        """Send `notice` to the replicas that have the session open, except to `sender`."""
        for holder in session.holders:
            if holder != sender:
                self.buses[holder].put(notice)

    def release(self, id: str, number: int) -> None:
        """Record that replica `number` no longer has the session open."""
        session = self.sessions[id]
        session.holders = tuple(holder for holder in session.holders if holder != number)
        if session.watched is not None:
            # The client remains subscribed, so another replica has to take over the resource.
            session.watched = {
                uri: _NO_REPLICA if holder == number else holder for uri, holder in session.watched.items()
            }
        if not session.holders:
            # All sessions of one server have the same idle time, so one queue is enough.
            self.orphans.seconds = session.record.idle_seconds
            self.orphans.start(id)

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
        self.disconnect_reason = None
        self._stores = stores

    def watch(self, watcher: ReplicaWatcher) -> None:
        """Notify `watcher` when another replica leaves. This replica itself is never lost."""
        self._stores.watchers.setdefault(self.number, []).append(watcher)

    def log(self, limits: ReplayLimits) -> MemoryLog:
        """Return the log of event streams. The limits of the first replica apply."""
        return self._stores.log(limits)

    def tasks(self, limits: TaskLimits) -> MemoryTasks:
        """Return the tasks of all replicas. The limits of the first replica apply."""
        return self._stores.tasks(limits)


class MemorySessions:
    """A `SessionStore` in memory, as one replica uses it."""

    def __init__(self, stores: Stores, number: int) -> None:
        self._stores = stores
        self._sessions = stores.sessions
        self._number = number
        self._only_holder = (number,)

    async def create(self, record: SessionRecord) -> None:
        """Add a session, which this replica has open."""
        self._sessions[record.id] = _Session(record, self._only_holder)

    async def enter(
        self, id: str, principal: Principal | None, request_ids: Sequence[RequestId] = ()
    ) -> tuple[SessionRecord, bool] | None:
        """Open the session `id` on this replica, for the requests `request_ids` of `principal`. Return None if the
        principal has no such session; else its record, and True if this replica may serve these requests, or False if
        one of them is already being served."""
        session = self._sessions.get(id)
        # The session of another principal is treated as missing, so that a guessed or stolen id is useless.
        if session is None or _key(session.record.principal) != _key(principal):
            return None
        # The session is in use. The idle time of each replica starts again.
        session.lapsed = ()
        if self._number not in session.holders:
            session.holders = (*session.holders, self._number) if session.holders else self._only_holder
            self._stores.orphans.stop(id)
        claims, is_free = session.claims, True
        if claims is None:
            session.claims = dict.fromkeys(request_ids, self._number) if request_ids else None
        # One replica serves all requests of a batch, so it claims either all of their ids or none.
        elif is_free := claims.keys().isdisjoint(request_ids):
            claims.update(dict.fromkeys(request_ids, self._number))
        return session.record, is_free

    def leave(self, id: str, request_ids: Sequence[RequestId]) -> None:
        """Free `request_ids`: the requests were answered or abandoned."""
        session = self._sessions.get(id)
        if session is None or session.claims is None:
            return
        for request_id in request_ids:
            session.claims.pop(request_id, None)
        session.claims = session.claims or None  # an emptied dict keeps its memory

    async def serving_replica(self, id: str, request_id: RequestId) -> int | None:
        """Return the number of the replica that serves the request `request_id`; None if no replica does."""
        session = self._sessions.get(id)
        return None if session is None or session.claims is None else session.claims.get(request_id)

    async def update(self, id: str, before: Snapshot, after: Snapshot) -> None:
        """Store that a session's state has changed from `before` to `after`, merged with changes by others."""
        session = self._sessions.get(id)
        if session is not None:
            merged = merge(session.record.snapshot, before, after)
            session.record = replace(session.record, snapshot=merged)
            # If the merged state differs from `after`, this replica needs it too.
            self._stores.notify(session, Notice(id, snapshot=merged), self._number if merged is after else None)

    def watch(self, id: str, uri: str, *, is_watched: bool) -> None:
        """Make this replica the one that reports changes of the resource to the client, or stop reporting them."""
        session = self._sessions.get(id)
        if session is None:
            return
        watched = session.watched or {}
        previous_replica = watched.pop(uri, self._number)
        bus = self._stores.buses.get(previous_replica)
        if bus is not None and previous_replica != self._number:
            bus.put(Notice(id, uri=uri))
        if is_watched:
            watched[uri] = self._number
        session.watched = watched or None

    async def adopt(self, id: str) -> Sequence[str]:
        """Make this replica report the resources that no replica reports any more; return their URIs."""
        session = self._sessions.get(id)
        if session is None or session.watched is None:
            return ()
        uris = [uri for uri, holder in session.watched.items() if holder == _NO_REPLICA]
        session.watched.update(dict.fromkeys(uris, self._number))
        return uris

    async def lapse(self, id: str, *, is_busy: bool) -> bool:
        """Record that this replica received no request for the session during the idle time. Return True if that
        ended the session, because no other replica received one. `is_busy` is true if this replica must keep the
        session open."""
        session = self._sessions.get(id)
        if session is not None:
            session.lapsed = (*session.lapsed, self._number)
        # Each replica sees only the requests that it receives, so the session is idle if all replicas say so.
        if session is None or set(session.holders) <= set(session.lapsed):
            self.delete(id)
            return True
        if not is_busy:
            self._stores.release(id, self._number)
        return False

    def release(self, id: str) -> None:
        """Close the session on this replica only; the session continues."""
        session = self._sessions.get(id)
        if session is not None and self._number in session.holders:
            self._stores.release(id, self._number)

    def delete(self, id: str) -> None:
        """End a session."""
        session = self._sessions.pop(id, None)
        if session is not None:
            self._stores.notify(session, Notice(id), self._number)

    async def settle(self) -> None:
        """Do nothing: calls take effect at once here."""


class MemoryBus:
    """A `Bus` in memory: passes notices and changes between the replicas."""

    def __init__(self, stores: Stores, number: int) -> None:
        self._stores = stores
        self._number = number
        self._inbox: deque[Notice] = deque()
        self._handler: Callable[[Notice], None] | None = None
        self._listener: Callable[[str, Change], None] = lambda _run, _change: None

    def receive(self, handler: Callable[[Notice], None]) -> None:
        """Call `handler` with each notice for this replica, first with those that arrived before this call."""
        self._handler = handler
        self._drain()

    def put(self, notice: Notice) -> None:
        """Queue `notice` for this replica, which handles it in a later turn of the event loop."""
        self._inbox.append(notice)
        # In a later turn, as with Redis, so that the receiver's handler does not run inside the sender's call.
        asyncio.get_running_loop().call_soon(self._drain)

    async def deliver(self, replica: int, notice: Notice) -> bool:
        """Send `notice` to another replica; return False if that replica no longer exists."""
        bus = self._stores.buses.get(replica)
        if bus is not None:
            bus.put(notice)
        return bus is not None

    def publish(self, run_id: str, change: Change) -> None:
        """Send `change`, in the run with the id `run_id`, to all other replicas."""
        for number, bus in self._stores.buses.items():
            if number != self._number:
                asyncio.get_running_loop().call_soon(bus.on_change, run_id, change)

    def listen(self, handler: Callable[[str, Change], None]) -> None:
        """Call `handler` with each change that another replica publishes, and with the id of its run."""
        self._listener = handler

    def on_change(self, run_id: str, change: Change) -> None:
        """Handle a change from another replica."""
        self._listener(run_id, change)

    def _drain(self) -> None:
        while self._inbox and self._handler is not None:
            self._handler(self._inbox.popleft())
