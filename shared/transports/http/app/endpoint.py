"""The one HTTP endpoint of both eras (2025-11-25 and 2026-07-28, Transports, Streamable HTTP).

    POST    2026-07-28: one request, served by itself, and so is one of a dialect.   Before: a message for a
            session, or the `initialize` that opens one.
    GET     the session's stream for what no request asked for, or the rest of any stream of which the client has
            seen an event. With an upgrade to WebSocket: a stream of messages both ways.
    DELETE  the end of a session.

The checks run from the cheap to the dear and before anything is started: headers, body, era, session, message.
What is for HTTP+SSE, the transport before this one, is passed on to `legacy_sse`.
Each handler gives back the refusal to answer with, or None once it has answered itself.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from anyio.abc import TaskGroup

from ....errors import InvalidRequest, LimitExceeded
from ....protocol.http.routing_headers import check_stateless, check_stateless_body
from ....protocol.http.rules import (
    EVENT_STREAM,
    JSON,
    LAST_EVENT_ID,
    SESSION_ID,
    Refusal,
    check_accept,
    check_content,
    check_handshake_body,
    check_single,
    check_version_header,
    dialect_form,
    is_stateless,
    is_upgrade,
    limit_exceeded,
    may_be_dialect,
    refuse,
    request_ids,
)
from ....protocol.identity import Principal
from ....protocol.session.batches import MAX_BATCH
from ....protocol.session.events import Call
from ....protocol.wire.codec import Codec
from ....protocol.wire.jsonrpc import Malformed, Message, Request, failure
from ....server.running import Running
from ..legacy_sse.endpoint import LegacySse
from ..limits.client_shares import Portions
from ..limits.endpoint_limits import EndpointLimits
from ..limits.rate_limits import Allowances
from ..streamable.bodies import Bodies
from ..streamable.header_arguments import RepeatedArguments
from ..streamable.reply import Gone, Http, Stage
from ..streamable.session import LOST, HttpSession
from ..streamable.sessions import OUT_OF_REACH, Sessions
from ..streamable.stateless import StatelessRequest
from ..streamable.stream_response import follow
from ..streamable.streams import Reader
from ..streamable.token_expiry import ending_with_token

if TYPE_CHECKING:
    from ..websocket.sessions import WebSocketSessions  # loaded with the first of them

__all__ = ["Endpoint"]

Refused = Callable[[Refusal, Principal | None], None]

log = logging.getLogger("shared.transports.http")

_STANDARD = Codec(line_end=b"")
"""For bodies in the specification's own words, of which it keeps nothing."""
_STARTING = refuse(503, "the server is starting; try again in a moment", Retry_After="2")
_BUSY = refuse(429, "too many of your requests are being served; wait for their answers", Retry_After="1")
_LACKING = refuse(501, "WebSockets need the extra 'http', which is not installed here")
_NO_STREAM = f"what is listened to comes on a stream: send Accept: {EVENT_STREAM}"
_COME_BACK_MS = 1_000
_STOPPING = refuse(503, "the server is stopping", Connection="close", Retry_After="1")


class Endpoint:
    """The endpoint. It serves from `start` on, and after `fail` from the next `start` on."""

    def __init__(self, limits: EndpointLimits, path: str) -> None:
        self._running: Running[Any]
        self._limits = limits
        self._path = path
        self._sessions: Sessions | None = None
        self._legacy: LegacySse | None = None
        self._sockets: WebSocketSessions | None = None
        self._all_sessions: list[Sessions | LegacySse | WebSocketSessions] = []
        self._stateless: set[StatelessRequest] = set()
        self._bodies = Bodies(limits.body_bytes)
        self._requests, self._listening = Portions(limits.requests), Portions(limits.sessions.sessions)
        self._repeated: RepeatedArguments
        self._closed: Refusal | None = _STARTING
        """Why no request is taken."""
        self.allowances: Allowances | None = None
        """What one principal may take; settled before it starts."""
        self.audit: Refused | None = None
        """Who writes down that a request was refused, and to whom."""
        self.refused: Counter[int] = Counter()
        """How many requests were refused before the protocol came to them, by HTTP status."""

    def start(self, running: Running[Any], tasks: TaskGroup) -> None:
        """Serves `running`; has sessions live in `tasks`."""
        self._running = running
        self._repeated = RepeatedArguments(running)
        running.quota, running.on_refused = self.allowances, self._note_call
        if self.allowances is not None and running.replica is not None:
            self.allowances.limiter = running.replica.limiter
        self._sessions = Sessions(running, tasks, self._limits.sessions, self.allowances)
        self._legacy = LegacySse(running, tasks, self._sessions, self._bodies, self._limits, self._path)
        self._all_sessions = [self._sessions, self._legacy]
        self._sockets = None
        self._closed = None

    def stop(self) -> None:
        """Takes no more requests; what is under way is finished, streams are ended in order."""
        self._closed = _STOPPING
        if self._sessions is not None:
            self._running.stop()
        for one in self._stateless:
            one.end()
        for sessions in self._all_sessions:
            sessions.end_all(orderly=True)

    def fail(self, refusal: Refusal) -> None:
        """Takes no more requests, since there is nothing left to serve them; what is under way is cancelled. It may
        be said again, with more of the reason."""
        self._closed = refusal
        for one in self._stateless:
            one.give_up()
        for sessions in self._all_sessions:
            sessions.end_all(orderly=False)
        # They are over when the tasks that they live in are.
        self._sessions, self._all_sessions = None, []

    @property
    def sessions(self) -> int:
        """How many sessions are open."""
        return sum(map(len, self._all_sessions))

    @property
    def http_sessions(self) -> Iterable[HttpSession]:
        """Those of them that their clients know by an id."""
        return () if self._sessions is None else self._sessions

    @property
    def most_sessions(self) -> int:
        """How many may be open."""
        return self._limits.sessions.sessions

    @property
    def streams(self) -> int:
        """How many requests and streams are being served."""
        return len(self._stateless) + sum(sessions.streams for sessions in self._all_sessions)

    async def serve(self, method: str, http: Http) -> None:
        """Serves one request, which has passed the guards."""
        try:
            refusal = await self._handle(method, http)
        except Gone:
            return
        if refusal is not None:
            self.note(refusal, http.principal)
            await http.reply.refuse(refusal)

    def note(self, refusal: Refusal, principal: Principal | None = None) -> None:
        """Counts a refusal, of a request of `principal` where that is known."""
        self.refused[refusal.status] += 1
        if self.audit is not None:
            self.audit(refusal, principal)

    def _note_call(self, call: Call, error: LimitExceeded) -> None:
        self.note(limit_exceeded(error), call.peer.principal)

    async def _handle(self, method: str, http: Http) -> Refusal | None:
        if self._closed is not None or self._sessions is None or self._legacy is None:
            return self._closed
        if http.path != self._path:
            return await self._legacy.handle(method, http)
        if method == "GET" and is_upgrade(http.headers):
            return await self._upgrade(http, self._sessions)
        if method != "POST" and is_stateless(http.headers):
            return refuse(405, "this protocol version has POST only", Allow="POST")
        match method:
            case "POST":
                return await self._post(http, self._sessions)
            case "GET":
                return await self._get(http, self._sessions)
            case "DELETE":
                return await self._delete(http, self._sessions)
            case _:
                return refuse(405, "this method is not offered", Allow="POST, GET, DELETE")

    async def _post(self, http: Http, sessions: Sessions) -> Refusal | None:
        refusal = check_accept(http.headers, JSON, EVENT_STREAM) or check_content(http.headers)
        dialects = self._limits.dialects and may_be_dialect(http.headers, refusal)
        if refusal is not None and not dialects:
            return refusal
        body = await self._bodies.read(http)
        if isinstance(body, Refusal):
            return refusal or body
        if self._closed is not None or sessions is not self._sessions:
            # Whoever began to send this to a server that has failed since has no session with the next one.
            return refusal or self._closed or _STARTING
        codec = Codec(line_end=b"", dialects=True) if dialects else _STANDARD
        message = await self._bodies.decode(http.client, codec.decode_body, body)
        if codec.dialect is not None:
            return await self._post_dialect(http, message, codec)
        if refusal is not None:
            return refusal
        if isinstance(message, Malformed):
            return Refusal(400, message.failure)
        if is_stateless(http.headers, message):
            return await self._post_stateless(http, message, codec)
        return await self._post_session(http, sessions, message)

    async def _upgrade(self, http: Http, sessions: Sessions) -> Refusal | None:
        """Serves a peer of either era on a WebSocket."""
        if self._sockets is None:
            if find_spec("websockets") is None:
                return _LACKING
            from ..websocket.sessions import WebSocketSessions

            self._sockets = WebSocketSessions(self._running, sessions, self._bodies, self._limits, self.allowances)
            self._sockets.note = self.note
            self._all_sessions.append(self._sockets)
        return await self._sockets.upgrade(http)

    # From 2026-07-28 on

    async def _post_stateless(self, http: Http, message: Message, codec: Codec) -> Refusal | None:
        refusal = check_stateless_body(message)
        if refusal is not None:
            return refusal
        if not isinstance(message, Request):
            await http.reply.json(202, b"")
            return None
        refusal = check_stateless(http.headers, message, partial(self._repeated.of, principal=http.principal))
        return refusal or await self._serve_stateless(http, message, codec)

    async def _post_dialect(self, http: Http, message: Message, codec: Codec) -> Refusal | None:
        """Serves a message of the dialect that `codec` has found."""
        form = dialect_form(http.headers)
        match message:
            case Request(id_, "subscriptions/listen") if form == JSON:
                refusal = Refusal(406, failure(id_, InvalidRequest(_NO_STREAM)))
            case Request():
                return await self._serve_stateless(http, message, codec, form)
            case Malformed(answer):
                refusal = Refusal(400, answer)
            case _:
                await http.reply.json(202, b"")
                return None
        self.note(refusal, http.principal)
        await http.reply.json(refusal.status, codec.encode(refusal.failure))
        return None

    async def _serve_stateless(
        self, http: Http, request: Request, codec: Codec, only: str | None = None
    ) -> Refusal | None:
        portions = self._listening if request.method == "subscriptions/listen" else self._requests
        if not portions.take(http.client):
            return _BUSY
        learn = self._repeated.learn if request.method == "tools/list" else None
        one = StatelessRequest(self._running, http, codec, only, learn)
        self._stateless.add(one)
        try:
            await one.run(http, request, self._limits.keep_alive_seconds)
        finally:
            self._stateless.discard(one)
            portions.give(http.client)
        return None

    # Up to 2025-11-25

    async def _post_session(self, http: Http, sessions: Sessions, message: Message) -> Refusal | None:
        opens = isinstance(message, Request) and message.method == "initialize"
        if opens and http.headers.get(SESSION_ID) is None:
            return await self._initialize(http, sessions, message)
        id_, ids = _session_id(http), request_ids(message)
        if len(ids) > MAX_BATCH:
            ids = ()  # it is refused below, and more than a store can claim at once
        found = id_ if isinstance(id_, Refusal) else await sessions.enter(id_, http.principal, ids)
        if isinstance(found, Refusal):
            return found
        session, is_free = found
        spoken = session.spoken
        refusal = check_version_header(http.headers, spoken) or check_handshake_body(message, spoken)
        if len(ids) > 1 and refusal is None and self.allowances is not None:
            error = await self.allowances.check(http.client, len(ids) - 1)  # one was taken with the request
            refusal = None if error is None else limit_exceeded(error)
        if refusal is not None and is_free:
            sessions.leave(session, ids)
        if refusal is not None or not is_free:
            return refusal or refuse(400, "this id is in use by a request that has no answer yet")
        reader = session.post(message, ids, http.principal)
        if not sessions.is_alone and not await _share(sessions, session, message, reader):
            return LOST if ids else OUT_OF_REACH  # what has begun may not be sent again as if it had not
        await follow(http, session, reader, self._limits.keep_alive_seconds)
        if not sessions.is_alone:
            sessions.take_over(session, message)
        return None

    async def _initialize(self, http: Http, sessions: Sessions, message: Message) -> Refusal | None:
        refusal = check_single(http.headers, all_of_them=True) or check_version_header(http.headers, None)
        if refusal is not None:
            return refusal
        session = sessions.open(http.principal, http.client)
        if isinstance(session, Refusal):
            return session
        try:
            opening = partial(_opening, sessions, session)
            reader = session.post(message, request_ids(message), http.principal)
            await follow(http, session, reader, self._limits.keep_alive_seconds, opening)
        except OSError:  # the other replicas can't be told of it
            return OUT_OF_REACH
        finally:
            if session.spoken is None or http.reply.stage is not Stage.ENDED:
                sessions.end(session)
        return None

    async def _get(self, http: Http, sessions: Sessions) -> Refusal | None:
        refusal = check_accept(http.headers, EVENT_STREAM)
        if refusal is not None:
            return refusal
        session = await _find(http, sessions)
        if isinstance(session, Refusal):
            return session
        last_event = http.headers.get(LAST_EVENT_ID)
        try:
            reader = await (session.resume(last_event) if last_event else session.listen())
        except OSError:
            return OUT_OF_REACH
        if isinstance(reader, Refusal):
            return reader
        sessions.adopt(session)
        # The stream itself goes on, for whoever comes back to it with a token that is valid.
        pause = partial(reader.pause, _COME_BACK_MS)
        with ending_with_token(http.principal, lambda: session.principal, pause):
            await follow(http, session, reader, self._limits.keep_alive_seconds)
        return None

    async def _delete(self, http: Http, sessions: Sessions) -> Refusal | None:
        session = await _find(http, sessions)
        if isinstance(session, Refusal):
            return session
        sessions.end(session)
        try:
            await sessions.settle()
        except OSError:  # the other replicas may not know
            return LOST
        await http.reply.json(200, b"")
        return None


async def _opening(sessions: Sessions, session: HttpSession) -> tuple[tuple[str, str], ...]:
    """The headers of the answer to `initialize`: the session's id leaves with a good answer only."""
    if session.spoken is None:
        return ()
    await sessions.confirm(session)
    return ((SESSION_ID, session.id),)


async def _share(sessions: Sessions, session: HttpSession, message: Message, reader: Reader | None) -> bool:
    """Has other replicas know what they must of a message that was taken in. Where they can't, nobody reads the
    answer to it."""
    try:
        await sessions.share(session, message)
    except OSError as error:
        log.warning("a message could not be shared with the other replicas: %s", error)
        if reader is not None:
            session.opened()
            session.closed(reader)
        return False
    return True


def _session_id(http: Http) -> str | Refusal:
    refusal = check_single(http.headers, all_of_them=True)
    if refusal is not None:
        return refusal
    sent = http.headers.get(SESSION_ID)
    return refuse(400, "the Mcp-Session-Id header is required") if sent is None else sent


async def _find(http: Http, sessions: Sessions) -> HttpSession | Refusal:
    """The session of a request that brings no requests of its own."""
    id_ = _session_id(http)
    found = id_ if isinstance(id_, Refusal) else await sessions.enter(id_, http.principal)
    if isinstance(found, Refusal):
        return found
    return check_version_header(http.headers, found[0].spoken) or found[0]
