"""The single HTTP endpoint of both eras (2025-11-25 and 2026-07-28, Transports, Streamable HTTP).

    POST    2026-07-28, and dialects: one request, served on its own. Earlier versions: a message for a
            session, or the `initialize` that opens one.
    GET     the session's own stream of unrequested messages, or the rest of any stream from which the client
            has seen an event. With an upgrade to WebSocket: a stream of messages in both directions.
    DELETE  the end of a session.

The checks run from cheap to expensive, before any work is started: headers, body, era, session, message. Requests of
HTTP+SSE, the transport before this one, are passed on to `legacy_sse`. This module determines the kind of a request.
`StatelessRequests`, `SessionRequests` or `LegacySse` then serves it, and returns the refusal to send, or None if it
has already answered.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from anyio.abc import TaskGroup

from ....errors import LimitExceeded
from ....protocol.http.rules import (
    Refusal,
    check_post,
    dialect_form,
    is_stateless,
    is_upgrade,
    limit_exceeded,
    may_be_dialect,
    refuse,
)
from ....protocol.identity import Principal
from ....protocol.wire.codec import Codec
from ....protocol.wire.jsonrpc import Malformed, Notification
from ....server.dispatch.portions import Memory
from ....server.run import Run
from ..legacy_sse.endpoint import LegacySse
from ..limits.endpoint_limits import EndpointLimits
from ..limits.rate_limits import ClientQuotas
from ..streamable.bodies import Bodies
from ..streamable.reply import ClientGone, HttpExchange
from ..streamable.session import HttpSession
from ..streamable.session_requests import SessionRequests
from ..streamable.sessions import Sessions
from ..streamable.stateless import StatelessRequests

if TYPE_CHECKING:
    from ..websocket.sessions import WebSocketSessions  # loaded with the first of them

OnRefused = Callable[[Refusal, Principal | None], None]
OnServed = Callable[[str, str, Principal | None], None]
"""Receives the method and the path of an HTTP request, and its principal."""

_STANDARD = Codec(line_end=b"")
"""The codec for bodies in the standard form. It has no state, so all requests share it."""
_STARTING = refuse(503, "the server is starting; try again in a moment", Retry_After="2")
_NO_WEBSOCKETS = refuse(501, "WebSockets need the extra 'http', which is not installed here")
_STOPPING = refuse(503, "the server is stopping", Connection="close", Retry_After="1")


class Endpoint:
    """The HTTP endpoint of one server. It serves from `start` on; after `fail`, `start` may be called again."""

    def __init__(self, limits: EndpointLimits, path: str) -> None:
        self._running: Run[Any]
        self._limits = limits
        self._path = path
        self._session_requests: SessionRequests | None = None
        self._legacy: LegacySse | None = None
        self._sockets: WebSocketSessions | None = None
        self._all_sessions: list[Sessions | LegacySse | WebSocketSessions] = []
        self._stateless = StatelessRequests(limits, self.count_refusal)
        self._bodies = Bodies(limits.body_bytes)
        self._memory: Memory | None = None
        self._refuse_all_with: Refusal | None = _STARTING
        """The refusal sent to every request; None while the endpoint serves."""
        self.quotas: ClientQuotas | None = None
        """The limits of one principal; set before the endpoint starts."""
        self.on_refused: OnRefused | None = None
        """Called with the refusal of a request, and with its principal if known."""
        self.on_served: OnServed | None = None
        """Called for each stream that has ended, and for each session that its client has ended."""
        self.refused: Counter[int] = Counter()
        """The number of requests refused before they reached the protocol, by HTTP status."""

    def share_memory(self, memory: Memory, bodies: Bodies) -> None:
        """Use the memory for calls, and for bodies, of several endpoints, from the next start on."""
        self._memory, self._bodies = memory, bodies

    def start(self, running: Run[Any], tasks: TaskGroup) -> None:
        """Serve `running`, with sessions in `tasks`."""
        self._running = running
        if self._memory is not None:
            for part in running.parts.all:
                part.calls.use_memory(self._memory)
        self._stateless.start(running)
        running.hooks.quota, running.hooks.on_refused = self.quotas, self._count_limited
        if self.quotas is not None and running.replication.replica is not None:
            self.quotas.limiter = running.replication.replica.limiter
        sessions = Sessions(running, tasks, self._limits.sessions, self.quotas)
        self._session_requests = SessionRequests(sessions, self.quotas, self._limits.keep_alive_seconds)
        self._legacy = LegacySse(running, tasks, sessions, self._bodies, self._limits, self._path)
        self._all_sessions = [sessions, self._legacy]
        self._sockets = None
        self._refuse_all_with = None

    def stop(self) -> None:
        """Stop accepting requests; pending ones are finished, and streams are ended cleanly."""
        self._refuse_all_with = _STOPPING
        if self._session_requests is not None:
            self._running.stop()
        self._stateless.end()
        for sessions in self._all_sessions:
            sessions.end_all(orderly=True)

    def fail(self, refusal: Refusal) -> None:
        """Stop accepting requests because the server has failed; pending ones are cancelled. May be called again with
        a more precise reason."""
        self._refuse_all_with = refusal
        self._stateless.cancel()
        for sessions in self._all_sessions:
            sessions.end_all(orderly=False)
        # Each session ends with the task in which it runs.
        self._session_requests, self._all_sessions = None, []

    @property
    def sessions(self) -> int:
        """The number of open sessions."""
        return sum(map(len, self._all_sessions))

    @property
    def http_sessions(self) -> Iterable[HttpSession]:
        """The open sessions that have an id."""
        return () if self._session_requests is None else self._session_requests.sessions

    @property
    def max_sessions(self) -> int:
        """The maximum number of open sessions."""
        return self._limits.sessions.sessions

    @property
    def streams(self) -> int:
        """The number of requests and streams being served."""
        return len(self._stateless) + sum(sessions.streams for sessions in self._all_sessions)

    async def serve(self, method: str, http: HttpExchange) -> None:
        """Serve one request that has passed the guards."""
        try:
            refusal = await self._handle(method, http)
        except ClientGone:
            refusal = None
        if refusal is not None:
            self.count_refusal(refusal, http.principal)
            await http.reply.refuse(refusal)
        elif method != "POST" and self.on_served is not None:  # the messages of a POST are recorded by its session
            self.on_served(method, http.path, http.principal)

    def count_refusal(self, refusal: Refusal, principal: Principal | None = None) -> None:
        """Count a refused request, from `principal` if known."""
        self.refused[refusal.status] += 1
        if self.on_refused is not None:
            self.on_refused(refusal, principal)

    def _count_limited(self, error: LimitExceeded) -> None:
        """Count a refusal by a client's quota, which the client's session reports to the audit log."""
        self.refused[limit_exceeded(error).status] += 1

    async def _handle(self, method: str, http: HttpExchange) -> Refusal | None:
        sessions = self._session_requests
        if self._refuse_all_with is not None or sessions is None or self._legacy is None:
            return self._refuse_all_with
        if http.path != self._path:
            return await self._legacy.handle(method, http)
        if method == "POST":  # often only the body shows the era
            return await self._post(http, sessions)
        # Checked before the era, because peers of both eras may use WebSockets.
        if method == "GET" and is_upgrade(http.headers):
            if self._sockets is None:
                if find_spec("websockets") is None:
                    return _NO_WEBSOCKETS
                from ..websocket.sessions import WebSocketSessions

                self._sockets = WebSocketSessions(
                    self._running, sessions.sessions, self._bodies, self._limits, self.quotas
                )
                self._sockets.on_limited = self._count_limited
                self._all_sessions.append(self._sockets)
            return await self._sockets.upgrade(http)
        if is_stateless(http.headers):  # 2026-07-28, Streamable HTTP: neither GET nor DELETE
            return refuse(405, "this protocol version supports only POST", Allow="POST")
        match method:
            case "GET":
                return await sessions.get(http)
            case "DELETE":
                return await sessions.delete(http)
            case _:
                return refuse(405, "this method is not offered", Allow="POST, GET, DELETE")

    async def _post(self, http: HttpExchange, sessions: SessionRequests) -> Refusal | None:
        refusal = check_post(http.headers)
        if refusal is not None:
            return refusal
        has_dialect = self._limits.dialects and may_be_dialect(http.headers)
        codec = Codec(line_end=b"", dialects=True) if has_dialect else _STANDARD
        message = await self._bodies.read(http, codec.decode_body_steps)
        if isinstance(message, Refusal):
            return message
        if self._refuse_all_with is not None or sessions is not self._session_requests:
            # The server has failed while the body was read: the client has no session at the reopened server.
            return self._refuse_all_with or _STARTING
        # A notification does not show its dialect, but a standard client would explicitly accept both media types.
        is_noted = has_dialect and isinstance(message, Notification) and dialect_form(http.headers) is not None
        if codec.dialect is not None or is_noted:
            return await self._stateless.post_dialect(http, message, codec)
        if isinstance(message, Malformed):
            return Refusal(400, message.failure)
        if is_stateless(http.headers, message):
            return await self._stateless.post(http, message, codec)
        return await sessions.post(http, message)
