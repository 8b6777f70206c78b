"""The connection that runs a `ClientSession` over a transport: a reader, a writer, and a task for each request from
the server.

    call ──▶ session.request ──▶ outgoing ──▶ writer ──▶ transport
    transport ──▶ session.receive ──▶ a waiter is woken, a callback is called, or a request is answered

Callers never write themselves if that may take time, so a cancelled call can't truncate a message: the writer sends
what the transport can't accept at once.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import chain
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup

from ...concurrency import Signal, background
from ...contracts import ClosableTransport, ImmediateTransport
from ...errors import McpError, MethodNotFound, PeerError, RpcError
from ...protocol.session.client import ClientSession
from ...protocol.session.client_events import (
    ClientEvent,
    InputWanted,
    Notified,
    ServerRequest,
    Stray,
    Unusable,
    Withdrawn,
)
from ...protocol.session.events import Answered, Outgoing
from ...protocol.wire.jsonrpc import Failure, Gap, NoAnswerCause, Request, RequestId, Response
from ...text import plain
from ...tracing import spans
from ...tracing.trace_context import TRACEPARENT, current
from ..approval import Denied
from ..errors import error_of_cause
from ..options import Handler
from ..relay import Caller, Relay
from .flood import Flood

_log = logging.getLogger("shared.client.connection")

Outcome = Answered | InputWanted | Unusable

BATCH_SIZE = 8
"""If at least this many messages are waiting, they are written at once instead of by the writer."""
_SERVER_ENDED = "the server ended the connection"
_REJECTED_BY_USER = -1
"""The error code for a rejection by the user (2025-11-25, Sampling, Error Handling)."""
CLOSING_SECONDS = 1.0
"""Seconds to send the remaining messages when the client closes, or to receive the remaining answers when a session
has ended."""


class Waiter:
    """Waits for the end of one of the client's requests. `on_notification` receives the notifications that belong to
    the request. If the request is made on behalf of someone else, `relay` receives all messages that belong to it."""

    __slots__ = ("_has_outcome", "_outcome", "id", "is_stream", "on_notification", "relay", "timer")

    def __init__(self, id: RequestId, on_notification: Callable[[Notified], None] | None) -> None:
        self.id = id
        self.on_notification = on_notification
        self.relay: Relay | None = None
        self.is_stream = False
        """True if the request opens a stream, so that its answer comes only at the end."""
        self.timer: asyncio.TimerHandle | None = None
        self._outcome: Outcome | TimeoutError | None = None
        self._has_outcome = Signal()

    def set_outcome(self, outcome: Outcome | TimeoutError) -> None:
        """Set the outcome of the request, unless it already has one."""
        if self._outcome is None:
            self._outcome = outcome
            self._has_outcome.wake()

    async def wait(self) -> Response | Failure | InputWanted:
        """Wait for the outcome and return it. Raises ConnectionError if there is no usable answer, and TimeoutError
        if the time limit has passed."""
        while self._outcome is None:
            await self._has_outcome.wait()
        match self._outcome:
            case Answered(_, answer):
                return answer
            case InputWanted() as input_requests:
                return input_requests
            case Unusable(_, reason, cause):
                raise error_of_cause(reason, cause)
            case TimeoutError() as error:
                raise error


def result_of(answer: Response | Failure) -> dict[str, Any]:
    """Return the result in `answer`. Raises PeerError for an error."""
    if isinstance(answer, Failure):
        raise PeerError(answer.message, code=answer.code, data=answer.data)
    return answer.result


class ChangeReceiver(Protocol):
    """A receiver of notifications about changes."""

    requested: list[str]

    def on_notification(self, notification: Notified) -> bool:
        """Handle a notification. Returns False if it belongs to another receiver."""

    def on_gap(self) -> None:
        """Handle a gap in which notifications may have been lost."""


class Connection:
    """A session with one server over one transport. `on_message` receives the messages that belong to no request, and
    whether a subscription has received them as well."""

    def __init__(
        self,
        transport: ClosableTransport,
        session: ClientSession,
        handlers: Mapping[str, Handler],
        on_message: Callable[[Notified | Gap, bool], None],
        relay: Relay | None = None,
    ) -> None:
        """`relay` answers the server's requests in place of the handlers."""
        self.session = session
        self.subscriptions: list[ChangeReceiver] = []
        """The open subscriptions."""
        self.last_received = 0.0
        """The time of the last received message, on the event loop's clock."""
        self.gone = anyio.Event()
        """Set when the connection is lost."""
        self.closed = anyio.Event()
        """Set when the connection is completely closed."""
        self._transport = transport
        self._immediate_transport = transport if isinstance(transport, ImmediateTransport) else None
        self._unsent: list[Outgoing] = []
        self._is_writing = False
        self._handlers = handlers
        self._on_message = on_message
        self._relay = relay
        self._waiting: dict[RequestId, Waiter] = {}
        self._progress_listeners: dict[RequestId, Callable[[Notified], None]] = {}
        self._server_requests: dict[RequestId, anyio.CancelScope] = {}
        self._wakeup = Signal()
        self._waiter_ended = Signal()
        self._close_reason: str | None = "the client is not open"
        self._stray = ""
        self._tasks: TaskGroup

    @property
    def is_busy(self) -> bool:
        """True if a request, other than for a stream, has not been answered yet."""
        return any(not waiter.is_stream for waiter in self._waiting.values())

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Read and write during the block; close the transport at its end."""
        self._close_reason = None
        try:
            async with background() as self._tasks:
                self._tasks.start_soon(self._read)
                self._tasks.start_soon(self._write)
                yield
        finally:
            with anyio.CancelScope(shield=True):
                if self._close_reason is None:
                    await self._send_remaining()
                    self._close_reason = "the client is closed"
                await self._transport.aclose()
                self.closed.set()
                if self._stray and self.session.server is None:
                    # Working servers may print a greeting, so this is a warning only if the server has sent nothing
                    # else.
                    _log.warning("the server sent nothing but output that answers no request: %s", self._stray)

    def abort(self, reason: str) -> None:
        """End the connection at once; pending requests fail with `reason`."""
        if self._close_reason is None:
            self._close_reason = reason
        self.gone.set()
        # A request that was never passed to the transport has certainly not reached the server.
        unsent = {entry.message.id for entry in self._take_unsent() if isinstance(entry.message, Request)}
        for waiter in tuple(self._waiting.values()):
            cause: NoAnswerCause = "unreached" if waiter.id in unsent else "unknown"
            waiter.set_outcome(Unusable(waiter.id, self._close_reason, cause))

    async def drain(self) -> None:
        """Wait briefly for the answers to requests that were pending when the session ended, because the server may
        have carried out some of them."""
        with anyio.move_on_after(CLOSING_SECONDS):
            while self.is_busy:
                await self._waiter_ended.wait()

    def call(
        self,
        method: str,
        params: dict[str, Any],
        *,
        timeout_seconds: float | None,
        on_notification: Callable[[Notified], None] | None = None,
        caller: Caller | None = None,
    ) -> Coroutine[Any, Any, dict[str, Any] | InputWanted]:
        """Make one request and return its result, on behalf of `caller` if given. If it times out or is cancelled,
        the server is notified.

        Raises PeerError for an error answer, TimeoutError if none arrives in `timeout_seconds`, and ConnectionError
        if the connection is lost or the answer can't be used.
        """
        call = self._call(method, params, timeout_seconds, on_notification, caller)
        return call if spans.tracer is None else _trace(call, method, params)

    async def _call(
        self,
        method: str,
        params: dict[str, Any],
        timeout_seconds: float | None,
        on_notification: Callable[[Notified], None] | None,
        caller: Caller | None,
    ) -> dict[str, Any] | InputWanted:
        # The params of a gateway's requests already contain the trace context of the gateway's client.
        if (context := current.get()) is not None and TRACEPARENT not in (meta := params.get("_meta") or {}):
            params = {**params, "_meta": {**meta, **context.to_fields()}}
        if caller is None:
            id_ = self.session.request(method, params, progress=on_notification is not None)
        else:
            on_notification = caller.relay.on_server_message
            id_ = self.session.request(method, params, progress=caller.wants_progress, caller=caller.identity)
        with self.send(id_, on_notification) as waiter:
            waiter.relay = None if caller is None else caller.relay
            answer = await self.answer(waiter, timeout_seconds)
        return answer if isinstance(answer, InputWanted) else result_of(answer)

    @contextmanager
    def send(self, id: RequestId, on_notification: Callable[[Notified], None] | None = None) -> Iterator[Waiter]:
        """Send the request `id` of the session, and cancel it at the end of the block if it has no answer.

        Raises Unreached if the connection is already lost, and ConnectionError if it is not open yet.
        """
        if self._close_reason is not None:
            raise error_of_cause(self._close_reason, "unreached" if self.gone.is_set() else "unknown")
        waiter = self._waiting[id] = Waiter(id, on_notification)
        self.flush()
        try:
            yield waiter
        finally:
            del self._waiting[id]
            # If the request has been answered, the session no longer knows the id, and there is nothing to cancel.
            if self.session.cancel(id, "the client gave up"):
                self.flush()
            if self._close_reason is not None:
                self._waiter_ended.wake()

    @contextmanager
    def listen_for_progress(self, on_notification: Callable[[Notified], None]) -> Iterator[str]:
        """Yield a progress token for a request whose work continues after its answer. During the block,
        `on_notification` receives the notifications with this token."""
        token = self.session.make_progress_token()
        self._progress_listeners[token] = on_notification
        try:
            yield token
        finally:
            del self._progress_listeners[token]
            self.session.forget_token(token)

    async def answer(self, waiter: Waiter, timeout_seconds: float | None) -> Response | Failure | InputWanted:
        """Wait for the end of a request. The time limit is extended while the server waits for an answer.

        Raises TimeoutError after `timeout_seconds`, and the same errors as `Waiter.wait`.
        """
        if timeout_seconds is None:
            return await waiter.wait()
        self._set_timer(waiter, timeout_seconds)
        try:
            return await waiter.wait()
        finally:
            if waiter.timer is not None:
                waiter.timer.cancel()

    def _set_timer(self, waiter: Waiter, timeout_seconds: float) -> None:
        waiter.timer = asyncio.get_running_loop().call_later(timeout_seconds, self._expire, waiter, timeout_seconds)

    def _expire(self, waiter: Waiter, timeout_seconds: float) -> None:
        # The server waits for an answer from this client, perhaps from a person, and can't answer before.
        if self.session.server_request_count:
            self._set_timer(waiter, timeout_seconds)
        else:
            waiter.set_outcome(TimeoutError(f"the server did not answer within {timeout_seconds:g} s"))

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification without waiting."""
        self.session.notify(method, params)
        self.flush()

    def flush(self) -> None:
        """Send the messages that the session has prepared: at once if only one request is pending, or if `BATCH_SIZE`
        messages wait, otherwise by the writer, which combines simultaneous messages. With this rule, 32 simultaneous
        calls take 31 us each instead of 56."""
        is_growing = len(self._waiting) > 1 and self.session.outgoing_count < BATCH_SIZE
        if self._immediate_transport is None or self._is_writing or is_growing:
            self._wakeup.wake()
        elif (waiting := self._take_unsent()) and not self._immediate_transport.try_send(waiting):
            self._unsent = waiting
            self._wakeup.wake()

    def _take_unsent(self) -> list[Outgoing]:
        waiting, self._unsent = [*self._unsent, *self.session.outgoing()], []
        return waiting

    async def answer_inputs(self, input_requests: InputWanted) -> dict[str, Any]:
        """Return the params with the answers to the server's input requests, for repeating the request.

        Raises McpError for an input request without a handler, and the errors raised by the handlers.
        """
        answers: dict[str, Any] = {}
        for key, (method, params) in input_requests.requests.items():
            if method not in self._handlers:
                raise McpError(f"the server requested {method[:100]}, which was not declared")
            answers[key] = await self._handlers[method](params)
        # The state is returned unchanged: only the server interprets it (2026-07-28, Multi Round-Trip Requests).
        state = {} if input_requests.state is None else {"requestState": input_requests.state}
        return {"inputResponses": answers, **state} if answers else state

    # Tasks

    async def _read(self) -> None:
        current.set(None)  # the trace of the call that opened the connection ends before it
        clock, flood = asyncio.get_running_loop().time, Flood()
        try:
            while True:
                messages = await self._transport.receive()
                self.last_received = clock()
                for event in chain.from_iterable(map(self.session.receive, messages)):
                    self._handle(event)
                if self.session.outgoing_count:
                    self.flush()
                if pause := flood.count(messages, self.last_received):
                    await anyio.sleep(pause)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            self.abort(_SERVER_ENDED)

    async def _write(self) -> None:
        current.set(None)
        try:
            while True:
                # Checked before messages are taken, because they would be lost if this task were cancelled then.
                await anyio.lowlevel.checkpoint_if_cancelled()
                if waiting := self._take_unsent():
                    self._is_writing = True
                    await self._transport.send(waiting)
                    self._is_writing = False
                else:
                    await self._wakeup.wait()
        except anyio.BrokenResourceError:
            self.abort(_SERVER_ENDED)

    async def _send_remaining(self) -> None:
        with suppress(anyio.BrokenResourceError), anyio.move_on_after(CLOSING_SECONDS):
            if waiting := self._take_unsent():
                await self._transport.send(waiting)

    async def _answer_request(self, request: ServerRequest, scope: anyio.CancelScope) -> None:
        relay = self._relay_of(request)
        with scope:
            try:
                answer: dict[str, Any] | McpError = await (
                    self._handlers[request.method](request.params) if relay is None else relay.answer(request)
                )
            except Denied as denied:
                answer = RpcError(str(denied), code=_REJECTED_BY_USER)
            except McpError as error:
                answer = error
            # The request may have been withdrawn, and another request may have its id now.
            if self._server_requests.get(request.id) is not scope:
                return
            if isinstance(answer, McpError):
                self.session.fail(request.id, answer)
            else:
                self.session.respond(request.id, answer)
            del self._server_requests[request.id]
            self.flush()

    # Events

    def _handle(self, event: ClientEvent) -> None:
        match event:
            case Answered() | InputWanted() | Unusable():
                if event.id in self._waiting:
                    self._waiting[event.id].set_outcome(event)
                if isinstance(event, Unusable) and event.cause == "session over" and self._close_reason is None:
                    self._close_reason = event.reason
                    self.gone.set()
            case Notified():
                self._handle_notification(event)
            case ServerRequest() if event.method not in self._handlers and self._relay_of(event) is None:
                self.session.fail(event.id, MethodNotFound(f"method not found: {event.method[:100]}"))
            case ServerRequest():
                scope = self._server_requests[event.id] = anyio.CancelScope()
                self._tasks.start_soon(self._answer_request, event, scope)
            case Withdrawn():
                if event.id in self._server_requests:
                    self._server_requests.pop(event.id).cancel()
            case Gap():
                for subscription in tuple(self.subscriptions):
                    subscription.on_gap()
                self._on_message(event, bool(self.subscriptions))
            case Stray(text) if not self._stray:
                self._stray = plain(text[:200])
                _log.info("the server sent something that answers no request: %s", self._stray)

    def _handle_notification(self, event: Notified) -> None:
        if event.stream is not None and (opener := self._waiting.get(event.stream)) and opener.relay is not None:
            opener.relay.on_server_message(event)
            return
        if event.related_request_id in self._progress_listeners:
            self._progress_listeners[event.related_request_id](event)
            return
        if event.related_request_id is not None:
            waiter = self._waiting.get(event.related_request_id)
            if waiter is not None and waiter.on_notification is not None:
                waiter.on_notification(event)
            if waiter is not None and not waiter.is_stream:
                return
            is_handled = True
        else:
            # A list and not `any`, because every subscription must receive the notification.
            is_handled = not self.session.stateless and True in [
                subscription.on_notification(event) for subscription in tuple(self.subscriptions)
            ]
        self._on_message(event, is_handled)

    def _relay_of(self, request: ServerRequest) -> Relay | None:
        waiter = None if request.stream is None else self._waiting.get(request.stream)
        return self._relay if waiter is None or waiter.relay is None else waiter.relay


async def _trace(
    call: Coroutine[Any, Any, dict[str, Any] | InputWanted], method: str, params: dict[str, Any]
) -> dict[str, Any] | InputWanted:
    """Run `call` in a span (OpenTelemetry, semantic conventions for MCP)."""
    span_name, attributes, name = method, {"mcp.method.name": method}, params.get("name")
    if isinstance(name, str) and method in ("tools/call", "prompts/get"):
        span_name = f"{method} {name[:128]}"
        attributes["gen_ai.tool.name" if method == "tools/call" else "gen_ai.prompt.name"] = name[:128]
    if span_name != method and method == "tools/call":
        attributes["gen_ai.operation.name"] = "execute_tool"
    with spans.span(span_name, attributes, kind="client"):
        return await call
