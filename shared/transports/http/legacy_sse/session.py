"""A session of HTTP+SSE: one stream, and the connection with its peer."""

import asyncio
import logging
import re
import secrets
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from anyio import CancelScope

from ....concurrency import Signal
from ....contracts import Post
from ....errors import InvalidRequest
from ....protocol.http.rules import (
    VERSION_HEADER,
    Headers,
    Refusal,
    check_session_message,
    is_stateless,
    refuse,
    request_ids,
)
from ....protocol.identity import Principal
from ....protocol.wire.codec import Codec
from ....protocol.wire.framing import ServerSentEvent
from ....protocol.wire.jsonrpc import Message, Request, failure
from ....server.dispatch.room import LARGE_RESULT_BYTES
from ....server.run import Run
from ..engine.connections import abort_answer, call_when_read, unread_bytes
from ..limits.endpoint_limits import SessionLimits
from ..streamable.reply import HttpExchange, Stage, Watch
from ..streamable.session import CATCH_UP_SECONDS
from ..streamable.sessions import log_errors
from ..streamable.token_expiry import end_with_token, newest_reader

log = logging.getLogger("shared.transports.http")

MESSAGES = "messages"
ID = "session_id"
"""The last part of the path for POSTs, and the query parameter that contains the session id."""
STALL_SECONDS = 2.0
"""A client that is too far behind, and reads nothing for this many seconds, is disconnected."""
_TOO_NEW = "this protocol version is not supported over HTTP+SSE"


class LegacySession:
    """One session, from `run` to `close`."""

    __slots__ = (
        "_connection",
        "_idle_timer",
        "_limit",
        "_opened_at",
        "_receive",
        "_stall_timer",
        "_unread_bytes",
        "_unsent",
        "_unsent_bytes",
        "_wakeup",
        "_write_scope",
        "client",
        "codec",
        "id",
        "is_ending",
        "request_count",
    )

    def __init__(self, running: Run[Any], http: HttpExchange, limits: SessionLimits, codec: Codec) -> None:
        """`http` is the GET that opens the session; `codec` decodes and encodes its messages."""
        loop = asyncio.get_running_loop()
        self.id = secrets.token_urlsafe(32)
        if running.replication.replica is not None:
            self.id = f"{running.replication.replica.number}-{self.id}"
        self.client = http.client
        # `initialize` is also counted here; in other sessions it comes before the first counted request.
        self.request_count = -1
        self.codec = codec
        self.is_ending = False
        """True once the session has stopped accepting messages."""
        self._limit = limits.stream_bytes
        self._receive = http.receive
        self._unsent: list[ServerSentEvent] = []
        self._unsent_bytes = 0
        self._unread_bytes: int | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._wakeup = Signal()
        self._write_scope = CancelScope()
        self._opened_at = loop.time()
        self._idle_timer = loop.call_later(limits.idle_seconds, self._end_if_idle)
        self._connection = running.connect(http.principal, self._deliver, http.client)

    def is_of(self, principal: Principal | None) -> bool:
        """Return True if the session belongs to `principal`, or if neither is authenticated."""
        return _key(self._connection.session.principal) == _key(principal)

    @property
    def is_idle(self) -> bool:
        """True if the client has not begun to use the session: `initialize` has not been answered, and no dialect is
        spoken."""
        return self.codec.dialect is None and self._connection.session.version is None

    @property
    def idle_seconds(self) -> float:
        """The seconds for which the session has been open without being initialized."""
        return asyncio.get_running_loop().time() - self._opened_at if self.is_idle else 0.0

    def process_post(
        self, headers: Headers, messages: Sequence[Message], principal: Principal | None
    ) -> Refusal | None:
        """Process the messages of a POST from `principal`, which are answered on the stream. Returns a refusal with
        status 400 for messages that must not reach the session."""
        self._connection.session.principal = principal
        if self.codec.dialect is None:
            message, version = messages[0], self._connection.session.version
            if is_stateless(headers, message):
                if not isinstance(message, Request):
                    return refuse(400, _TOO_NEW)
                self._put(failure(message.id, InvalidRequest(_TOO_NEW)))
                self._wakeup.wake()
                return None
            refusal = check_session_message(headers, message, version)
            if refusal is not None:
                return refusal
        for message in messages:
            self._connection.receive(message)
        return None

    def process_forwarded(self, post: Post) -> Sequence[Message]:
        """Process messages that were posted to another replica, which has already answered, and return them. Refused
        requests are answered with errors on the stream."""
        headers = Headers({} if post.version is None else {VERSION_HEADER: post.version})
        messages = self.codec.feed_body(post.body)
        refusal = self.process_post(headers, messages, post.principal)
        if refusal is not None:
            for id_ in request_ids(messages[0]):
                self._put(replace(refusal.failure, id=id_))
            self._wakeup.wake()
        return messages

    async def run(self, http: HttpExchange, keep_alive_seconds: float) -> None:
        """Write the stream until it ends or its client is gone. Every `keep_alive_seconds`, a comment keeps the
        connection open."""
        session = self._connection.session
        with (
            end_with_token(http.principal, partial(newest_reader, session), self.end),
            Watch(http.receive, http.reply.comment, keep_alive_seconds, on_gone=self.cancel),
            self._write_scope,
        ):
            await http.reply.events([ServerSentEvent(f"{MESSAGES}?{ID}={self.id}".encode(), "endpoint")])
            while self._unsent or not self.is_ending:
                if self._unsent:
                    events, size, self._unsent, self._unsent_bytes = self._unsent, self._unsent_bytes, [], 0
                    self._unread_bytes = None  # unknown until the next check, because this write adds to it
                    self._deliver()
                    await self._write(http, events, size)
                else:
                    await self._wakeup.wait()
            await http.reply.end()
        if not self.is_ending:
            log.warning("a stream was closed: its client is %d bytes behind", self._unsent_bytes)
        if http.reply.stage is not Stage.ENDED:
            abort_answer(http.receive)

    async def _write(self, http: HttpExchange, events: Sequence[ServerSentEvent], size: int) -> None:
        room = self._connection.calls.room
        if size < LARGE_RESULT_BYTES:
            await http.reply.events(events)
            return
        room.add(self.client, size)
        try:
            await http.reply.events(events)
        finally:
            call_when_read(http.receive, partial(room.remove, self.client, size))

    def cancel(self) -> None:
        """End the session at once, because its client is gone or the server has failed."""
        self.is_ending = True
        self._write_scope.cancel()

    def end(self, drain_seconds: float = CATCH_UP_SECONDS) -> None:
        """End the session once the client has read the pending messages, for which it has `drain_seconds`."""
        self.is_ending = True
        self._write_scope.deadline = asyncio.get_running_loop().time() + drain_seconds
        self._wakeup.wake()

    def _end_if_idle(self) -> None:
        if self.is_idle:
            self.end()

    async def finish(self, drain_seconds: float) -> None:
        """Finish pending calls, within limits, and end the session; its client may read for `drain_seconds`."""
        await self._connection.drain()
        self.end(drain_seconds)

    async def close(self) -> None:
        """Cancel pending calls, wait for their end, and cancel the subscriptions."""
        self.is_ending = True
        self._idle_timer.cancel()
        if self._stall_timer is not None:
            self._stall_timer.cancel()
        await self._connection.close()

    def _deliver(self) -> None:
        """Put pending messages on the stream. If its client is too far behind, messages wait until it has read more,
        and calls that send messages wait too."""
        # A message that can't be encoded ends the stream, because the client would wait for the message forever.
        with log_errors(self.end):
            while self._unsent_bytes <= self._limit and (outgoing := self._connection.outgoing()):
                for message in [item.message for item in outgoing if item.message is not None]:
                    self._put(message)
        self._wakeup.wake()

    def _put(self, message: Message) -> None:
        data = self.codec.encode(message)
        if not data:  # the dialect has no such message
            return
        self._unsent.append(ServerSentEvent(data))
        self._unsent_bytes += len(data)
        if self._unsent_bytes > self._limit and self._stall_timer is None:
            self._check_stall()

    def _check_stall(self) -> None:
        """Disconnect a client that is too far behind and has read nothing since the last check."""
        self._stall_timer = None
        if self._unsent_bytes <= self._limit:
            return
        previous, self._unread_bytes = self._unread_bytes, unread_bytes(self._receive)
        if previous is not None and self._unread_bytes >= previous:
            self._write_scope.cancel()
        else:
            self._stall_timer = asyncio.get_running_loop().call_later(STALL_SECONDS, self._check_stall)


def replica_of(id: str) -> int | None:
    """Return the number of the replica that holds the stream of the session `id`; None if it contains no number."""
    match = re.match(r"([0-9]{1,7})-", id)
    return None if match is None else int(match[1])


def _key(principal: Principal | None) -> str | None:
    return None if principal is None else principal.key
