"""Sessions at a server that has them, for clients that have none: each call has one for itself as long as it lasts.

    a call ──▶ an idle session of the same client ──▶ leased ──▶ idle ──▶ the next call, or closed after a while
           └─▶ a new one, where there is room ───────┘   └──▶ closed, where the call was stopped

Two requests are of the same client where they have the same owner, and say the same of name and capabilities: so what
a server keeps in a session is never seen by anybody else.
"""

from functools import partial
from typing import Any

import anyio

from shared.concurrency import Crew, ExpiryQueue, Signal, first_of
from shared.errors import McpError
from shared.protocol.session.client import ClientIdentity
from shared.protocol.session.client_events import Notified
from shared.protocol.signing import digest
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.context import Context

from ..base import Heard
from ..forwarding import identity_of, params_of, unopened_error
from ..tasks import UpstreamTasks
from ..upstream import Upstream
from .borrowed_session import LeasedSession
from .pending_input import Parking
from .upstream_call import Exchange, UpstreamCall

IDLE_SECONDS = 60.0
"""How long a session is kept that no call has."""
SESSIONS_MOST = 32
"""Sessions at a time, each of which may be a process."""


class Pool:
    """The sessions that clients without any have at `upstream`. It ends by `close`."""

    def __init__(
        self,
        upstream: Upstream,
        tasks: Crew,
        apart: Heard,
        *,
        parking: Parking | None = None,
        most: int = SESSIONS_MOST,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        """What lives as long as a session is among `tasks`; `apart` takes what a server tells that belongs to no
        call. There are so many sessions at `most`, three quarters of them of one client, and none is kept longer
        than `idle_seconds` that no call has."""
        self.parking = Parking() if parking is None else parking
        """The calls whose clients are away."""
        self.upstream_tasks = UpstreamTasks()
        """Which tools are to be asked for tasks."""
        self._upstream = upstream
        self._tasks = tasks
        self._apart = apart
        self._most = most
        self._most_of_one = max(1, most * 3 // 4)
        self._sessions: set[LeasedSession] = set()
        self._idle = ExpiryQueue(idle_seconds, _close)
        self._moved = Signal()
        self._waiting = 0

    def __len__(self) -> int:
        return len(self._sessions)

    async def call(self, context: Context[Any], params: Any) -> dict[str, Any]:
        """The server's result, or the next of its questions. A call that finds no room waits as long as it may.

        Raises like `Client.exchange`, what opening a session raises, and what `Parking` does.
        """
        call = await self.parking.take_up(context)
        if call is None:
            identity, asked = identity_of(context.peer), context.call
            request = (asked.method.name, params_of(context, params))
            call = UpstreamCall(context, self._heard)
            session = await self._leased(context.owner, identity)
            session.lease(call)
            wanted, is_known = None, False
            try:
                name = getattr(params, "name", None)
                if (client := session.client) is not None:
                    wanted = await self.upstream_tasks.wanted(client, context, name)
                is_known = True
            finally:
                if not is_known:  # nobody else gives the session back
                    session.lease(None)
                    self._release(session)
            exchange = partial(session.exchange, request, asked.token is not None, identity.log_level, wanted)
            self._tasks.start(self._make(session, call, exchange))
        return await self.parking.round(context, call)

    def close(self) -> None:
        """Stops the calls whose clients are away, and closes what is idle."""
        self.parking.close()
        for session in tuple(self._idle):
            self._idle.stop(session)
            _close(session)
        self._idle.close()

    async def _make(self, session: LeasedSession, call: UpstreamCall, exchange: Exchange) -> None:
        ended = False
        try:
            ended = await call.run(exchange)
        finally:
            session.lease(None)
            # What still comes of a call that was stopped must reach no other one.
            if ended:
                self._release(session)
            else:
                session.closing.set()

    def _heard(self, notice: Notified | Gap) -> None:
        if isinstance(notice, Notified):
            self.parking.visiting.heard(notice)
        self._apart(notice)

    # Sessions

    async def _leased(self, owner: str, identity: ClientIdentity) -> LeasedSession:
        key = digest([owner, identity.info, identity.capabilities])
        session = self._idle_one(key)
        while session is None and (among := self._crowded(owner)):
            await self._room(among)
            session = self._idle_one(key)
        if session is None:
            session = LeasedSession(owner, key, identity, self._heard)
            self._sessions.add(session)
            self._tasks.start(self._live(session))
        if not session.settled.is_set():
            await self._opened(session)
        return session

    def _crowded(self, owner: str) -> list[LeasedSession]:
        """The sessions of which one has to end before `owner` may have another one; none where there is room. Where
        there are several clients, nobody has all of them."""
        own = [one for one in self._sessions if one.owner == owner]
        if len(own) >= self._most_of_one:
            return own
        return list(self._sessions) if len(self._sessions) >= self._most else []

    async def _opened(self, session: LeasedSession) -> None:
        """Waits for it. Raises RpcError where it can't be opened in time, with the reason."""
        is_there = False
        try:
            with anyio.move_on_after(self._upstream.opening_seconds):
                await session.settled.wait()
                is_there = True
        finally:
            if not is_there:
                # Nobody waits for it any more: once it is open it is there for the next call of the same client.
                session.is_left = True
                if session.client is not None:
                    self._release(session)
        if session.client is None:
            raise unopened_error(self._upstream.name, session.error)

    async def _live(self, session: LeasedSession) -> None:
        try:
            async with self._upstream.connect(session.options) as session.client:
                session.settled.set()
                if session.is_left:
                    self._release(session)
                await first_of(session.client.ended, session.closing.wait)
        except (McpError, OSError, ValueError) as error:
            session.error = error
        finally:
            session.client = None
            session.settled.set()
            self._sessions.discard(session)
            self._idle.stop(session)
            self._moved.wake()

    def _release(self, session: LeasedSession) -> None:
        """It is there for the next call of the same client, for a while."""
        if session in self._sessions and session.is_usable:
            self._idle.start(session)
            self._moved.wake()

    def _idle_one(self, key: str) -> LeasedSession | None:
        fitting = (one for one in reversed(self._idle) if one.key == key and one.is_usable)
        found: LeasedSession | None = next(fitting, None)
        if found is not None:
            self._idle.stop(found)
        return found

    async def _room(self, among: list[LeasedSession]) -> None:
        """Closes the session `among` these that was idle longest, where not enough are closing, or else the one whose
        client is away for too long, and waits until something moves."""
        self._waiting += 1
        seconds: float | None = None
        try:
            if sum(one.closing.is_set() for one in among) < self._waiting:
                oldest = next((one for one in self._idle if one in among), None)
                if oldest is None:
                    seconds = self._end_longest_away(among)
                else:
                    self._idle.stop(oldest)
                    _close(oldest)
            with anyio.move_on_after(seconds):
                await self._moved.wait()
        finally:
            self._waiting -= 1

    def _end_longest_away(self, among: list[LeasedSession]) -> float:
        """Ends the call `among` these whose client is away longest, where that is too long; in how many seconds it is
        time to look again."""
        away = {one: seconds for one in among if (seconds := self.parking.away(one.call)) is not None}
        longest = max(away, key=away.__getitem__, default=None)
        patience = self.parking.away_seconds
        if longest is not None and away[longest] < patience:
            return patience - away[longest]
        if longest is not None:
            self.parking.give_up(longest.call)
            _close(longest)
        return patience


def _close(session: LeasedSession) -> None:
    session.closing.set()
