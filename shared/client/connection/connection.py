"""Runs a `ClientSession` over a transport: one reader, one writer, and a task for each question of the server's.

    call ──▶ session.request ──▶ outgoing ──▶ writer ──▶ transport
    transport ──▶ session.receive ──▶ a waiter is woken, a callback is called, or a question is answered

Callers never wait to write, so a call that is cancelled can't tear a message apart: what the transport can't take at
once is left to the writer.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup

from ...concurrency import Signal, background
from ...contracts import ClosableTransport, PromptTransport
from ...errors import McpError, MethodNotFound, PeerError, RpcError
from ...protocol.session.client import ClientSession
from ...protocol.session.client_events import Asked, ClientEvent, InputWanted, Notified, Unusable, Withdrawn
from ...protocol.session.events import Answered, Outgoing
from ...protocol.wire.jsonrpc import Failure, Fate, Gap, Message, Request, RequestId, Response
from ...tracing import spans
from ...tracing.trace_context import TRACEPARENT, current
from ..approval import Denied
from ..errors import lost
from ..options import Handler
from ..relay import Caller, Relay
from .flood import Flood

Outcome = Answered | InputWanted | Unusable

ENOUGH = 8
"""Messages that are worth a write of their own."""
_ENDED = "the server ended the connection"
_REJECTED = -1
"""The code for what the user does not want (2025-11-25, Sampling, Error Handling)."""
LAST_WORDS_SECONDS = 1.0
"""Time for the messages still due when the client closes, and for the answers still due in a session that is over."""


class Waiter:
    """Waits for the end of one request of ours. `on_notice` takes the notifications that belong to it; `relay` all
    that does, of a request that is made for somebody else."""

    __slots__ = ("_outcome", "_settled", "id", "is_stream", "on_notice", "relay", "timer")

    def __init__(self, id: RequestId, on_notice: Callable[[Notified], None] | None) -> None:
        self.id = id
        self.on_notice = on_notice
        self.relay: Relay | None = None
        self.is_stream = False
        """Whether no answer is expected soon."""
        self.timer: asyncio.TimerHandle | None = None
        self._outcome: Outcome | TimeoutError | None = None
        self._settled = Signal()

    def settle(self, outcome: Outcome | TimeoutError) -> None:
        """Says how the request ended, where that is not known yet."""
        if self._outcome is None:
            self._outcome = outcome
            self._settled.wake()

    async def wait(self) -> Response | Failure | InputWanted:
        """How it ended. Raises ConnectionError where no answer came that can be used, and TimeoutError where it came
        too late."""
        while self._outcome is None:
            await self._settled.wait()
        match self._outcome:
            case Answered(_, answer):
                return answer
            case InputWanted() as wanted:
                return wanted
            case Unusable(_, reason, fate):
                raise lost(reason, fate)
            case TimeoutError() as error:
                raise error


def result_of(answer: Response | Failure) -> dict[str, Any]:
    """The result in `answer`. Raises PeerError for an error."""
    if isinstance(answer, Failure):
        raise PeerError(answer.message, code=answer.code, data=answer.data)
    return answer.result


class Offered(Protocol):
    """Whoever wants to hear of changes."""

    uris: Sequence[str]

    def offer(self, notice: Notified) -> bool:
        """Takes a notification; False where it is none of theirs."""

    def missed(self) -> None:
        """Some may have been lost."""


class Connection:
    """A session with one server while it lasts. `hear` is told of what belongs to no request, and whether a
    subscription has taken it."""

    def __init__(
        self,
        transport: ClosableTransport,
        session: ClientSession,
        handlers: Mapping[str, Handler],
        hear: Callable[[Notified | Gap, bool], None],
        relay: Relay | None = None,
    ) -> None:
        """`relay` answers in place of the handlers."""
        self.session = session
        self.subscriptions: list[Offered] = []
        """Those that are open."""
        self.heard = 0.0
        """When something came the last time, by the clock of the loop."""
        self.gone = anyio.Event()
        """Set when the connection is lost."""
        self.closed = anyio.Event()
        """Set when nothing of it is left."""
        self._transport = transport
        self._prompt = transport if isinstance(transport, PromptTransport) else None
        self._unsent: list[Outgoing] = []
        self._is_writing = False
        self._handlers = handlers
        self._hear = hear
        self._relay = relay
        self._waiting: dict[RequestId, Waiter] = {}
        self._listening: dict[RequestId, Callable[[Notified], None]] = {}
        self._questions: dict[RequestId, anyio.CancelScope] = {}
        self._ready = Signal()
        self._drained = Signal()
        self._closed: str | None = "the client is not entered"
        self._tasks: TaskGroup

    @property
    def busy(self) -> bool:
        """Whether an answer is awaited."""
        return any(not waiter.is_stream for waiter in self._waiting.values())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Reads and writes meanwhile; closes the transport at the end."""
        self._closed = None
        try:
            async with background() as self._tasks:
                self._tasks.start_soon(self._read)
                self._tasks.start_soon(self._write)
                yield
        finally:
            with anyio.CancelScope(shield=True):
                if self._closed is None:
                    await self._last_words()
                    self._closed = "the client is closed"
                await self._transport.aclose()
                self.closed.set()

    def lose(self, reason: str) -> None:
        """Ends the connection: what waits for an answer gets none."""
        if self._closed is None:
            self._closed = reason
        self.gone.set()
        # What the transport was never given has certainly not come to the server.
        unsent = {one.message.id for one in self._due() if isinstance(one.message, Request)}
        for waiter in tuple(self._waiting.values()):
            fate: Fate = "unreached" if waiter.id in unsent else "unknown"
            waiter.settle(Unusable(waiter.id, self._closed, fate))

    async def drained(self) -> None:
        """Waits a moment for the answers to what was under way when the session was over: each has its own fate."""
        with anyio.move_on_after(LAST_WORDS_SECONDS):
            while self.busy:
                await self._drained.wait()

    def call(
        self,
        method: str,
        params: dict[str, Any],
        *,
        seconds: float | None,
        on_notice: Callable[[Notified], None] | None = None,
        caller: Caller | None = None,
    ) -> Coroutine[Any, Any, dict[str, Any] | InputWanted]:
        """One request and its result, made for `caller` where that is somebody else. When it is given up, the server
        is told.

        Raises PeerError for an error answer, TimeoutError when `seconds` have passed without any, and
        ConnectionError when the connection is lost or the answer can't be used.
        """
        run = self._call if spans.tracer is None else self._in_span
        return run(method, params, seconds, on_notice, caller)

    async def _in_span(
        self,
        method: str,
        params: dict[str, Any],
        seconds: float | None,
        on_notice: Callable[[Notified], None] | None,
        caller: Caller | None,
    ) -> dict[str, Any] | InputWanted:
        with spans.span(*_described(method, params), kind="client"):
            return await self._call(method, params, seconds, on_notice, caller)

    async def _call(
        self,
        method: str,
        params: dict[str, Any],
        seconds: float | None,
        on_notice: Callable[[Notified], None] | None,
        caller: Caller | None,
    ) -> dict[str, Any] | InputWanted:
        params = _traced(params)
        if caller is None:
            id_ = self.session.request(method, params, progress=on_notice is not None)
        else:
            on_notice = caller.relay.heard
            id_ = self.session.request(method, params, progress=caller.wants_progress, caller=caller.identity)
        with self.sent(id_, on_notice) as waiter:
            waiter.relay = None if caller is None else caller.relay
            answer = await self.answer(waiter, seconds)
        return answer if isinstance(answer, InputWanted) else result_of(answer)

    @contextmanager
    def sent(self, id: RequestId, on_notice: Callable[[Notified], None] | None = None) -> Iterator[Waiter]:
        """Has the request `id` sent that the session holds, and gives it up at the end of the block.

        Raises Unreached where the connection is lost already, and ConnectionError where it is not opened yet.
        """
        if self._closed is not None:
            raise lost(self._closed, "unreached" if self.gone.is_set() else "unknown")
        waiter = self._waiting[id] = Waiter(id, on_notice)
        self.flush()
        try:
            yield waiter
        finally:
            del self._waiting[id]
            # Nothing to cancel where the answer has come: then the session knows the id no more.
            if self.session.cancel(id, "the client gave up"):
                self.flush()
            if self._closed is not None:
                self._drained.wake()

    @contextmanager
    def listening(self, on_notice: Callable[[Notified], None]) -> Iterator[str]:
        """A token for the progress of what outlives its request: all that comes for it in the block is given to
        `on_notice`."""
        token = self.session.progress_token()
        self._listening[token] = on_notice
        try:
            yield token
        finally:
            del self._listening[token]
            self.session.forget_token(token)

    async def answer(self, waiter: Waiter, seconds: float | None) -> Response | Failure | InputWanted:
        """Waits for the end of a request. The time in which we owe the server an answer does not count.

        Raises TimeoutError when `seconds` have passed, and what `Waiter.wait` raises.
        """
        if seconds is None:
            return await waiter.wait()
        self._expect(waiter, seconds)
        try:
            return await waiter.wait()
        finally:
            if waiter.timer is not None:
                waiter.timer.cancel()

    def _expect(self, waiter: Waiter, seconds: float) -> None:
        waiter.timer = asyncio.get_running_loop().call_later(seconds, self._expire, waiter, seconds)

    def _expire(self, waiter: Waiter, seconds: float) -> None:
        # The server waits for us, perhaps for a person: its own answer can't come before ours.
        if self.session.asked:
            self._expect(waiter, seconds)
        else:
            waiter.settle(TimeoutError(f"the server gave no answer in {seconds:g} s"))

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Has a notification sent."""
        self.session.notify(method, params)
        self.flush()

    def flush(self) -> None:
        """Has sent what the session holds: at once where nothing else is under way, else by the writer, which sends
        in one piece what many want at the same time. A piece is not left to grow, for a server that has nothing to do
        meanwhile: 32 calls at a time then take 31 us each, and not 56."""
        is_growing = len(self._waiting) > 1 and self.session.outgoing_count < ENOUGH
        if self._prompt is None or self._is_writing or is_growing:
            self._ready.wake()
        elif (waiting := self._due()) and not self._prompt.try_send(waiting):
            self._unsent = waiting
            self._ready.wake()

    def _due(self) -> list[Outgoing]:
        waiting, self._unsent = [*self._unsent, *self.session.outgoing()], []
        return waiting

    async def inputs(self, wanted: InputWanted) -> dict[str, Any]:
        """What a request needs besides its own params when it is made again.

        Raises McpError where the server asks what nobody answers, and what the handlers raise.
        """
        answers: dict[str, Any] = {}
        for key, (method, params) in wanted.requests.items():
            if method not in self._handlers:
                raise McpError(f"the server asks for {method[:100]}, which was not declared")
            answers[key] = await self._handlers[method](params)
        # As it came: what is in it is the server's matter alone (2026-07-28, Multi Round-Trip Requests).
        state = {} if wanted.state is None else {"requestState": wanted.state}
        return {"inputResponses": answers, **state} if answers else state

    # Tasks

    async def _read(self) -> None:
        current.set(None)  # it outlives the call that it was opened for
        clock, flood = asyncio.get_running_loop().time, Flood()
        try:
            while True:
                messages = await self._transport.receive()
                self.heard = clock()
                self._take(messages)
                if pause := flood.pause(messages, self.heard):
                    await anyio.sleep(pause)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            self.lose(_ENDED)

    async def _write(self) -> None:
        current.set(None)
        try:
            while True:
                # What is taken here can no longer be sent by anybody else.
                await anyio.lowlevel.checkpoint_if_cancelled()
                if waiting := self._due():
                    self._is_writing = True
                    await self._transport.send(waiting)
                    self._is_writing = False
                else:
                    await self._ready.wait()
        except anyio.BrokenResourceError:
            self.lose(_ENDED)

    async def _last_words(self) -> None:
        with suppress(anyio.BrokenResourceError), anyio.move_on_after(LAST_WORDS_SECONDS):
            if waiting := self._due():
                await self._transport.send(waiting)

    async def _answer_question(self, asked: Asked, scope: anyio.CancelScope) -> None:
        relay = self._relay_of(asked)
        with scope:
            try:
                answer: dict[str, Any] | McpError = await (
                    self._handlers[asked.method](asked.params) if relay is None else relay.answer(asked)
                )
            except Denied as denied:
                answer = RpcError(str(denied), code=_REJECTED)
            except McpError as error:
                answer = error
            # Another question may have the id of one that was taken back.
            if self._questions.get(asked.id) is not scope:
                return
            if isinstance(answer, McpError):
                self.session.fail(asked.id, answer)
            else:
                self.session.respond(asked.id, answer)
            del self._questions[asked.id]
            self.flush()

    # Events

    def _take(self, messages: Sequence[Message]) -> None:
        for message in messages:
            for event in self.session.receive(message):
                self._carry_out(event)
        if self.session.outgoing_count:
            self.flush()

    def _carry_out(self, event: ClientEvent) -> None:
        match event:
            case Answered() | InputWanted() | Unusable():
                if event.id in self._waiting:
                    self._waiting[event.id].settle(event)
                if isinstance(event, Unusable) and event.fate == "session over" and self._closed is None:
                    self._closed = event.reason
                    self.gone.set()
            case Notified():
                self._notified(event)
            case Asked() if event.method not in self._handlers and self._relay_of(event) is None:
                self.session.fail(event.id, MethodNotFound(f"method not found: {event.method[:100]}"))
            case Asked():
                scope = self._questions[event.id] = anyio.CancelScope()
                self._tasks.start_soon(self._answer_question, event, scope)
            case Withdrawn():
                if event.id in self._questions:
                    self._questions.pop(event.id).cancel()
            case Gap():
                for subscription in tuple(self.subscriptions):
                    subscription.missed()
                self._hear(event, bool(self.subscriptions))

    def _notified(self, event: Notified) -> None:
        if event.stream is not None and (theirs := self._waiting.get(event.stream)) and theirs.relay is not None:
            theirs.relay.heard(event)
            return
        if event.about in self._listening:
            self._listening[event.about](event)
            return
        if event.about is not None:
            waiter = self._waiting.get(event.about)
            if waiter is not None and waiter.on_notice is not None:
                waiter.on_notice(event)
            if waiter is not None and not waiter.is_stream:
                return
            taken = True
        else:
            # Every one of them is asked.
            taken = not self.session.stateless and True in [
                subscription.offer(event) for subscription in tuple(self.subscriptions)
            ]
        self._hear(event, taken)

    def _relay_of(self, asked: Asked) -> Relay | None:
        waiter = None if asked.stream is None else self._waiting.get(asked.stream)
        return self._relay if waiter is None or waiter.relay is None else waiter.relay


def _traced(params: dict[str, Any]) -> dict[str, Any]:
    """The params of a request that is made for what is done now, unless they name a trace themselves."""
    context = current.get()
    if context is None:
        return params
    meta = params.get("_meta") or {}
    # A gateway passes on what its own client has said.
    return params if TRACEPARENT in meta else {**params, "_meta": {**meta, **context.carried()}}


def _described(method: str, params: Mapping[str, Any]) -> tuple[str, spans.Attributes]:
    """The name and the attributes of the span of a request (OpenTelemetry, semantic conventions for MCP)."""
    attributes, name = {"mcp.method.name": method}, params.get("name")
    if not isinstance(name, str) or method not in ("tools/call", "prompts/get"):
        return method, attributes
    attributes["gen_ai.tool.name" if method == "tools/call" else "gen_ai.prompt.name"] = name[:128]
    if method == "tools/call":
        attributes["gen_ai.operation.name"] = "execute_tool"
    return f"{method} {name[:128]}", attributes
