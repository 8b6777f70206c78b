"""HTTP+SSE, the transport of 2024-11-05, beside the endpoint of today: at /sse and /messages where that is at /mcp.

    GET /sse          opens a stream. Its first event, `endpoint`, says where to POST: at an address that nobody can
                      guess, and that is relative, as a proxy may serve both under another path. All that we have to
                      say comes as `message` events, answers among them.
    POST /messages    one message of the client. It is answered by 202, and by what then comes on the stream.

An open stream is the session: when it ends, for whatever reason, its calls are cancelled, its subscriptions given up,
and its address is unknown. Nobody comes back to it, so nothing is kept for that: its events have no ids. It stays at
the replica that has the connection, and no other knows of it.

`initialize` settles any version that begins so, not 2024-11-05 alone: the official SDKs negotiate over this transport
as over every other, and a host whose URL ends in /sse would otherwise lose what came later. 2026-07-28 has no such
transport: its requests are answered by an error, on the stream, from where a client that begins with them goes on to
`initialize`.

A stream counts as a session where these are limited, and is idle until its client has initialized it: whoever opens
thousands and never posts has his share of them, for as long as a session may be idle. (2024-11-05, Transports,
HTTP with SSE.)
"""

import asyncio
import logging
import math
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from anyio import CancelScope
from anyio.abc import TaskGroup

from ...errors import InvalidRequest
from ...kit.tasks import Signal
from ...protocol.http.rules import (
    EVENT_STREAM,
    Headers,
    Refusal,
    check_accept,
    check_content,
    check_handshake_body,
    check_version_header,
    is_stateless,
    refuse,
)
from ...protocol.identity import Principal
from ...protocol.session.handshake import State
from ...protocol.wire.codec import Codec
from ...protocol.wire.framing import ServerSentEvent
from ...protocol.wire.jsonrpc import Message, Request, failure
from ...server.running import Running
from .connections import break_off
from .limits import SessionLimits
from .reply import Http, Reply, Stage, Watch, read_body
from .session import CATCH_UP_SECONDS
from .sessions import TOO_MANY, Sessions, logged

if TYPE_CHECKING:
    from .endpoint import EndpointLimits  # which has this

__all__ = ["LegacySse", "StreamSession", "sse_paths"]

log = logging.getLogger("shared.transports.http")

Decode = Callable[[Http, Codec, bytes], Awaitable[Message]]

_MESSAGES = "messages"
_ID = "session_id"
_UNKNOWN = refuse(404, "there is no such session; open a new stream")
_TOO_NEW = "this protocol version is not spoken over HTTP+SSE"


def sse_paths(path: str) -> tuple[str, str]:
    """Where streams are opened and where messages are posted, beside an endpoint at `path`."""
    base = path.removesuffix("/mcp").rstrip("/")
    return f"{base}/sse", f"{base}/{_MESSAGES}"


class StreamSession:
    """One stream, and the peer that reads it. It lives from `run` to `close`."""

    __slots__ = (
        "_behind",
        "_connection",
        "_idle",
        "_limit",
        "_opened",
        "_ready",
        "_unsent",
        "_writing",
        "client",
        "codec",
        "id",
        "is_ending",
        "uses",
    )

    def __init__(self, running: Running[Any], http: Http, limits: SessionLimits) -> None:
        """`http` is the GET that opens it."""
        loop = asyncio.get_running_loop()
        self.id = secrets.token_urlsafe(32)
        self.client = http.client
        self.uses = -1  # the `initialize` that opens other sessions is a request to this one
        self.codec = Codec(line_end=b"")
        self.is_ending = False
        """Whether it takes nothing more in."""
        self._limit = limits.stream_bytes
        self._unsent: list[ServerSentEvent] = []
        self._behind = 0
        self._ready = Signal()
        self._writing = CancelScope()
        self._opened = loop.time()
        self._idle = loop.call_later(limits.idle_seconds, self.end)
        self._connection = running.connect(http.principal, self._deliver, http.client)

    def is_of(self, principal: Principal | None) -> bool:
        """Whether it is his, or nobody's in particular."""
        return _key(self._connection.session.principal) == _key(principal)

    @property
    def is_idle(self) -> bool:
        """Whether its client has not initialized it yet."""
        return self._connection.session.snapshot().state is not State.OPEN

    @property
    def idle_seconds(self) -> float:
        """For how long it has been open and not initialized."""
        return asyncio.get_running_loop().time() - self._opened if self.is_idle else 0.0

    def take(self, headers: Headers, message: Message) -> Refusal | None:
        """Takes a message in, the answer to which comes on the stream; 400 for what must not reach it."""
        if is_stateless(headers, message):
            if not isinstance(message, Request):
                return refuse(400, _TOO_NEW)
            self._put(failure(message.id, InvalidRequest(_TOO_NEW)))
            self._ready.wake()
            return None
        version = self._connection.session.snapshot().version
        refusal = check_version_header(headers, version) or check_handshake_body(message, version)
        if refusal is None:
            self._connection.take(message)
            if not self.is_idle:
                self._idle.cancel()
        return refusal

    async def run(self, http: Http, pause: float) -> None:
        """Writes the stream until it ends or its client is gone; after each `pause` in seconds without a message a
        comment keeps the connection open."""
        with Watch(http.receive, http.reply.comment, pause, gone=self.cut), self._writing:
            await self._write(http.reply)
        if not self.is_ending:
            log.warning("a stream was cut off: its client is %d bytes behind", self._behind)
        if http.reply.stage is not Stage.ENDED:
            break_off(http.receive)

    def cut(self) -> None:
        """Ends it at once: there is nobody to read, or nothing to serve."""
        self.is_ending = True
        self._writing.cancel()

    def end(self, seconds: float = CATCH_UP_SECONDS) -> None:
        """Ends it when what is due has left, for which the client has so many seconds."""
        self.is_ending = True
        self._writing.deadline = _in(seconds)
        self._ready.wake()

    async def finish(self, seconds: float) -> None:
        """Finishes what is under way, within limits, and ends."""
        await self._connection.drain()
        self.end(seconds)

    async def close(self) -> None:
        """Cancels what is under way, waits for that, and gives up the subscriptions."""
        self.is_ending = True
        self._idle.cancel()
        await self._connection.close()

    async def _write(self, reply: Reply) -> None:
        await reply.events([ServerSentEvent(f"{_MESSAGES}?{_ID}={self.id}".encode(), "endpoint")])
        while self._unsent or not self.is_ending:
            if self._unsent:
                await reply.events(self._catch_up())
            else:
                await self._ready.wait()
        await reply.end()

    def _deliver(self) -> None:
        """Puts what is due on the stream. A client that is too far behind has a moment to catch up, for a burst is no
        slow client; what is due waits meanwhile, and holds up the calls that it comes from."""
        while self._behind <= self._limit and (outgoing := self._connection.outgoing()):
            for one in outgoing:
                if one.message is not None:
                    self._put(one.message)
        self._ready.wake()

    def _put(self, message: Message) -> None:
        event = ServerSentEvent(self.codec.encode(message))
        self._unsent.append(event)
        self._behind += len(event.data)
        if self._behind > self._limit and self._writing.deadline == math.inf:
            self._writing.deadline = _in(CATCH_UP_SECONDS)

    def _catch_up(self) -> list[ServerSentEvent]:
        events, self._unsent, self._behind = self._unsent, [], 0
        if not self.is_ending:
            self._writing.deadline = math.inf
        self._deliver()
        return events


class LegacySse:
    """The streams of one server, and the messages that are posted to them."""

    def __init__(
        self,
        running: Running[Any],
        tasks: TaskGroup,
        sessions: Sessions,
        decode: Decode,
        limits: "EndpointLimits",
        path: str,
    ) -> None:
        """They count among `sessions`; `decode` makes a message of a body; `path` is that of the endpoint."""
        self._running = running
        self._tasks = tasks
        self._sessions = sessions
        self._decode = decode
        self._limits = limits
        self._sse, _ = sse_paths(path)
        self._by_id: dict[str, StreamSession] = {}

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
                self._tasks.start_soon(session.finish, self._running.limits.drain_seconds)
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
        if refusal is not None:
            return refusal
        if not self._sessions.shares.make_room(http.client):
            return TOO_MANY
        session = StreamSession(self._running, http, self._limits.sessions)
        self._by_id[session.id] = session
        self._sessions.shares.add(session, self._give_way)
        try:
            await session.run(http, self._limits.keep_alive_seconds)
        finally:
            self._forget(session)
            await logged(session.close())
            self._sessions.count_ended()
        return None

    async def _post(self, http: Http) -> Refusal | None:
        session, refusal = self._find(http), check_content(http.headers)
        if session is None or refusal is not None:
            return refusal or _UNKNOWN
        body = await read_body(http.receive, http.headers, self._limits.body_bytes)
        if isinstance(body, Refusal):
            return body
        message = await self._decode(http, session.codec, body)
        if session.is_ending:
            return _UNKNOWN
        self._sessions.shares.use(session)
        refusal = session.take(http.headers, message)
        if refusal is None:
            await http.reply.json(202, b"")
        return refusal

    def _find(self, http: Http) -> StreamSession | None:
        """The session that a request names; somebody else's is as unknown as one that never was."""
        named = parse_qs(http.query.decode("latin-1")).get(_ID, ())
        session = self._by_id.get(named[0]) if len(named) == 1 else None
        return session if session is not None and session.is_of(http.principal) else None

    def _give_way(self, session: StreamSession) -> None:
        self._forget(session)
        session.end()

    def _forget(self, session: StreamSession) -> None:
        if self._by_id.pop(session.id, None) is not None:
            self._sessions.shares.remove(session)


def _key(principal: Principal | None) -> str | None:
    return None if principal is None else principal.key


def _in(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds
