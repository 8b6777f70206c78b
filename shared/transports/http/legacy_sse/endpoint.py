"""HTTP+SSE, the transport of 2024-11-05, next to the current endpoint: at /sse and /messages if that is at /mcp.

    GET /sse          opens a stream. Its first event, `endpoint`, has the URL for POSTs. Nobody can guess this URL,
                      and it is relative, because a proxy may serve both under another path. All messages from the
                      server are `message` events, including answers.
    POST /messages    one message from the client. It is answered with 202, and with an event on the stream.

An open stream is the session: when it ends, for any reason, its calls and subscriptions are cancelled, and its URL
for POSTs becomes unknown. No client can resume the stream, so its events are not stored, and have no ids.

A session stays on the replica with its stream, and its id contains the number of that replica. Another replica
forwards a POST unchanged, because only the replica with the stream knows the owner of the session, and how to decode
the message. So the forwarding replica answers 202 to every POST that it could forward, and errors are reported on the
stream.

`initialize` negotiates any version with a handshake, not only 2024-11-05: the official SDKs negotiate over this
transport as over every other, and a host whose URL ends in /sse would otherwise lose the later features. 2026-07-28
has no such transport: a request in that version is answered with an error on the stream. A client that first tries
2026-07-28 then continues with `initialize`.

A stream counts towards the limit of sessions, and counts as idle until its client has initialized it. So a client
that opens thousands of streams and never posts holds only its share of sessions, and only for as long as a session
may be idle. (2024-11-05, Transports, HTTP with SSE.)
"""

from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qs

from anyio.abc import TaskGroup

from ....contracts import Notice, Post
from ....protocol.http.rules import (
    VERSION_HEADER,
    Refusal,
    check_accept,
    check_content,
    check_version_header,
    limit_exceeded,
    refuse,
    request_ids,
)
from ....protocol.identity import Principal
from ....protocol.wire.codec import Codec
from ....protocol.wire.jsonrpc import Message
from ....server.run import Run
from ....steps import Steps
from ..limits.endpoint_limits import EndpointLimits
from ..streamable.bodies import Bodies
from ..streamable.reply import HttpExchange
from ..streamable.session import MAY_HAVE_RUN
from ..streamable.sessions import Sessions, log_errors
from .session import ID, MESSAGES, LegacySession, replica_of

_UNKNOWN = refuse(404, "there is no such session; open a new stream")


def sse_paths(path: str) -> tuple[str, str]:
    """Return the paths for streams and for POSTs that belong to an endpoint at `path`."""
    base = path.removesuffix("/mcp").rstrip("/")
    return f"{base}/sse", f"{base}/{MESSAGES}"


class LegacySse:
    """The streams of one server, and the messages that are posted to them."""

    def __init__(
        self,
        running: Run[Any],
        tasks: TaskGroup,
        sessions: Sessions,
        bodies: Bodies,
        limits: EndpointLimits,
        path: str,
    ) -> None:
        """The streams count towards `sessions`; `bodies` reads bodies of messages; `path` is that of the endpoint."""
        self._running = running
        self._tasks = tasks
        self._sessions = sessions
        self._bodies = bodies
        self._limits = limits
        self._quotas = sessions.quotas
        self._sse, _ = sse_paths(path)
        self._by_id: dict[str, LegacySession] = {}
        sessions.on_post = self._receive_forwarded
        sessions.replica.watch(self)

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def streams(self) -> int:
        """The number of open streams; each is a session."""
        return len(self._by_id)

    def end_all(self, *, orderly: bool) -> None:
        """End every stream; pending calls are finished if `orderly`, otherwise cancelled."""
        for session in self._by_id.values():
            if orderly:
                self._tasks.start_soon(session.finish, self._running.calls.limits.drain_seconds)
            else:
                session.cancel()

    async def handle(self, method: str, http: HttpExchange) -> Refusal | None:
        """Serve one request. Returns the refusal to send, or None if the request has already been answered."""
        is_stream = http.path == self._sse
        allowed_method = "GET" if is_stream else "POST"
        if method != allowed_method:
            return refuse(405, "this method is not offered", Allow=allowed_method)
        return await (self._open(http) if is_stream else self._post(http))

    async def _open(self, http: HttpExchange) -> Refusal | None:
        refusal = check_accept(http.headers) or check_version_header(http.headers, None)
        refusal = refusal or self._sessions.shares.make_room(http.client)
        if refusal is not None:
            return refusal
        codec = Codec(line_end=b"", dialects=self._limits.dialects)
        session = LegacySession(self._running, http, self._limits.sessions, codec)
        self._by_id[session.id] = session
        self._sessions.shares.add(session, self._evict)
        try:
            await session.run(http, self._limits.keep_alive_seconds)
        finally:
            self._forget(session)
            with log_errors():
                await session.close()
            self._sessions.count_ended()
        return None

    async def _post(self, http: HttpExchange) -> Refusal | None:
        refusal = check_content(http.headers)
        if refusal is not None:
            return refusal
        ids = parse_qs(http.query.decode("latin-1")).get(ID, ())
        session_id = ids[0] if len(ids) == 1 else ""
        session = self._find(session_id, http.principal)
        if session is not None:
            return await self._receive(session, http)
        replica = replica_of(session_id)
        if replica is None or replica == self._sessions.replica.number:
            return _UNKNOWN
        # Forward the message to the replica that has the stream, if that replica exists.
        body = await self._bodies.read(http, _read_unchanged)
        if isinstance(body, Refusal):
            return body
        # The body is not decoded, because only the replica with the stream knows the version of the session.
        post = Post(body, http.principal, http.headers.get(VERSION_HEADER))
        try:
            if not await self._sessions.replica.bus.deliver(replica, Notice(session_id, post=post)):
                return _UNKNOWN
        except OSError:
            return MAY_HAVE_RUN  # it may have been delivered
        await http.reply.json(202, b"")
        return None

    async def _receive(self, session: LegacySession, http: HttpExchange) -> Refusal | None:
        messages = await self._bodies.read(http, session.codec.feed_body_steps)
        if isinstance(messages, Refusal):
            return messages
        more_requests = _count_requests(messages) - 1  # admission has counted one for the POST
        if more_requests > 0 and self._quotas is not None:
            error = await self._quotas.check(http.client, more_requests)
            if error is not None:
                return limit_exceeded(error)
        if session.is_ending:
            return _UNKNOWN
        self._sessions.shares.use(session)
        refusal = session.process_post(http.headers, messages, http.principal)
        if refusal is None:
            await http.reply.json(202, b"")
        return refusal

    def _find(self, id: str, principal: Principal | None) -> LegacySession | None:
        """Return the session with that id, if it is here."""
        session = self._by_id.get(id)
        # Someone else's session is treated as unknown.
        return session if session is not None and session.is_of(principal) else None

    def _receive_forwarded(self, id: str, post: Post) -> None:
        session = self._find(id, post.principal)
        if session is not None and not session.is_ending:
            self._sessions.shares.use(session)
            more_requests = _count_requests(session.process_forwarded(post)) - 1
            if more_requests > 0 and self._quotas is not None:  # the other replica could not count them
                self._quotas.charge(session.client, more_requests)

    # Notifications of changes among the replicas

    def on_lost(self) -> None:
        """End all streams, to which no other replica can deliver messages anymore; their clients open new ones."""
        self.end_all(orderly=False)

    def on_return(self) -> None:
        """Do nothing: a replica that has just rejoined the others has no streams."""

    def on_departure(self) -> None:
        """Do nothing: the streams of a lost replica are lost, too."""

    # The end

    def _evict(self, session: LegacySession) -> None:
        self._forget(session)
        session.end()

    def _forget(self, session: LegacySession) -> None:
        if self._by_id.pop(session.id, None) is not None:
            self._sessions.shares.remove(session)


def _read_unchanged(body: bytes) -> Steps[bytes]:
    yield from ()
    return body


def _count_requests(messages: Iterable[Message]) -> int:
    return sum(len(request_ids(message)) for message in messages)
