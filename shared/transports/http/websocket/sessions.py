"""The WebSockets of one endpoint. Each counts towards the limit of sessions, and counts as idle until its peer has
sent a message."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from operator import methodcaller
from typing import Any

from ....concurrency import ExpiryQueue
from ....errors import LimitExceeded
from ....protocol.http.rules import Refusal
from ....protocol.wire.codec import Codec
from ....protocol.wire.jsonrpc import Message
from ....server.run import Run
from ..limits.endpoint_limits import EndpointLimits
from ..limits.rate_limits import ClientQuotas, refuse_message
from ..streamable.bodies import Bodies
from ..streamable.reply import HttpExchange
from ..streamable.sessions import Sessions
from .connection import WebSocket
from .session import WebSocketSession, negotiate

Decode = Callable[[bytes], Awaitable[Sequence[Message]]]
Encode = Callable[[Message], bytes]
OnLimited = Callable[[LimitExceeded], None]


def _ignore(_error: LimitExceeded) -> None:
    """Ignore the refusal of a message by a quota."""


class WebSocketSessions:
    """The open WebSockets. They last as long as the requests that opened them."""

    def __init__(
        self,
        running: Run[Any],
        sessions: Sessions,
        bodies: Bodies,
        limits: EndpointLimits,
        quotas: ClientQuotas | None = None,
    ) -> None:
        """The WebSockets count towards `sessions`; `bodies` decodes messages; `quotas` limits the messages of each
        client."""
        self.on_limited: OnLimited = _ignore
        """Called for each message that a quota refuses."""
        self._quotas = quotas
        self._running = running
        self._sessions = sessions
        self._bodies = bodies
        self._limits = limits
        self._ping_timers = ExpiryQueue(limits.keep_alive_seconds, methodcaller("check_alive"))
        self._open: set[WebSocketSession] = set()

    def __len__(self) -> int:
        return len(self._open)

    streams = property(__len__)
    """The number of open streams; each is a session."""

    def end_all(self, *, orderly: bool) -> None:
        """End all WebSockets. Pending calls get `drain_seconds` if `orderly`, and are otherwise cancelled at once."""
        for session in self._open:
            session.finish(self._running.calls.limits.drain_seconds) if orderly else session.fail()

    async def upgrade(self, http: HttpExchange) -> Refusal | None:
        """Serve a peer of either era on the connection of this request, until that ends. Return the refusal if the
        request can't be served; else None."""
        negotiated = negotiate(http.headers, self._limits.body_bytes)
        if isinstance(negotiated, Refusal):
            return negotiated
        refusal = self._sessions.shares.make_room(http.client)
        if refusal is not None:
            return refusal
        protocol, answer = negotiated
        socket = WebSocket(protocol, self._ping_timers, self._limits.body_seconds)
        codec = Codec(line_end=b"", dialects=self._limits.dialects)
        session = WebSocketSession(socket, http.client, *self._make_codecs(http, codec), self._use)
        self._open.add(session)
        self._sessions.shares.add(session, self._evict)
        close_if_idle = asyncio.get_running_loop().call_later(
            self._limits.sessions.idle_seconds, session.close_if_idle
        )
        try:
            return await session.run(self._running, http, answer)
        finally:
            close_if_idle.cancel()
            self._forget(session)
            self._sessions.count_ended()

    def _make_codecs(self, http: HttpExchange, codec: Codec) -> tuple[Decode, Encode]:
        """Return a function that decodes the texts of a client, and one that encodes messages to it. Both apply the
        client's quotas."""
        client, quotas = http.client, self._quotas
        decode = partial(self._bodies.decode, client, codec.feed_body_steps)
        if quotas is None:
            return decode, codec.encode

        async def decode_counted(text: bytes) -> Sequence[Message]:
            quotas.spend(client, len(text))
            return [await self._admit(client, quotas, message) for message in await decode(text)]

        def encode_counted(message: Message) -> bytes:
            text = codec.encode(message)
            quotas.spend(client, len(text))
            return text

        return decode_counted, encode_counted

    async def _admit(self, client: str, quotas: ClientQuotas, message: Message) -> Message:
        error = await quotas.check_message(client, message)
        if error is None:
            return message
        self.on_limited(error)
        return refuse_message(message, error)

    def _use(self, session: WebSocketSession) -> None:
        if session in self._open:  # an evicted session may have received a message before it was closed
            self._sessions.shares.use(session)

    def _evict(self, session: WebSocketSession) -> None:
        self._forget(session)
        session.evict()

    def _forget(self, session: WebSocketSession) -> None:
        if session in self._open:
            self._open.remove(session)
            self._sessions.shares.remove(session)
