"""The WebSockets of one endpoint. Each counts as a session where these are limited, and is idle until its peer has
said a word."""

import asyncio
from functools import partial
from operator import methodcaller
from typing import Any

from ...kit.expiry import ExpiryQueue
from ...protocol.http.rules import Refusal
from ...protocol.wire.codec import Codec
from ...server.running import Running
from .bodies import Bodies
from .limits import EndpointLimits
from .reply import Http
from .sessions import TOO_MANY, Sessions
from .websocket import WebSocket
from .websocket_session import WebSocketSession, negotiate

__all__ = ["WebSocketSessions"]


class WebSocketSessions:
    """Those that are open. They last as long as the requests that opened them."""

    def __init__(self, running: Running[Any], sessions: Sessions, bodies: Bodies, limits: EndpointLimits) -> None:
        """They count among `sessions`; `bodies` decodes messages."""
        self._running = running
        self._sessions = sessions
        self._bodies = bodies
        self._limits = limits
        self._pauses = ExpiryQueue(limits.keep_alive_seconds, methodcaller("look"))
        self._open: set[WebSocketSession] = set()

    def __len__(self) -> int:
        return len(self._open)

    streams = property(__len__)
    """How many streams are being read: a session is one."""

    def end_all(self, *, orderly: bool) -> None:
        """Ends all of them; lets each finish what is under way, if `orderly`, else cancels it."""
        for session in self._open:
            session.finish(self._running.limits.drain_seconds) if orderly else session.fail()

    async def upgrade(self, http: Http) -> Refusal | None:
        """Serves a peer of either era on the connection of this request."""
        negotiated = negotiate(http.headers, self._limits.body_bytes)
        if isinstance(negotiated, Refusal):
            return negotiated
        if not self._sessions.shares.make_room(http.client):
            return TOO_MANY
        frames, answer = negotiated
        socket = WebSocket(frames, self._pauses, self._limits.body_seconds)
        codec = Codec(line_end=b"", dialects=self._limits.dialects)
        decode = partial(self._bodies.decode, http.client, codec.feed_body)
        session = WebSocketSession(socket, http.client, decode, codec.encode, self._use)
        self._open.add(session)
        self._sessions.shares.add(session, self._give_way)
        lapse = asyncio.get_running_loop().call_later(self._limits.sessions.idle_seconds, session.lapse)
        try:
            return await session.run(self._running, http, answer)
        finally:
            lapse.cancel()
            self._forget(session)
            self._sessions.count_ended()

    def _use(self, session: WebSocketSession) -> None:
        if session in self._open:  # one that gave way may have been sent something before
            self._sessions.shares.use(session)

    def _give_way(self, session: WebSocketSession) -> None:
        self._forget(session)
        session.make_room()

    def _forget(self, session: WebSocketSession) -> None:
        if session in self._open:
            self._open.remove(session)
            self._sessions.shares.remove(session)
