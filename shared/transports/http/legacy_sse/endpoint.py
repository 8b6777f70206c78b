"""HTTP+SSE, the transport of 2024-11-05, beside the endpoint of today: at /sse and /messages where that is at /mcp.

    GET /sse          opens a stream. Its first event, `endpoint`, says where to POST: at an address that nobody can
                      guess, and that is relative, as a proxy may serve both under another path. All that we have to
                      say comes as `message` events, answers among them.
    POST /messages    one message of the client. It is answered by 202, and by what then comes on the stream.

An open stream is the session: when it ends, for whatever reason, its calls are cancelled, its subscriptions given up,
and its address is unknown. Nobody comes back to it, so nothing is kept for that: its events have no ids.

It stays at the replica that has the connection, which its id names. What is posted at another one, that passes on
as it is: only the replica with the stream knows whose the session is, and how to read what comes. So the one that
passes it on answers 202 to all that it could deliver, and the stream says what is wrong with a request.

`initialize` settles any version that begins so, not 2024-11-05 alone: the official SDKs negotiate over this transport
as over every other, and a host whose URL ends in /sse would otherwise lose what came later. 2026-07-28 has no such
transport: its requests are answered by an error, on the stream, from where a client that begins with them goes on to
`initialize`.

A stream counts as a session where these are limited, and is idle until its client has initialized it: whoever opens
thousands and never posts has his share of them, for as long as a session may be idle. (2024-11-05, Transports,
HTTP with SSE.)
"""

from typing import Any
from urllib.parse import parse_qs

from anyio.abc import TaskGroup

from ....contracts import News, Post
from ....protocol.http.rules import (
    EVENT_STREAM,
    VERSION_HEADER,
    Refusal,
    check_accept,
    check_content,
    check_version_header,
    refuse,
)
from ....protocol.identity import Principal
from ....protocol.wire.codec import Codec
from ....server.run import Run
from ..limits.endpoint_limits import EndpointLimits
from ..streamable.bodies import Bodies
from ..streamable.reply import Http
from ..streamable.session import LOST
from ..streamable.sessions import Sessions, logged
from .session import ID, MESSAGES, LegacySession, replica_of

_UNKNOWN = refuse(404, "there is no such session; open a new stream")


def sse_paths(path: str) -> tuple[str, str]:
    """Where streams are opened and where messages are posted, beside an endpoint at `path`."""
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
        """They count among `sessions`; `bodies` reads those of messages; `path` is that of the endpoint."""
        self._running = running
        self._tasks = tasks
        self._sessions = sessions
        self._bodies = bodies
        self._limits = limits
        self._sse, _ = sse_paths(path)
        self._by_id: dict[str, LegacySession] = {}
        sessions.on_post = self._take_passed_on
        sessions.replica.watch(self)

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def streams(self) -> int:
        """How many streams are being read: a session is one."""
        return len(self._by_id)

    def end_all(self, *, orderly: bool) -> None:
        """Ends every stream; lets each finish what is under way, if `orderly`, else cancels it."""
        for session in self._by_id.values():
            if orderly:
                self._tasks.start_soon(session.finish, self._running.calls.limits.drain_seconds)
            else:
                session.cut()

    async def handle(self, method: str, http: Http) -> Refusal | None:
        """Serves one request; the refusal to answer with, or None once it is answered."""
        is_stream = http.path == self._sse
        offered = "GET" if is_stream else "POST"
        if method != offered:
            return refuse(405, "this method is not offered", Allow=offered)
        return await (self._open(http) if is_stream else self._post(http))

    async def _open(self, http: Http) -> Refusal | None:
        # Who sends no such header takes anything: that version of the protocol asks for none.
        refusal = check_accept(http.headers, EVENT_STREAM) if http.headers.get("accept") else None
        refusal = refusal or check_version_header(http.headers, None)
        refusal = refusal or self._sessions.shares.make_room(http.client)
        if refusal is not None:
            return refusal
        codec = Codec(line_end=b"", dialects=self._limits.dialects)
        session = LegacySession(self._running, http, self._limits.sessions, codec)
        self._by_id[session.id] = session
        self._sessions.shares.add(session, self._give_way)
        try:
            await session.run(http, self._limits.keep_alive_seconds)
        finally:
            self._forget(session)
            with logged():
                await session.close()
            self._sessions.count_ended()
        return None

    async def _post(self, http: Http) -> Refusal | None:
        refusal = check_content(http.headers)
        if refusal is not None:
            return refusal
        named = _named(http)
        session = self._find(named, http.principal)
        if session is not None:
            return await self._take(session, http)
        owner = replica_of(named)
        if owner is None or owner == self._sessions.replica.number:
            return _UNKNOWN
        # Has the replica that has the stream, if it is there, take in what was posted here.
        body = await self._bodies.read(http, bytes)
        if isinstance(body, Refusal):
            return body
        # Unread: only the replica with the stream knows whose session it is and which version it speaks.
        post = Post(body, http.principal, http.headers.get(VERSION_HEADER))
        try:
            if not await self._sessions.replica.bus.deliver(owner, News(named, post=post)):
                return _UNKNOWN
        except OSError:
            return LOST  # it may have been delivered
        await http.reply.json(202, b"")
        return None

    async def _take(self, session: LegacySession, http: Http) -> Refusal | None:
        messages = await self._bodies.read(http, session.codec.feed_body)
        if isinstance(messages, Refusal):
            return messages
        if session.is_ending:
            return _UNKNOWN
        self._sessions.shares.use(session)
        refusal = session.take(http.headers, messages, http.principal)
        if refusal is None:
            await http.reply.json(202, b"")
        return refusal

    def _find(self, id: str, principal: Principal | None) -> LegacySession | None:
        """The session of that id that is here; somebody else's is as unknown as one that never was."""
        session = self._by_id.get(id)
        return session if session is not None and session.is_of(principal) else None

    def _take_passed_on(self, id: str, post: Post) -> None:
        session = self._find(id, post.principal)
        if session is not None and not session.is_ending:
            self._sessions.shares.use(session)
            session.take_passed_on(post)

    # What becomes of the replicas

    def lost(self) -> None:
        """Nobody can post at another replica any more: all streams end, for their clients to open new ones."""
        self.end_all(orderly=False)

    def returned(self) -> None:
        """This replica is one of the others again, and has no streams yet."""

    def left(self) -> None:
        """Another replica is gone, and its streams with it."""

    # The end

    def _give_way(self, session: LegacySession) -> None:
        self._forget(session)
        session.end()

    def _forget(self, session: LegacySession) -> None:
        if self._by_id.pop(session.id, None) is not None:
            self._sessions.shares.remove(session)


def _named(http: Http) -> str:
    """The id that a request names; empty where that is not one."""
    named = parse_qs(http.query.decode("latin-1")).get(ID, ())
    return named[0] if len(named) == 1 else ""
