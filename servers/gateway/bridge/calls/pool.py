"""Sessions at a server, for clients without sessions of their own. Each call uses one exclusively.

    a call ──▶ an idle session of the same client ──▶ in use ──▶ idle ──▶ the next call, or closed after a while
           └─▶ a new session, if there is room ──────┘   └──▶ closed, if the call was stopped

Two requests count as coming from the same client if their owner, name and capabilities are equal. So the data of a
session on the server is never visible to another client.
"""

from functools import partial
from typing import Any

import anyio

from shared.concurrency import ExpiryQueue, Signal, TaskSet, wait_for_first
from shared.errors import McpError
from shared.protocol.session.client_events import Notified
from shared.protocol.session.descriptions import ClientIdentity
from shared.protocol.signing import digest
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.context import Context

from ..connection import OnServerMessage
from ..forwarding import identity_of, params_of, unopened_error
from ..tasks import UpstreamTasks
from ..upstream import Upstream
from .pending_input import PendingCalls
from .pooled_session import PooledSession
from .upstream_call import Exchange, UpstreamCall

IDLE_SECONDS = 60.0
"""Seconds that an unused session is kept open."""
MAX_SESSIONS = 32
"""Maximum number of sessions, each of which may be a process."""


class SessionPool:
    """The sessions at `upstream` for clients without sessions. End it with `close`."""

    def __init__(
        self,
        upstream: Upstream,
        tasks: TaskSet,
        session_messages: OnServerMessage,
        *,
        pending_calls: PendingCalls | None = None,
        max_sessions: int = MAX_SESSIONS,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        """The tasks of sessions run in `tasks`. `session_messages` is called with messages from the server that
        belong to no call. One client may have three quarters of the `max_sessions` sessions. An unused session is
        closed after `idle_seconds`."""
        self.pending_calls = PendingCalls() if pending_calls is None else pending_calls
        """The calls that wait for the next round of their client."""
        self.upstream_tasks = UpstreamTasks()
        """Which tools support tasks."""
        self._upstream = upstream
        self._tasks = tasks
        self._session_messages = session_messages
        self._max_sessions = max_sessions
        self._max_of_one_client = max(1, max_sessions * 3 // 4)
        self._sessions: set[PooledSession] = set()
        self._idle = ExpiryQueue(idle_seconds, _close)
        self._changed = Signal()
        self._waiting = 0

    def __len__(self) -> int:
        return len(self._sessions)

    async def call(self, context: Context[Any], params: Any) -> dict[str, Any]:
        """Return the server's result. A call without a free session waits for one, within its time limit.

        Raises InputRequired with the server's requests for input, RpcError if no session can be opened, and the other
        errors of `Client.exchange` and `PendingCalls`.
        """
        call = await self.pending_calls.resume(context)
        if call is None:
            identity, call_info = identity_of(context.peer), context.call
            request = (call_info.method.name, params_of(context, params))
            call = UpstreamCall(context, self._on_server_message)
            session = await self._get_session(context.owner, identity)
            session.assign(call)
            task_params, is_known = None, False
            try:
                name = getattr(params, "name", None)
                if (client := session.client) is not None:
                    task_params = await self.upstream_tasks.task_param(client, context, name)
                is_known = True
            finally:
                if not is_known:  # otherwise nothing would release the session
                    session.assign(None)
                    self._release(session)
            exchange = partial(
                session.exchange, request, call_info.token is not None, identity.log_level, task_params
            )
            self._tasks.start(self._make_call(session, call, exchange))
        return await self.pending_calls.run_round(context, call)

    def close(self) -> None:
        """Stop the pending calls, and close unused sessions."""
        self.pending_calls.close()
        for session in tuple(self._idle):
            self._idle.stop(session)
            _close(session)
        self._idle.close()

    async def _make_call(self, session: PooledSession, call: UpstreamCall, exchange: Exchange) -> None:
        has_ended = False
        try:
            has_ended = await call.run(exchange)
        finally:
            session.assign(None)
            # Messages of a stopped call may still arrive, and must not reach the next call: close the session.
            if has_ended:
                self._release(session)
            else:
                session.closing.set()

    def _on_server_message(self, message: Notified | Gap) -> None:
        if isinstance(message, Notified):
            self.pending_calls.page_visits.on_server_message(message)
        self._session_messages(message)

    # Sessions

    async def _get_session(self, owner: str, identity: ClientIdentity) -> PooledSession:
        """Return an open session for a call of `owner`. Raises RpcError with the reason if it can't open in time."""
        key = digest([owner, identity.info, identity.capabilities])
        session = self._take_idle(key)
        while session is None and (candidates := self._find_candidates(owner)):
            await self._wait_for_room(candidates)
            session = self._take_idle(key)
        if session is None:
            session = PooledSession(owner, key, identity, self._on_server_message)
            self._sessions.add(session)
            self._tasks.start(self._run_session(session))
        if session.settled.is_set():
            return session
        is_open = False
        try:
            with anyio.move_on_after(self._upstream.opening_seconds):
                await session.settled.wait()
                is_open = True
        finally:
            if not is_open:
                # This call no longer waits for it: once open, it is available for the next call of the same client.
                session.was_abandoned = True
                if session.client is not None:
                    self._release(session)
        if session.client is None:
            raise unopened_error(self._upstream.name, session.error)
        return session

    def _find_candidates(self, owner: str) -> list[PooledSession]:
        """Return the sessions one of which must be closed before `owner` may open another; empty if there is room."""
        sessions_of_owner = [session for session in self._sessions if session.owner == owner]
        # No single client may use more than three quarters of the sessions.
        if len(sessions_of_owner) >= self._max_of_one_client:
            return sessions_of_owner
        return list(self._sessions) if len(self._sessions) >= self._max_sessions else []

    async def _run_session(self, session: PooledSession) -> None:
        try:
            async with self._upstream.connect(session.options) as session.client:
                session.settled.set()
                if session.was_abandoned:
                    self._release(session)
                await wait_for_first(session.client.ended, session.closing.wait)
        except (McpError, OSError, ValueError) as error:
            session.error = error
        finally:
            session.settled.set()
            self._sessions.discard(session)
            self._idle.stop(session)
            self._changed.wake()

    def _release(self, session: PooledSession) -> None:
        """Make the session available for the next call of the same client, until it has been idle too long."""
        if session in self._sessions and session.is_usable:
            self._idle.start(session)
            self._changed.wake()

    def _take_idle(self, key: str) -> PooledSession | None:
        matching = (session for session in reversed(self._idle) if session.key == key and session.is_usable)
        idle: PooledSession | None = next(matching, None)
        if idle is not None:
            self._idle.stop(idle)
        return idle

    async def _wait_for_room(self, candidates: list[PooledSession]) -> None:
        """Wait until the sessions have changed. If fewer of the `candidates` are closing than calls are waiting,
        first close the one that has been idle longest, or, if none is idle, end the pending call whose client has
        been away too long."""
        self._waiting += 1
        seconds: float | None = None
        try:
            if sum(session.closing.is_set() for session in candidates) < self._waiting:
                oldest = next((session for session in self._idle if session in candidates), None)
                if oldest is None:
                    seconds = self._end_longest_absence(candidates)
                else:
                    self._idle.stop(oldest)
                    _close(oldest)
            with anyio.move_on_after(seconds):
                await self._changed.wait()
        finally:
            self._waiting -= 1

    def _end_longest_absence(self, candidates: list[PooledSession]) -> float:
        """End the pending call whose client has been away longest, if that is too long, and close its session. Return
        the seconds until the next check."""
        absences = {
            session: seconds
            for session in candidates
            if (seconds := self.pending_calls.seconds_away(session.call)) is not None
        }
        longest = max(absences, key=absences.__getitem__, default=None)
        limit = self.pending_calls.away_seconds
        if longest is not None and absences[longest] < limit:
            return limit - absences[longest]
        if longest is not None:
            self.pending_calls.abandon(longest.call)
            _close(longest)
        return limit


def _close(session: PooledSession) -> None:
    session.closing.set()
