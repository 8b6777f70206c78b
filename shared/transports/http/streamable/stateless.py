"""The requests of 2026-07-28: each POST is a separate peer, served inside its HTTP request.

If the first message to send is the answer, the reply is JSON with the status of the answer; if it is a notification,
the reply is an event stream. A client that accepts only one of the two forms gets that; in JSON it gets no
notifications. A client that disconnects cancels its request.

A request in a dialect is served in the same way, except for the status. It is 200, the only one that the dialects
define, unless the kind of error has a status of its own.
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
    accepted_types,
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
        self._request_slots, self._listen_slots = Portions(limits.requests), Portions(limits.sessions.sessions)
        self._pending: set[_StatelessRequest] = set()

    def __len__(self) -> int:
        return len(self._pending)

    def start(self, running: Run[Any]) -> None:
        """Serve `running` from now on."""
        self._running = running
        self._header_arguments = HeaderArguments(running)

    def end(self) -> None:
        """End all requests because the server stops: listen streams end, and calls have some time to finish."""
        for request in self._pending:
            request.end()

    def cancel(self) -> None:
        """End all requests at once because the server has failed."""
        for request in self._pending:
            request.cancel()

    async def post(self, http: HttpExchange, message: Message, codec: Codec) -> Refusal | None:
        """Serve one message. Returns the refusal to send, or None if the message has already been answered."""
        refusal = check_stateless_body(message)
        if refusal is not None:
            return refusal
        if not isinstance(message, Request):  # a notification, for which no request is pending here
            await http.reply.json(202, b"")
            return None
        # A tool that is hidden from this principal is treated as unknown.
        refusal = check_stateless(
            http.headers, message, partial(self._header_arguments.find, principal=http.principal)
        )
        if refusal is not None:
            return refusal
        types = accepted_types(http.headers)
        form = types[0] if len(types) == 1 else None
        if message.method == "subscriptions/listen" and form == JSON:
            return Refusal(406, failure(message.id, InvalidRequest(_NO_STREAM)))
        return await self._serve(http, message, codec, form)

    async def post_dialect(self, http: HttpExchange, message: Message, codec: Codec) -> Refusal | None:
        """Serve a message in the dialect that `codec` has detected. Refusals have the form of the dialect."""
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
        # Listen streams have their own limit: they may last for hours, and must not take the place of calls.
        slots = self._listen_slots if request.method == "subscriptions/listen" else self._request_slots
        if not slots.reserve(http.client):
            return _BUSY
        learn = self._header_arguments.learn if request.method == "tools/list" else None
        exchange = _StatelessRequest(self._running, http, codec, required_type, learn)
        self._pending.add(exchange)
        try:
            await exchange.run(http, request, self._limits.keep_alive_seconds)
        finally:
            self._pending.discard(exchange)
            slots.release(http.client)
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
        """`codec` has decoded the request, and encodes the answer. `required_type` is the media type of the answer,
        if the client accepts no other. `learn` receives the result before it is sent."""
        self._codec = codec
        self._required_type = required_type
        self._learn = learn
        self._reply = http.reply
        self._resource = http.resource
        self._wakeup = Signal()
        self._is_over = False
        self._large_bytes = 0
        self._is_receiving = True
        self._connection = running.connect(http.principal, self._on_waiting, http.client)
        self._drain_seconds = running.calls.limits.drain_seconds
        self._drain_timer: asyncio.TimerHandle | None = None

    async def run(self, http: HttpExchange, request: Request, keep_alive_seconds: float) -> None:
        """Answer `request`. An event stream has a comment every `keep_alive_seconds`."""
        try:
            self._connection.receive(request)
            self._is_receiving = False
            if outgoing := self._connection.outgoing():
                await self._write(outgoing)
            # Most requests are answered by now, so their clients need not be watched.
            if not self._is_over:
                with Watch(http.receive, self._reply.comment, keep_alive_seconds, on_gone=self.cancel):
                    await (self._listen(http) if request.method == "subscriptions/listen" else self._send_all())
        finally:
            if self._drain_timer is not None:
                self._drain_timer.cancel()
            if self._large_bytes:
                call_when_read(
                    http.receive, partial(self._connection.calls.room.remove, http.client, self._large_bytes)
                )
            # If the call is still running, most likely the client has disconnected, which cancels the call
            # (2026-07-28, Streamable HTTP).
            await self._connection.close()
        if self._reply.stage is not Stage.ENDED:
            await self._reply.refuse(refuse(503, "the server is stopping"))

    def _on_waiting(self) -> None:
        if self._is_receiving:  # `run` writes the answer next
            return
        # The size of the answer is counted before it is written, because many calls may end in one turn of the event
        # loop.
        waiting = self._connection.session.waiting
        answer = waiting[-1].message if waiting else None
        if isinstance(answer, Response):
            self._count_large_answer(weigh_texts(answer.result) or 0)
        self._wakeup.wake()

    def _count_large_answer(self, size: int) -> None:
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
                await self._wakeup.wait()

    def end(self) -> None:
        """End the request because the server stops: a listen stream ends, and a call has some time to finish."""
        self._connection.finish()
        self._drain_timer = asyncio.get_running_loop().call_later(self._drain_seconds, self.cancel)

    def cancel(self) -> None:
        """End the request at once, because the client has disconnected, the time is up, or the server has failed."""
        self._is_over = True
        self._wakeup.wake()

    async def _write(self, outgoing: Sequence[Outgoing]) -> None:
        """Write messages into the reply, the answer last."""
        # A request has one answer, which is the last message.
        answer = next((item.message for item in outgoing if isinstance(item.message, (Response, Failure))), None)
        if self._learn is not None and isinstance(answer, Response):
            self._learn(answer.result)
        encode = self._codec.encode
        # The answer is JSON if no message came before it, unless the client accepts only one form.
        is_json = outgoing[0].message is answer and self._reply.stage is Stage.NEW
        if answer is not None and (is_json if self._required_type is None else self._required_type == JSON):
            status_and_headers = find_kind_status(answer, self._resource) if isinstance(answer, Failure) else None
            if status_and_headers is None:  # a kind without a status: dialects define only 200
                status_and_headers = (stateless_status(answer) if self._codec.dialect is None else 200), ()
            data = encode(answer)
            self._count_large_answer(len(data))
            await self._reply.json(status_and_headers[0], data, status_and_headers[1])
        elif self._required_type != JSON:
            texts = [encode(item.message) for item in outgoing if item.message is not None]
            events = [ServerSentEvent(data) for data in texts if data]
            if events:
                self._count_large_answer(sum(map(len, texts)))
                await self._reply.events(events, last=answer is not None)
        if answer is not None:
            self._is_over = True
