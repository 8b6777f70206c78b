"""Serves one peer: the loop between a transport and a session, and the only file that starts tasks.

    messages ──▶ session.receive ──▶ a task for a Call, a scope cancelled for Cancelled, a waiter woken for Answered
    handlers ──▶ session.respond ──▶ outgoing ──▶ one writer, which sends all that is ready at once

Everything a peer causes lives in one task group and ends with it. Two things may make the reader wait: a peer
that does not take its answers, and nothing else; so cancellations and answers always get through.
"""

import math
from collections import deque
from collections.abc import Awaitable, Iterable
from typing import Any

import anyio
import anyio.lowlevel
from anyio import CancelScope, create_task_group
from anyio.abc import TaskGroup

from ..errors import CallTimeout, InputRequired, InternalError, McpError
from ..protocol.events import Answered, Call, Cancelled, Change
from ..protocol.jsonrpc import Failure, Message, RequestId, Response
from ..protocol.session import ServerSession
from ..transport import Transport
from .answers import NO_ANSWER, Waiter
from .app import Server
from .context import Context
from .handlers import HANDLERS

__all__ = ["Connection", "serve"]

_LISTEN = "subscriptions/listen"


async def serve(app: Server[Any], transport: Transport, *, principal: str | None = None) -> None:
    """Serves one peer until its stream ends; then what is under way is finished, or cancelled if it is gone.

    The server must be running (`app.running()`). Never raises for what the peer does.
    """
    session = app.session(principal)
    if app.trace is not None:
        transport = app.trace.around(transport)
    try:
        async with create_task_group() as tasks:
            connection = Connection(app, transport, session, tasks)
            app.changes.join(connection)
            try:
                tasks.start_soon(connection.write)
                await connection.read()
                await connection.drain()
            finally:
                app.changes.leave(connection)
                connection.stop()
    finally:
        await app.changes.release(session.subscriptions.subscribed.values())


class Connection:
    """One peer being served."""

    def __init__(self, app: Server[Any], transport: Transport, session: ServerSession, tasks: TaskGroup) -> None:
        self.session = session
        self._app = app
        self._transport = transport
        self._tasks = tasks
        self._scopes: dict[RequestId, CancelScope] = {}
        self._waiting: deque[tuple[Call, CancelScope]] = deque()
        self._running = 0
        self._streams: dict[RequestId, anyio.Event] = {}
        self._answers: dict[RequestId, Waiter] = {}
        self._changes: dict[Change, None] = {}
        self._ready = anyio.Event()
        self._moved = anyio.Event()
        self._ended = False
        self._sending = 0
        self._writing = CancelScope()

    # The loop

    async def read(self) -> None:
        """Takes messages in until the peer ends its stream, or is gone, which cancels what is under way."""
        try:
            while True:
                for message in await self._transport.receive():
                    self._take(message)
                self._ready.set()
                if len(self.session.waiting) + self._sending > self._app.limits.waiting_messages:
                    await self._room()
        except anyio.EndOfStream:
            return
        except anyio.BrokenResourceError:
            self.stop()

    async def write(self) -> None:
        """Sends what is ready, all at once, whenever something is, until `stop`."""
        # The scope is inside the task: a task that ends by being cancelled leaves its frames, and all they hold, to
        # the garbage collector.
        with self._writing:
            await self._write()

    def stop(self) -> None:
        """Cancels what is under way, and sends no more."""
        self._writing.cancel()
        for scope in self._scopes.values():
            scope.cancel()

    async def _write(self) -> None:
        try:
            while True:
                await self._ready.wait()
                self._ready = anyio.Event()
                if self._changes:
                    self._deliver_changes()
                waiting = self.session.outgoing()
                self._sending = len(waiting)
                if waiting:
                    await self._transport.send(waiting)
                waiting.clear()  # what is sent is not to be kept until the next message
                self._sending = 0
                if self._changes:
                    self._ready.set()
                self._step()
        except anyio.BrokenResourceError:
            self._tasks.cancel_scope.cancel()

    async def drain(self) -> None:
        """The peer sends no more: ends its streams, finishes its calls, and sends what is due, within limits."""
        self._ended = True
        for stream in self._streams.values():
            stream.set()
        for waiter in self._answers.values():
            waiter.settle(NO_ANSWER)
        with anyio.move_on_after(0 if self._writing.cancel_called else self._app.limits.drain_seconds):
            while self._scopes or self._ready.is_set() or self.session.waiting or self._sending:
                await self._moved.wait()

    def changed(self, change: Change) -> None:
        """Takes note of `change`; a change that waits to be told already is told once."""
        self._changes[change] = None
        self._ready.set()

    async def flush(self) -> None:
        """Lets waiting messages leave; waits while the peer is too slow to take them."""
        self._ready.set()
        await self._room()

    async def closing(self, id: RequestId) -> None:
        """Waits until the server ends the listen stream `id`."""
        if not self._ended:
            await self._streams[id].wait()

    def expect(self, ids: Iterable[int]) -> None:
        """Keeps the answers to our requests `ids` from now on, in whatever order they come, until `forget`."""
        for id_ in ids:
            waiter = self._answers[id_] = Waiter()
            if self._ended:
                waiter.settle(NO_ANSWER)

    def forget(self, ids: Iterable[int]) -> None:
        """No longer."""
        for id_ in ids:
            del self._answers[id_]

    async def answer_to(self, about: RequestId, id: int) -> Response | Failure:
        """Waits for the client's answer to our request `id`. The user's time is not the call's: the budget of
        `about` is extended by it."""
        scope = self._scopes.get(about)
        if scope is None or scope.deadline == math.inf:  # another question of the same call has stopped the clock
            return await self._answers[id].wait()
        began, deadline = anyio.current_time(), scope.deadline
        scope.deadline = math.inf
        try:
            return await self._answers[id].wait()
        finally:
            scope.deadline = deadline + anyio.current_time() - began

    # Events

    def _take(self, message: Message) -> None:
        for event in self.session.receive(message):
            match event:
                case Call():
                    self._begin(event)
                case Cancelled():
                    self._cancel(event)
                case Answered():
                    if event.id in self._answers:
                        self._answers[event.id].settle(event.answer)

    def _cancel(self, event: Cancelled) -> None:
        scope = self._scopes.pop(event.id, None)
        if scope is not None:
            scope.cancel()

    def _begin(self, call: Call) -> None:
        limits, scope = self._app.limits, CancelScope()
        if call.method.name == _LISTEN:
            if len(self._streams) >= limits.streams:
                self.session.fail(call.id, InternalError(f"{limits.streams} streams are open, the most there may be"))
                return
            self._scopes[call.id], self._streams[call.id] = scope, anyio.Event()
            self._tasks.start_soon(self._stream, call, scope, self._streams[call.id])
        elif len(self._waiting) >= limits.waiting_calls:
            self.session.fail(call.id, InternalError("too many calls are waiting; send fewer at once"))
        else:
            self._scopes[call.id] = scope
            if self._running < limits.concurrent_calls:
                self._running += 1
                self._tasks.start_soon(self._call, call, scope)
            else:
                self._waiting.append((call, scope))

    def _deliver_changes(self) -> None:
        """Turns changes into messages, unless so many wait already that the peer must catch up first."""
        if len(self.session.waiting) < self._app.limits.waiting_messages:
            changes, self._changes = self._changes, {}
            for change in changes:
                self.session.deliver(change)

    # Tasks

    async def _call(self, call: Call, scope: CancelScope) -> None:
        try:
            with scope:
                await anyio.lowlevel.checkpoint_if_cancelled()
                if len(self.session.waiting) + self._sending > self._app.limits.waiting_messages:
                    await self._room()
                scope.deadline = anyio.current_time() + self._app.budget.seconds
                await self._answer(call, scope)
        finally:
            self._running -= 1
            if self._waiting:
                self._running += 1
                self._tasks.start_soon(self._call, *self._waiting.popleft())
            self._over(call, scope)

    async def _stream(self, call: Call, scope: CancelScope, ending: anyio.Event) -> None:
        try:
            with scope:
                await self._answer(call, scope)
        finally:
            if self._streams.get(call.id) is ending:
                del self._streams[call.id]
            self._over(call, scope)

    async def _answer(self, call: Call, scope: CancelScope) -> None:
        """Runs the handler. This is the one place where exceptions become answers."""
        app = self._app
        outcome: dict[str, Any] | McpError | InputRequired
        handler = app.handlers.get(call.method.name) or HANDLERS[call.method.name]
        context = Context(call.id, call.peer, self, app.state, app.budget, app.changes)
        try:
            outcome = await _ungrouped(handler(app, context, call.params))
        except InputRequired as asked:
            outcome = asked
        except anyio.get_cancelled_exc_class():
            # For a call that the peer cancelled this says nothing; it is the answer when time was up.
            self._tell(call, scope, CallTimeout(app.budget.seconds))
            raise
        except Exception as error:
            outcome = app.translate(error)
        self._tell(call, scope, outcome)

    def _tell(self, call: Call, scope: CancelScope, outcome: dict[str, Any] | McpError | InputRequired) -> None:
        """Ends a call, unless the peer has cancelled it: then its id may be another call's by now."""
        if self._scopes.get(call.id) is not scope:
            return
        if isinstance(outcome, dict):
            self.session.respond(call.id, outcome)
        elif isinstance(outcome, InputRequired):
            self.session.require_input(call.id, outcome)
        else:
            self.session.fail(call.id, outcome)

    def _over(self, call: Call, scope: CancelScope) -> None:
        if self._scopes.get(call.id) is scope:
            del self._scopes[call.id]
        self._ready.set()
        self._step()

    async def _room(self) -> None:
        """Waits until the peer has taken enough of what waits for it."""
        while len(self.session.waiting) + self._sending > self._app.limits.waiting_messages:
            await self._moved.wait()

    def _step(self) -> None:
        moved, self._moved = self._moved, anyio.Event()
        moved.set()


async def _ungrouped(work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """What `work` gives. Where a task group in it failed, what it failed of first is raised by itself, so that
    an author may raise a ToolError, or ask, in a task."""
    try:
        return await work
    except BaseExceptionGroup as group:
        first: BaseException = group
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from group
