"""Sessions at a server that has them, for clients that have none: each call has one for itself as long as it lasts.

    a call ──▶ an idle session of the same client ──▶ leased ──▶ idle ──▶ the next call, or closed after a while
           └─▶ a new one, where there is room ───────┘   └──▶ closed, where the call was stopped

Two requests are of the same client where they have the same owner, and say the same of name and capabilities: so what
a server keeps in a session is never seen by anybody else.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, cast

import anyio

from ...client.client import Client
from ...client.errors import Unreached
from ...client.options import ClientOptions
from ...client.relay import Caller
from ...errors import InternalError, McpError, MethodNotFound, PeerError, RpcError
from ...kit.expiry import ExpiryQueue
from ...kit.tasks import Crew, Signal, first_of
from ...protocol.identity import LOG_LEVELS
from ...protocol.session.client import ClientIdentity
from ...protocol.session.client_events import Asked, InputWanted, Notified
from ...protocol.signing import digest
from ...protocol.types.client import LogLevel
from ...protocol.wire.jsonrpc import Gap
from ...server.context import Context
from .base import Heard, reason_of
from .forwarding import identity_of, params_of
from .parked import OF_CALLS, CallOver, Parking, UpstreamCall
from .upstream import Upstream

__all__ = ["IDLE_SECONDS", "SESSIONS_MOST", "Pool"]

IDLE_SECONDS = 60.0
"""How long a session is kept that no call has."""
SESSIONS_MOST = 32
"""Sessions at a time, each of which may be a process."""
ROOTS_SECONDS = 5.0
"""How long a server waits for roots during a call whose client can't be asked, before it gets none."""


class _Session:
    """A session with the server, leased to one call or to none: the relay of what the server says in it."""

    def __init__(self, key: str, identity: ClientIdentity, apart: Heard) -> None:
        self.key = key
        self.client: Client | None = None
        """Its client, while it is open."""
        self.error: Exception | None = None
        """Why it could not be opened."""
        self.settled = anyio.Event()
        """Set when it is open, or will never be."""
        self.closing = anyio.Event()
        """Set when nobody wants it any more."""
        self.is_left = False
        """Whether the call is gone that it is opened for."""
        # A server that has ended is started again by the next call.
        self.options = ClientOptions(
            mode="handshake",
            info=identity.info,
            capabilities=identity.capabilities,
            log_level=identity.log_level,
            relay=self,
            restart=True,
        )
        self._apart = apart
        self._level = identity.log_level
        self._call: UpstreamCall | None = None
        self._moved = Signal()

    @property
    def is_usable(self) -> bool:
        """Whether calls can be made in it."""
        return self.client is not None and self.client.connected

    def lease(self, call: UpstreamCall | None) -> None:
        """It is that call's from now on."""
        self._call = call
        self._moved.wake()

    async def exchange(
        self, method: str, params: dict[str, Any], reports: bool, level: str | None, call: UpstreamCall
    ) -> dict[str, Any]:
        """The result of one request, whose client `reports` progress and wants messages of that `level`. Raises like
        `Client.exchange`."""
        if self.client is None:
            raise Unreached("the session was closed")
        await self._log_at(level, self.client)
        result = await self.client.exchange(method, params, Caller(call, reports), timeout=None)
        if isinstance(result, InputWanted):
            raise InternalError("the server answers with questions, which its era does not have")
        return result

    async def _log_at(self, level: str | None, client: Client) -> None:
        """Has the server log what a call wants to hear; one that refuses is used without."""
        if level in LOG_LEVELS and level != self._level and client.server.can("logging"):
            self._level = level
            with suppress(PeerError):
                await client.set_log_level(cast("LogLevel", level))

    # What the server says

    async def answer(self, asked: Asked) -> dict[str, Any]:
        """What the client of its call answers. Where there is none, or none that can be asked, roots wait for the
        next one: servers ask for them when a session begins. Raises RpcError for what nobody answers."""
        if asked.method != "roots/list":
            if self._call is None:
                raise MethodNotFound(f"no call is under way whose client could be asked: {asked.method[:100]}")
            return await self._call.answer(asked)
        while True:
            call = self._call
            if call is not None and call.asks:
                with suppress(CallOver):
                    return await call.answer(asked)
            seconds = None if call is None or call.asks else ROOTS_SECONDS
            with anyio.move_on_after(seconds) as patience:
                while self._call is call:
                    await self._moved.wait()
            if patience.cancelled_caught:
                raise MethodNotFound("the client that called can't be asked for its roots now")

    def heard(self, notice: Notified | Gap) -> None:
        """Tells its call, or the others what concerns none."""
        if isinstance(notice, Gap):
            return
        if self._call is not None:
            self._call.heard(notice)
        elif notice.method not in OF_CALLS:
            self._apart(notice)


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
        call. There are so many sessions at `most`, and none is kept longer than `idle_seconds` that no call has."""
        self.parking = Parking() if parking is None else parking
        """The calls whose clients are away."""
        self._upstream = upstream
        self._tasks = tasks
        self._apart = apart
        self._most = most
        self._sessions: set[_Session] = set()
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
            session = await self._leased(context.owner, identity)
            call = UpstreamCall(context, self._heard)
            session.lease(call)
            sent, reports = params_of(context, params), asked.token is not None
            exchange = partial(session.exchange, asked.method.name, sent, reports, identity.log_level)
            self._tasks.start(self._make(session, call, exchange))
        return await self.parking.round(context, call)

    def close(self) -> None:
        """Stops the calls whose clients are away, and closes what is idle."""
        self.parking.close()
        for session in tuple(self._idle):
            self._idle.stop(session)
            _close(session)
        self._idle.close()

    async def _make(
        self, session: _Session, call: UpstreamCall, exchange: Callable[[UpstreamCall], Awaitable[dict[str, Any]]]
    ) -> None:
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

    async def _leased(self, owner: str, identity: ClientIdentity) -> _Session:
        key = digest([owner, identity.info, identity.capabilities])
        session = self._idle_one(key)
        while session is None and len(self._sessions) >= self._most:
            await self._room()
            session = self._idle_one(key)
        if session is None:
            session = _Session(key, identity, self._heard)
            self._sessions.add(session)
            self._tasks.start(self._live(session))
        if not session.settled.is_set():
            await self._opened(session)
        return session

    async def _opened(self, session: _Session) -> None:
        """Waits for it. Raises RpcError where it can't be opened in time, with the reason."""
        name, is_there = self._upstream.name, False
        try:
            with anyio.move_on_after(self._upstream.opening_seconds):
                await session.settled.wait()
                is_there = True
        finally:
            if not is_there:
                self._leave(session)
        if session.client is None:
            reason = "it did not answer in time" if session.error is None else reason_of(session.error)
            raise RpcError(f"the server {name} is not available: {reason}")

    def _leave(self, session: _Session) -> None:
        """Nobody waits for it any more: once it is open it is there for the next call of the same client."""
        session.is_left = True
        if session.client is not None:
            self._release(session)

    async def _live(self, session: _Session) -> None:
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

    def _release(self, session: _Session) -> None:
        """It is there for the next call of the same client, for a while."""
        if session in self._sessions and session.is_usable:
            self._idle.start(session)
            self._moved.wake()

    def _idle_one(self, key: str) -> _Session | None:
        found: _Session | None = next((one for one in reversed(self._idle) if one.key == key and one.is_usable), None)
        if found is not None:
            self._idle.stop(found)
        return found

    async def _room(self) -> None:
        """Closes the session that was idle longest, where not enough are closing, and waits until something moves."""
        self._waiting += 1
        try:
            closing = sum(one.closing.is_set() for one in self._sessions)
            if self._idle and closing < self._waiting:
                oldest = next(iter(self._idle))
                self._idle.stop(oldest)
                _close(oldest)
            await self._moved.wait()
        finally:
            self._waiting -= 1


def _close(session: _Session) -> None:
    session.closing.set()
