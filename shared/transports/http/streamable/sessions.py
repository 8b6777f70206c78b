"""The sessions of one endpoint: they are opened, found by their id and their principal, and end.

Who has a session is in a store, which other replicas may share. A session is here from its first request on that came
here: it was opened here, or is made of its record. What is told of it, or asked for, goes to those who have it too.

A session that is being opened is found by nobody, until its client has been told its id. One that ends in the middle
of something takes a task, which lives in that of the endpoint; all others end at once. Ten thousand tasks at once
would be more memory than the sessions were.
"""

import logging
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from ....contracts import News, Post, SessionRecord
from ....protocol.http.rules import Refusal, refuse
from ....protocol.identity import Principal
from ....protocol.session.events import cancelled_id
from ....protocol.session.handshake import NEW
from ....protocol.session.questions import asker
from ....protocol.wire.jsonrpc import Batch, Failure, Message, Request, RequestId, Response
from ....server.run import Run
from ....stores.memory import Stores
from ....telemetry.footprint import give_back
from ..limits.client_shares import Shares
from ..limits.endpoint_limits import Keeping, SessionLimits
from ..limits.rate_limits import Allowances
from .session import HttpSession

log = logging.getLogger("shared.transports.http")

BURST = 100
"""Sessions that must have ended before their memory is given back; fewer are not worth the time."""
QUIET_SECONDS = 1.0
_SUBSCRIBING = ("resources/subscribe", "resources/unsubscribe")
_UNKNOWN = refuse(404, "there is no such session; initialize a new one")
OUT_OF_REACH = refuse(503, "what the replicas share is out of reach; try again in a moment", Retry_After="2")
_STOPPING = refuse(503, "the server is stopping", Connection="close", Retry_After="1")


class Sessions:
    """The sessions of one endpoint."""

    def __init__(
        self, running: Run[Any], tasks: TaskGroup, limits: SessionLimits, allowances: Allowances | None = None
    ) -> None:
        self._running = running
        self._tasks = tasks
        self._limits = limits
        self.is_alone = running.replication.replica is None
        """Whether nobody else can have any of them."""
        replica = running.replication.replica or Stores().replica()
        self.replica = replica
        self._store, self._bus = replica.sessions, replica.bus
        self._keeping = Keeping(limits, replica, self._lapse)
        self.shares = Shares(limits.sessions, allowances)
        """Who has how many of them, and of those that are found elsewhere."""
        self._give_way = self._make_way  # one object, that thousands of sessions refer to
        self._by_id: dict[str, HttpSession] = {}
        self._opening: set[HttpSession] = set()
        self._lapsed: list[HttpSession] = []
        self._ended = 0
        self._entering: Counter[str] = Counter()
        self._gone: set[str] = set()
        """Of those that the store is being asked for, which have ended meanwhile."""
        self._is_ending = False
        self._is_leaving = False
        """Whether what comes now has to go to the other replicas."""
        self.on_post: Callable[[str, Post], None] = _ignore
        """Who takes what other replicas pass on for the streams of HTTP+SSE that are here, by the id of a session."""
        self._bus.receive(self._hear)
        replica.watch(self)

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[HttpSession]:
        return iter(self._by_id.values())

    @property
    def streams(self) -> int:
        """How many streams are being read in all of them."""
        return sum(session.streams for session in (*self._opening, *self._by_id.values()))

    def open(self, principal: Principal | None, client: str) -> HttpSession | Refusal:
        """A session that has no id yet as far as anybody knows; why there is none, where there are too many and none
        has to make room for it."""
        refusal = self.shares.make_room(client)
        if refusal is not None:
            return refusal
        # 256 random bits: an id that can be guessed would be somebody else's session (2025-11-25, Session
        # Management).
        record = SessionRecord(secrets.token_urlsafe(32), principal, client, self._limits.idle_seconds, NEW)
        session = self._add(record)
        self._opening.add(session)
        return session

    async def confirm(self, session: HttpSession) -> None:
        """The session is initialized: from now on it is found by its id."""
        if session in self._opening:
            self._opening.remove(session)
            self._by_id[session.id] = session
            await self._store.create(session.record())

    async def enter(
        self, id: str, principal: Principal | None, ids: Sequence[RequestId] = ()
    ) -> tuple[HttpSession, bool] | Refusal:
        """The session of that id, and whether the requests `ids` are served here from now on, none of which is being
        served. Somebody else's is as unknown as one that never was."""
        try:
            # Alone nothing can change while the store in memory answers, so nothing has to be noted.
            entered = await (self._store.enter if self.is_alone else self._ask)(id, principal, ids)
        except OSError:
            return OUT_OF_REACH
        if entered is None:
            return _STOPPING if self._is_leaving else _UNKNOWN
        record, is_free = entered
        session = self._by_id.get(id)
        if session is None:
            refusal = self.shares.make_room(record.client)
            if refusal is not None:
                # The store has us down as one who has it, and the ids as being served: neither is so.
                self._store.leave(id, ids if is_free else ())
                self._store.release(id)
                return refusal
            session = self._by_id[id] = self._add(record)
        self.shares.use(session)
        return session, is_free

    async def _ask(
        self, id: str, principal: Principal | None, ids: Sequence[RequestId]
    ) -> tuple[SessionRecord, bool] | None:
        """What the store says of a session; None where meanwhile it has ended, or this replica stops."""
        self._entering[id] += 1
        try:
            entered = await self._store.enter(id, principal, ids)
            if entered is not None and self._is_leaving:
                self._store.leave(id, ids if entered[1] else ())
            return None if self._is_leaving or id in self._gone else entered
        finally:
            self._entering[id] -= 1
            if not self._entering[id]:
                del self._entering[id]
                self._gone.discard(id)

    def leave(self, session: HttpSession, ids: Sequence[RequestId]) -> None:
        """The requests `ids` are not served after all."""
        self._store.leave(session.id, ids)

    async def share(self, session: HttpSession, message: Message) -> None:
        """Has other replicas know what `message`, which was taken in, has changed, and has it reach those that it is
        for: who asked, who serves what is cancelled."""
        changed = session.learn()
        if changed is not None:
            with ExitStack() as undoing:
                # Where the store is out of reach the others know what they knew, and the next message tells them.
                undoing.callback(session.unlearn, changed[0])
                await self._store.update(session.id, *changed)
                undoing.pop_all()
        for one in _single(message):
            await self._pass_on(session, one)

    def take_over(self, session: HttpSession, message: Message) -> None:
        """Has no other replica tell of a resource that the client has subscribed to here, or has done with, by
        `message`, which was answered."""
        for one in _single(message):
            if isinstance(one, Request) and one.method in _SUBSCRIBING:
                uri = one.params.get("uri")
                is_watched = one.method == _SUBSCRIBING[0]
                # Only what has come true: the request may have been refused, or undone meanwhile.
                if isinstance(uri, str) and session.subscribes(uri) is is_watched:
                    self._store.watch(session.id, uri, is_watched=is_watched)

    async def _pass_on(self, session: HttpSession, message: Message) -> None:
        """Has a message reach the replica that it is for."""
        if isinstance(message, Response | Failure):
            # Our ids of questions have the number of the replica in them, so an answer finds who asked without
            # asking the store.
            owner = asker(message.id)
        elif (id_ := cancelled_id(message)) is not None:
            owner = await self._store.owner(session.id, id_)
        else:
            return
        if owner is not None and owner != self.replica.number:
            await self._bus.deliver(owner, News(session.id, message))

    def end(self, session: HttpSession) -> None:
        """Ends one session at once, everywhere: its id is unknown from now on, what is under way is cancelled."""
        self._store.delete(session.id)
        self._note_end(session.id)
        self._end(session)

    async def settle(self) -> None:
        """Returns when no replica serves what was ended here. Raises Unavailable where that is not known."""
        await self._store.settle()

    def end_all(self, *, orderly: bool) -> None:
        """Ends every session, or where there are other replicas what is here of it; lets each finish what is under
        way, if `orderly`, else cancels it."""
        self._is_ending, self._is_leaving = True, not self.is_alone
        for session in (*self._opening, *self._by_id.values()):
            self._tasks.start_soon(partial(self._finish, session, orderly=orderly, goes_on=not self.is_alone))

    def _add(self, record: SessionRecord) -> HttpSession:
        session = HttpSession(self._running, record, self._keeping)
        self.shares.add(session, self._give_way)
        return session

    def _make_way(self, session: HttpSession) -> None:
        if self.is_alone or session in self._opening:
            self.end(session)
        else:
            self._forget(session)
            self._tasks.start_soon(self._let_go, session)

    async def _let_go(self, session: HttpSession) -> None:
        """Has no more to do here with a session that has made room; it ends where no other replica has it."""
        is_back = session.id in self._by_id
        goes_on = is_back or not await self._store.lapse(session.id, busy=False)
        await self._finish(session, orderly=False, goes_on=goes_on)

    def _hear(self, news: News) -> None:
        """Another replica has told something of a session that is here too."""
        if news.post is not None:
            self.on_post(news.session, news.post)
            return
        # News of nothing but a session says that it has ended.
        if news == News(news.session):
            self._note_end(news.session)
        session = self._by_id.get(news.session)
        if session is None:
            return
        if news.message is not None:
            session.take(news.message)
        elif news.snapshot is not None:
            session.restore(news.snapshot)
        elif news.uri is not None:
            self._tasks.start_soon(self._unsubscribe, session, news.uri)
        else:
            self._end(session)

    async def _unsubscribe(self, session: HttpSession, uri: str) -> None:
        """The client has subscribed at another replica, or has done with a resource."""
        with logged():
            await session.changes.release(session.unsubscribe(uri), session.client)

    # What becomes of the replicas

    def lost(self) -> None:
        """The others have taken over what is here of all sessions: it ends."""
        for session in (*self._opening, *self._by_id.values()):
            self._end(session, goes_on=True)

    def returned(self) -> None:
        """This replica is one of the others again, and has no sessions yet."""

    def left(self) -> None:
        """Another replica is gone: what it told clients of that listen here, this one has to."""
        for session in self._by_id.values():
            self.adopt(session)

    def adopt(self, session: HttpSession) -> None:
        """Has the client of `session` told of what it has subscribed to at replicas that are gone, if it listens
        here."""
        if session.listens and not self.is_alone:
            self._tasks.start_soon(self._adopt, session)

    async def _adopt(self, session: HttpSession) -> None:
        try:
            session.adopt(await self._store.adopt(session.id))
        except OSError:
            log.warning("subscriptions of a replica that is gone could not be taken over yet")

    def _note_end(self, id: str) -> None:
        if id in self._entering:
            self._gone.add(id)

    def _lapse(self, session: HttpSession) -> None:
        """Nobody has used the session here for too long."""
        self._lapsed.append(session)
        if len(self._lapsed) == 1:
            self._tasks.start_soon(self._end_lapsed)

    async def _end_lapsed(self) -> None:
        while self._lapsed:
            try:
                await self._end_unused(self._lapsed[0])
            except OSError as error:
                # All of them wait for the same store: to try each would be as many failures.
                waiting, self._lapsed = self._lapsed, []
                log.warning("%d sessions can't be given up that nobody uses; again later: %s", len(waiting), error)
                for session in waiting:
                    session.rest()
            else:
                del self._lapsed[0]

    async def _end_unused(self, session: HttpSession) -> None:
        if session.streams or session in self._keeping.idle:
            return  # it was used meanwhile
        # The store is asked now, and the session may be used until it answers.
        uses = session.uses
        if session.id in self._entering:
            session.rest()
        elif await self._store.lapse(session.id, busy=session.is_busy):
            self._end(session)
        elif session.uses != uses:
            await self._store.enter(session.id, session.principal)  # it was used here while it was given up
        elif session.is_busy:
            session.rest()
        else:
            self._end(session, goes_on=True)

    def _end(self, session: HttpSession, *, goes_on: bool = False) -> None:
        """Ends what is here of a session."""
        if not self._forget(session):
            return
        if session.leave(goes_on=goes_on):
            self.count_ended()
        else:
            self._tasks.start_soon(partial(self._finish, session, orderly=False, goes_on=goes_on))

    def _forget(self, session: HttpSession) -> bool:
        known = session in self._opening or self._by_id.get(session.id) is session
        # Twice is nothing: a session ends by what comes first, a DELETE, its time, or news from another replica.
        if known:
            self.shares.remove(session)
            self._opening.discard(session)
            self._by_id.pop(session.id, None)
        return known

    async def _finish(self, session: HttpSession, *, orderly: bool, goes_on: bool = False) -> None:
        try:
            with logged():
                await session.finish(orderly=orderly, goes_on=goes_on)
        finally:
            self._forget(session)
            if not goes_on:
                self._store.delete(session.id)
            self.count_ended()

    def count_ended(self) -> None:
        """A session has ended, here or elsewhere: the memory of many is given back."""
        self._ended += 1
        if self._ended == BURST and not self._is_ending:  # else the tasks may have ended by now
            self._tasks.start_soon(self._give_back)

    async def _give_back(self) -> None:
        """Gives the memory of many sessions back when no more have ended for a while, so at the end of a burst."""
        before = 0
        while before != self._ended:
            before = self._ended
            await anyio.sleep(QUIET_SECONDS)
        self._ended = 0
        give_back()


def _ignore(_id: str, _post: Post) -> None:
    """There are no streams of HTTP+SSE."""


@contextmanager
def logged(failed: Callable[[], None] | None = None) -> Iterator[None]:
    """Logs what fails inside, which is something of one session: where the server's own code fails, it takes nobody
    with it. `failed` is called then."""
    try:
        yield
    except Exception:
        log.exception("a session failed")
        if failed is not None:
            failed()


def _single(message: Message) -> Sequence[Message]:
    return message.messages if isinstance(message, Batch) else (message,)
