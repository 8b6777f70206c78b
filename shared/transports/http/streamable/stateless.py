"""The requests of 2026-07-28: each POST is a separate peer, served inside its HTTP request.

If the answer is the first message to send, the reply is JSON with the status of the answer; if a notification comes
first, it is an event stream. A client that goes away cancels its request.

A request of a dialect is served in the same way. Its client may accept only one of the two forms, and the status is
200, the only status that the documents of the dialects define for an answer.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ....concurrency import Signal
from ....errors import InvalidRequest
from ....protocol.http.routing_headers import check_stateless, check_stateless_body
from ....protocol.http.rules import (
    EVENT_STREAM,
    JSON,
    Refusal,
    dialect_form,
    find_kind_status,
    refuse,
    stateless_status,
)
from ....protocol.identity import Principal
from ....protocol.session.events import Outgoing
from ....protocol.wire.codec import Codec
from ....protocol.wire.framing import ServerSentEvent
from ....protocol.wire.jsonrpc import Failure, Malformed, Message, Request, Response, failure
from ....protocol.wire.weight import weigh_texts
from ....server.dispatch.portions import Portions
from ....server.dispatch.room import LARGE_RESULT_BYTES
from ....server.run import Run
from ..engine.connections import call_when_read
from ..limits.endpoint_limits import EndpointLimits
from .header_arguments import HeaderArguments
from .reply import HttpExchange, Stage, Watch
from .token_expiry import end_with_token

_BUSY = refuse(429, "too many of your requests are being served; wait for their answers", Retry_After="1")
_NO_STREAM = f"notifications are sent on a stream: send Accept: {EVENT_STREAM}"


class StatelessRequests:
    """The stateless requests of one endpoint, served after `start`."""

    def __init__(self, limits: EndpointLimits, count_refusal: Callable[[Refusal, Principal | None], None]) -> None:
        """`count_refusal` is called with each refusal that is answered here."""
        self._running: Run[Any]
        self._header_arguments: HeaderArguments
        self._limits = limits
        self._count_refusal = count_refusal
        self._requests, self._listening = Portions(limits.requests), Portions(limits.sessions.sessions)
        self._pending: set[_StatelessRequest] = set()

    def __len__(self) -> int:
        return len(self._pending)

    def start(self, running: Run[Any]) -> None:
        """Serve `running` from now on."""
        self._running = running
        self._header_arguments = HeaderArguments(running)

    def end(self) -> None:
        """Stop with the server: listen streams end, and calls have some time to finish."""
        for request in self._pending:
            request.end()

    def cancel(self) -> None:
        """End all requests at once because the server has failed."""
        for request in self._pending:
            request.cancel()

    async def post(self, http: HttpExchange, message: Message, codec: Codec) -> Refusal | None:
        """Serve one body. Returns the refusal to answer with, or None once it is answered."""
        refusal = check_stateless_body(message)
        if refusal is not None:
            return refusal
        if not isinstance(message, Request):  # a notification, for which nothing waits here
            await http.reply.json(202, b"")
            return None
        # Only the tools that this principal sees have marked arguments here.
        refusal = check_stateless(
            http.headers, message, partial(self._header_arguments.find, principal=http.principal)
        )
        return refusal or await self._serve(http, message, codec)

    async def post_dialect(self, http: HttpExchange, message: Message, codec: Codec) -> Refusal | None:
        """Serve a body of the dialect that `codec` has detected; its refusals have the form of the dialect."""
        form = dialect_form(http.headers)
        match message:
            case Request(id_, "subscriptions/listen") if form == JSON:
                refusal = Refusal(406, failure(id_, InvalidRequest(_NO_STREAM)))
            case Request():
                return await self._serve(http, message, codec, form)
            case Malformed(answer):
                refusal = Refusal(400, answer)
            case _:
                await http.reply.json(202, b"")
                return None
        self._count_refusal(refusal, http.principal)
        await http.reply.json(refusal.status, codec.encode(refusal.failure))
        return None

    async def _serve(
        self, http: HttpExchange, request: Request, codec: Codec, required_type: str | None = None
    ) -> Refusal | None:
        # Streams that are silent for hours must not take the room of calls.
        portions = self._listening if request.method == "subscriptions/listen" else self._requests
        if not portions.reserve(http.client):
            return _BUSY
        learn = self._header_arguments.learn if request.method == "tools/list" else None
        exchange = _StatelessRequest(self._running, http, codec, required_type, learn)
        self._pending.add(exchange)
        try:
            await exchange.run(http, request, self._limits.keep_alive_seconds)
        finally:
            self._pending.discard(exchange)
            portions.release(http.client)
        return None


class _StatelessRequest:
    """One request and its answer."""

    def __init__(
        self,
        running: Run[Any],
        http: HttpExchange,
        codec: Codec,
        required_type: str | None = None,
        learn: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        """`codec` has decoded the request. `required_type` is the media type of the answer, if the client accepts no
        other. `learn` receives the result before it is sent."""
        self._codec = codec
        self._required_type = required_type
        self._learn = learn
        self._reply = http.reply
        self._resource = http.resource
        self._ready = Signal()
        self._is_over = False
        self._large_bytes = 0
        self._is_receiving = True
        self._connection = running.connect(http.principal, self._on_waiting, http.client)
        self._drain_seconds = running.calls.limits.drain_seconds
        self._drain_timer: asyncio.TimerHandle | None = None

    async def run(self, http: HttpExchange, request: Request, pause: float) -> None:
        """Answer `request`; after each `pause` in seconds without a message, a comment shows that it is being
        served."""
        try:
            self._connection.receive(request)
            self._is_receiving = False
            if outgoing := self._connection.outgoing():
                await self._write(outgoing)
            # Most requests are answered by now, and their clients need no watch.
            if not self._is_over:
                with Watch(http.receive, self._reply.comment, pause, gone=self.cancel):
                    await (self._listen(http) if request.method == "subscriptions/listen" else self._send_all())
        finally:
            if self._drain_timer is not None:
                self._drain_timer.cancel()
            if self._large_bytes:
                call_when_read(
                    http.receive, partial(self._connection.calls.room.remove, http.client, self._large_bytes)
                )
            # Most likely the client has disconnected, which cancels the call (2026-07-28, Streamable HTTP).
            await self._connection.close()
        if self._reply.stage is not Stage.ENDED:
            await self._reply.refuse(refuse(503, "the server is stopping"))

    def _on_waiting(self) -> None:
        if self._is_receiving:  # `run` writes the answer next
            return
        # The room is taken before the answer is written: the calls of many requests may end in one turn of the event
        # loop.
        waiting = self._connection.session.waiting
        answer = waiting[-1].message if waiting else None
        if isinstance(answer, Response):
            self._take_room(weigh_texts(answer.result) or 0)
        self._ready.wake()

    def _take_room(self, size: int) -> None:
        if size >= LARGE_RESULT_BYTES and not self._large_bytes:
            self._large_bytes = size
            self._connection.calls.room.add(self._connection.client, size)

    async def _listen(self, http: HttpExchange) -> None:
        with end_with_token(http.principal, lambda: None, self._connection.finish):
            await self._send_all()

    async def _send_all(self) -> None:
        while not self._is_over:
            outgoing = self._connection.outgoing()
            if outgoing:
                await self._write(outgoing)
            else:
                await self._ready.wait()

    def end(self) -> None:
        """Stop with the server: a listen stream ends, and a call has some time to finish."""
        self._connection.finish()
        self._drain_timer = asyncio.get_running_loop().call_later(self._drain_seconds, self.cancel)

    def cancel(self) -> None:
        """End the request at once: the client has disconnected, or time is up, or the server has failed."""
        self._is_over = True
        self._ready.wake()

    async def _write(self, outgoing: Sequence[Outgoing]) -> None:
        """Write messages into the reply, the answer last."""
        # One request has one answer, and nothing follows it.
        answer = next((item.message for item in outgoing if isinstance(item.message, (Response, Failure))), None)
        if self._learn is not None and isinstance(answer, Response):
            self._learn(answer.result)
        encode = self._codec.encode
        # JSON if nothing came before it, unless the client accepts only one form.
        is_json = outgoing[0].message is answer and self._reply.stage is Stage.NEW
        if answer is not None and (is_json if self._required_type is None else self._required_type == JSON):
            status_and_headers = find_kind_status(answer, self._resource) if isinstance(answer, Failure) else None
            if status_and_headers is None:  # dialects have no other status
                status_and_headers = (stateless_status(answer) if self._codec.dialect is None else 200), ()
            data = encode(answer)
            self._take_room(len(data))
            await self._reply.json(status_and_headers[0], data, status_and_headers[1])
        elif self._required_type != JSON:
            written = [encode(item.message) for item in outgoing if item.message is not None]
            events = [ServerSentEvent(data) for data in written if data]
            if events:
                self._take_room(sum(map(len, written)))
                await self._reply.events(events, last=answer is not None)
        if answer is not None:
            self._is_over = True
