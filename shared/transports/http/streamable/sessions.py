"""The sessions of one endpoint: their opening, their lookup by id and principal, and their end.

A store, which other replicas may share, records the owner of each session. A session is present on this replica once
it has had a request here: it was opened here, or was restored from its record. Changes to a session are sent to all
replicas on which it is present.

A session that is being opened can't be found until its id has been sent to the client. A session that ends in the
middle of a call needs a task, in the task group of the endpoint, to wait for the end of the call. All other sessions
end without a task: ten thousand tasks at once would need more memory than the sessions did.
"""

import logging
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from ....contracts import Notice, Post, SessionRecord
from ....protocol.http.rules import Refusal, refuse
from ....protocol.identity import Principal
from ....protocol.session.events import cancelled_id
from ....protocol.session.handshake import NEW
from ....protocol.session.questions import find_asker
from ....protocol.wire.jsonrpc import Failure, Message, Request, RequestId, Response, messages_of, normalize_id
from ....server.run import Run
from ....stores.memory import Stores
from ....telemetry.footprint import return_memory
from ..limits.client_shares import Shares
from ..limits.endpoint_limits import SessionLimits, SharedSessionState
from ..limits.rate_limits import ClientQuotas
from .session import HttpSession

log = logging.getLogger("shared.transports.http")

MEMORY_RETURN_SESSIONS = 100
"""The number of ended sessions from which memory is returned to the system; for fewer it is not worth the time."""
QUIET_SECONDS = 1.0
"""Seconds in which no session may end before memory is returned."""
_SUBSCRIPTION_METHODS = ("resources/subscribe", "resources/unsubscribe")
_UNKNOWN = refuse(404, "there is no such session; initialize a new one")
STORE_UNREACHABLE = refuse(
    503, "the store shared by the replicas can't be reached; try again in a moment", Retry_After="2"
)
_STOPPING = refuse(503, "the server is stopping", Connection="close", Retry_After="1")


class Sessions:
    """The sessions of one endpoint."""

    def __init__(
        self, running: Run[Any], tasks: TaskGroup, limits: SessionLimits, quotas: ClientQuotas | None = None
    ) -> None:
        self._running = running
        self._tasks = tasks
        self._limits = limits
        self.is_alone = running.replication.replica is None
        """True if no other replica can hold any of the sessions."""
        replica = running.replication.replica or Stores().replica()
        self.replica = replica
        self._store, self._bus = replica.sessions, replica.bus
        self._shared_state = SharedSessionState(limits, replica, self._on_unused)
        self.quotas = quotas
        """The limits of one principal."""
        self.shares = Shares(limits.sessions, quotas)
        """The shares of clients in the sessions that are present on this replica."""
        self._on_evict = self._evict  # one object for thousands of sessions
        self._by_id: dict[str, HttpSession] = {}
        self._opening: set[HttpSession] = set()
        self._unused: list[HttpSession] = []
        self._ended_count = 0
        self._entering: Counter[str] = Counter()
        self._ended_while_entering: set[str] = set()
        """Ids of sessions that ended while they were being looked up in the store."""
        self._is_ending = False
        """True if all sessions are being ended."""
        self._is_leaving = False
        """True if this replica is stopping and clients must send new requests to the other replicas."""
        self.on_post: Callable[[str, Post], None] = _ignore
        """Handles messages from other replicas for the local streams of HTTP+SSE, by session id."""
        self._bus.receive(self._on_notice)
        replica.watch(self)

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[HttpSession]:
        return iter(self._by_id.values())

    @property
    def streams(self) -> int:
        """The number of streams being read in all sessions."""
        return sum(session.open_streams for session in (*self._opening, *self._by_id.values()))

    def open(self, principal: Principal | None, client: str) -> HttpSession | Refusal:
        """Open a session, which can't be found by its id before `confirm`. Returns a refusal if there are too many
        sessions and none can be ended to make room."""
        refusal = self.shares.make_room(client)
        if refusal is not None:
            return refusal
        # 256 random bits: an id that can be guessed would give access to someone else's session (2025-11-25, Session
        # Management).
        record = SessionRecord(secrets.token_urlsafe(32), principal, client, self._limits.idle_seconds, NEW)
        session = self._add(record)
        self._opening.add(session)
        return session

    async def confirm(self, session: HttpSession) -> None:
        """Record that the session is initialized: from now on it is found by its id."""
        if session in self._opening:
            self._opening.remove(session)
            self._by_id[session.id] = session
            await self._store.create(session.record())

    async def enter(
        self, id: str, principal: Principal | None, ids: Sequence[RequestId] = ()
    ) -> tuple[HttpSession, bool] | Refusal:
        """Return the session with that id, and True if this replica now serves the requests `ids`; False if any of
        them is already being served, on any replica. Another principal's session is treated as unknown."""
        try:
            # Without other replicas the store is in memory, and no session can end while it answers, so ends need not
            # be recorded.
            entry = await (self._store.enter if self.is_alone else self._enter_store)(id, principal, ids)
        except OSError:
            return STORE_UNREACHABLE
        if entry is None:
            return _STOPPING if self._is_leaving else _UNKNOWN
        record, ids_are_free = entry
        session = self._by_id.get(id)
        if session is None:
            refusal = self.shares.make_room(record.client)
            if refusal is not None:
                # The store has recorded that the session is present here and that its requests are served here. Undo
                # both.
                self._store.leave(id, ids if ids_are_free else ())
                self._store.release(id)
                return refusal
            session = self._by_id[id] = self._add(record)
        self.shares.use(session)
        return session, ids_are_free

    async def _enter_store(
        self, id: str, principal: Principal | None, ids: Sequence[RequestId]
    ) -> tuple[SessionRecord, bool] | None:
        """Return the record of a session from the store, and whether the requests `ids` are now claimed; None if the
        session is unknown or has ended in the meantime, or if this replica is stopping."""
        self._entering[id] += 1
        try:
            entry = await self._store.enter(id, principal, ids)
            if entry is not None and self._is_leaving:
                self._store.leave(id, ids if entry[1] else ())
            return None if self._is_leaving or id in self._ended_while_entering else entry
        finally:
            self._entering[id] -= 1
            if not self._entering[id]:
                del self._entering[id]
                self._ended_while_entering.discard(id)

    def leave(self, session: HttpSession, ids: Sequence[RequestId]) -> None:
        """Release the requests `ids`, which were claimed by `enter` but are not served."""
        self._store.leave(session.id, ids)

    async def share(self, session: HttpSession, message: Message) -> None:
        """Inform other replicas of changes to the session, and forward the parts of `message` that concern them: an
        answer goes to the replica that sent the request, a cancellation to the replica that serves the cancelled
        request."""
        await session.publish()
        for part in messages_of(message):
            replica = None
            if isinstance(part, Response | Failure):
                # The ids of requests to the client contain the number of the sending replica, so the store is not
                # needed.
                replica = find_asker(normalize_id(part).id)
            elif (id_ := cancelled_id(part)) is not None:
                replica = await self._store.serving_replica(session.id, id_)
            if replica is not None and replica != self.replica.number:
                await self._bus.deliver(replica, Notice(session.id, part))

    def take_over(self, session: HttpSession, message: Message) -> None:
        """Stop all other replicas from reporting the changes of a resource, after the client has subscribed to it
        here, or has unsubscribed from it, with `message`."""
        for part in messages_of(message):
            if isinstance(part, Request) and part.method in _SUBSCRIPTION_METHODS:
                uri = part.params.get("uri")
                is_watched = part.method == _SUBSCRIPTION_METHODS[0]
                # Only if the request took effect: it may have been refused, or undone by a later request.
                if isinstance(uri, str) and session.is_subscribed(uri) is is_watched:
                    self._store.watch(session.id, uri, is_watched=is_watched)

    def end(self, session: HttpSession) -> None:
        """End a session at once, on all replicas: its id is unknown from now on, and pending calls are cancelled."""
        self._store.delete(session.id)
        self._note_end(session.id)
        self._end(session)

    async def settle(self) -> None:
        """Wait until no replica serves sessions that were ended here. Raises Unavailable if that is unknown."""
        await self._store.settle()

    def end_all(self, *, orderly: bool) -> None:
        """End every session, or if there are other replicas, its part on this replica. Pending calls are finished if
        `orderly`, otherwise cancelled."""
        self._is_ending, self._is_leaving = True, not self.is_alone
        for session in (*self._opening, *self._by_id.values()):
            self._tasks.start_soon(
                partial(self._finish, session, orderly=orderly, continues_elsewhere=not self.is_alone)
            )

    def _add(self, record: SessionRecord) -> HttpSession:
        session = HttpSession(self._running, record, self._shared_state)
        self.shares.add(session, self._on_evict)
        return session

    def _evict(self, session: HttpSession) -> None:
        if self.is_alone or session in self._opening:
            self.end(session)
        else:
            self._forget(session)
            self._tasks.start_soon(self._release, session)

    async def _release(self, session: HttpSession) -> None:
        """End the part on this replica of a session that was evicted; the session itself ends if it is present on no
        other replica."""
        continues_elsewhere = session.id in self._by_id
        if not continues_elsewhere:
            try:
                continues_elsewhere = not await self._store.lapse(session.id, is_busy=False)
            except OSError:
                # The store still has the session, so its client can continue it, here or at another replica.
                continues_elsewhere = True
                self._store.release(session.id)
        await self._finish(session, orderly=False, continues_elsewhere=continues_elsewhere)

    def _on_notice(self, notice: Notice) -> None:
        """Handle a message about a session from another replica."""
        if notice.post is not None:
            self.on_post(notice.session, notice.post)
            return
        # A notice that contains nothing but the session means that the session has ended.
        if notice == Notice(notice.session):
            self._note_end(notice.session)
        session = self._by_id.get(notice.session)
        if session is None:
            return
        if notice.message is not None:
            session.process_forwarded(notice.message)
        elif notice.snapshot is not None:
            session.restore(notice.snapshot)
        elif notice.uri is not None:
            self._tasks.start_soon(self._unsubscribe, session, notice.uri)
        else:
            self._end(session)

    async def _unsubscribe(self, session: HttpSession, uri: str) -> None:
        """Stop reporting a resource: the client has subscribed to it, or unsubscribed from it, on another replica."""
        with log_errors():
            await session.subscription_registry.unsubscribe(session.unsubscribe(uri), session.client)

    # Notifications of changes among the replicas

    def on_lost(self) -> None:
        """End the part of all sessions on this replica: it was separated from the others, which have taken over the
        sessions."""
        for session in (*self._opening, *self._by_id.values()):
            self._end(session, continues_elsewhere=True)

    def on_return(self) -> None:
        """Do nothing: a replica that has just rejoined the others has no sessions."""

    def on_departure(self) -> None:
        """Take over the subscriptions of a lost replica, for clients that listen here."""
        for session in self._by_id.values():
            self.adopt(session)

    def adopt(self, session: HttpSession) -> None:
        """Take over the subscriptions of `session` on lost replicas, if its client listens on this replica."""
        if session.is_listening and not self.is_alone:
            self._tasks.start_soon(self._adopt, session)

    async def _adopt(self, session: HttpSession) -> None:
        try:
            session.adopt(await self._store.adopt(session.id))
        except OSError:
            log.warning("the subscriptions of a lost replica could not be taken over yet")

    def _note_end(self, id: str) -> None:
        if id in self._entering:
            self._ended_while_entering.add(id)

    def _on_unused(self, session: HttpSession) -> None:
        """Handle a session that has been unused on this replica for too long."""
        self._unused.append(session)
        if len(self._unused) == 1:
            self._tasks.start_soon(self._end_all_unused)

    async def _end_all_unused(self) -> None:
        while self._unused:
            try:
                await self._end_unused(self._unused[0])
            except OSError as error:
                # All sessions need the same store, which can't be reached: the others are not tried.
                unreleased, self._unused = self._unused, []
                log.warning("%d unused sessions can't be released; trying again later: %s", len(unreleased), error)
                for session in unreleased:
                    session.mark_idle()
            else:
                del self._unused[0]

    async def _end_unused(self, session: HttpSession) -> None:
        if session.open_streams or session in self._shared_state.idle:
            return  # it has been used in the meantime
        # The session may be used again before the store has answered, which increases this number.
        request_count = session.request_count
        if session.id in self._entering:
            session.mark_idle()
        elif await self._store.lapse(session.id, is_busy=session.is_busy):
            self._end(session)
        elif session.request_count != request_count:
            # It was used during the wait, so it must be recorded as present again.
            await self._store.enter(session.id, session.principal)
        elif session.is_busy:
            session.mark_idle()
        else:
            self._end(session, continues_elsewhere=True)

    def _end(self, session: HttpSession, *, continues_elsewhere: bool = False) -> None:
        """End the part of a session on this replica."""
        if not self._forget(session):
            return
        if session.try_end(continues_elsewhere=continues_elsewhere):
            self.count_ended()
        else:
            self._tasks.start_soon(
                partial(self._finish, session, orderly=False, continues_elsewhere=continues_elsewhere)
            )

    def _forget(self, session: HttpSession) -> bool:
        is_present = session in self._opening or self._by_id.get(session.id) is session
        # Called again, this does nothing: a session may be ended by a DELETE, by its time limit and by another
        # replica, and the first of these counts.
        if is_present:
            self.shares.remove(session)
            self._opening.discard(session)
            self._by_id.pop(session.id, None)
        return is_present

    async def _finish(self, session: HttpSession, *, orderly: bool, continues_elsewhere: bool = False) -> None:
        try:
            with log_errors():
                await session.finish(orderly=orderly, continues_elsewhere=continues_elsewhere)
        finally:
            self._forget(session)
            if not continues_elsewhere:
                self._store.delete(session.id)
            self.count_ended()

    def count_ended(self) -> None:
        """Count the end of a session of any transport. After many ends, memory is returned to the system."""
        self._ended_count += 1
        # Once all sessions are being ended, the task group may be closed.
        if self._ended_count == MEMORY_RETURN_SESSIONS and not self._is_ending:
            self._tasks.start_soon(self._release_memory)

    async def _release_memory(self) -> None:
        """Wait until no session has ended for `QUIET_SECONDS`, and return the memory of ended ones to the system."""
        previous = 0
        while previous != self._ended_count:
            previous = self._ended_count
            await anyio.sleep(QUIET_SECONDS)
        self._ended_count = 0
        return_memory()


def _ignore(_id: str, _post: Post) -> None:
    """Ignore a message for a stream of HTTP+SSE: there are no such streams."""


@contextmanager
def log_errors(on_failure: Callable[[], None] | None = None) -> Iterator[None]:
    """Log errors in the block, which concerns one session, so that a failure of the server's own code affects no
    other session. After an error, `on_failure` is called."""
    try:
        yield
    except Exception:
        log.exception("a session failed")
        if on_failure is not None:
            on_failure()
