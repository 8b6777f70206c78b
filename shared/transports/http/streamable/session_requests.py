"""Requests to the sessions of the handshake era, up to 2025-11-25: POST, GET and DELETE at one endpoint.

Each method returns the refusal to send, or None if it has already answered.
"""

import logging
from functools import partial

from ....errors import InsufficientScope
from ....protocol.http.rules import (
    LAST_EVENT_ID,
    SESSION_ID,
    Refusal,
    check_accept,
    check_session_message,
    check_single,
    check_version_header,
    insufficient_scope,
    limit_exceeded,
    read_session_id,
    refuse,
    request_ids,
)
from ....protocol.session.batches import MAX_BATCH
from ....protocol.wire.jsonrpc import Message, Request, failure
from ..limits.rate_limits import ClientQuotas
from .reply import HttpExchange, Stage
from .session import MAY_HAVE_RUN, HttpSession
from .sessions import STORE_UNREACHABLE, Sessions
from .stream_response import send_answer, send_stream
from .streams import Reader
from .token_expiry import end_with_token, may_read, newest_reader

log = logging.getLogger("shared.transports.http")

_RETRY_MS = 1_000
"""Milliseconds after which a client may reconnect if its stream was ended because its token has expired."""


class SessionRequests:
    """The requests to the sessions of one running server."""

    def __init__(self, sessions: Sessions, quotas: ClientQuotas | None, keep_alive_seconds: float) -> None:
        self.sessions = sessions
        self._quotas = quotas
        self._keep_alive_seconds = keep_alive_seconds

    async def post(self, http: HttpExchange, message: Message) -> Refusal | None:
        """Process a body for a session, and answer its requests."""
        sessions = self.sessions
        is_opening = isinstance(message, Request) and message.method == "initialize"
        # An `initialize` with a session id is passed to that session, which refuses to be initialized again.
        if is_opening and http.headers.get(SESSION_ID) is None:
            return await self._initialize(http, message)
        id_, ids = read_session_id(http.headers), request_ids(message)
        if len(ids) > MAX_BATCH:
            ids = ()  # the message is refused below, and a store can't claim so many ids at once
        entry = id_ if isinstance(id_, Refusal) else await sessions.enter(id_, http.principal, ids)
        if isinstance(entry, Refusal):
            return entry
        # `enter` claims the ids while it finds the session, so that two replicas can't serve requests with the same
        # id.
        session, ids_are_free = entry
        # Checked after the session is found, because the check depends on the negotiated version.
        refusal = check_session_message(http.headers, message, session.version)
        if len(ids) > 1 and refusal is None and self._quotas is not None:
            error = await self._quotas.check(http.client, len(ids) - 1)  # admission has counted one for the POST
            refusal = None if error is None else limit_exceeded(error)
        if refusal is not None and ids_are_free:
            sessions.leave(session, ids)
        if refusal is not None or not ids_are_free:
            return refusal or refuse(400, "this id is in use by a request that has not been answered yet")
        if sessions.is_alone and len(ids) == 1:
            answer = session.post_request(message, ids[0], http.principal)
            if isinstance(answer, bytes):
                await send_answer(http, session, answer)
            else:
                await send_stream(http, session, answer, self._keep_alive_seconds)
            return None
        reader = session.post(message, ids, http.principal)
        if not sessions.is_alone and not await _share(sessions, session, message, reader):
            return MAY_HAVE_RUN if ids else STORE_UNREACHABLE  # a call that has begun must not be sent again
        await send_stream(http, session, reader, self._keep_alive_seconds)
        if not sessions.is_alone:
            sessions.take_over(session, message)
        return None

    async def _initialize(self, http: HttpExchange, message: Message) -> Refusal | None:
        refusal = check_single(http.headers, all_of_them=True) or check_version_header(http.headers, None)
        if refusal is not None:
            return refusal
        # Opened after the checks: a refused request opens no session, and its answer has no session id.
        session = self.sessions.open(http.principal, http.client)
        if isinstance(session, Refusal):
            return session

        async def open_headers() -> tuple[tuple[str, str], ...]:
            if session.version is None:
                return ()  # only a successful answer contains the session id
            await self.sessions.confirm(session)
            return ((SESSION_ID, session.id),)

        try:
            reader = session.post(message, request_ids(message), http.principal)
            await send_stream(http, session, reader, self._keep_alive_seconds, open_headers)
        except OSError:  # the other replicas can't be informed
            return STORE_UNREACHABLE
        finally:
            # The client has not received the id, or perhaps not, so it can't end the session.
            if session.version is None or http.reply.stage is not Stage.ENDED:
                self.sessions.end(session)
        return None

    async def get(self, http: HttpExchange) -> Refusal | None:
        """Send the client unrequested messages, or the rest of a stream."""
        refusal = check_accept(http.headers)
        if refusal is not None:
            return refusal
        session = await self._find(http)
        if isinstance(session, Refusal):
            return session
        peer = session.connection.session
        # The token needs the scopes that the session's calls have required, because its stream may contain their
        # answers and messages.
        if not may_read(http.principal, peer):
            answer = failure(None, InsufficientScope(peer.needed_scopes))
            return Refusal(403, answer, insufficient_scope(answer, http.resource) or ())
        last_event = http.headers.get(LAST_EVENT_ID)
        try:
            # A GET with an id resumes the stream of that event, even if a POST started it (2025-11-25, Resumability
            # and Redelivery).
            reader = await (session.resume(last_event) if last_event else session.listen())
        except OSError:
            return STORE_UNREACHABLE
        if isinstance(reader, Refusal):
            return reader
        self.sessions.adopt(session)
        # Checked again while the stream is read: a later call may need more scopes than this token has.
        reader.may_read = partial(may_read, http.principal, peer)
        # When the token expires, the response ends but not the stream: the client may reconnect with a valid token.
        pause = partial(reader.pause, _RETRY_MS)
        with end_with_token(http.principal, partial(newest_reader, peer), pause):
            await send_stream(http, session, reader, self._keep_alive_seconds)
        return None

    async def delete(self, http: HttpExchange) -> Refusal | None:
        """End a session."""
        session = await self._find(http)
        if isinstance(session, Refusal):
            return session
        self.sessions.end(session)
        try:
            # Wait until every replica knows: after DELETE, a client relies on the id being unknown everywhere.
            await self.sessions.settle()
        except OSError:  # the other replicas may not know
            return MAY_HAVE_RUN
        await http.reply.json(200, b"")
        return None

    async def _find(self, http: HttpExchange) -> HttpSession | Refusal:
        """Return the session of a GET or DELETE."""
        id_ = read_session_id(http.headers)
        entry = id_ if isinstance(id_, Refusal) else await self.sessions.enter(id_, http.principal)
        if isinstance(entry, Refusal):
            return entry
        return check_version_header(http.headers, entry[0].version) or entry[0]


async def _share(sessions: Sessions, session: HttpSession, message: Message, reader: Reader | None) -> bool:
    """Share the effects of a processed message with other replicas. Returns False if that fails; then the answer that
    waits for `reader` is dropped."""
    try:
        await sessions.share(session, message)
    except OSError as error:
        log.warning("a message could not be shared with the other replicas: %s", error)
        if reader is not None:
            session.on_stream_opened()
            session.on_stream_closed(reader)
            session.release_room(reader.large_answer_bytes)
        return False
    return True
